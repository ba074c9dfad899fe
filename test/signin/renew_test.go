package signin_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/functions/revalidatelogins"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signin/connectors"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/revalidate"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/state/store"
)

// kept is a person who has signed in, with their key.
type kept struct {
	*world
	key  secret.String
	name string
}

// keep signs the person of the provider in.
func (w *world) keep(id string, login func(string) url.Values) kept {
	w.t.Helper()
	b := w.browser()
	status, answer := w.fetch(b.confirm(b.proveAt(id, login), "allow").Get("code"), nil)
	text, _ := answer["access_token"].(string)
	name, _ := answer["access_key"].(string)
	if status != http.StatusOK {
		w.t.Fatalf("token: %d %v", status, answer)
	}
	return kept{w, secret.String(text), name}
}

// works reports whether the key of the person works, and notes its use.
func (k kept) works() bool {
	k.t.Helper()
	_, err := accesskey.OpenAuthenticator(k.env).Bearer(k.t.Context(), k.key)
	return err == nil
}

// used notes that the key was used now.
func (k kept) used() {
	k.t.Helper()
	keys := k.env.Stores("ownedaccesskeys")
	record, err := keys.Get(k.t.Context(), k.name)
	if err == nil {
		err = keys.Touch(k.t.Context(), record, k.clock.Now(), time.Time{})
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// run runs the schedule once, and returns what it did.
func (w *world) run() revalidate.Counts {
	w.t.Helper()
	done, err := revalidatelogins.Do(w.t.Context(), revalidatelogins.Deps{Revalidator: revalidate.Open(w.env, kinds.Users(w.env), kinds.Teams(w.env), kinds.AccessKeys(w.env)), Provider: connectors.Open(w.env)})
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func (w *world) offline() kept {
	long := int64(0)
	w.config.Auth.LoginAccessKeyTTLSeconds = &long
	w.config.Auth.OIDC.Scopes = []string{"offline_access"}
	return w.keep("oidc", w.provider.login)
}

// What the provider says of somebody whose key is in use is known a quarter of an hour later: groups shrink. Source: ADR-0035.
func TestRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.offline()
	for _, record := range slices.Concat(w.stored(sessions.Resource), w.stored(logins.Resource), w.stored("ownedaccesskeys")) {
		if w.provider.refresh == "" || strings.Contains(string(record.Object), w.provider.refresh) {
			t.Errorf("the record %s has the refresh token", record.Name)
		}
	}
	defer func() {
		w.provider.mu.Lock()
		defer w.provider.mu.Unlock()
		for _, hidden := range w.provider.secrets {
			if hidden != "" && strings.Contains(w.log.String(), hidden) {
				t.Errorf("the log has %q", hidden)
			}
		}
	}()
	if done := w.run(); done != (revalidate.Counts{}) {
		t.Errorf("at once: %+v", done)
	}
	w.provider.person["groups"] = []string{"ops"}
	before := w.provider.refresh
	w.clock.forward(14 * time.Minute)
	k.used()
	w.clock.forward(2 * time.Minute)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || w.provider.refresh == before || !slices.Equal(w.user("ana").Spec.SSOGroups, []string{"ops"}) {
		t.Errorf("%+v, %q", done, w.user("ana").Spec.SSOGroups)
	}
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(t.Context(), k.key)
	if err != nil || caller.InGroup("dev") || !caller.InGroup("ops") {
		t.Errorf("%q, %v", caller.Groups, err)
	}
	// The next answer needs the refresh token of this one. A key that is not used is asked about twice a day.
	w.clock.forward(16 * time.Minute)
	if !k.works() {
		t.Error("the key does not work")
	}
	w.clock.forward(16 * time.Minute)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) {
		t.Errorf("%+v", done)
	}
	w.clock.forward(time.Hour)
	if done := w.run(); done != (revalidate.Counts{Unused: 1}) {
		t.Errorf("%+v", done)
	}
	w.clock.forward(12 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !k.works() {
		t.Errorf("%+v", done)
	}
}

// tokenEndpoint makes the token endpoint answer with a status, a body, and names and values of headers.
func tokenEndpoint(status int, body string, header ...string) func(*world) {
	return func(w *world) {
		w.provider.serve["/token"] = func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			for i := 0; i < len(header); i += 2 {
				out.Header().Set(header[i], header[i+1])
			}
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
		}
	}
}

// A provider that refuses somebody ends every credential of theirs. Source: ADR-0035.
func TestRenewalRefused(t *testing.T) {
	t.Parallel()
	for about, change := range map[string]func(*world){
		"a refresh token that is revoked": func(w *world) { w.provider.refresh = "another" },
		"in none of the required groups":  func(w *world) { w.config.Auth.OIDC.Groups = []string{"x"} },
		"another subject":                 func(w *world) { w.provider.person["sub"] = "1002" },
		// What servers answer in place of invalid_grant.
		"invalid_request for the refresh token": tokenEndpoint(400, `{"error":"invalid_request"}`),
		"400 and nothing else":                  tokenEndpoint(400, ""),
		"a UserInfo that refuses the token": func(w *world) {
			tokenEndpoint(200, `{"access_token":"opaque","token_type":"Bearer"}`)(w)
			w.provider.serve["/userinfo"] = func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusUnauthorized) }
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			k := w.offline()
			made, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: &model.OwnedAccessKey{
				Spec: model.OwnedAccessKeySpec{User: "ana"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			other := kept{w, secret.String(made.Object.Spec.Key), made.Object.Name}
			if !other.works() {
				t.Fatal("the other key does not work")
			}
			change(w)
			w.clock.forward(13 * time.Hour)
			if done := w.run(); done != (revalidate.Counts{Ended: 1}) || k.works() || other.works() {
				t.Errorf("%+v, %v, %v", done, k.works(), other.works())
			}
			if left := w.stored(sessions.Resource); len(left) > 0 {
				t.Errorf("%d sessions are left", len(left))
			}
		})
	}
}

// A provider may keep one refresh token for a person and a client, so that a sign-in replaces the token of the one before. The earlier sign-in ends
// with the refusal, and the provider is asked with the later one: it alone speaks for the person. Source: ADR-0035.
func TestReplacedToken(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		w := newWorld(t)
		earlier := w.offline()
		w.clock.forward(12 * time.Minute)
		later, own := w.offline(), w.own()
		if refused {
			w.provider.refresh = "another"
		}
		w.clock.forward(4 * time.Minute)
		earlier.used()
		if done := w.run(); done != (revalidate.Counts{Ended: 1}) || earlier.works() || !own.works() {
			t.Errorf("the earlier one, refused %v: %+v, the keys work: %v, %v", refused, done, earlier.works(), own.works())
		}
		// Nobody has used the later key, so that the provider would be asked hours later.
		want := revalidate.Counts{Kept: 1}
		if refused {
			want = revalidate.Counts{Ended: 1}
		}
		if done := w.run(); done != want || later.works() == refused || own.works() == refused {
			t.Errorf("the later one, refused %v: %+v, the keys work: %v, %v", refused, done, later.works(), own.works())
		}
	}
	// A later sign-in that has ended does not speak for the person, and neither does one of somebody else or without a token.
	for about, change := range map[string]func(w *world, later kept){
		"gone": func(w *world, later kept) {
			if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: later.name}); err != nil {
				t.Fatal(err)
			}
		},
		"disabled": func(w *world, later kept) {
			if _, err := resource.Patch(t.Context(), kinds.AccessKeys(w.env), resource.PatchInput{
				Caller: root, Name: later.name, Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`),
			}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		w := newWorld(t)
		earlier := w.offline()
		w.clock.forward(12 * time.Minute)
		later, own := w.offline(), w.own()
		change(w, later)
		w.clock.forward(4 * time.Minute)
		earlier.used()
		if w.run(); earlier.works() || own.works() {
			t.Errorf("%s: the keys work: %v, %v", about, earlier.works(), own.works())
		}
	}
	w := newWorld(t)
	earlier := w.offline()
	refresh := w.provider.refresh
	w.clock.forward(time.Minute)
	w.config.Auth.OIDC.Scopes = nil
	later := w.keep("oidc", w.provider.login)
	w.provider.person = map[string]any{"sub": "1002", "preferred_username": "ben"}
	w.config.Auth.OIDC.Scopes = []string{"offline_access"}
	ben := w.keep("oidc", w.provider.login)
	if w.provider.refresh == refresh {
		t.Fatal("the token of the first sign-in is not replaced")
	}
	w.clock.forward(15 * time.Minute)
	earlier.used()
	if w.run(); earlier.works() || later.works() || !ben.works() {
		t.Errorf("without a token: the keys work: %v, %v, %v", earlier.works(), later.works(), ben.works())
	}
}

// A provider that does not answer, or that refuses the platform rather than the person, changes nothing for a day. When it is back, the
// key works without a new sign-in. Source: ADR-0035.
func TestRenewalUnanswered(t *testing.T) {
	t.Parallel()
	for about, change := range map[string]func(*world){
		"an error of the server":          tokenEndpoint(502, "x"),
		"a wrong client":                  tokenEndpoint(401, `{"error":"invalid_client"}`),
		"too many requests":               tokenEndpoint(429, ""),
		"too many requests, said by 403":  tokenEndpoint(403, "", "Retry-After", "60"),
		"no more requests in this minute": tokenEndpoint(403, "", "X-RateLimit-Remaining", "0"),
		"garbage":                         tokenEndpoint(200, "<html>"),
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			k := w.offline()
			change(w)
			for hour := range 25 {
				w.clock.forward(time.Hour)
				if want := hour < 23; k.works() != want {
					t.Errorf("after %d hours it works: %v", hour+1, !want)
				}
				if done := w.run(); done.Kept+done.Ended+done.Forgotten > 0 {
					t.Errorf("%+v", done)
				}
			}
			delete(w.provider.serve, "/token")
			w.clock.forward(time.Hour)
			if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !k.works() {
				t.Errorf("%+v, %v", done, k.works())
			}
		})
	}
}

// Of two processes, one uses the refresh token. A session that was moved to another record is not used, and one whose key is gone goes.
func TestRenewalOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.offline()
	w.clock.forward(13 * time.Hour)
	var mu sync.Mutex
	var total revalidate.Counts
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			done, err := revalidatelogins.Do(t.Context(), revalidatelogins.Deps{Revalidator: revalidate.Open(w.env, kinds.Users(w.env), kinds.Teams(w.env), kinds.AccessKeys(w.env)), Provider: connectors.Open(w.env)})
			mu.Lock()
			defer mu.Unlock()
			if total.Kept += done.Kept; err != nil {
				t.Error(err)
			}
			total.Ended += done.Ended
		})
	}
	group.Wait()
	if total != (revalidate.Counts{Kept: 1}) || !k.works() {
		t.Errorf("%+v, %v", total, k.works())
	}
	sessionStore := w.env.Stores(sessions.Resource)
	record := w.stored(sessions.Resource)[0]
	record.Object = []byte(strings.Replace(string(record.Object), `"sealed":"`, `"sealed":"x`, 1))
	if _, err := sessionStore.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(13 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Unanswered: 1}) {
		t.Errorf("%+v", done)
	}
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{Caller: root, Name: k.name}); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(time.Hour)
	if done := w.run(); done != (revalidate.Counts{Forgotten: 1, Unrevoked: 1}) || len(w.stored(sessions.Resource)) > 0 {
		t.Errorf("%+v", done)
	}
}

// Whoever can write the state cannot have one person's token used for the session of another: it is sealed for its key.
func TestMovedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.offline()
	w.provider.person["sub"], w.provider.person["preferred_username"] = "1002", "ben"
	ben := w.offline()
	sessionStore := w.env.Stores(sessions.Resource)
	sealed := regexp.MustCompile(`"sealed":"[^"]+"`)
	records := w.stored(sessions.Resource)
	if len(records) != 2 {
		t.Fatalf("%d sessions", len(records))
	}
	of := map[bool]store.Record{}
	for _, record := range records {
		of[strings.Contains(string(record.Object), `"user":"ana"`)] = record
	}
	moved := of[true]
	moved.Object = []byte(sealed.ReplaceAllLiteralString(string(moved.Object), sealed.FindString(string(of[false].Object))))
	if _, err := sessionStore.Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(13 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Kept: 1, Unanswered: 1}) || !ana.works() || !ben.works() {
		t.Errorf("%+v, %v, %v", done, ana.works(), ben.works())
	}
}

// A code host without refresh tokens is asked with the token of the sign-in.
func TestRenewedAtCodeHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.gitForge1()
	w.config.Auth.GitForge1.Orgs = []model.GitForge1Org{{Name: "acme", Teams: []string{"team-1", "team-2"}}}
	k := w.keep("gitforge1", h.login)
	h.list("/user/teams", []any{map[string]any{"name": "Team 2", "slug": "team-2", "organization": map[string]any{"login": "Acme"}}})
	w.clock.forward(13 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !slices.Equal(w.user("ana").Spec.SSOGroups, []string{"acme:team-2"}) {
		t.Errorf("%+v, %q", done, w.user("ana").Spec.SSOGroups)
	}
	// A code host that limits requests says nothing of the person. One that has suspended the account does.
	account := w.provider.serve[h.api+"/user"]
	w.provider.serve[h.api+"/user"] = forbids("X-RateLimit-Remaining", "0")
	w.clock.forward(13 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Unanswered: 1}) {
		t.Errorf("%+v", done)
	}
	w.provider.serve[h.api+"/user"] = account
	w.clock.forward(time.Hour)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !k.works() {
		t.Errorf("%+v, %v", done, k.works())
	}
	w.provider.serve[h.api+"/user"] = forbids("X-RateLimit-Remaining", "59")
	w.clock.forward(13 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Ended: 1}) || k.works() {
		t.Errorf("%+v, %v", done, k.works())
	}
}

// forbids answers 403 with a header.
func forbids(name, value string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set(name, value)
		out.WriteHeader(http.StatusForbidden)
	}
}
