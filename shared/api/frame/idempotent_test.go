package frame_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// serveIdempotent is a world in which creates are idempotent. After decides what happens to an attempt once the key is stored.
func serveIdempotent(t *testing.T, after func() error) *world {
	t.Helper()
	w := newWorld(t)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w.env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	w.handler = w.server.Mount(&frame.Function{Name: "testonce", Endpoints: []frame.Endpoint{
		frame.Idempotent(frame.Create(accesskey.Definition, registry,
			func(ctx context.Context, keys *accesskey.Registry, in resource.CreateInput[*model.OwnedAccessKey]) (resource.Result[*model.OwnedAccessKey], error) {
				written, err := resource.Create(ctx, keys, in)
				if err == nil && after != nil {
					err = after()
				}
				return written, err
			})),
	}})
	return w
}

func (w *world) create(key, bearer, body string, header ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := request{method: http.MethodPost, path: root, bearer: bearer, body: body, header: map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": key,
	}}
	for i := 0; i < len(header); i += 2 {
		r.header[header[i]] = header[i+1]
	}
	return w.do(r)
}

// made returns the number of keys in addition to the keys of the world.
func (w *world) made() int {
	w.t.Helper()
	page, err := kinds.AccessKeys(w.env).Store.List(w.t.Context(), store.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(page.Records) - 3
}

func bearerOf(t *testing.T, answer *httptest.ResponseRecorder) string {
	t.Helper()
	var key model.OwnedAccessKey
	if err := json.Unmarshal(answer.Body.Bytes(), &key); err != nil || answer.Code != http.StatusCreated || key.Spec.Key == "" {
		t.Fatalf("%d %s, %v", answer.Code, answer.Body, err)
	}
	return key.Spec.Key
}

func TestIdempotent(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	const body = `{"spec":{"displayName":"CI"}}`
	first := w.create("k", anaKey, body)
	again := w.create("k", anaKey, body)
	if bearerOf(t, first) != bearerOf(t, again) || first.Body.String() != again.Body.String() || w.made() != 1 {
		t.Errorf("%s\n%s\n%d keys", first.Body, again.Body, w.made())
	}
	if first.Header().Get("Idempotency-Replayed") != "" || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %q and %q", first.Header().Get("Idempotency-Replayed"), again.Header().Get("Idempotency-Replayed"))
	}
	// The response has the requested form.
	if table := w.create("k", anaKey, body, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"); table.Code != 201 || !strings.Contains(table.Body.String(), `"kind":"Table"`) {
		t.Errorf("%d %s", table.Code, table.Body)
	}
	refused(t, w.create("k", anaKey, `{"spec":{"displayName":"Other"}}`), 422, "Invalid")
	refused(t, w.create("", anaKey, body), 400, "BadRequest")
	refused(t, w.create(strings.Repeat("k", 256), anaKey, body), 400, "BadRequest")
	refused(t, w.create("\x7f", anaKey, body), 400, "BadRequest")
	// Another credential, of the same user, has keys of its own.
	if narrow := w.create("k", narrowKey, `{"spec":{"scope":{}}}`); bearerOf(t, narrow) == bearerOf(t, first) {
		t.Error("another credential is given the same key")
	}
	// So has another key with the same name and bearer token.
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env), resource.DeleteInput{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Name: "ana",
	}); err != nil {
		t.Fatal(err)
	}
	w.key("ana", anaKey, "ana", nil, nil)
	if later := w.create("k", anaKey, body); bearerOf(t, later) == bearerOf(t, first) {
		t.Error("a later key of the same name is given the answer of the former one")
	}
	// Without the header, or in a dry run, nothing is stored.
	before := w.made()
	w.do(request{method: http.MethodPost, path: root, bearer: anaKey, body: body, header: map[string]string{"Content-Type": "application/json"}})
	w.do(request{method: http.MethodPost, path: root, bearer: anaKey, body: body, header: map[string]string{"Content-Type": "application/json"}})
	if made := w.made() - before; made != 2 {
		t.Errorf("%d made without the header", made)
	}
	for range 2 {
		if dry := w.do(request{method: http.MethodPost, path: root + "?dryRun=All", bearer: anaKey, body: body, header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": "dry"}}); dry.Code != 201 || dry.Header().Get("Idempotency-Replayed") != "" {
			t.Errorf("%d %v", dry.Code, dry.Header())
		}
	}
}

// After a refusal the header can be used again. The refusal is not stored.
func TestIdempotentRefusal(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	refused(t, w.create("k", anaKey, `{"spec":{"ttl":-1}}`), 422, "Invalid", "spec.ttl")
	bearerOf(t, w.create("k", anaKey, `{"spec":{"ttl":1}}`))
}

// If an attempt ends after the key was stored and before the response, the next attempt continues it: there is one key, and the
// response contains its bearer token.
func TestIdempotentDies(t *testing.T) {
	t.Parallel()
	for about, end := range map[string]func() error{
		"with an error": func() error { return errors.New("lost") },
		"with a panic":  func() error { panic("lost") },
	} {
		for _, body := range []string{`{}`, `{"metadata":{"name":"ci"}}`, `{"metadata":{"generateName":"ci-"}}`} {
			t.Run(about+" "+body, func(t *testing.T) {
				t.Parallel()
				dies := true
				w := serveIdempotent(t, func() error {
					if dies {
						dies = false
						return end()
					}
					return nil
				})
				refused(t, w.create("k", anaKey, body), 500, "InternalError")
				if made := w.made(); made != 1 {
					t.Fatalf("%d keys after the first attempt", made)
				}
				bearer := bearerOf(t, w.create("k", anaKey, body))
				if made := w.made(); made != 1 {
					t.Errorf("%d keys after the second", made)
				}
				if answer := w.create("another", bearer, `{"spec":{"scope":{}}}`); answer.Code != 201 {
					t.Errorf("the bearer that was told is refused: %d %s", answer.Code, answer.Body)
				}
			})
		}
	}
}

// Of many simultaneous requests one is served. The others get its response or have to retry.
func TestIdempotentConcurrently(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	var group sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, 16)
	for i := range answers {
		group.Go(func() { answers[i] = w.create("k", anaKey, `{}`) })
	}
	group.Wait()
	bearers := map[string]bool{}
	for _, answer := range answers {
		if answer.Code == http.StatusConflict {
			if answer.Header().Get("Retry-After") != "1" {
				t.Errorf("no Retry-After: %v", answer.Header())
			}
			continue
		}
		bearers[bearerOf(t, answer)] = true
	}
	if len(bearers) != 1 || w.made() != 1 {
		t.Errorf("%d bearers, %d keys", len(bearers), w.made())
	}
}

func TestIdempotentWithoutKey(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	w.env.Encryption = nil
	refused(t, w.create("k", anaKey, `{}`), 400, "BadRequest")
	if made := w.made(); made != 0 {
		t.Errorf("%d keys", made)
	}
}

// The stored response reveals nothing to readers of the state.
func TestIdempotentAtRest(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	bearer := bearerOf(t, w.create("secret-word", anaKey, `{}`))
	page, err := w.env.Stores(idempotency.Resource).List(t.Context(), store.Query{})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	if text := page.Records[0].Name + string(page.Records[0].Object); strings.Contains(text, bearer) || strings.Contains(text, "secret-word") {
		t.Errorf("it is in the state: %s", text)
	}
}

// Callers who may no longer make the request do not get the stored response. A narrowed key is refused as it would be without
// the header. Source: ADR-0017.
func TestIdempotentNotPermittedAnyMore(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	const named, unnamed = `{"metadata":{"name":"ci"}}`, `{}`
	first := map[string]string{named: bearerOf(t, w.create("a", anaKey, named)), unnamed: bearerOf(t, w.create("b", anaKey, unnamed))}
	for body, bearer := range first {
		key := map[string]string{named: "a", unnamed: "b"}[body]
		if again := bearerOf(t, w.create(key, anaKey, body)); again != bearer {
			t.Errorf("%s: another bearer", body)
		}
	}
	if _, err := resource.Patch(t.Context(), kinds.AccessKeys(w.env), resource.PatchInput{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Name: "ana",
		Type: resource.MergePatch, Patch: []byte(`{"spec":{"scope":{}}}`),
	}); err != nil {
		t.Fatal(err)
	}
	refused(t, w.create("a", anaKey, named), 403, "Forbidden", "spec.scope")
	refused(t, w.create("b", anaKey, unnamed), 403, "Forbidden", "spec.scope")
	if made := w.made(); made != 2 {
		t.Errorf("%d keys", made)
	}
}

// Stored responses are bounded for each owner. A request above the quota does nothing, and is counted. Source: ADR-0020.
func TestIdempotentQuota(t *testing.T) {
	t.Parallel()
	w := serveIdempotent(t, nil)
	w.env.Quota = store.Quota{Objects: 1}
	const body = `{"spec":{"displayName":"CI"}}`
	bearerOf(t, w.create("k1", anaKey, body))
	over := w.create("k2", anaKey, body)
	refused(t, over, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	if want := "the quota of user:ana for responses to requests with an Idempotency-Key is used up: 1 objects, the limit is 1"; status(t, over).Message != want || over.Header().Get("Retry-After") != "1" {
		t.Errorf("%s, Retry-After %q", over.Body, over.Header().Get("Retry-After"))
	}
	if w.made() != 1 {
		t.Errorf("%d keys were made", w.made())
	}
	if n := w.count("platform_refused_total", map[string]string{"limit": "quota of objects"}); n != 1 {
		t.Errorf("%v refusals are counted", n)
	}
	bearerOf(t, w.create("k1", anaKey, body))
	bearerOf(t, w.create("k2", adminKey, body))
}
