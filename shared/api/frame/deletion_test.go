package frame_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
)

// collections adds DELETE on the collection to the functions of every world.
var collections = &frame.Function{Name: "testcollections", Endpoints: []frame.Endpoint{
	frame.DeleteCollection(accesskey.Definition, registry, resource.Delete[*model.OwnedAccessKey]),
}}

func newDeletions(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.handler = w.server.Mount(keys, collections)
	return w
}

// The options of a delete in its body and query. Source: Spec 2.2; ADR-0009.
func TestDeletionOptions(t *testing.T) {
	t.Parallel()
	const huge = "9223372036854775808"
	for _, row := range []struct {
		about, query, body string
		code               int
		fields             []string
	}{
		{"a grace period", "", `{"gracePeriodSeconds":5}`, 200, nil},
		{"no grace period", "?gracePeriodSeconds=0", "", 200, nil},
		{"the longest", "?gracePeriodSeconds=2147483647", "", 200, nil},
		{"longer", "?gracePeriodSeconds=2147483648", "", 422, []string{"gracePeriodSeconds"}},
		{"a negative one", "", `{"gracePeriodSeconds":-1}`, 422, []string{"gracePeriodSeconds"}},
		{"a negative one in the query", "?gracePeriodSeconds=-1", "", 422, []string{"gracePeriodSeconds"}},
		{"no number", "?gracePeriodSeconds=soon", "", 400, []string{"gracePeriodSeconds"}},
		{"too large a number", "?gracePeriodSeconds=" + huge, "", 400, []string{"gracePeriodSeconds"}},
		{"no number in the body", "", `{"gracePeriodSeconds":"soon"}`, 400, nil},
		{"a fraction", "", `{"gracePeriodSeconds":0.5}`, 400, nil},
		{"options by their kind", "", `{"kind":"DeleteOptions","apiVersion":"v1"}`, 200, nil},
		{"an object that is no options", "", `{"kind":"OwnedAccessKey","metadata":{"name":"other"}}`, 400, []string{"kind"}},
		{"each policy", "?propagationPolicy=Background", "", 200, nil},
		{"each policy", "?propagationPolicy=Foreground", "", 200, nil},
		{"each policy", "", `{"propagationPolicy":"Orphan"}`, 200, nil},
		{"another policy", "?propagationPolicy=background", "", 422, []string{"propagationPolicy"}},
		{"an empty policy", "", `{"propagationPolicy":""}`, 422, []string{"propagationPolicy"}},
		{"the old word", "", `{"orphanDependents":true}`, 200, nil},
		{"the old word, in the query", "?orphanDependents=false", "", 200, nil},
		{"no boolean", "?orphanDependents=maybe", "", 400, []string{"orphanDependents"}},
		{"both words", "", `{"orphanDependents":true,"propagationPolicy":"Orphan"}`, 422, []string{"propagationPolicy"}},
		{"the query beside a body is ignored, as in Kubernetes", "?propagationPolicy=Orphan&gracePeriodSeconds=soon", `{"orphanDependents":false}`, 200, nil},
		{"also if the body says nothing", "?dryRun=x", `{}`, 200, nil},
		{"all that is wrong at once", "", `{"dryRun":["x"],"gracePeriodSeconds":-2,"orphanDependents":true,"propagationPolicy":"x"}`, 422,
			[]string{"propagationPolicy", "propagationPolicy", "dryRun", "gracePeriodSeconds"}},
	} {
		for _, path := range []string{"/ana", ""} {
			t.Run(row.about+" "+path, func(t *testing.T) {
				t.Parallel()
				w := newDeletions(t)
				r := request{method: "DELETE", path: root + path + row.query, body: row.body}
				if path == "" {
					// All but the key of the request.
					join := "?"
					if row.query != "" {
						join = "&"
					}
					r.path += join + "fieldSelector=metadata.name%3Dana"
				}
				answer := w.do(r)
				if row.code == 200 {
					if answer.Code != 200 {
						t.Errorf("answered %d: %s", answer.Code, answer.Body)
					}
					if ignored := len(answer.Header().Values("Warning")) > 0; ignored != (row.query != "" && row.body != "") {
						t.Errorf("warnings are %q", answer.Header().Values("Warning"))
					}
					return
				}
				got := status(t, answer)
				var fields []string
				if got.Details != nil {
					for _, cause := range got.Details.Causes {
						fields = append(fields, cause.Field)
					}
				}
				if int(got.Code) != row.code || row.fields != nil && strings.Join(fields, " ") != strings.Join(row.fields, " ") {
					t.Errorf("answered %d %q: %s", got.Code, fields, got.Message)
				}
				if w.do(request{path: root + "/ana"}).Code != 200 {
					t.Error("it is gone")
				}
			})
		}
	}
}

// The responses to a delete. Source: ADR-0009.
func TestDeletionAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, finalizers, body string
		code                    int
		kind                    string
	}{
		{"gone", "", "", 200, "Status"},
		{"held", `["a.b/c"]`, "", 200, "OwnedAccessKey"},
		{"for a while", "", `{"gracePeriodSeconds":9}`, 200, "OwnedAccessKey"},
		{"gone, in the old words", "", `{"orphanDependents":false}`, 200, "Status"},
		{"held, in the old words", `["a.b/c"]`, `{"orphanDependents":false}`, 202, "OwnedAccessKey"},
		{"orphaning, in the old words", "", `{"orphanDependents":true}`, 200, "OwnedAccessKey"},
	} {
		w := newDeletions(t)
		if row.finalizers != "" {
			patch := request{method: "PATCH", path: root + "/ana", body: `{"metadata":{"finalizers":` + row.finalizers + `}}`,
				header: map[string]string{"Content-Type": "application/merge-patch+json"}}
			if answer := w.do(patch); answer.Code != 200 {
				t.Fatal(answer.Body)
			}
		}
		answer := w.do(request{method: "DELETE", path: root + "/ana", body: row.body})
		if got := decodeInto[metav1.TypeMeta](t, answer); answer.Code != row.code || got.Kind != row.kind {
			t.Errorf("%s: answered %d with a %s", row.about, answer.Code, got.Kind)
		}
	}
}

// The response to a DELETE on the collection contains the deleted objects, in each form. The verb is deletecollection. Source: ADR-0009.
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	w := newDeletions(t)
	rule := func(verb string) *model.Scope {
		return &model.Scope{Rules: []model.ScopeRule{{Verbs: []string{verb}}}}
	}
	const all, one = "all-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-012", "one-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-012"
	w.key("all", all, "cleo", nil, rule("deletecollection"))
	w.key("one", one, "cleo", nil, rule("delete"))
	w.key("more", "more-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-01", "cleo", nil, nil)
	if answer := w.do(request{method: "DELETE", path: root, bearer: one}); answer.Code != http.StatusForbidden {
		t.Errorf("delete permits deletecollection: %d", answer.Code)
	}
	if answer := w.do(request{method: "DELETE", path: root + "/more", bearer: all}); answer.Code != http.StatusForbidden {
		t.Errorf("deletecollection permits delete: %d", answer.Code)
	}
	if answer := w.do(request{method: "DELETE", path: root + "?labelSelector=%28", bearer: all}); answer.Code != http.StatusBadRequest {
		t.Errorf("a bad selector: %d", answer.Code)
	}
	table := w.do(request{method: "DELETE", path: root + "?dryRun=All", bearer: all, header: map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}})
	if got := decodeInto[metav1.Table](t, table); table.Code != 200 || len(got.Rows) != 3 {
		t.Errorf("as a table: %d %s", table.Code, table.Body)
	}
	answer := w.do(request{method: "DELETE", path: root, bearer: all})
	list := decodeInto[model.OwnedAccessKeyList](t, answer)
	if answer.Code != 200 || list.Kind != "OwnedAccessKeyList" || len(list.Items) != 3 {
		t.Errorf("answered %d: %s", answer.Code, answer.Body)
	}
	if left := decodeInto[model.OwnedAccessKeyList](t, w.do(request{path: root})); len(left.Items) != 3 {
		t.Errorf("%d are left", len(left.Items))
	}
}

// A credential that may not delete an owner may not block its deletion either. Source: Spec 2.2, 7; ADR-0009.
func TestBlockingNeedsTheScopeToDelete(t *testing.T) {
	t.Parallel()
	w := newDeletions(t)
	const narrow = "keeper-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	w.key("keeper", narrow, "ana", nil, &model.Scope{Rules: []model.ScopeRule{{Verbs: []string{"create", "get", "update"}}}})
	owner := decodeInto[model.OwnedAccessKey](t, w.do(request{path: root + "/ana"}))
	body := func(blocks bool) string {
		return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",`+
			`"name":"ana","uid":%q,"blockOwnerDeletion":%v}]},"spec":{"scope":{}}}`, owner.UID, blocks)
	}
	const field = "metadata.ownerReferences[0].blockOwnerDeletion"
	refused(t, w.do(request{method: "POST", path: root, bearer: narrow, body: body(true)}), 422, metav1.StatusReasonInvalid, field)
	if answer := w.do(request{method: "POST", path: root, bearer: narrow, body: body(false)}); answer.Code != 201 {
		t.Errorf("without blocking: %d %s", answer.Code, answer.Body)
	}
	if answer := w.do(request{method: "POST", path: root, bearer: anaKey, body: body(true)}); answer.Code != 201 {
		t.Errorf("with a key that may: %d %s", answer.Code, answer.Body)
	}
}
