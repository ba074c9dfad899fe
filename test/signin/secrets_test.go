package signin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process/processtest"
)

// everything returns all that the state holds: objects, events, indexes.
func (w *world) everything() string {
	w.t.Helper()
	options, err := redis.ParseURL(w.redis)
	if err != nil {
		w.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	ctx, text := w.t.Context(), strings.Builder{}
	for _, key := range client.Keys(ctx, "*").Val() {
		var value any
		switch kind := client.Type(ctx, key).Val(); kind {
		case "string":
			value = client.Get(ctx, key).Val()
		case "hash":
			value = client.HGetAll(ctx, key).Val()
		case "zset":
			value = client.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "set":
			value = client.SMembers(ctx, key).Val()
		case "list":
			value = client.LRange(ctx, key, 0, -1).Val()
		case "stream":
			value = client.XRange(ctx, key, "-", "+").Val()
		default:
			w.t.Errorf("%s is a %s", key, kind)
		}
		_, _ = fmt.Fprintf(&text, "%s %v\n", key, value)
	}
	return text.String()
}

// No secret of a sign-in is in the log, the audit, the state, or in an address of the platform; nor of one that is refused.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	level := int32(4)
	w.config.Audit = &model.ConfigAudit{Enabled: true, Path: "-", Level: &level}
	var events processtest.Log
	trail := audit.NewTrail(audit.Options{Config: w.env.Config, Openers: []audit.Opener{audit.Output(&events)}, Log: w.env.Log, Flush: true})
	t.Cleanup(func() { trail.Close(t.Context()) })
	w.server.Audit = trail

	b := w.browser()
	callback := b.prove()
	addresses := callback.Header.Get("Location")
	back := b.confirm(callback, "allow")
	status, answer := w.fetch(back.Get("code"), nil)
	key, _ := answer["access_token"].(string)
	if status != http.StatusOK || key == "" {
		t.Fatalf("%d %v", status, answer)
	}
	w.config.Auth.OIDC.Groups = []string{"nobody"}
	refused := w.browser().prove()
	addresses += refused.Header.Get("Location") + text(t, refused)

	// A provider that puts a secret where its error should be.
	w.provider.serve["/token"] = func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusBadRequest)
		_, _ = out.Write([]byte(`{"error": "` + clientSecret + `", "error_description": "` + clientSecret + `"}`))
	}
	refused = w.browser().prove()
	addresses += refused.Header.Get("Location") + text(t, refused)
	if !strings.Contains(w.log.String(), `"cause":"misconfigured: the provider refuses the request: it answers 400"`) {
		t.Errorf("no cause in %s", w.log.String())
	}

	state, audited := w.everything(), events.String()
	for place, part := range map[string]string{"the state": "ana@example.com", "the audit": "signin-outcome"} {
		if !strings.Contains(state+audited, part) {
			t.Errorf("%s has no %q: the test reads nothing", place, part)
		}
	}
	w.provider.mu.Lock()
	hidden := append([]string{key, back.Get("code"), known, verifier, clientSecret}, w.provider.secrets...)
	w.provider.mu.Unlock()
	for i, secret := range hidden {
		for place, text := range map[string]string{"the log": w.log.String(), "the audit": audited, "the state": state, "an address or a page": addresses} {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%s has the secret %d, %q", place, i, secret)
			}
		}
	}
}
