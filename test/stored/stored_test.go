// Package stored_test compares what functions store in two shapes of the platform: in one process with all functions, as the program
// platform runs them, and alone, as a function platform does. Clock and randomness are the same in both. Source: ADR-0010, ADR-0049.
package stored_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/tokenexchange"
	"management.platform.sh/shared/platform"
	"management.platform.sh/test/sample"
)

// scenario lets a function write. It returns the request of the function; what it does before that prepares the state.
type scenario func(w *world, function *frame.Function) (request func())

const group = "/apis/management.platform.sh/v1/"

// manifest is an object of a kind with a finalizer, so that a deletion leaves it in the state.
func manifest(spec map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "x", "finalizers": []string{"example.com/hold"}}, "spec": spec}
}

// create creates an object of a stored kind.
func (w *world) create(to http.Handler, kind platform.StoredKind) map[string]any {
	w.t.Helper()
	return w.object(w.send(to, http.MethodPost, sample.Path(kind), manifest(sample.Spec(kind.Resource.Resource, "root", ""))))
}

// verbs are the scenarios of the functions that write a stored kind as clients ask, by the verb of their first endpoint.
var verbs = map[string]func(w *world, kind platform.StoredKind) (request func()){
	"create": func(w *world, kind platform.StoredKind) func() {
		return func() { w.create(w.handler, kind) }
	},
	"update": func(w *world, kind platform.StoredKind) func() {
		object := w.create(w.others, kind)
		object["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
		delete(object, "status")
		return func() { w.send(w.handler, http.MethodPut, sample.Path(kind)+"/x", object) }
	},
	"patch": func(w *world, kind platform.StoredKind) func() {
		w.create(w.others, kind)
		return func() {
			w.send(w.handler, http.MethodPatch, sample.Path(kind)+"/x", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		}
	},
	"delete": func(w *world, kind platform.StoredKind) func() {
		w.create(w.others, kind)
		return func() { w.send(w.handler, http.MethodDelete, sample.Path(kind)+"/x", nil) }
	},
}

// verbScenario returns the scenario of a function that writes a stored kind by a verb.
func verbScenario(f *frame.Function) (scenario, bool) {
	if len(f.Endpoints) == 0 || f.Endpoints[0].Subresource != "" {
		return nil, false
	}
	endpoint := f.Endpoints[0]
	write := verbs[endpoint.Verb]
	at := slices.IndexFunc(platform.StoredKinds, func(kind platform.StoredKind) bool { return kind.Resource == endpoint.Resource })
	if write == nil || at < 0 {
		return nil, false
	}
	return func(w *world, _ *frame.Function) func() { return write(w, platform.StoredKinds[at]) }, true
}

// scheduled is the scenario of a function that runs on a schedule, some time after the state was prepared.
func scheduled(after time.Duration, prepare func(*world)) scenario {
	return func(w *world, function *frame.Function) func() {
		prepare(w)
		w.pass(after)
		return func() { w.run(function) }
	}
}

// The paths of objects.
const (
	key      = group + "ownedaccesskeys"
	token    = group + "directclusterendpointtokens"
	config   = group + "configs/config"
	user     = group + "users"
	instance = group + "namespaces/p-shop/virtualclusterinstances"
)

// jobRule makes a trust rule for jobs, whose keys belong to a user that exists.
func jobRule(w *world) {
	rule := sample.Spec("trustrules", "x", "")
	rule["issuer"], rule["caData"] = w.provider.server.URL, w.provider.authority()
	w.send(w.others, http.MethodPost, user, manifest(sample.Spec("users", "root", "")))
	w.send(w.others, http.MethodPost, group+"trustrules", manifest(rule))
}

// others are the scenarios of the functions that write otherwise than by the verbs of a kind.
var others = map[string]scenario{
	"renderkubeconfig": func(w *world, _ *frame.Function) func() {
		w.send(w.others, http.MethodPost, instance, manifest(sample.Spec("virtualclusterinstances", "root", "")))
		return func() {
			w.send(w.handler, http.MethodPost, instance+"/x/kubeconfig", map[string]any{"spec": map[string]any{"server": "https://x.example.com"}})
		}
	},
	"signoutuser": func(w *world, _ *frame.Function) func() {
		w.signIn()
		return func() { w.send(w.handler, http.MethodPost, group+"users/ana/signout", map[string]any{}) }
	},
	"setpassword": func(w *world, _ *frame.Function) func() {
		w.send(w.others, http.MethodPost, user, manifest(sample.Spec("users", "root", "")))
		return func() {
			w.send(w.handler, http.MethodPost, user+"/x/password", map[string]any{"spec": map[string]any{"password": "Tq8-vZr2-Lm5-xWk9"}})
		}
	},
	"updateconfig": func(w *world, _ *frame.Function) func() {
		object := w.object(w.send(w.others, http.MethodGet, config, nil))
		object["status"] = map[string]any{"platformHost": "other.example"}
		return func() { w.send(w.handler, http.MethodPut, config, object) }
	},
	"patchconfig": func(w *world, _ *frame.Function) func() {
		return func() {
			w.send(w.handler, http.MethodPatch, config, map[string]any{"status": map[string]any{"platformHost": "other.example"}})
		}
	},
	"rollbackconfig": func(w *world, _ *frame.Function) func() {
		var first string
		for _, name := range []string{"one.example", "two.example"} {
			object := w.object(w.send(w.others, http.MethodPatch, config, map[string]any{"status": map[string]any{"platformHost": name}}))
			if first == "" {
				first = object["metadata"].(map[string]any)["resourceVersion"].(string)
			}
		}
		return func() {
			w.send(w.handler, http.MethodPost, config+"/rollback", map[string]any{"spec": map[string]any{"revision": first}})
		}
	},
	// The record of a token has no finalizers.
	"issuetoken": func(w *world, _ *frame.Function) func() {
		return func() { w.send(w.handler, http.MethodPost, token, map[string]any{}) }
	},
	"deletetoken": func(w *world, _ *frame.Function) func() {
		object := w.object(w.send(w.others, http.MethodPost, token, map[string]any{}))
		return func() {
			w.send(w.handler, http.MethodDelete, token+"/"+object["metadata"].(map[string]any)["name"].(string), nil)
		}
	},
	"revokecredentials": func(w *world, _ *frame.Function) func() {
		const text = "given-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
		w.send(w.others, http.MethodPost, key, manifest(map[string]any{"user": "root", "key": text}))
		return func() {
			w.send(w.handler, http.MethodPost, group+"credentialrevocations", map[string]any{"spec": map[string]any{"credentials": []string{text}}})
		}
	},
	"finishlogin": func(w *world, _ *frame.Function) func() {
		query := w.start()
		return func() { w.callback(w.handler, query) }
	},
	"exchangetoken": func(w *world, _ *frame.Function) func() {
		jobRule(w)
		form := w.allow(w.callback(w.others, w.start()))
		return func() {
			w.send(w.handler, http.MethodPost, "/auth/token", form)
			w.send(w.handler, http.MethodPost, "/auth/token", url.Values{
				"grant_type": {tokenexchange.GrantType}, "subject_token_type": {tokenexchange.TypeJWT},
				"subject_token": {w.provider.sign("JWT", w.provider.claims(base, map[string]any{"sub": "job", "jti": "job-1"}))},
			})
		}
	},
	"endlogin": func(w *world, _ *frame.Function) func() {
		w.signIn()
		return func() {
			w.send(w.handler, http.MethodPost, "/auth/oidc/logout", url.Values{"logout_token": {w.provider.sign("logout+jwt", w.provider.claims("platform", map[string]any{
				"sub": "1001", "jti": "logout-1", "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
			}))}})
		}
	},
	"revalidatelogins": scheduled(13*time.Hour, (*world).signIn),
	"expirekeys": scheduled(time.Hour, func(w *world) {
		w.send(w.others, http.MethodPost, key, manifest(map[string]any{"user": "root", "ttl": 60}))
	}),
	"expiretokens": scheduled(48*time.Hour, func(w *world) { w.send(w.others, http.MethodPost, token, map[string]any{}) }),
	"collectgarbage": scheduled(time.Hour, func(w *world) {
		w.send(w.others, http.MethodPost, key, map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"user": "root"}})
		w.send(w.others, http.MethodDelete, key+"/x?gracePeriodSeconds=60", nil)
	}),
	"probecredentials": scheduled(0, func(*world) {}),
}

// writesNoObject are the functions with other endpoints than reads that store no object of the kinds, each with its reason.
var writesNoObject = map[string]string{
	"whoami":            "it says who the caller is",
	"authorizescopes":   "it decides, and stores nothing",
	"reviewtokens":      "it says whose a bearer is",
	"evaluatepatches":   "it evaluates patches that come with the request",
	"discoverapi":       "it serves documents",
	"publishkeys":       "it serves documents",
	"serveconsole":      "it serves documents",
	"describelogin":     "it serves documents",
	"opensession":       "the session is in the cookie of the browser",
	"startlogin":        "the attempt is in the cookie of the browser",
	"checkpassword":     "it stores a sign-in",
	"confirmlogin":      "it changes a sign-in",
	"requestdevice":     "it stores a sign-in",
	"approvedevice":     "it changes a sign-in",
	"trysignin":         "it stores a sign-in on trial",
	"rotatesigningkeys": "it stores signing keys",
}

// reads reports whether all endpoints of a function read stored objects.
func reads(f *frame.Function) bool {
	return f.Schedule == nil && !slices.ContainsFunc(f.Endpoints, func(e frame.Endpoint) bool {
		return !slices.Contains([]string{"get", "list", "watch"}, e.Verb)
	})
}

// A function stores the same bytes wherever it runs. A function that only works, or works otherwise, where another one is opened as well
// is found here: every function of the catalog has a scenario, or the reason why it has none.
func TestStoredObjects(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	scenarios := maps.Clone(others)
	for _, f := range catalog.Functions {
		scene, has := scenarios[f.Name]
		if !has {
			scene, has = verbScenario(f)
		}
		delete(scenarios, f.Name)
		switch {
		case has && writesNoObject[f.Name] != "":
			t.Errorf("%s has a scenario, and stores nothing", f.Name)
			continue
		case !has && !reads(f) && writesNoObject[f.Name] == "":
			t.Errorf("%s may store objects: give it a scenario, or say why not", f.Name)
			continue
		case !has:
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			together, changes := stores(t, p, scene, f, catalog.Functions...)
			if !changes {
				t.Error("it stores nothing")
			}
			alone, _ := stores(t, p, scene, f, f)
			if !slices.Equal(together, alone) {
				t.Errorf("with all functions it stores\n%s\nand alone\n%s", strings.Join(together, "\n"), strings.Join(alone, "\n"))
			}
		})
	}
	for name := range scenarios {
		t.Errorf("there is a scenario for %s, which is no function", name)
	}
}

// stores returns what is stored after a function has worked in a process with some functions, and whether it changed anything.
func stores(t *testing.T, p *provider, scene scenario, f *frame.Function, process ...*frame.Function) (texts []string, changes bool) {
	t.Helper()
	w := newWorld(t, p, process...)
	request := scene(w, f)
	before := w.texts()
	request()
	texts = w.texts()
	return texts, !slices.Equal(before, texts)
}
