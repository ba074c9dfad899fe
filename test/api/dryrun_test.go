package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// actions are the actions: requests that do more than create, change or delete an object. The keys are the paths of their endpoints below the
// group. The paths of the requests name the objects that TestDryRunOfActions makes.
var actions = map[string]struct{ path, body string }{
	"credentialrevocations":   {"credentialrevocations", `{"spec":{"credentials":["` + benBearer + `"]}}`},
	"signintrials":            {"signintrials", `{"spec":{"connector":"gitforge1"}}`},
	"users/{name}/signout":    {"users/ana/signout", `{}`},
	"users/{name}/password":   {"users/ana/password", `{"spec":{"password":"nine-violet-kettles-hum"}}`},
	"users/{name}/accesskeys": {"users/ana/accesskeys", `{"metadata":{"name":"of-ana"}}`},
	"teams/{name}/accesskeys": {"teams/web/accesskeys", `{"metadata":{"name":"of-web"}}`},
	"config/{name}/rollback":  {"config/config/rollback", `{"spec":{"revision":"2"}}`},
	"configs/{name}/rollback": {"configs/config/rollback", `{"spec":{"revision":"2"}}`},
	"namespaces/{namespace}/virtualclusterinstances/{name}/kubeconfig": {"namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", `{}`},
}

// questions are the endpoints that answer a POST without storing anything.
var questions = []string{"selves", "scopepreviews", "syncpatchevaluations"}

// A dry run of an action has the status of the action itself, shows no secret and leaves the state as it is. The table has every action of
// the catalog. Source: Spec 4; ADR-0047.
func TestDryRunOfActions(t *testing.T) {
	t.Parallel()
	stored := map[string]bool{}
	for _, k := range storedKinds {
		stored[k.resource] = true
	}
	seen := map[string]bool{}
	for _, f := range catalog.Functions {
		for _, endpoint := range f.Endpoints {
			below, found := strings.CutPrefix(endpoint.Path, group)
			created := endpoint.Subresource == "" && stored[endpoint.Resource.Resource]
			if !found || endpoint.Method != http.MethodPost || created || slices.Contains(questions, below) {
				continue
			}
			seen[below] = true
			if _, known := actions[below]; !known {
				t.Errorf("acting lacks %s of %s", below, f.Name)
			}
		}
	}
	for below, action := range actions {
		t.Run(strings.ReplaceAll(below, "/", " "), func(t *testing.T) {
			t.Parallel()
			if !seen[below] {
				t.Fatal("no endpoint has the path")
			}
			w := newActions(t)
			ask := func(query string) (int, string) {
				answer, text := w.ask(adminBearer, "POST", group+action.path+query, action.body)
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

// newActions returns the whole API, with the objects that the actions are about.
func newActions(t *testing.T) *kindWorld {
	t.Helper()
	w := &kindWorld{configWorld: newConfigWorld(t, redistest.Embedded(t)), storedKind: storedKinds[0]}
	w.mountSeparately()
	w.seed()
	for _, made := range [][2]string{
		{"users", `{"metadata":{"name":"ana"}}`}, {"teams", `{"metadata":{"name":"web"},"spec":{"users":["ana"]}}`},
		{"namespaces/p-shop/virtualclusterinstances", `{"metadata":{"name":"dev"},"spec":{"owner":{"user":"ana"},"accessPoint":{"ingress":{"enabled":true,"host":"dev.example.com"}}}}`},
	} {
		w.expect(201, adminBearer, "POST", group+made[0], made[1])
	}
	w.setConfig(`{"platformHost":"a.example.com"}`)
	w.setConfig(`{"platformHost":"b.example.com","auth":{"gitforge1":{"clientId":"c","redirectURI":"https://b.example.com/auth/gitforge1/callback"}}}`)
	return w
}

// writingActions are the actions that write an object for their caller. The field manager of the request then owns the written fields. The key of a
// kubeconfig is missing here, because the platform itself makes it.
var writingActions = []string{
	"users/{name}/accesskeys", "teams/{name}/accesskeys", "config/{name}/rollback", "configs/{name}/rollback",
}

// Each action takes the options that its endpoint accepts: the validation of fields, and the field manager. Source: Spec 4; ADR-0047.
func TestOptionsOfActions(t *testing.T) {
	t.Parallel()
	for below, action := range actions {
		t.Run(strings.ReplaceAll(below, "/", " "), func(t *testing.T) {
			t.Parallel()
			w := newActions(t)
			ask := func(query, body string) (int, string) {
				answer, text := w.ask(adminBearer, "POST", group+action.path+query, body)
				return answer.StatusCode, text
			}
			unknown := strings.Replace(action.body, "{", `{"unknown":1,`, 1)
			unknown = strings.Replace(unknown, ",}", "}", 1)
			before := w.state()
			if code, text := ask("?fieldValidation=Strict", unknown); code != http.StatusBadRequest || !strings.Contains(text, "unknown") {
				t.Errorf("an unknown field is answered %d %s", code, text)
			}
			if code, text := ask("?fieldManager="+strings.Repeat("x", 200), action.body); code != http.StatusUnprocessableEntity || !strings.Contains(text, "fieldManager") {
				t.Errorf("a long field manager is answered %d %s", code, text)
			}
			if after := w.state(); after != before {
				t.Errorf("what was refused stores something:\n%s\nwas\n%s", after, before)
			}
			if code, text := ask("?fieldManager=tester", action.body); code > 299 {
				t.Fatalf("%d %s", code, text)
			}
			var written strings.Builder
			for _, path := range []string{"ownedaccesskeys", "configs"} {
				written.WriteString(w.expect(200, adminBearer, "GET", group+path, ""))
			}
			if manages := strings.Contains(written.String(), `"manager":"tester"`); manages != slices.Contains(writingActions, below) {
				t.Errorf("its field manager owns what it writes: %v", manages)
			}
		})
	}
}

// The first list with a continue token creates the key for these tokens, also if the request is a dry run, or a read that ignores the
// parameter. Source: ADR-0047.
func TestDryRunOfPages(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"DELETE", "GET"} {
		c := newConfigWorld(t, redistest.Embedded(t))
		c.mountSeparately()
		c.seed()
		if text := c.expect(200, adminBearer, method, keysPath+"?limit=1&dryRun=All", ""); !strings.Contains(text, `"continue":"`) {
			t.Errorf("%s: %s", method, text)
		}
	}
}
