package expression

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// begins are expressions from which every object that an expression can reach is reached by members.
var begins = []string{
	`""`, `(1)`, `true`, `[]`, `({})`, `/x/g`, `(() => 0)`, `(function () {})`, `new Error("x")`, `new Map()`, `new Set()`, `[].values()`,
	`[].entries()`, `"".matchAll(/x/g)`, `new Map().entries()`, `new Set().values()`, `"x".match(/(?<a>x)/)`, `"x".match(/(?<a>x)/).groups`,
	`[String][0]`, `[Number][0]`, `[Boolean][0]`, `JSON.parse`, `JSON.stringify`, `Math.max`, `Object.assign`, `Object.keys`, `Array.from`, `Array.of`,
	`Array.isArray`, `Number.isInteger`, `String.fromCharCode`, `parseInt`, `parseFloat`, `isNaN`, `isFinite`, `decodeURI`,
	`encodeURIComponent`, `atob`, `btoa`, `virtualToHostDNS`, `context`, `context.tenant`, `context.tenant.config`, `context.tenant.config.a`,
}

// reachableExpressions returns expressions for all objects that are shared by the runs in a realm: each by a path from one of begins.
func reachableExpressions(t testing.TB) []string {
	t.Helper()
	r := newRealm(slow, globals(map[string]any{"a": []any{int64(1)}}))
	r.prepare(&Expression{traits: traits{computes: true}})
	var all []string
	seen := map[*goja.Object]bool{}
	var visit func(path string, o *goja.Object)
	visit = func(path string, o *goja.Object) {
		if seen[o] || strings.Count(path, "[") > 8 {
			return
		}
		seen[o] = true
		all = append(all, path)
		for at := o; at != nil; at = at.Prototype() {
			for _, name := range at.GetOwnPropertyNames() {
				_ = r.runtime.Try(func() {
					if next, ok := o.Get(name).(*goja.Object); ok {
						written, computed := fmt.Sprintf("%s[%q]", path, name), fmt.Sprintf("%s[%q + \"\"]", path, name)
						if _, refused := members[name]; refused {
							written = computed
						} else if !seen[next] {
							all = append(all, computed)
						}
						visit(written, next)
					}
				})
			}
		}
	}
	for _, text := range begins {
		e, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		call, err := r.function(e)
		if err != nil {
			t.Fatal(err)
		}
		v, err := call(goja.Undefined(), goja.Null(), goja.Null(), r.context, r.helpers[0], r.helpers[1], r.helpers[2])
		if err != nil {
			t.Fatal(err)
		}
		visit(text, v.ToObject(r.runtime))
	}
	return all
}

// writes are the ways to write x.stash, or another member, where x is what stands for %s.
var writes = []string{
	`(%s.stash = value)`, `(%s["st" + "ash"] = value)`, `(%s[0] = value)`, `%s.stash++`, `--%s.stash`, `(%s.stash ??= value)`, `(%s.stash += value)`,
	`delete %s.name`, `delete %s["na" + "me"]`, `[%s.stash] = [value]`, `({a: %s.stash} = {a: value})`, `({...%s.stash} = {a: value})`, `[...%s.stash] = [value]`,
	`(([a = %s.stash = value]) => 1)([])`, `(a => { for (const b of [1]) a.stash = b })(%s)`, `(a => { a.stash = value })(%s)`, `(({a}) => { a.stash = value })({a: %s})`,
	`Object.assign(%s, {stash: value})`, `Object["assign"](%s, {stash: value})`, `(f => f(%s, {stash: value}))(Object.assign)`, `[[%s, {stash: value}]].map(a => Object.assign(...a))`,
	`Object.assign(...[%s, {stash: value}])`, `[%s].map(Object.assign)`, `[%s].reduce(Object.assign, {stash: 1})`, `[{stash: value}].reduce(Object.assign, %s)`,
	`Object.freeze(%s)`, `[%s].map(Object.freeze)`, `Object?.freeze?.(%s)`,
	`[value].map([].push, %s)`, `[value].forEach([].fill, %s)`, `[value].some([].unshift, %s)`, `[value].every([].splice, %s)`, `[value].filter([].copyWithin, %s)`,
	`[value].find([].reverse, %s)`, `[value].findLast([].sort, %s)`, `[value].flatMap([].pop, %s)`, `new Map([[1, value]]).forEach([].shift, %s)`, `new Set([value]).forEach([].push, %s)`,
	`[value].map([]["pu" + "sh"], %s)`, `[value].map(...[[].push, %s])`, `[value].map(...[[]["fi" + "ll"], %s])`, `[value].map([].map["ca" + "ll"], %s)`,
	`Array.from([value], []["fi" + "ll"], %s)`, `Array.from([value], [].push, %s)`, `Array.from(...[[value], [].push, %s])`, `(f => f([value], []["pu" + "sh"], %s))(Array.from)`,
	`[[value]].map(Array.from, function () { return %s })`, `[value].map(Array.of, function () { return %s })`, `[[value]].map(Array["from"], function () { return %s })`,
	`({map: Array.from}).map([value], [].push, %s)`, `({from: Array.from}).from([value], [].push, %s)`, `({go: [].push, ...%s}).go(value)`,
	`%s.push(value)`, `%s.fill(value)`, `%s.set("stash", value)`, `%s.add(value)`, `%s["pu" + "sh"](value)`, `%s?.push?.(value)`, `(%s?.push)(value)`, `(0, %s.push)(value)`,
	`([%s.stash = value, [1]]).push(1)`, `(%s.stash = value, [1]).push(1)`, `(%s.stash = value, {}).toString()`, `Object.assign({}, {a: %s.stash = value})`,
	`Object.assign([], [%s.stash = value])`, `Object.freeze([%s.stash = value])`, `"x".replace(/x/, x => %s.stash = value)`, `[2, 1].sort((a, b) => %s.stash = 1)`,
	`Object.assign([1], {constructor: function () { return %s }}).map(x => value)`, `Object.assign([1], {constructor: %s}).map(x => value)`, `({...[1], constructor: %s}).map?.(x => value)`,
	`JSON.parse("[1, [2]]", (k, v) => k === "0" ? %s : v)`, `JSON.parse("[[1]]", []["fi" + "ll"], %s)`, `JSON.stringify([%s], []["pu" + "sh"])`, `JSON.stringify({a: %s}, (k, v) => v)`,
	`Object.assign({}, {["__pro" + "to__"]: %s}).stash = value`, `[].concat(%s).fill(value)`, `[%s].flat().push(value)`, `new Map([[%s, 1]]).set(%[1]s, value)`,
	`((a = %s) => (a.stash = value))()`, `((...a) => (a[0].stash = value))(%s)`, `(function f(a) { if (a) a.stash = value })(%s)`, "`${%s.stash = value}`", `[..."x"].map(x => (y => y.stash = value)(%s))`,
	`%s.lastIndex = value`, `%s.exec("xx")`, `%s.test("xx")`, `%s.next()`, `%s.compile("(?=x)")`, `%s["com" + "pile"]("(?=x)")`, `%s.set?.("stash", value)`, `%s.clear()`, `%s.delete("a")`,
	`(%s)["stash"] = value`, `[(%s).stash, a] = [value]`, `new Set([value]).forEach([]["push"], %s)`, `[value].findLastIndex([].push, %s)`, `[value].findIndex([].push, %s)`,
}

// state describes all objects that the runs in a realm share: their members, and the values of the members.
func state(r *realm) string {
	r.variables.values["path"] = goja.Undefined()
	var b strings.Builder
	numbers := map[*goja.Object]int{}
	var queue []*goja.Object
	number := func(o *goja.Object) int {
		n, ok := numbers[o]
		if !ok {
			n = len(numbers)
			numbers[o] = n
			queue = append(queue, o)
		}
		return n
	}
	number(r.runtime.GlobalObject())
	number(r.context)
	for _, helper := range r.helpers {
		number(helper.(*goja.Object))
	}
	// Functions of expressions, and what belongs to no global object.
	if v, err := r.runtime.RunString(`[[].values(), "".matchAll(/x/g), new Map().values(), new Set().values(), ""[Symbol.iterator](), function () {}, () => 0].map(x => Object.getPrototypeOf(x))`); err == nil {
		number(v.(*goja.Object))
	}
	describe := func(v goja.Value) {
		switch v := v.(type) {
		case nil:
		case *goja.Object:
			fmt.Fprintf(&b, "#%d ", number(v))
		default:
			fmt.Fprintf(&b, "%v ", v)
		}
	}
	for i := 0; i < len(queue); i++ {
		o := queue[i]
		frozen, _ := goja.AssertFunction(r.runtime.Get("Object").(*goja.Object).Get("isExtensible"))
		extensible, _ := frozen(goja.Undefined(), o)
		fmt.Fprintf(&b, "\n#%d %s %v ", i, o.ClassName(), extensible)
		if p := o.Prototype(); p != nil {
			describe(p)
		}
		for _, name := range o.GetOwnPropertyNames() {
			b.WriteString(name + ":")
			if r.runtime.Try(func() { describe(o.Get(name)) }) != nil {
				b.WriteString("fails ")
			}
		}
		for _, symbol := range o.Symbols() {
			if r.runtime.Try(func() { describe(o.GetSymbol(symbol)) }) != nil {
				b.WriteString("fails ")
			}
		}
	}
	return b.String()
}

// TestNothingStays: whatever an expression writes, by whatever means, no later run sees it: not at the next element, and
// not in another expression. The objects that runs share are compared as a whole.
func TestNothingStays(t *testing.T) {
	config := map[string]any{"a": []any{int64(1)}}
	all := reachableExpressions(t)
	if len(all) < 150 {
		t.Errorf("only %d objects are reachable: %q", len(all), all)
	}
	parts, accepted := writes, 0
	if testing.Short() {
		all = slices.DeleteFunc(slices.Clone(all), func(path string) bool { return len(path)%4 != 0 })
	}
	value := []any{"stashed"}
	for _, path := range all {
		var texts []string
		for _, write := range parts {
			texts = append(texts, fmt.Sprintf(strings.ReplaceAll(write, "%%", "%"), path))
		}
		m := NewMachine(slow, globals(config))
		computing := newRealm(slow, globals(config))
		look, err := Compile(fmt.Sprintf(`[%s.stash, %[1]s[0], %[1]s.lastIndex, "x".stash, [].stash, ({}).stash].map(x => x === undefined || x === null || typeof x === "function" ? "clean" : JSON.stringify(x))`, path))
		if err != nil {
			t.Fatal(err)
		}
		clean, _, err := m.Run(look, nil, true, "")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, text := range texts {
			e, err := Compile(text)
			if err != nil {
				continue
			}
			accepted++
			if e.unproven {
				// It has new objects for each run; another test holds this.
				continue
			}
			if e.computes {
				// One realm for all of them is one comparison, and hides nothing.
				m.own[e] = computing
			}
			for range 2 {
				_, _, _ = m.Run(e, value, true, "a.0")
			}
		}
		if again, _, err := m.Run(look, nil, true, ""); err != nil || fmt.Sprint(again) != fmt.Sprint(clean) {
			t.Errorf("after writing to %s: %v, %v; want %v", path, again, err, clean)
		}
		if computing.trimmed {
			fresh := newRealm(slow, globals(config))
			fresh.prepare(&Expression{traits: traits{computes: true}})
			if got, want := state(computing), state(fresh); got != want {
				t.Errorf("the expressions of %s that compute names change their objects: %s", path, difference(got, want))
			}
		}
		if m.shared != nil {
			fresh := newRealm(slow, globals(config))
			for name := range m.shared.guarded {
				fresh.prepare(&Expression{traits: traits{guards: []string{name}}})
			}
			if got, want := state(m.shared), state(fresh); got != want {
				t.Errorf("the expressions of %s change the objects of all: %s", path, difference(got, want))
			}
		}
	}
	if accepted < 10*len(all) {
		t.Errorf("only %d expressions are accepted", accepted)
	}
	t.Logf("%d objects, %d expressions", len(all), accepted)
}

// difference returns the first line that differs.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%.300q, and not %.300q", a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, and not %d", len(a), len(b))
}

// TestUnprovenIsFresh: an expression that is not proven to leave the built-in objects unchanged sees nothing of its
// earlier runs, nor does another expression.
func TestUnprovenIsFresh(t *testing.T) {
	m := NewMachine(slow, globals(nil))
	for _, text := range []string{
		`([].map.stash ?? "clean", [].map.stash = value, [1]).push(1) && ([].map.stash === value)`,
		`[[].map.stash ?? "clean", ([].map.stash = value, [1]).push(1)][0]`,
		`[[].map[0] ?? "clean", Array.from([value], []["fi" + "ll"], [].map)][0]`,
		`[[].map[0] ?? "clean", [[value]].map(Array.from, function () { return [].map })][0]`,
		`["x".trim.stash ?? "clean", Object.assign("".trim, {stash: value})][0]`,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if !e.unproven {
			t.Errorf("%s is proven", text)
		}
		for i := range 3 {
			if got, _, err := m.Run(e, "stashed", true, ""); err == nil && got != "clean" && got != true {
				t.Errorf("run %d of %s: %v", i, text, got)
			}
		}
	}
	look, err := Compile(`[].map.stash ?? [].map[0] ?? "".trim.stash ?? "clean"`)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := m.Run(look, nil, true, ""); got != "clean" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestProven: the usual operations of patches are proven, so that their runs share objects.
func TestProven(t *testing.T) {
	for text, proven := range map[string]bool{
		`value.replace(/^docker\.io\//, "registry.internal/")`: true, "`${context.tenant.name}.${value}`": true,
		`value.startsWith(context.tenant.name + ".") ? value.slice(context.tenant.name.length + 1) : value`: true,
		`({...value, labels: {...value.labels, tenant: context.tenant.name}})`:                              true,
		`Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("internal/")))`:         true,
		`value?.items?.map?.(x => context.tenant.config[x] ?? x)`:                                           true,
		`Object.assign({}, value, {a: 1})`:                                                                  true,
		`[...value].sort((a, b) => a < b ? -1 : 1)`:                                                         true,
		`(v => { const out = []; for (const [k] of Object.entries(v)) { out.push(k) } return out })(value)`: true,
		`value.split(",").map(Number).reduce((a, b) => a + b, 0)`:                                           true,
		`JSON.stringify(JSON.parse(atob(value)), null, 2)`:                                                  true,
		`Array.from({length: 3}, (_, i) => i)`:                                                              true,
		`(value.a = 1, value)`:                                                                              false,
		`Object.assign(value, {a: 1})`:                                                                      false,
		`value.run()`:                                                                                       false,
		`value[context.path]()`:                                                                             false,
		`value.map(x => x, [])`:                                                                             false,
		`value.map([].push)`:                                                                                false,
		`(({push}) => push)([])`:                                                                            false,
		`delete value.a`:                                                                                    false,
		`[value].map(JSON.parse)`:                                                                           false,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if e.unproven == proven {
			t.Errorf("%s is proven: %v", text, !e.unproven)
		}
	}
}
