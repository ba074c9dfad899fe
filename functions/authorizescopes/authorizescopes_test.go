package authorizescopes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process"
)

const (
	base  = "/kubernetes/management"
	route = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// The API of the review is in the path, or in the query if the client keeps the query. Source: ADR-0012.
func TestTargets(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Key("cluster", "cluster", model.OwnedAccessKeySpec{Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "agent"}}}})
	w.Key("nothing", "ana", model.OwnedAccessKeySpec{Scope: &model.Scope{}})
	handler := process.NewServer(w.Env).Mount(Function)
	const (
		clusters = `{"clusters":[{"cluster":"a"}]}`
		spaces   = `{"spaces":[{"project":"p","space":"s"}]}`
		virtuals = `{"virtualClusters":[{"project":"p","virtualCluster":"v"}]}`
	)
	for _, row := range []struct {
		about, key, path, scope string
		status                  int
		denied                  bool
	}{
		{"a cluster", "cluster", base + "/cluster/a" + route, clusters, 201, false},
		{"without the base path", "cluster", "/cluster/a" + route, clusters, 201, false},
		{"another cluster", "cluster", base + "/cluster/b" + route, clusters, 201, true},
		{"a cluster in the query", "cluster", base + route + "?cluster=a", clusters, 201, false},
		{"another one in the query", "cluster", base + route + "?cluster=b", clusters, 201, true},
		{"the path is stronger than the query", "cluster", base + "/cluster/b" + route + "?cluster=a", clusters, 201, true},
		{"what a kube-apiserver adds", "cluster", base + "/cluster/a" + route + "?timeout=30s", clusters, 201, false},
		{"a space", "cluster", base + "/project/p/space/s" + route, spaces, 201, false},
		{"another space", "cluster", base + "/project/p/space/t" + route, spaces, 201, true},
		{"a virtual cluster", "cluster", base + "/project/p/virtualcluster/v" + route, virtuals, 201, false},
		{"of another project", "cluster", base + "/project/q/virtualcluster/v" + route, virtuals, 201, true},
		{"a virtual cluster in the query", "cluster", base + route + "?project=p&virtualCluster=v", virtuals, 201, false},
		{"no API", "cluster", base + route, clusters, 400, false},
		{"two APIs", "cluster", base + "/cluster/a" + route + "?project=p&space=s", clusters, 400, false},
		{"a key that may not ask", "nothing", base + "/cluster/a" + route, clusters, 403, false},
		{"no credential", "", base + "/cluster/a" + route, clusters, 401, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			body := fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"ana",
				"extra":{"management.platform.sh/scope":[%q]},"resourceAttributes":{"verb":"get","resource":"pods","namespace":"d"}}}`, row.scope)
			request := httptest.NewRequest("POST", row.path, strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			if row.key != "" {
				request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+row.key)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			text, _ := io.ReadAll(recorder.Body)
			var answer authorizationv1.SubjectAccessReview
			if recorder.Code == 201 {
				if err := json.Unmarshal(text, &answer); err != nil {
					t.Fatal(err)
				}
			}
			if recorder.Code != row.status || answer.Status.Denied != row.denied || answer.Status.Allowed {
				t.Errorf("%d %s", recorder.Code, text)
			}
			if row.status == 201 && (answer.Kind != "SubjectAccessReview" || answer.Spec.User != "ana" || answer.Status.Reason == "") {
				t.Errorf("%s", text)
			}
		})
	}
}

func TestBadReviews(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Key("cluster", "cluster", model.OwnedAccessKeySpec{})
	handler := process.NewServer(w.Env).Mount(Function)
	for about, body := range map[string]string{
		"nothing": "", "asks for nothing": "{}", "no JSON": "{", "another kind": `{"kind":"Pod","apiVersion":"v1"}`,
		"two things": `{"spec":{"resourceAttributes":{"verb":"get"},"nonResourceAttributes":{"verb":"get"}}}`,
	} {
		request := httptest.NewRequest("POST", base+"/cluster/a"+route, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+"cluster")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != 400 {
			t.Errorf("%s: %d %s", about, answer.Code, answer.Body)
		}
	}
}

// Admins ask what a user, as a review of a bearer token describes them, may do on this API. The answer is the same as for a
// request of that user. Source: ADR-0023.
func TestHere(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Key("root", "root", model.OwnedAccessKeySpec{Groups: []string{"platform:admins"}})
	w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	handler := process.NewServer(w.Env).Mount(Function)
	const ana, scoped = `"user":"ana","groups":["platform:user:ana"]`, `,"extra":{"management.platform.sh/scope":[%q]}`
	for _, row := range []struct {
		about, key, user, verb, name string
		status                       int
		allowed                      bool
	}{
		{"an own key", "root", ana, "delete", "ana", 201, true},
		{"the key of another", "root", ana, "delete", "root", 201, false},
		{"an absent key", "root", ana, "delete", "absent", 201, false},
		{"an admin", "root", `"user":"eve","groups":["platform:admins"]`, "delete", "ana", 201, true},
		{"a subject of the same name", "root", `"user":"ana"`, "delete", "ana", 201, false},
		{"within the scope", "root", ana + fmt.Sprintf(scoped, `{"allowPlatformCli":true}`), "get", "ana", 201, true},
		{"outside of the scope", "root", ana + fmt.Sprintf(scoped, `{"allowPlatformCli":true}`), "delete", "ana", 201, false},
		{"a scope that cannot be read", "root", ana + fmt.Sprintf(scoped, `{"all":true}`), "get", "ana", 201, false},
		{"asked by another", "ana", ana, "get", "ana", 400, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			body := fmt.Sprintf(`{"spec":{%s,"resourceAttributes":{"group":"management.platform.sh","resource":"ownedaccesskeys","verb":%q,"name":%q}}}`,
				row.user, row.verb, row.name)
			request := httptest.NewRequest("POST", base+route, strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+row.key)
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != row.status {
				t.Fatalf("%d %s", recorder.Code, recorder.Body)
			}
			if row.status != 201 {
				return
			}
			var answer authorizationv1.SubjectAccessReview
			if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if answer.Status.Allowed != row.allowed || answer.Status.Denied == row.allowed || answer.Status.Reason == "" {
				t.Errorf("%s", recorder.Body)
			}
		})
	}
}
