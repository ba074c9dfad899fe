package frame_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// managers returns the names in the managedFields of a response.
func managers(t *testing.T, body []byte) string {
	t.Helper()
	var key model.OwnedAccessKey
	if err := json.Unmarshal(body, &key); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(key.ManagedFields))
	for _, entry := range key.ManagedFields {
		names = append(names, string(entry.Operation)+" "+entry.Manager)
	}
	return strings.Join(names, ", ")
}

// Spec 2.2, ADR-0008: the owner is the fieldManager, or the beginning of the User-Agent.
func TestFieldManager(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ about, query, agent, want string }{
		{"the parameter", "?fieldManager=me", "curl/8.0", "Update me"},
		{"the agent up to its slash", "", "kubectl/v1.37.2 (linux/amd64) kubernetes/abc", "Update kubectl"},
		{"an agent without one", "", "my agent", "Update my agent"},
		{"an agent with what cannot be printed", "", "a\tb\xff/1", "Update ab\ufffd"},
		{"a long agent", "", strings.Repeat("ä", 100), "Update " + strings.Repeat("ä", 64)},
		{"nothing", "", "", "Update unknown"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer := w.do(request{method: http.MethodPost, path: root + row.query, body: `{"metadata":{"name":"x"}}`, header: map[string]string{"User-Agent": row.agent}})
			if got := managers(t, answer.Body.Bytes()); answer.Code != http.StatusCreated || got != row.want {
				t.Errorf("%d: %q, want %q", answer.Code, got, row.want)
			}
			for method, body := range map[string]string{http.MethodPut: `{"metadata":{"name":"x"},"spec":{"ttl":60}}`, http.MethodPatch: `{"spec":{"disabled":true}}`} {
				header := map[string]string{"User-Agent": "other/1", "Content-Type": "application/merge-patch+json"}
				if method == http.MethodPut {
					header["Content-Type"] = "application/json"
				}
				answer = w.do(request{method: method, path: root + "/x", body: body, header: header})
				if got := managers(t, answer.Body.Bytes()); answer.Code != http.StatusOK || got != row.want+", Update other" && got != "Update other, "+row.want {
					t.Errorf("%s: %d: %q", method, answer.Code, got)
				}
			}
		})
	}
}

// The permissions that an apply needs. Source: Spec 9; ADR-0008.
func TestApplyOptions(t *testing.T) {
	t.Parallel()
	const applied = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"x"},"spec":{"displayName":"one"}}`
	const yaml = "application/apply-patch+yaml"
	for _, row := range []struct {
		about, media, query, body string
		code                      int
		reason                    metav1.StatusReason
		fields                    []string
	}{
		{"no field manager", yaml, "", applied, 422, metav1.StatusReasonInvalid, []string{"fieldManager"}},
		{"an empty field manager", yaml, "?fieldManager=", applied, 422, metav1.StatusReasonInvalid, []string{"fieldManager"}},
		{"a long field manager", yaml, "?fieldManager=" + strings.Repeat("x", 129), applied, 422, metav1.StatusReasonInvalid, []string{"fieldManager"}},
		{"all that is wrong with the options", yaml, "?dryRun=Some", applied, 422, metav1.StatusReasonInvalid, []string{"fieldManager", "dryRun"}},
		{"force in a merge patch", "application/merge-patch+json", "?force=true", `{}`, 422, metav1.StatusReasonInvalid, []string{"force"}},
		{"no force in a JSON patch", "application/json-patch+json", "?force=false", `[]`, 422, metav1.StatusReasonInvalid, []string{"force"}},
		{"CBOR", "application/apply-patch+cbor", "?fieldManager=me", applied, 415, metav1.StatusReasonUnsupportedMediaType, nil},
		{"strategic merge", "application/strategic-merge-patch+json", "", `{}`, 415, metav1.StatusReasonUnsupportedMediaType, nil},
		{"not UTF-8", yaml, "?fieldManager=me", "a: \xff", 400, metav1.StatusReasonBadRequest, nil},
		{"managedFields", yaml, "?fieldManager=me", strings.Replace(applied, `"name":"x"`, `"name":"x","managedFields":[{}]`, 1), 400, metav1.StatusReasonBadRequest, []string{"metadata.managedFields"}},
		{"an unknown field", yaml, "?fieldManager=me&fieldValidation=Strict", strings.Replace(applied, "displayName", "displayname", 1), 400,
			metav1.StatusReasonBadRequest, []string{"spec.displayname"}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			answer := newWorld(t).do(request{method: http.MethodPatch, path: root + "/x" + row.query, body: row.body, header: map[string]string{"Content-Type": row.media}})
			refused(t, answer, row.code, row.reason, row.fields...)
		})
	}

	w := newWorld(t)
	apply := func(bearer, query, body string) (int, string) {
		t.Helper()
		answer := w.do(request{method: http.MethodPatch, path: root + "/x?fieldManager=" + query, bearer: bearer, body: body, header: map[string]string{"Content-Type": yaml + "; charset=utf-8"}})
		return answer.Code, answer.Body.String()
	}
	if code, body := apply("", "me", applied); code != http.StatusCreated || !strings.Contains(body, `"key":"pak_`) {
		t.Errorf("made with %d: %s", code, body)
	}
	if code, body := apply("", "me", applied); code != http.StatusOK || strings.Contains(body, `"key"`) {
		t.Errorf("applied again with %d: %s", code, body)
	}
	changed := strings.Replace(applied, "one", "two", 1)
	for query, want := range map[string]int{"you": 409, "you&force=false": 409, "you&force=0": 409, "you&force=true&dryRun=All": 200} {
		if code, body := apply("", query, changed); code != want {
			t.Errorf("%s: %d: %s", query, code, body)
		}
	}
	if code, body := apply("", "you&force", changed); code != http.StatusOK || !strings.Contains(body, `"displayName":"two"`) {
		t.Errorf("by force: %d: %s", code, body)
	}
}

// Callers who may change objects but not create them cannot create them by an apply. Every caller may create keys, so this test
// uses another resource. Source: ADR-0008.
func TestApplyNeedsCreate(t *testing.T) {
	t.Parallel()
	definition := *accesskey.Definition
	definition.Resource = schema.GroupVersionResource{Group: "test.example", Version: "v1", Resource: "others"}
	w := newWorld(t)
	w.handler = w.server.Mount(&frame.Function{Name: "testothers", Endpoints: []frame.Endpoint{
		frame.Patch(&definition, registry, resource.Patch[*model.OwnedAccessKey]),
	}})
	for verbs, want := range map[string]int{"patch": http.StatusForbidden, "patch,create": http.StatusCreated} {
		bearer := "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg" + strconv.Itoa(want)
		name := "may-" + strconv.Itoa(want)
		w.key(name, bearer, "root", []string{identity.Admins}, &model.Scope{Rules: []model.ScopeRule{
			{Verbs: strings.Split(verbs, ","), Resources: []model.ScopeGroupResources{{Group: "test.example", Resources: []string{"others"}}}},
		}})
		answer := w.do(request{
			method: http.MethodPatch, path: "/apis/test.example/v1/others/new-" + name + "?fieldManager=me", bearer: bearer,
			header: map[string]string{"Content-Type": "application/apply-patch+yaml"},
			body:   `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"new-` + name + `"},"spec":{"scope":{}}}`,
		})
		if answer.Code != want {
			t.Errorf("%s: %d: %s", verbs, answer.Code, answer.Body)
		} else if want == http.StatusForbidden {
			refused(t, answer, want, metav1.StatusReasonForbidden)
		}
	}
}
