package syncpatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// decode reads YAML as the API reads JSON: whole numbers are int64. Unknown fields are errors.
func decode(t testing.TB, text string, into any) {
	t.Helper()
	body, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := sigsjson.UnmarshalStrict(body, into)
	if err = errors.Join(append(unknown, err)...); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	decode(t, text, &object)
	return object
}

func encode(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// evaluate evaluates a valid request.
func evaluate(t testing.TB, request syncpatch.Request) *syncpatch.Result {
	t.Helper()
	before := encode(t, request)
	result, err := syncpatch.Evaluate(context.Background(), mustCheck(t, request), generous())
	if err != nil {
		t.Fatal(err)
	}
	if after := encode(t, request); after != before {
		t.Fatalf("the request is %s, and was %s", after, before)
	}
	return result
}

// mustCheck checks a valid request.
func mustCheck(t testing.TB, request syncpatch.Request) *syncpatch.Checked {
	t.Helper()
	checked, problems := request.Check()
	if checked == nil {
		t.Fatal(syncpatch.Errors(problems).ToAggregate())
	}
	return checked
}

// generous are the default limits, with more time for a busy machine.
func generous() syncpatch.Limits {
	limits := syncpatch.DefaultLimits()
	limits.Expression *= 100
	limits.Object *= 100
	return limits
}

// evaluationCase is an entry of testdata/cases.yaml, which describes the fields.
type evaluationCase struct {
	Name          string            `json:"name"`
	Note          string            `json:"note"`
	Patches       []model.SyncPatch `json:"patches"`
	Resource      string            `json:"resource"`
	Configuration any               `json:"configuration"`
	Direction     string            `json:"direction"`
	Context       struct {
		Tenant        syncpatch.Tenant `json:"tenant"`
		HostObject    map[string]any   `json:"hostObject"`
		VirtualObject map[string]any   `json:"virtualObject"`
		NamespaceMode string           `json:"namespaceMode"`
	} `json:"context"`
	Object  map[string]any `json:"object"`
	Result  map[string]any `json:"result"`
	Invalid string         `json:"invalid"`
	Fails   bool           `json:"fails"`
}

func (c *evaluationCase) request() syncpatch.Request {
	request := syncpatch.Request{
		Direction: c.Direction, NamespaceMode: c.Context.NamespaceMode, Patches: c.Patches, Object: c.Object,
		Context: syncpatch.Context{
			Tenant:     syncpatch.Tenant{Name: "my-vcluster", Namespace: "my-vcluster-ns", Config: c.Context.Tenant.Config},
			HostObject: c.Context.HostObject, VirtualObject: c.Context.VirtualObject,
		},
	}
	if c.Context.Tenant.Name != "" {
		request.Context.Tenant.Name, request.Context.Tenant.Namespace = c.Context.Tenant.Name, c.Context.Tenant.Namespace
	}
	return request
}

func cases(t testing.TB) []evaluationCase {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []evaluationCase
	decode(t, string(text), &list)
	if len(list) < 69 {
		t.Fatalf("there are %d cases only", len(list))
	}
	return list
}

// Spec 2.8; ADR-0013.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			request := c.request()
			if c.Invalid != "" {
				_, problems := request.Check()
				if c.Configuration != nil {
					_, problems = syncpatch.ReadConfiguration(t.Context(), field.NewPath("spec", "configuration"), []byte(encode(t, c.Configuration)))
				}
				if !slices.ContainsFunc(syncpatch.Errors(problems), func(e *field.Error) bool { return strings.Contains(e.Field, c.Invalid) }) {
					t.Errorf("%s: the problems are %v, want one at %s", c.Note, syncpatch.Errors(problems), c.Invalid)
				}
				return
			}
			result := evaluate(t, request)
			switch {
			case c.Fails && result.Error == nil:
				t.Errorf("%s: no error, and the object is %s", c.Note, encode(t, result.Object))
			case c.Fails && !reflect.DeepEqual(result.Object, c.Object):
				t.Errorf("%s: the object that failed is %s", c.Note, encode(t, result.Object))
			case !c.Fails && result.Error != nil:
				t.Errorf("%s: %+v", c.Note, result.Error)
			case !c.Fails && !reflect.DeepEqual(result.Object, c.Result):
				t.Errorf("%s: the object is %s, want %s", c.Note, encode(t, result.Object), encode(t, c.Result))
			}
		})
	}
}
