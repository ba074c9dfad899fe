//go:build unix

package evaluation_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch/evaluation"
)

// FuzzCost: whatever the expressions and the object are, a request of at most 64 KiB costs the serving process at most
// 200 ms of CPU time. The work that depends on the texts is done by a worker. Each line of the text is an expression.
// Source: ADR-0014, ADR-0020.
func FuzzCost(f *testing.F) {
	const most, allowed = 64 << 10, 200 * time.Millisecond
	fill := func(unit string) string { return strings.Repeat(unit, 16<<10/len(unit)) }
	lines := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+"\n", n), "\n") }
	list := `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 10_000), ",") + `]}`
	for _, seed := range []struct{ expressions, object string }{
		{strings.Repeat("(a=", 60) + "1" + strings.Repeat(")=>1", 60), `{"a":1}`},
		{strings.Repeat("(a=", 200), `{"a":1}`},
		{strings.Repeat("0||", 200) + "0", `{"a":1}`},
		{strings.Repeat("0??", 200) + "0", `{"a":1}`},
		{fill("/a{1000}/,") + "1", `{"a":1}`},
		{"/" + fill("a{1000}") + "/.test(value)", `{"a":1}`},
		{"/" + fill("(a|b)*") + "/i.test(value)", `{"a":1}`},
		{fill("("), `{"a":1}`}, {fill("`${"), `{"a":1}`}, {fill("a=>"), `{"a":1}`}, {fill("[],"), `{"a":1}`}, {fill("\n"), `{"a":1}`},
		{lines("value + ", 4000), `{"a":1}`}, {lines("x", 900), `{"a":1}`}, {lines(strings.Repeat("(", 40), 900), `{"a":1}`},
		{lines("(a=(a=(a=(a=(a=(a=(a=(a=1)=>1)=>1)=>1)=>1)=>1)=>1)=>1)=>1", 900), `{"a":1}`},
		{"value + 1", list}, {"[value, value, value]", list}, {"'x'.repeat(1e5)", list}, {"value\nvalue + 'é'", list}, {"(() => { for (;;); })()", list},
		{"value", `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`}, {"value", `{"a":[` + strings.Repeat("[],", 20_000) + `[]]}`},
		{"value", `{"a":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + `}`}, {"value", `{"a":1e400}`},
		{"() => { throw " + fill("'x'+") + "'x' }", `{"a":1}`}, {"'a'.match('(' + 'a?'.repeat(1e4) + ')*')", `{"a":1}`},
		{"[].map.stash = value", list}, {"1) + (2", `{"a":1}`}, {"\xff\xfe", `{"a":1}`},
	} {
		f.Add(seed.expressions, seed.object)
	}
	e := evaluation.New("", settings.Patches{Workers: 1, ExpressionTime: 50 * time.Millisecond, ObjectTime: 200 * time.Millisecond})
	f.Fuzz(func(t *testing.T, expressions, object string) {
		if len(expressions)+len(object) > most || !json.Valid([]byte(object)) {
			t.Skip()
		}
		var evaluation model.SyncPatchEvaluation
		evaluation.Spec.Object = &model.JSON{Raw: []byte(object)}
		for i, text := range strings.Split(expressions, "\n") {
			path := "a[*]"
			if i > 0 {
				path += strings.Repeat("[*]", i%50) + "." + strings.Repeat("b", i)
			}
			if len(path) > 200 {
				path = "a"
			}
			evaluation.Spec.Patches = append(evaluation.Spec.Patches, model.SyncPatch{Path: path, Expression: text})
		}
		// The collector and the other tests use the same clock, so the cheapest of a few runs counts.
		cheapest := time.Hour
		for range 5 {
			before := cpu(t)
			_, _ = e.Evaluate(t.Context(), &evaluation, nil)
			if cheapest = min(cheapest, cpu(t)-before); cheapest <= allowed {
				return
			}
		}
		t.Errorf("the request costs %v of CPU time", cheapest)
	})
}

// cpu returns the CPU time that this process has used, without its workers.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
