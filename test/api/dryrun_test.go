package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// acting are the requests that do something else than to create, change or delete an object, by the path of their endpoint below the
// group. The path of the request has the objects that TestDryRunOfActions makes.
var acting = map[string]struct{ path, body string }{
	"credentialrevocations":   {"credentialrevocations", `{"spec":{"credentials":["` + benBearer + `"]}}`},
	"users/{name}/signout":    {"users/ana/signout", `{}`},
	"users/{name}/password":   {"users/ana/password", `{"spec":{"password":"nine-violet-kettles-hum"}}`},
	"users/{name}/accesskeys": {"users/ana/accesskeys", `{"metadata":{"name":"of-ana"}}`},
	"teams/{name}/accesskeys": {"teams/web/accesskeys", `{"metadata":{"name":"of-web"}}`},
	"config/{name}/rollback":  {"config/config/rollback", `{"spec":{"revision":"2"}}`},
	"configs/{name}/rollback": {"configs/config/rollback", `{"spec":{"revision":"2"}}`},
	"namespaces/{namespace}/virtualclusterinstances/{name}/kubeconfig": {"namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", `{}`},
}

// asking are the endpoints to which a POST is a question: they store nothing.
var asking = []string{"selves", "scopepreviews", "syncpatchevaluations"}

// A dry run of an action has the status of the action itself, shows no secret and leaves the state as it is. The table has every action of
// the catalog. Source: Spec 4; ADR-0047.
func TestDryRunOfActions(t *testing.T) {
	t.Parallel()
	const base = "/apis/management.platform.sh/v1/"
	stored := map[string]bool{}
	for _, k := range storedKinds {
		stored[k.resource] = true
	}
	seen := map[string]bool{}
	for _, f := range catalog.Functions {
		for _, endpoint := range f.Endpoints {
			below, found := strings.CutPrefix(endpoint.Path, base)
			created := endpoint.Subresource == "" && stored[endpoint.Resource.Resource]
			if !found || endpoint.Method != http.MethodPost || created || slices.Contains(asking, below) {
				continue
			}
			seen[below] = true
			if _, known := acting[below]; !known {
				t.Errorf("acting lacks %s of %s", below, f.Name)
			}
		}
	}
	for below, action := range acting {
		t.Run(strings.ReplaceAll(below, "/", " "), func(t *testing.T) {
			t.Parallel()
			if !seen[below] {
				t.Fatal("no endpoint has the path")
			}
			w := &kindWorld{configured: newConfigured(t, redistest.Embedded(t)), storedKind: storedKinds[0]}
			w.separate()
			w.seed()
			for _, made := range [][2]string{
				{"users", `{"metadata":{"name":"ana"}}`}, {"teams", `{"metadata":{"name":"web"},"spec":{"users":["ana"]}}`},
				{"namespaces/p-shop/virtualclusterinstances", `{"metadata":{"name":"dev"},"spec":{"owner":{"user":"ana"},"accessPoint":{"ingress":{"enabled":true,"host":"dev.example.com"}}}}`},
			} {
				w.expect(201, adminBearer, "POST", base+made[0], made[1])
			}
			w.set(`{"platformHost":"a.example.com"}`)
			w.set(`{"platformHost":"b.example.com"}`)
			ask := func(query string) (int, string) {
				answer, text := w.ask(adminBearer, "POST", base+action.path+query, action.body)
				return answer.StatusCode, text
			}
			before := w.state()
			code, text := ask("?dryRun=All")
			if after := w.state(); after != before {
				t.Errorf("a dry run stores something:\n%s\nwas\n%s", after, before)
			}
			if strings.Contains(text, "pak_") || strings.Contains(text, `"token":"ey`) {
				t.Errorf("a dry run shows a secret: %s", text)
			}
			if done, answer := ask(""); done != code || code >= 300 {
				t.Errorf("a dry run is answered %d %s, and the request %d %s", code, text, done, answer)
			}
			if w.state() == before {
				t.Error("the action stores nothing")
			}
		})
	}
}

// The first list that is continued makes the key of its token, also if the request is a dry run, or a read that ignores the parameter.
// Source: ADR-0047.
func TestDryRunOfPages(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"DELETE", "GET"} {
		c := newConfigured(t, redistest.Embedded(t))
		c.separate()
		c.seed()
		if text := c.expect(200, adminBearer, method, keysPath+"?limit=1&dryRun=All", ""); !strings.Contains(text, `"continue":"`) {
			t.Errorf("%s: %s", method, text)
		}
	}
}
