package evaluatepatches

import (
	"testing"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
)

// The answer is that of the evaluator, which is opened without a state. Source: Spec 2.8.
func TestDo(t *testing.T) {
	t.Parallel()
	deps := open(&platform.Environment{Edition: settings.Enterprise})
	got, err := Do(t.Context(), deps, Input{
		Body: []byte(`{"spec":{"patches":[{"path":"a","labels":{}}],"namespaceMode":"Multi","object":{"a":{"b":"c"}}}}`),
		Warn: func(...string) {},
	})
	if err != nil || string(got.Status.Object.Raw) != `{"a":{"b":"c"}}` || len(got.Status.Patches) != 1 {
		t.Errorf("answered %+v, %v", got, err)
	}
}
