package syncpatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// An evaluation as a client sends it, and the answer. Spec 2.8; ADR-0013.
func TestWire(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, spec, status string }{
		{
			name: "patches",
			spec: `{"patches":[{"path":"a","expression":"value + context.tenant.config.n + context.hostObject.n"}],"object":{"a":1,"n":4,"big":9007199254740993},
				"context":{"tenant":{"name":"t","namespace":"n","config":{"n":2}},"hostObject":{"n":4},"virtualObject":null},"checks":["Fixpoint"]}`,
			status: `{"object":{"a":7,"n":4,"big":9007199254740993},"patches":[{"index":0,"path":"a","outcome":"Applied",
				"matches":[{"path":"a","outcome":"Applied","before":1,"after":7}]}],
				"checks":[{"type":"Fixpoint","passed":false,"reason":"the second round changes the object again, so the two sides would update each other forever",
				"differences":[{"path":"a","want":7,"got":13}]}]}`,
		},
		{
			name: "a resource",
			spec: `{"resource":"endpoints","configuration":{"sync":{"toHost":{"endpoints":{"patches":[{"path":"metadata.name"},{"path":"a","expression":"'\ud83d\ude00'"}]}}}},"object":{"a":1}}`,
		},
		{
			name:   "a resource",
			spec:   `{"resource":"endpoints","configuration":{"sync":{"toHost":{"endpoints":{"patches":[{"path":"a","expression":"'\ud83d\ude00'"}]}}}},"object":{"a":1}}`,
			status: `{"object":{"a":"😀"},"patches":[{"index":0,"path":"a","outcome":"Applied","matches":[{"path":"a","outcome":"Applied","before":1,"after":"😀"}]}]}`,
		},
		{
			name: "a resource that is not synced",
			spec: `{"resource":"pods","configuration":{"sync":{"toHost":{"pods":{"enabled":false,"patches":[{"path":"a","expression":"2"}]}}}},"object":{"a":1}}`,
			status: `{"object":{"a":1},"patches":[{"index":0,"path":"a","outcome":"Skipped","reason":"spec.configuration.sync.toHost.pods is not enabled, so its objects are not synced",
				"matches":[{"path":"a","outcome":"Skipped","reason":"spec.configuration.sync.toHost.pods is not enabled, so its objects are not synced"}]}]}`,
		},
		{
			name: "what comes from the host",
			spec: `{"resource":"nodes","configuration":{"sync":{"fromHost":{"nodes":{"enabled":true,"patches":[{"path":"a","expression":"value + 1"},{"path":"b","reverseExpression":"value + 2"},
				{"path":"c","expression":"value + 3","reverseExpression":"value + 4"}]}}}},"object":{"a":1,"b":1,"c":1},"checks":["RoundTrip","Fixpoint"]}`,
			status: `{"object":{"a":2,"b":3,"c":4},"patches":[{"index":0,"path":"a","outcome":"Applied","matches":[{"path":"a","outcome":"Applied","before":1,"after":2}]},
				{"index":1,"path":"b","outcome":"Applied","matches":[{"path":"b","outcome":"Applied","before":1,"after":3}]},
				{"index":2,"path":"c","outcome":"Applied","matches":[{"path":"c","outcome":"Applied","before":1,"after":4}]}],
				"checks":[{"type":"RoundTrip","passed":true,"reason":"there is no way back: objects below sync.fromHost are synced from host to tenant only"},
				{"type":"Fixpoint","passed":true,"reason":"there is no way back: objects below sync.fromHost are synced from host to tenant only"}]}`,
		},
		{
			name: "what comes from the host by reverseExpression",
			spec: `{"resource":"fromHost.secrets","direction":"HostToTenant","configuration":{"sync":{"fromHost":{"secrets":{"enabled":true,"patches":[{"path":"a","expression":"0"},{"path":"b","expression":"0","reverseExpression":"value + 1"}]}}}},"object":{"a":1,"b":1}}`,
			status: `{"object":{"a":1,"b":2},"patches":[{"index":0,"path":"a","outcome":"Skipped","reason":"the patch has no reverseExpression, so it does nothing from host to tenant",
				"matches":[{"path":"a","outcome":"Skipped","reason":"the patch has no reverseExpression, so it does nothing from host to tenant"}]},
				{"index":1,"path":"b","outcome":"Applied","matches":[{"path":"b","outcome":"Applied","before":1,"after":2}]}]}`,
		},
		{
			name: "what comes from the host, on the way there",
			spec: `{"resource":"nodes","direction":"TenantToHost","configuration":{"sync":{"fromHost":{"nodes":{"enabled":true,"patches":[{"path":"a","expression":"0"}]}}}},"object":{"a":1},"checks":["RoundTrip"]}`,
			status: `{"object":{"a":1},"patches":[{"index":0,"path":"a","outcome":"Skipped","reason":"objects below sync.fromHost are synced from host to tenant only",
				"matches":[{"path":"a","outcome":"Skipped","reason":"objects below sync.fromHost are synced from host to tenant only"}]}],
				"checks":[{"type":"RoundTrip","passed":true,"reason":"there is no way back: objects below sync.fromHost are synced from host to tenant only"}]}`,
		},
		{
			name:   "the configuration of the tenant is that with the patches",
			spec:   `{"resource":"pods","configuration":{"n":2,"sync":{"toHost":{"pods":{"patches":[{"path":"a","expression":"context.tenant.config.n"}]}}}},"object":{"a":1}}`,
			status: `{"object":{"a":2},"patches":[{"index":0,"path":"a","outcome":"Applied","matches":[{"path":"a","outcome":"Applied","before":1,"after":2}]}]}`,
		},
		{
			name:   "a failure",
			spec:   `{"patches":[{"path":"a","expression":"value.b.c"}],"object":{"a":1}}`,
			status: `{"object":{"a":1},"patches":[{"index":0,"path":"a","outcome":"Failed","reason":"MESSAGE","matches":[{"path":"a","outcome":"Failed","reason":"MESSAGE","before":1}]}],"error":{"index":0,"path":"a","message":"MESSAGE","line":1,"column":9}}`,
		},
	} {
		var spec model.SyncPatchEvaluationSpec
		if err := json.Unmarshal([]byte(test.spec), &spec); err != nil {
			t.Fatal(err)
		}
		request, problems := syncpatch.CheckSpec(t.Context(), &spec)
		if test.status == "" {
			if len(syncpatch.Errors(problems)) == 0 {
				t.Errorf("%s: there is no problem", test.name)
			}
			continue
		}
		if errors := syncpatch.Errors(problems); len(errors) > 0 {
			t.Errorf("%s: %v", test.name, errors)
			continue
		}
		result, err := syncpatch.Evaluate(context.Background(), request, generous())
		if err != nil {
			t.Fatal(err)
		}
		status, err := result.Status()
		if err != nil {
			t.Fatal(err)
		}
		if status.Error != nil {
			// The texts of the interpreter may change.
			status.Error.Message, status.Patches[0].Reason, status.Patches[0].Matches[0].Reason = "MESSAGE", "MESSAGE", "MESSAGE"
		}
		var want any
		if err := json.Unmarshal([]byte(test.status), &want); err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal([]byte(encode(t, status)), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the status is %s, want %s", test.name, encode(t, status), test.status)
		}
	}
}

func TestWireProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec string
		want []string
	}{
		{`{}`, []string{"spec.patches", "spec.object"}},
		{`{"object":[],"patches":[{"path":"a","expression":"1"}]}`, []string{"spec.object"}},
		{`{"object":null,"patches":[{"path":"a","expression":"1"}]}`, []string{"spec.object"}},
		{
			`{"object":{},"patches":[{"path":"a"}],"context":{"hostObject":1,"virtualObject":"x","tenant":{"config":[]}}}`,
			[]string{"spec.context.tenant.config", "spec.context.hostObject", "spec.context.virtualObject", "spec.patches[0]"},
		},
		{`{"object":{},"resource":"endpoints","patches":[{"path":"a","expression":"1"}]}`, []string{"spec.patches"}},
		{`{"object":{},"resource":"endpoints"}`, []string{"spec.configuration"}},
		{`{"object":{},"configuration":{}}`, []string{"spec.resource"}},
		{`{"object":{},"resource":"endpoint","configuration":{}}`, []string{"spec.resource"}},
		{`{"object":{},"resource":"endpoints","configuration":[]}`, []string{"spec.configuration"}},
		{
			`{"object":{},"resource":"endpoints","configuration":{"sync":{"toHost":{"endpoints":{"patches":[{"path":"a"}]},"secret":{}}}}}`,
			[]string{"spec.configuration.sync.toHost.endpoints.patches[0]", "spec.configuration.sync.toHost.secret"},
		},
		{
			`{"object":{},"resource":"endpoints","configuration":{"sync":{"toHost":{"endpoints":{"patches":[{"path":"a","labels":{}}]}}}}}`,
			[]string{"spec.context.tenant.name"},
		},
		{
			`{"object":{},"resource":"endpoints","configuration":{"sync":{"toHost":{"endpoints":{"enabled":0,"patches":[{"path":"a","expression":"value"},{"path":1},` +
				`{"path":"c","expression":"value"},{"path":"d","expression":"value"},{"path":"e","expression":"value"},{"path":"f","expression":"value"},` +
				`{"path":"g","expression":"value"},{"path":"h","expression":"value"},{"path":"i","expression":"value"},{"path":"j","expression":"value"},{"path":"k["}]}}}}}`,
			[]string{
				"spec.configuration.sync.toHost.endpoints.enabled", "spec.configuration.sync.toHost.endpoints.patches[1].path",
				"spec.configuration.sync.toHost.endpoints.patches[10]", "spec.configuration.sync.toHost.endpoints.patches[10].path",
			},
		},
		{
			`{"object":{},"patches":[{"path":"a","expression":"1"}],"clusterDomain":"a..b","context":{"tenant":{"name":"evil.com/x","namespace":"a.b"},` +
				`"references":[{"name":"a","namespace":"A","hostNamespace":"-"},{"name":"b/c","namespace":"c","hostNamespace":"d"}]}}`,
			[]string{
				"spec.clusterDomain", "spec.context.tenant.name", "spec.context.tenant.namespace", "spec.context.references[0].namespace",
				"spec.context.references[0].hostNamespace",
			},
		},
		{
			`{"object":{},"resource":"pods","configuration":{"sync":{"toHost":{"pods":{"patches":[` +
				strings.Repeat(`{"path":"b","expression":"`+strings.Repeat(" ", 16<<10-1)+`1"},`, 15) + `{"path":"a","expression":"1"}]},` +
				`"secrets":{"patches":[{"path":"a","expression":"` + strings.Repeat(" ", 16<<10-1) + `1"},{"path":"b","expression":"1"}]}}}}}`,
			append(slices.Collect(func(yield func(string) bool) {
				for i := 1; i < 15; i++ {
					yield(fmt.Sprintf("spec.configuration.sync.toHost.pods.patches[%d].path", i))
				}
			}), "spec.configuration.sync.toHost.secrets.patches[0].expression"),
		},
		{`{"object":{},"resource":"endpoints","configuration":{}}`, nil},
		{
			`{"object":{},"resource":"endpoints","configuration":{"control":"\u007f\u0085\uffff\u0000","\u007f":1,"<<":5,"` + strings.Repeat("k", 2000) + `":[null,1.5,true]}}`,
			nil,
		},
	} {
		var spec model.SyncPatchEvaluationSpec
		if err := json.Unmarshal([]byte(test.spec), &spec); err != nil {
			t.Fatal(err)
		}
		_, problems := syncpatch.CheckSpec(t.Context(), &spec)
		var got []string
		for _, e := range syncpatch.Errors(problems) {
			got = append(got, e.Field)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s has problems at %v, want %v", test.spec, got, test.want)
		}
		if test.want == nil && len(syncpatch.Warnings(problems)) != 1 {
			t.Errorf("%s has the warnings %v", test.spec, syncpatch.Warnings(problems))
		}
	}
}
