package signin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/revalidate"
	"management.platform.sh/shared/signin/token"
	"management.platform.sh/shared/state/store"
)

// refreshing is a program with a refresh token.
type refreshing struct {
	kept
	token, family string
}

// refreshing signs the person of the provider in for a program that asks for a refresh token. Sign-ins end after ttl seconds.
func (w *world) refreshing(ttl int64) *refreshing {
	w.t.Helper()
	w.config.Auth.LoginAccessKeyTTLSeconds = &ttl
	w.config.Auth.OIDC.Scopes = []string{"offline_access"}
	b := w.browser()
	status, answer := w.fetch(b.confirm(b.prove(), "allow").Get("code"), func(form url.Values) {
		form.Set("scope", "openid offline_access")
		form.Set("nonce", "n-1")
	})
	if status != http.StatusOK || answer["scope"] != "offline_access" {
		w.t.Fatalf("%d %v", status, answer)
	}
	return (&refreshing{kept: kept{world: w}}).with(answer)
}

// with is the program after an answer.
func (r *refreshing) with(answer map[string]any) *refreshing {
	next := *r
	key, _ := answer["access_token"].(string)
	next.key = secret.String(key)
	next.name, _ = answer["access_key"].(string)
	next.token, _ = answer["refresh_token"].(string)
	next.family, _ = answer["refresh_key"].(string)
	return &next
}

// refresh asks for the next access key.
func (w *world) refresh(token string) (int, map[string]any) {
	return w.fetch("", func(form url.Values) {
		for name := range form {
			delete(form, name)
		}
		form.Set("grant_type", "refresh_token")
		form.Set("client_id", oauth.ClientID)
		form.Set("refresh_token", token)
	})
}

// next refreshes the key.
func (r *refreshing) next() *refreshing {
	r.t.Helper()
	status, answer := r.refresh(r.token)
	if status != http.StatusOK || answer["expires_in"] == nil {
		r.t.Fatalf("%d %v", status, answer)
	}
	return r.with(answer)
}

// wantEnded fails the test unless neither the refresh token nor the keys work.
func (r *refreshing) wantEnded(about string) {
	r.t.Helper()
	if r.works() {
		r.t.Errorf("%s: the access key works", about)
	}
	if status, answer := r.refresh(r.token); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		r.t.Errorf("%s: the refresh token is answered with %d %v", about, status, answer)
	}
}

// get returns a key.
func (w *world) get(name string) *model.OwnedAccessKey {
	w.t.Helper()
	found, err := resource.Get(w.t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// A program that asks for a refresh token gets a key of an hour, and the next ones without a person. The state has no text of a token, and
// neither has the log. Source: ADR-0045.
func TestRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var events processtest.Log
	w.audited(&events)
	first := w.refreshing(7200)
	key, family := w.get(first.name), w.get(first.family)
	if key.Spec.Type != model.AccessKeyTypeLogin || key.Spec.TTLSeconds != 3600 || key.Spec.Identity == nil || key.Spec.Identity.UserID != "1001" ||
		len(key.Status.Lineage) != 1 || key.Status.Lineage[0] != (model.AccessKeyAncestor{Name: family.Name, UID: string(family.UID), Bounds: true}) {
		t.Errorf("the access key is %+v of %+v", key.Spec, key.Status)
	}
	want := model.AccessKeyOIDCProvider{ClientID: oauth.ClientID, Nonce: "n-1", RedirectURI: program, Scopes: "offline_access"}
	if family.Spec.Type != model.AccessKeyTypeOIDCRefreshToken || family.Spec.TTLSeconds != 7200 || family.Spec.OIDCProvider == nil || *family.Spec.OIDCProvider != want {
		t.Errorf("the refresh key is %+v", family.Spec)
	}
	bearer, part, ok := strings.Cut(first.token, ".")
	if !ok || !first.works() {
		t.Fatalf("the key works: %v", first.works())
	}
	for _, text := range []string{bearer, part, first.token} {
		if (kept{w, secret.String(text), ""}).works() {
			t.Error("a part of a refresh token authenticates a request")
		}
	}
	w.clock.forward(3601 * time.Second)
	if first.works() {
		t.Error("the key works after its hour")
	}
	second := first.next()
	third := second.next()
	if second.token == first.token || third.key == second.key || third.family != first.family || !second.works() || !third.works() {
		t.Error("the refresh did not make another key and token")
	}
	if keys := w.stored("ownedaccesskeys"); len(keys) != 3 {
		t.Errorf("there are %d keys, want the refresh key and the last two of its access keys", len(keys))
	}
	everything := w.everything() + w.log.String() + events.String()
	for _, hidden := range []string{bearer, part, second.token, third.token, strings.Split(third.token, ".")[1], third.key.Reveal()} {
		if strings.Contains(everything, hidden) {
			t.Error("the state, the log or the audit has the text of a token")
		}
	}
	// The sign-in ends when it would have ended without a refresh token.
	w.clock.forward(3590 * time.Second)
	if !third.works() {
		t.Error("the key ended before the sign-in")
	}
	w.clock.forward(10 * time.Second)
	third.wantEnded("at the end of the sign-in")
}

// A sign-in that does not end needs a use of its refresh token every 90 days.
func TestRefreshUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(0)
	for range 4 {
		w.clock.forward(23 * time.Hour)
		w.run()
		program = program.next()
	}
	if family := w.get(program.family); family.Status.ExpirationTimestamp == nil ||
		!family.Status.ExpirationTimestamp.Equal(&metav1.Time{Time: w.clock.Now().Add(90 * 24 * time.Hour)}) {
		t.Errorf("it ends at %v", family.Status.ExpirationTimestamp)
	}
}

// Whoever has a refresh token that was used before ends the sign-in: it was stolen, or its thief has used it. Source: RFC 9700, 4.14.2.
func TestRefreshReused(t *testing.T) {
	t.Parallel()
	for about, again := range map[string]func(first, last *refreshing) string{
		"a token that was used":        func(first, _ *refreshing) string { return first.token },
		"a part that was never one":    func(_, last *refreshing) string { return last.token + "x" },
		"the part of another sign-in":  func(_, last *refreshing) string { return strings.Split(last.token, ".")[0] + ".x" },
		"the text of the key, as both": func(_, last *refreshing) string { k := strings.Split(last.token, ".")[0]; return k + "." + k },
	} {
		w := newWorld(t)
		var events processtest.Log
		w.audited(&events)
		first := w.refreshing(7200)
		last := first.next()
		made := w.childOf(last)
		if status, answer := w.refresh(again(first, last)); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
		last.wantEnded(about)
		if (kept{w, made, ""}).works() {
			t.Errorf("%s: a key that was made with it works", about)
		}
		if left := w.stored(logins.Resource); slices.ContainsFunc(left, func(r store.Record) bool { return strings.Contains(string(r.Object), `"part":`) }) {
			t.Errorf("%s: the record of the refresh key is left", about)
		}
		if !strings.Contains(w.log.String(), "a refresh token was used twice") || !strings.Contains(events.String(), `"refresh_token_reused"`) {
			t.Errorf("%s: the log and the audit do not say so:\n%s", about, events.String())
		}
	}
}

// childOf makes a key without an end with the access key of a program.
func (w *world) childOf(program *refreshing) secret.String {
	w.t.Helper()
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(w.t.Context(), program.key)
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{GenerateName: "child-"}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret.String(made.Object.Spec.Key)
}

// A program whose answer is lost uses its refresh token again. Nobody has the lost key and token: the key ends, and a use of the token ends the
// sign-in.
func TestRefreshRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.refreshing(7200)
	lost := first.next()
	w.clock.forward(59 * time.Second)
	again := first.next()
	if lost.works() || !again.works() || !first.works() {
		t.Errorf("the lost key works: %v, its successor: %v, the key before: %v", lost.works(), again.works(), first.works())
	}
	next := again.next()
	if status, answer := w.refresh(lost.token); status != http.StatusBadRequest {
		t.Errorf("the lost refresh token: %d %v", status, answer)
	}
	next.wantEnded("after the lost refresh token was used")
	for about, change := range map[string]func(first, last *refreshing) string{
		"a minute later": func(first, _ *refreshing) string {
			first.clock.forward(time.Minute)
			return first.token
		},
		"the key was used": func(first, last *refreshing) string {
			if !last.works() {
				t.Error("the key does not work")
			}
			return first.token
		},
		"two refreshes later": func(first, last *refreshing) string {
			last.next()
			return first.token
		},
	} {
		w := newWorld(t)
		first := w.refreshing(7200)
		last := first.next()
		if status, answer := w.refresh(change(first, last)); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
		last.wantEnded(about)
	}
}

// Of requests with the same refresh token at the same time one keeps its key and refresh token.
func TestRefreshAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(7200)
	var group sync.WaitGroup
	got := make([]*refreshing, 8)
	for i := range got {
		group.Go(func() {
			if status, answer := w.refresh(program.token); status == http.StatusOK {
				got[i] = program.with(answer)
			}
		})
	}
	group.Wait()
	var good, superseded []*refreshing
	for _, one := range got {
		switch {
		case one == nil:
		case one.works():
			good = append(good, one)
		default:
			superseded = append(superseded, one)
		}
	}
	if len(good) != 1 {
		t.Fatalf("%d keys work", len(good))
	}
	last := good[0].next()
	if len(superseded) == 0 {
		superseded = append(superseded, program)
	}
	w.refresh(superseded[0].token)
	last.wantEnded("after a superseded refresh token was used")
}

// racing is a state in which something happens before the record of a refresh key is written.
type racing struct {
	store.Store
	before *func()
}

func (r racing) Update(ctx context.Context, record store.Record) (int64, error) {
	if then := *r.before; then != nil && strings.Contains(string(record.Object), `"part":`) {
		*r.before = nil
		then()
	}
	return r.Store.Update(ctx, record)
}

// A refresh token that is used between the two writes of a request was used before: the key of the other request ends.
func TestRefreshRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(7200)
	var other *refreshing
	before := func() { other = program.next() }
	env := &platform.Environment{
		Stores: func(name string) store.Store {
			if name == logins.Resource {
				return racing{w.env.Stores(name), &before}
			}
			return w.env.Stores(name)
		},
		Now: w.env.Now, Random: w.env.Random, Log: w.env.Log, Config: w.env.Config, Encryption: w.env.Encryption,
	}
	got, err := token.Open(env, kinds.AccessKeys(env)).Refresh(t.Context(), secret.String(program.token))
	if err != nil || other == nil {
		t.Fatalf("%v, %v", other, err)
	}
	if other.works() || !(kept{w, got.Key, ""}).works() {
		t.Error("the key of the other request works, or this one does not")
	}
	if left := w.stored("ownedaccesskeys"); len(left) != 3 {
		t.Errorf("%d keys are left, want the refresh key and two access keys", len(left))
	}
}

// Everything that ends a sign-in ends the refresh token and its keys.
func TestRefreshEnded(t *testing.T) {
	t.Parallel()
	for about, end := range map[string]func(*refreshing){
		"the refresh key is deleted": func(r *refreshing) {
			_, err := resource.Delete(r.t.Context(), kinds.AccessKeys(r.env), resource.DeleteInput{Caller: r.callerOf(), Name: r.family})
			if err != nil {
				r.t.Error(err)
			}
		},
		"the refresh key is disabled": func(r *refreshing) {
			key := r.get(r.family)
			key.Spec.Disabled = true
			_, err := resource.Update(r.t.Context(), kinds.AccessKeys(r.env),
				resource.UpdateInput[*model.OwnedAccessKey]{Caller: root, Name: key.Name, Object: key})
			if err != nil {
				r.t.Error(err)
			}
		},
		"the user is disabled": func(r *refreshing) {
			ana := r.user("ana")
			ana.Spec.Disabled = true
			if _, err := resource.Update(r.t.Context(), kinds.Users(r.env), resource.UpdateInput[*model.User]{Caller: root, Name: "ana", Object: ana}); err != nil {
				r.t.Error(err)
			}
		},
		"the refresh token is given back": func(r *refreshing) {
			r.giveBack(r.token)
			if done := r.run(); done.Forgotten != 1 {
				r.t.Errorf("the provider learns of it with %+v", done)
			}
		},
		"the limit of sign-ins is lowered": func(r *refreshing) {
			*r.config.Auth.LoginAccessKeyTTLSeconds = 60
			r.clock.forward(61 * time.Second)
		},
		"an old refresh token is given back": func(r *refreshing) { old := r.token; *r = *r.next(); r.giveBack(old) },
		"the provider refuses the person": func(r *refreshing) {
			r.provider.refresh = "another"
			r.clock.forward(16 * time.Minute)
			r.used()
			r.run()
		},
		"the provider is silent for a whole day": func(r *refreshing) { r.clock.forward(24*time.Hour + time.Second) },
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			program := w.refreshing(200_000)
			if !program.works() {
				t.Fatal("the key does not work")
			}
			end(program)
			program.wantEnded(about)
		})
	}
}

func (k kept) callerOf() identity.Caller {
	k.t.Helper()
	caller, err := accesskey.OpenAuthenticator(k.env).Bearer(k.t.Context(), k.key)
	if err != nil {
		k.t.Fatal(err)
	}
	return caller
}

// giveBack revokes a credential by its text.
func (w *world) giveBack(text string) {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, base+"/apis/management.platform.sh/v1/credentialrevocations",
		strings.NewReader(`{"apiVersion":"management.platform.sh/v1","kind":"CredentialRevocation","spec":{"credentials":["`+text+`"]}}`))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	if w.server.Mount(revokecredentials.Function).ServeHTTP(answer, request); answer.Code != http.StatusAccepted {
		w.t.Errorf("giving back: %d %s", answer.Code, answer.Body)
	}
}

// The use of an access key is a use of the sign-in: its provider is asked again as often as without a refresh token.
func TestRefreshRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(200_000)
	w.provider.person["groups"] = []string{"ops"}
	w.clock.forward(14 * time.Minute)
	program.used()
	w.clock.forward(2 * time.Minute)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !slices.Equal(w.user("ana").Spec.SSOGroups, []string{"ops"}) {
		t.Errorf("%+v, %q", done, w.user("ana").Spec.SSOGroups)
	}
	if caller := program.callerOf(); !caller.InGroup("ops") || caller.InGroup("dev") {
		t.Errorf("%q", caller.Groups)
	}
	w.clock.forward(23 * time.Hour)
	if done := w.run(); done != (revalidate.Counts{Kept: 1}) || !program.next().works() {
		t.Errorf("%+v", done)
	}
}

// A person has at most 20 sign-ins. What one of them refreshes is no further one.
func TestRefreshForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := w.keep("oidc", w.provider.login)
	programs := make([]*refreshing, 19)
	for i := range programs {
		programs[i] = w.refreshing(7200).next()
	}
	if !plain.works() {
		t.Error("the first of 20 sign-ins does not work")
	}
	for i, program := range programs {
		if !program.works() {
			t.Errorf("the sign-in %d does not work", i+1)
		}
	}
	w.clock.forward(time.Second)
	last := w.refreshing(7200)
	ended := 0
	for _, program := range programs {
		if !program.works() {
			ended++
			program.wantEnded("the oldest")
		}
	}
	if !plain.works() {
		ended++
	}
	if ended != 1 || !last.works() {
		t.Errorf("%d sign-ins ended for the one after the 20th, which works: %v", ended, last.works())
	}
}

// Whoever has the access key of an hour cannot let it, or what came of it, outlive the sign-in.
func TestRefreshedKeyProlongsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(7200)
	w.config.Auth.LoginAccessKeyTTLSeconds = new(int64)
	for _, name := range []string{program.name, program.family} {
		key := w.get(name)
		key.Spec.TTLSeconds = 86_400
		_, err := resource.Update(t.Context(), kinds.AccessKeys(w.env),
			resource.UpdateInput[*model.OwnedAccessKey]{Caller: program.callerOf(), Name: name, Object: key})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", key.Spec.Type, err)
		}
	}
	// An admin may take the end away. What the refresh key makes is bound to it nevertheless.
	family := w.get(program.family)
	family.Spec.TTLSeconds = 0
	_, err := resource.Update(t.Context(), kinds.AccessKeys(w.env),
		resource.UpdateInput[*model.OwnedAccessKey]{Caller: root, Name: family.Name, Object: family})
	if err != nil {
		t.Fatal(err)
	}
	program = program.next()
	child := kept{w, w.childOf(program), ""}
	if !child.works() {
		t.Error("the child does not work")
	}
	program.giveBack(program.token)
	if program.works() || child.works() {
		t.Errorf("the access key works: %v, what it made: %v", program.works(), child.works())
	}
}

// The answer to a bad request says what is wrong, and nothing ends.
func TestRefreshBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := w.refreshing(7200)
	for about, row := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"no token":       {func(form url.Values) { form.Del("refresh_token") }, "invalid_request"},
		"two tokens":     {func(form url.Values) { form.Add("refresh_token", "x") }, "invalid_request"},
		"another client": {func(form url.Values) { form.Set("client_id", "x") }, "invalid_client"},
		"two scopes":     {func(form url.Values) { form["scope"] = []string{"openid", "offline_access"} }, "invalid_request"},
		"a long nonce":   {func(form url.Values) { form.Set("nonce", strings.Repeat("n", 129)) }, "invalid_request"},
		"the access key": {func(form url.Values) { form.Set("refresh_token", program.key.Reveal()) }, "invalid_grant"},
		"no part":        {func(form url.Values) { form.Set("refresh_token", strings.Split(program.token, ".")[0]+".") }, "invalid_grant"},
		"an access key first": {func(form url.Values) {
			form.Set("refresh_token", program.key.Reveal()+"."+strings.Split(program.token, ".")[1])
		}, "invalid_grant"},
		"nothing of it": {func(form url.Values) { form.Set("refresh_token", "x.y") }, "invalid_grant"},
	} {
		status, answer := w.fetch("", func(form url.Values) {
			for name := range form {
				delete(form, name)
			}
			form.Set("grant_type", "refresh_token")
			form.Set("client_id", oauth.ClientID)
			form.Set("refresh_token", program.token)
			row.change(form)
		})
		if status != http.StatusBadRequest || answer["error"] != row.want || answer["error_description"] == "" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	if !program.next().works() {
		t.Error("a bad request ended the sign-in")
	}
}
