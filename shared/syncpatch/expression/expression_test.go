package expression

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
)

// evaluateText compiles a text and runs it once.
func evaluateText(t testing.TB, text string, value any, limits Limits) (any, bool, error) {
	t.Helper()
	e, err := Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m := NewMachine(limits, globals(map[string]any{"a": []any{int64(1), map[string]any{"b": "c"}}}))
	return m.Run(e, value, true, "spec.a")
}

// globals returns the globals of a tenant with the configuration.
func globals(config map[string]any) *Globals {
	return &Globals{
		Context: map[string]any{
			"hostObject": nil, "virtualObject": nil,
			"tenant": map[string]any{"name": "tenant", "namespace": "host", "config": config},
		},
		HostDNS: func(service string) (string, error) {
			name, namespace, isService := strings.Cut(strings.TrimSuffix(service, ".svc"), ".")
			if !isService || strings.Contains(namespace, ".") {
				return "", fmt.Errorf("virtualToHostDNS: %q is not <name>.<namespace>.svc", service)
			}
			return name + "-x-" + namespace + "-x-tenant.host.svc.cluster.local", nil
		},
	}
}

// slow are the limits of the platform, with time for machines under load.
var slow = Limits{Time: time.Minute, Total: time.Minute, Result: 1 << 20, Depth: 200}

func TestResults(t *testing.T) {
	object := map[string]any{"b": int64(1), "a": map[string]any{"c": []any{"x", nil, 1.5}}}
	for text, want := range map[string]any{
		`"v-" + value.b`:                         "v-1",
		`value.a.c`:                              []any{"x", nil, 1.5},
		`value`:                                  object,
		`value.b + 1`:                            int64(2),
		`value.b / 2`:                            0.5,
		`4 / 2`:                                  int64(2),
		`2 ** 53`:                                int64(1 << 53),
		`-0`:                                     int64(0),
		`value.x?.y ?? "none"`:                   "none",
		`value.b > 0 ? "yes" : "no"`:             "yes",
		"`${value.b}:${context.path}`":           "1:spec.a",
		`Object.keys(value)`:                     []any{"a", "b"},
		`Object.keys(context)`:                   []any{"hostObject", "path", "tenant", "virtualObject"},
		`JSON.stringify(context.tenant)`:         `{"config":{"a":[1,{"b":"c"}]},"name":"tenant","namespace":"host"}`,
		`[...context.tenant.config.a].length`:    int64(2),
		`context.tenant.config.a.map(x => x.b)`:  []any{nil, "c"},
		`Array.isArray(context.tenant.config.a)`: true,
		`context.tenant.config`:                  map[string]any{"a": []any{int64(1), map[string]any{"b": "c"}}},
		`context.tenant.config.a === context.tenant.config.a`: true,
		`context.hostObject`:                nil,
		`(({a, ...rest}) => rest)(value)`:   map[string]any{"b": int64(1)},
		`{...value, b: undefined}`:          map[string]any{"a": object["a"]},
		`[undefined, , null]`:               []any{nil, nil, nil},
		`value /* comment */ .b // comment`: int64(1),
		`(v => { const out = []; for (const [k] of Object.entries(v)) { out.push(k) } return out })(value)`: []any{"a", "b"},
		`[..."cba"].sort().join("")`:                          "abc",
		`[3, 1, 2].toSorted((a, b) => b - a)`:                 []any{int64(3), int64(2), int64(1)},
		`"a-b".split("-").map(function (x) { return x + x })`: []any{"aa", "bb"},
		`[...new Set([1, 1, 2])]`:                             []any{int64(1), int64(2)},
		`new Map([["a", 1]]).get("a")`:                        int64(1),
		`atob("aGk") + atob(" aGk= ") + btoa("hé")`:           "hihiaOk=",
		`virtualToHostDNS("nginx.default.svc")`:               "nginx-x-default-x-tenant.host.svc.cluster.local",
		`value.call ?? value.bind`:                            nil,
		`"__proto__" in JSON.parse('{"__proto__": 1}')`:       true,
		`[valueExists, typeof value, typeof value.z]`:         []any{true, "object", "undefined"},
	} {
		got, deleted, err := evaluateText(t, text, object, slow)
		if err != nil || deleted != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v, %v; want %#v", text, got, deleted, err, want)
		}
	}
	if !reflect.DeepEqual(object, map[string]any{"b": int64(1), "a": map[string]any{"c": []any{"x", nil, 1.5}}}) {
		t.Errorf("the value is now %v", object)
	}
}

// TestAbsentValue: valueExists distinguishes null from absence.
func TestAbsentValue(t *testing.T) {
	e, err := Compile(`[valueExists, value === undefined, value === null]`)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(slow, &Globals{})
	for _, test := range []struct {
		exists bool
		want   []any
	}{{true, []any{true, false, true}}, {false, []any{false, true, false}}} {
		if got, _, err := m.Run(e, nil, test.exists, ""); err != nil || !reflect.DeepEqual(got, any(test.want)) {
			t.Errorf("exists %v: %v, %v", test.exists, got, err)
		}
	}
}

// TestSyntaxErrors checks that a position is the position of the error in the original text.
func TestSyntaxErrors(t *testing.T) {
	for text, index := range map[string]string{
		``:                            "1:1",
		" \n":                         "1:1",
		`value +`:                     "1:8",
		"value +\n  ":                 "2:3",
		"value\n  + foo":              "2:5",
		`while (true) {}`:             "1:1",
		`value.constructor`:           "1:7",
		`value["constructor"]`:        "1:7",
		`[1, 2n]`:                     "1:5",
		`/(?=a)/`:                     "1:1",
		`"é" + this`:                  "1:7",
		`(a => { let b; let b })()`:   "1:20",
		`1) + (2`:                     "1:2",
		`x => { while (1) { y } }`:    "1:20",
		`(({a: {constructor}}) => 1)`: "1:8",
		strings.Repeat("[", 300) + strings.Repeat("]", 300): "1:251",
		strings.Repeat("x", MaxLength+1):                    "1:1",
	} {
		_, err := Compile(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%.60q: %v", text, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d", syntax.Line, syntax.Column); got != index {
			t.Errorf("%.60q is refused at %s (%s), want %s", text, got, syntax.Message, index)
		}
	}
}

// TestNesting: no allowed text makes the parser or the compiler run out of stack.
func TestNesting(t *testing.T) {
	for _, open := range []string{"(", "[", "{a:", "!", "-", "a=>", "x?", "f(", "`${", "...", "a?.", "()=>{", "(()=>{if(1)", "[{a:(", "value=", "a=>{for(;;)", "new ", "typeof ", "1+", "1**", "a?b:"} {
		for _, text := range []string{
			strings.Repeat(open, MaxLength/len(open)),
			strings.Repeat(open, MaxLength/2/len(open)) + "1" + strings.Repeat(map[string]string{"(": ")", "[": "]", "{a:": "}", "`${": "}`", "f(": ")"}[open], MaxLength/2/len(open)),
		} {
			e, err := Compile(text)
			if e != nil {
				if _, _, err := evaluateText(t, text, nil, slow); err == nil {
					continue
				}
			}
			var syntax *SyntaxError
			if err != nil && !errors.As(err, &syntax) {
				t.Errorf("%.20q...: %v", text, err)
			}
		}
	}
}

// TestConstants: the compiler does not evaluate long chains of constants, which would double its work with each term.
func TestConstants(t *testing.T) {
	for _, operator := range []string{"||", "&&", "??"} {
		for _, term := range []string{"0", "1", "null", "!1", "(1, 2)", `"x"`} {
			if _, err := Compile(strings.Repeat(term+operator, 200) + term); err != nil {
				t.Errorf("%s %s: %v", operator, term, err)
			}
		}
	}
}

func TestRunErrors(t *testing.T) {
	for text, want := range map[string]string{
		`value.nothing.more`:                                  "1:15 TypeError",
		"value\n  .nothing.more":                              "2:12 TypeError",
		`atob("%")`:                                           "1:5 atob: the text is not base64",
		`(() => { throw "no" })()`:                            "1:10 the expression threw no",
		`(() => { throw new Error("no") })()`:                 "1:16 Error: no",
		`(() => { throw {toString() { throw 1 }} })()`:        "1:10 the expression threw an object that cannot be converted to a string",
		`(() => { throw {toString: null, valueOf: null} })()`: "1:10 the expression threw an object that cannot be converted to a string",
		`(() => { const e = new Error("x"); e.toString = e.missing; throw e })()`: "1:20 the expression threw an object that cannot be converted to a string",
		`({toString: f => ({})}) + ""`:                                            "1:2 TypeError: Could not convert object to primitive",
		`btoa()`:                                                                  "1:5 TypeError: btoa needs an argument",
		`atob()`:                                                                  "1:5 TypeError: atob needs an argument",
		`virtualToHostDNS()`:                                                      "1:17 TypeError: virtualToHostDNS needs an argument",
		`context.tenant.name = "x"`:                                               "1:16 TypeError: context cannot be changed",
		`context.x = 1`:                                                           "1:9 TypeError: context cannot be changed",
		`delete context.path`:                                                     "1:16 TypeError: context cannot be changed",
		`context.tenant.config.a.push(1)`:                                         "1:29 TypeError: context cannot be changed",
		`virtualToHostDNS("a.b.svc" + ".c".repeat(1e5))`:                          "1:17 virtualToHostDNS: ",
		`NaN`:                  "0:0 the result contains NaN",
		`({a: [() => 1]})`:     "0:0 the result contains a function",
		`new Map([[1, 2]])`:    "0:0 the result contains an object",
		`(a => (a.a = a))({})`: "0:0 the result contains an object that contains itself",
	} {
		_, _, err := evaluateText(t, text, map[string]any{}, slow)
		var failed *Error
		if !errors.As(err, &failed) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d %s", failed.Line, failed.Column, failed.Message); !strings.HasPrefix(got, want) {
			t.Errorf("%s fails with %s, want %s", text, got, want)
		} else if len(got) > 400 {
			t.Errorf("%s fails with a message of %d bytes", text, len(got))
		}
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{Time: 50 * time.Millisecond, Total: time.Minute, Result: 1000, Depth: 20}
	for text, limit := range map[string]Limit{
		`(() => { for (;;); })()`:            LimitTime,
		`"x".repeat(1001)`:                   LimitResult,
		`["x".repeat(600), "x".repeat(600)]`: LimitResult,
		`Array.from({length: 300})`:          LimitResult,
		`"x".padEnd(1e9)`:                    LimitResult,
		`(f => f(f))(f => f(f))`:             LimitDepth,
		`(() => { let x = 1; for (let i = 0; i < 21; i++) x = [x]; return x })()`: LimitDepth,
	} {
		limits := limits
		if limit != LimitTime {
			// A busy machine takes any time for an expression that ends by itself.
			limits.Time = time.Minute
		}
		_, _, err := evaluateText(t, text, nil, limits)
		if want := limits.Exceeded(limit); err == nil || err.Error() != want.Message {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	// The time of all expressions together is limited too, and a late interrupt does not end the next one.
	short := slow
	short.Total = 50 * time.Millisecond
	m := NewMachine(short, &Globals{})
	spin, err := Compile(`(() => { let a = 0; for (let i = 0; i < 1e4; i++) a += i; return a })()`)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, err = m.Run(spin, nil, true, "")
	}
	if want := short.Exceeded(LimitTotal); err.Error() != want.Message {
		t.Errorf("%v, want %v", err, want)
	}
}

// TestReach walks everything that an expression can reach by computing the names of members, and finds nothing that turns
// text into code, changes shared objects, or works on any object.
func TestReach(t *testing.T) {
	r := newRealm(slow, &Globals{})
	r.prepare(&Expression{traits: traits{computes: true}})
	begin, err := r.runtime.RunString(`["", 1, true, [], {}, /x/, () => 0, function () {}, new Error("x"), new Map(), new Set(), [].values(), "".matchAll(/x/g), ""[Symbol.iterator](),
		new Map().entries(), new Set().values(), "x".match(/(?<a>x)/), String, Number, Boolean, JSON.parse, JSON.stringify, Math.max, Object.assign, Array.from, parseInt, isNaN]`)
	if err != nil {
		t.Fatal(err)
	}
	forbidden := map[goja.Value]string{}
	for _, text := range []string{
		"Function", "Object", "Array", "RegExp", "eval", "Reflect", "Proxy", "Symbol", "Map", "Set", "Promise", "Date", "globalThis", "Error",
		"Object.prototype", "Function.prototype", "Array.prototype", "Error.prototype", "Object.getPrototypeOf", "Object.setPrototypeOf", "Object.defineProperty", "Math", "JSON",
		"Reflect.getPrototypeOf", "(async () => 0).constructor", "(function* () {}).constructor",
	} {
		v, err := r.runtime.RunString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := v.(*goja.Object); ok {
			forbidden[v] = text
		}
	}
	// What each run makes anew may have methods that change it.
	list, fresh := begin.(*goja.Object), map[*goja.Object]bool{}
	for i := range int(list.Get("length").ToInteger()) {
		fresh[list.Get(fmt.Sprint(i)).ToObject(r.runtime)] = true
	}
	seen := map[*goja.Object]bool{}
	var visit func(path string, o *goja.Object)
	visit = func(path string, o *goja.Object) {
		if name, ok := forbidden[o]; ok {
			t.Errorf("%s leads to %s", path, name)
		}
		if seen[o] {
			return
		}
		seen[o] = true
		for _, name := range slices.Concat(mutators, []string{"set", "add", "delete", "clear"}) {
			if _, there := o.Get(name).(*goja.Object); there && !fresh[o] && o != list && !strings.HasPrefix(path, "context") {
				t.Errorf("%s, which all runs share, has the method %s", path, name)
			}
		}
		for at := o; at != nil; at = at.Prototype() {
			for _, name := range at.GetOwnPropertyNames() {
				_ = r.runtime.Try(func() {
					if next, ok := o.Get(name).(*goja.Object); ok {
						visit(path+"."+name, next)
					}
				})
			}
		}
	}
	for i := range int(list.Get("length").ToInteger()) {
		visit(fmt.Sprintf("#%d", i), list.Get(fmt.Sprint(i)).ToObject(r.runtime))
	}
	visit("context", r.context)
	for i, global := range r.helpers {
		visit(parameters[3+i], global.(*goja.Object))
	}
	if len(seen) < 100 {
		t.Errorf("the walk saw %d objects", len(seen))
	}
}

// TestDeterminism: the same expression gives the same result, whatever the order of a Go map.
func TestDeterminism(t *testing.T) {
	object := map[string]any{}
	for i := range 100 {
		object[fmt.Sprintf("k%02d", i)] = int64(i)
	}
	first, _, err := evaluateText(t, `JSON.stringify(value) + Object.keys(value) + (() => { let s = ""; for (const k in value) s += k; return s })()`, object, slow)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, _, err := evaluateText(t, `JSON.stringify(value) + Object.keys(value) + (() => { let s = ""; for (const k in value) s += k; return s })()`, object, slow)
		if err != nil || again != first {
			t.Fatal(again, err)
		}
	}
	if text := first.(string); !strings.HasPrefix(text, `{"k00":0,"k01":1`) {
		t.Errorf("keys are not sorted: %.60s", text)
	}
}

func TestTraits(t *testing.T) {
	for text, want := range map[string][2]bool{
		`null`: {true, false}, `undefined`: {true, false}, `void 0`: {true, false}, `(null)`: {true, false}, `value`: {false, true}, `"x"`: {false, false},
		`(value => value)(1)`: {false, false}, `{value}`: {false, true}, `(() => value)()`: {false, true}, `value ? null : null`: {false, true},
		`[1].map(x => value)`: {false, true}, `({value: 1}).value`: {false, false}, "`${value}`": {false, true}, `(value = 1)`: {false, true},
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := [2]bool{e.AlwaysNull(), e.ReadsValue()}; got != want {
			t.Errorf("%s: constant null, reads value: %v, want %v", text, got, want)
		}
	}
}

// engineTexts are marks of texts that are made for the developers of an interpreter.
var engineTexts = regexp.MustCompile(`goja|regexp|makeslice|runtime error|interface conversion|0x[0-9a-f]{6}|[&\[]\{|ast\.|\.go:|%!|panic|[a-z](Expression|Literal|Statement)\b|nil pointer|error parsing|re2|strconv|invalid character|unexpected end of JSON`)

// foreign reports whether a message has a text that comes neither from the platform nor from the expression.
func foreign(message, text string) bool {
	for _, found := range engineTexts.FindAllString(message, -1) {
		if !strings.Contains(text, found) {
			return true
		}
	}
	return false
}

// TestMessages: errors are in the words of the platform or of JavaScript.
func TestMessages(t *testing.T) {
	for text, want := range map[string]string{
		`value.nothing.more`:               "TypeError: Cannot read property 'more' of undefined",
		`null.x`:                           "TypeError: Cannot read property 'x' of",
		`value.nothing()`:                  "TypeError: ",
		`(x => x())(1)`:                    "TypeError: the value is neither an object nor a function",
		`(x => x())({a: 1})`:               "TypeError: the value that is called is not a function",
		`[..."x"].map({})`:                 "TypeError: the value that is called is not a function",
		`[1].map("x")`:                     "TypeError: the value is neither an object nor a function",
		`[...1]`:                           "TypeError: the value is not iterable",
		`new Map([1])`:                     "TypeError: ",
		`[].reduce((a, b) => a)`:           "TypeError: Reduce of empty array",
		`(() => { const y = 1; y = 2 })()`: "TypeError: Assignment to constant variable",
		`(() => { y; let y = 1 })()`:       "ReferenceError: Cannot access a variable before initialization",
		`JSON.parse("{")`:                  "SyntaxError: the text is not JSON",
		`JSON.parse("x")`:                  "SyntaxError: the text is not JSON",
		`decodeURIComponent("%")`:          "URIError: Malformed URI",
		`"x".repeat(-1)`:                   "RangeError: Invalid count value",
		`(1).toFixed(101)`:                 "RangeError: toFixed() precision must be",
		`"x".normalize("X")`:               "RangeError: The normalization form",
		`String.fromCodePoint(-1)`:         "RangeError: Invalid code point",
		`[].with(1, 1)`:                    "RangeError: ",
		`"x".matchAll(/x/)`:                "TypeError: matchAll needs",
		`"x".replaceAll(/x/, "")`:          "TypeError: String.prototype.replaceAll called with a non-global",
		`[new Map().get].map(f => f(1))`:   "TypeError: ",
		`(a => { a.length = 4294967295; return a.toSorted() })([])`: "RangeError: ",
		`Object.freeze([1]).push(2)`:                                "TypeError: ",
		`(a => { "x".length = a })(1)`:                              "TypeError: ",
		`(a => { Object.freeze({b: 1}).b = a })(1)`:                 "TypeError: Cannot assign to property 'b'",
		`(a => { Object.freeze({b: 1}).c = a })(1)`:                 "TypeError: ",
		`delete Object.freeze({b: 1}).b`:                            "TypeError: Cannot delete property 'b'",
		`"x" in "y"`:                                                "TypeError: ",
		`"x".startsWith(/x/)`:                                       "TypeError: First argument to String.prototype.startsWith",
		`[2, 1].sort(1)`:                                            "TypeError: The comparison function must be",
		`(() => { throw new Error("makeslice") })()`:                "Error: makeslice",
		`value.map(x => x)`:                                         "TypeError: Object has no member 'map'",
		`"a".match("(?=x)")`:                                        "look-around",
		`"a".match("(")`:                                            "the regular expression is not valid",
		`"a".match("[b-a]")`:                                        "the regular expression is not valid: a range",
		`"a".match("*")`:                                            "the regular expression is not valid: nothing to repeat",
		`"a".match("(?:a{100}){1000}")`:                             "a regular expression may repeat at most 1000 times",
		`"a".match("a{1000}".repeat(20))`:                           "the regular expressions of an expression may have at most 10000 steps",
		`(r => r.compile("x"))(/a/)`:                                "TypeError: Object has no member 'compile'",
		`(r => r["com" + "pile"]("(?=x)"))(/a/)`:                    "TypeError: ",
		`(({compile}) => [/a/].map(compile, /b/))(/a/)`:             "TypeError: ",
	} {
		_, _, err := evaluateText(t, text, map[string]any{}, slow)
		if err == nil || !strings.HasPrefix(err.Error(), want) || foreign(err.Error(), text) {
			t.Errorf("%s fails with %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`(({a}) => a.#b)({})`: "", `(() => { switch (1) {} })()`: "switch is not", `#a in value`: "", `value.#a`: "", `x?.#a`: "", `new.target`: "", `(() => { debugger })()`: "debugger is not",
		`/[/`: "", `/(/`: "the regular expression is not valid", `/a**/`: "the regular expression is not valid: nothing to repeat", `/\`: "", `/a{1000}{1000}/`: "",
		`/` + strings.Repeat("a{1000}", 11) + `/`: tooManySteps, strings.Repeat(`/a{1000}/,`, 11) + `1`: tooManySteps, `/[^]/v`: "unsupported flags",
		`"\u{110000}"`: "", "`\\u`": "", `0_`: "", `1__0`: "", `08`: "", `\u0061\u`: "", `({a = 1})`: "", `a => { let a }`: "", `(a, a) => 1`: "", `-1 ** 2`: "", `1 ?? 2 || 3`: "",
		`(a = (b = c) => d`: "", `=> 1`: "", `(() => { let [a] })()`: "", `(...a, b) => 1`: "", `@`: "", "\x00": "", "\xff": "", `import.meta`: "", `async x => await x`: "",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) || foreign(err.Error(), text) {
			t.Errorf("%.40q is refused with %v, want %s", text, err, want)
		}
	}
}

// TestScan: what is too long or too deep is found without parsing; brackets in strings, templates, comments and regular
// expressions do not count.
func TestScan(t *testing.T) {
	deep := func(n int, open, middle, closing string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
	}
	for name, test := range map[string]struct {
		text string
		fits bool
	}{
		"length at":        {strings.Repeat("x", MaxLength), true},
		"length over":      {strings.Repeat("x", MaxLength+1), false},
		"depth under":      {deep(maxNesting-1, "(", "1", ")"), true},
		"depth at":         {deep(maxNesting, "[", "1", "]"), true},
		"depth over":       {deep(maxNesting+1, "{a:", "1", "}"), false},
		"templates over":   {deep(maxNesting+1, "`${", "1", "}`"), false},
		"mixed":            {deep(maxNesting/2+1, "([", "1", "])"), false},
		"not nested":       {strings.Repeat("[1],", 4000) + "1", true},
		"string":           {`"` + strings.Repeat("(", 500) + `"`, true},
		"escaped quote":    {`"\"` + strings.Repeat("(", 500) + `"`, true},
		"other quote":      {`'"` + strings.Repeat("(", 500) + `'`, true},
		"template":         {"`" + strings.Repeat("(", 500) + "${1}" + strings.Repeat("(", 500) + "`", true},
		"comment":          {"1 // " + strings.Repeat("(", 500), true},
		"other comment":    {"1 /* " + strings.Repeat("(", 500) + "*/", true},
		"pattern":          {"/[" + strings.Repeat("(", 500) + "/]/.test(value)", true},
		"division":         {"1 / (2) / " + strings.Repeat("(", 500), false},
		"after a string":   {`"a" + ` + strings.Repeat("(", 500), false},
		"after a template": {"`${1}` + " + strings.Repeat("(", 500), false},
		"after a pattern":  {"/a/.test" + strings.Repeat("(", 500), false},
		"after return":     {"() => { return /" + strings.Repeat(`\(`, 500) + "/ }", true},
	} {
		if err := Scan(test.text); (err == nil) != test.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCompiledIsBounded: what is kept of compiled expressions is bounded by its bytes, not by its number.
func TestCompiledIsBounded(t *testing.T) {
	const most = 1 << 20
	c := newCache(most)
	for i := range 1000 {
		text := fmt.Sprintf("%d + %s", i, strings.Repeat("1", i))
		c.add(text, compilation{&Expression{text: text}, nil})
		if c.size > most || c.size < 0 {
			t.Fatalf("%d bytes after %d expressions", c.size, i)
		}
	}
	if c.kept.Len() < 2 || c.kept.Len() > 999 {
		t.Errorf("%d expressions are kept", c.kept.Len())
	}
	if _, ok := c.get("999 + " + strings.Repeat("1", 999)); !ok {
		t.Error("the last expression is not kept")
	}
	c.add("large", compilation{&Expression{steps: most}, nil})
	if _, ok := c.get("large"); ok {
		t.Error("an expression that is too large is kept")
	}
	if c.forget(); c.size != 0 || c.kept.Len() != 0 {
		t.Errorf("%d bytes and %d expressions stay", c.size, c.kept.Len())
	}
}

// TestCompiledSize: no expression takes more memory than the cache thinks.
func TestCompiledSize(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the heap")
	}
	for _, unit := range []string{"a+", "[],", "x=>", "{a:1},", "`${1}`+", "(a=>a),", "1,", "'x'+", "value.a,", "value?.a,", "/a/,", "/a{200}/,", "/[a-z0-9_]+x/g,", "...[1],", "(({a,b})=>a),", "a=>{for(const x of a){}},", "a?b:", "!", "-"} {
		text := "[" + strings.NewReplacer("a+", "value+").Replace(strings.Repeat(unit, min(240, 4000/len(unit)))) + "1]"
		text = strings.ReplaceAll(text, "a?b:", "1?2:")
		var kept []*Expression
		before := heap()
		bytes := 0
		for range 20 {
			e, err := parse(text)
			if err != nil {
				break
			}
			kept = append(kept, e)
			bytes += compilation{e, nil}.bytes(text)
		}
		used := heap() - before
		if len(kept) == 20 && used > bytes {
			t.Errorf("%s: %d expressions of %d bytes and %d steps take %d bytes, and count as %d", unit, len(kept), len(text), kept[0].steps, used, bytes)
		}
		t.Logf("%s: %d of %d (%d texts)", unit, used, bytes, len(kept))
		runtime.KeepAlive(kept)
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// FuzzExpression: every text is refused with a position, or ends with a JSON value or an error.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`value + "x"`, "`${value}-${context.path}`", `value?.a ?? {b: [1, ...value]}`, `(({a, ...b}) => b)(value)`, `value.replace(/a+(b|c)/gi, (x, y) => y)`,
		`(v => { for (const x of v) { if (x) return x } })(value)`, `value["con" + "structor"]`, `1) + (2`, `/[/`, `[,]`, `a => a`, `new Set(value).size`, `(value.a ??= 1, value)`,
		"`${`${1}`}`", `JSON.parse("{}")`, `"\u{1F600}".at(0)`, `0x1F + 0b1 + 1e3`, `value\n.b`, `'é'.normalize("NFD")`, `/*`, `//`,
	} {
		f.Add(seed)
	}
	limits := Limits{Time: 100 * time.Millisecond, Total: time.Second, Result: 1 << 16, Depth: 50}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 || syntax.Message == "" || foreign(syntax.Message, text) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		// A single operation can take any time and memory: that is what workers are for.
		if e.computes || strings.Contains(text, "(") && strings.ContainsAny(text, "0123456789") {
			return
		}
		m := NewMachine(limits, &Globals{})
		value := map[string]any{"a": "b", "c": []any{int64(1)}}
		_, _, err = m.Run(e, value, true, "spec.a")
		var failed *Error
		if err != nil && (!errors.As(err, &failed) || strings.Contains(failed.Message, "the interpreter failed") || foreign(failed.Message, text)) {
			t.Fatalf("%q: %v", text, err)
		}
		if !reflect.DeepEqual(value, map[string]any{"a": "b", "c": []any{int64(1)}}) {
			t.Fatalf("%q changed its input to %v", text, value)
		}
	})
}
