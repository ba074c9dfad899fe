package reviewtokens

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const route = "/kubernetes/management/apis/authentication.k8s.io/v1/tokenreviews"

// ask sends a review with the key of a cluster.
func ask(t *testing.T, w *issuertest.World, contentType string, body []byte) (int, authenticationv1.TokenReview, string) {
	t.Helper()
	request := httptest.NewRequest("POST", route, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+"cluster")
	request.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	process.NewServer(w.Env).Mount(Function).ServeHTTP(recorder, request)
	text, _ := io.ReadAll(recorder.Body)
	var answer authenticationv1.TokenReview
	if recorder.Code == 201 {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
	}
	return recorder.Code, answer, string(text)
}

func world(t *testing.T) *issuertest.World {
	w := issuertest.New(t)
	w.Key("cluster", "cluster", model.OwnedAccessKeySpec{Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "agent"}}}})
	return w
}

func body(t *testing.T, token string) []byte {
	t.Helper()
	text, err := json.Marshal(authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// disable makes a user that is disabled.
func disable(t *testing.T, w *issuertest.World, name string) {
	t.Helper()
	record := store.Record{Name: name, Created: time.Now(), Object: []byte(`{"metadata":{"name":"` + name + `","uid":"u"},"spec":{"disabled":true}}`)}
	if _, err := w.Env.Stores(directory.Users).Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

// Each row is a story of one bearer: what happens to it, and then one review. Source: Spec 3, 5.2, 5.3; ADR-0012.
func TestReviews(t *testing.T) {
	t.Parallel()
	hour := model.DirectClusterEndpointTokenSpec{TTLSeconds: 3600}
	for _, row := range []struct {
		about string
		// bearer makes a bearer of or for the key "ci" and does what the row describes.
		bearer func(w *issuertest.World) string
		want   string
	}{
		{"a token", func(w *issuertest.World) string { return w.Issue(w.Caller("ci"), hour).Status.Token }, ""},
		{"a token just before its end", func(w *issuertest.World) string {
			text := w.Issue(w.Caller("ci"), hour).Status.Token
			w.Pass(time.Hour - 1)
			return text
		}, ""},
		{"a token that is over", func(w *issuertest.World) string {
			text := w.Issue(w.Caller("ci"), hour).Status.Token
			w.Pass(time.Hour)
			return text
		}, "token expired"},
		{"a token whose access key is disabled", func(w *issuertest.World) string {
			text := w.Issue(w.Caller("ci"), hour).Status.Token
			w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
			return text
		}, "token revoked"},
		{"a token whose user is disabled", func(w *issuertest.World) string {
			text := w.Issue(w.Caller("ci"), hour).Status.Token
			disable(t, w, "ana")
			return text
		}, "token revoked"},
		{"an access key whose user is disabled", func(w *issuertest.World) string {
			disable(t, w, "ana")
			return issuertest.Bearer + "ci"
		}, "the owner of this access key is disabled"},
		{"a token that was altered", func(w *issuertest.World) string {
			text := []byte(w.Issue(w.Caller("ci"), hour).Status.Token)
			at := len(text) - 20
			// The new character is of the same alphabet.
			text[at] = map[bool]byte{true: 'B', false: 'A'}[text[at] == 'A']
			return string(text)
		}, "token with a wrong signature"},
		{"a token of another platform", func(*issuertest.World) string {
			other := issuertest.New(t)
			return other.Issue(other.Key("ci", "ana", model.OwnedAccessKeySpec{}), hour).Status.Token
		}, "token signed with an unknown key"},
		{"a token whose audience is gone", func(w *issuertest.World) string {
			w.Env.Tokens.Audiences = []string{"elsewhere"}
			text := w.Issue(w.Caller("ci"), hour).Status.Token
			w.Env.Tokens.Audiences = nil
			return text
		}, "token for another audience"},
		{"an access key", func(*issuertest.World) string { return issuertest.Bearer + "ci" }, ""},
		{"an access key that is disabled", func(w *issuertest.World) string {
			w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
			return issuertest.Bearer + "ci"
		}, "access key disabled"},
		{"an access key that is over", func(w *issuertest.World) string {
			w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.TTLSeconds = 1 })
			w.Pass(time.Second)
			return issuertest.Bearer + "ci"
		}, "access key expired"},
		{"a text that is not an access key", func(*issuertest.World) string { return issuertest.Bearer + "none" }, "invalid bearer token"},
		{"a word", func(*issuertest.World) string { return "hello" }, "invalid bearer token"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := world(t)
			w.Key("ci", "ana", model.OwnedAccessKeySpec{})
			bearer := row.bearer(w)
			status, answer, text := ask(t, w, "application/json", body(t, bearer))
			if status != 201 || answer.Status.Authenticated != (row.want == "") || answer.Status.Error != row.want ||
				answer.Kind != "TokenReview" || answer.APIVersion != "authentication.k8s.io/v1" {
				t.Errorf("%d %s", status, text)
			}
			if row.want == "" && (answer.Status.User.Username != "ana" || answer.Status.User.UID != "user:ana") {
				t.Errorf("%s", text)
			}
			if strings.Contains(text, bearer) {
				t.Errorf("the answer echoes the bearer: %s", text)
			}
		})
	}
}

// The clients of Kubernetes may send any of its media types.
func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := world(t)
	w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	sent := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issuertest.Bearer + "ci"}}
	raw, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, Raw: raw}
	protobuf, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for contentType, text := range map[string][]byte{
		"application/json":                    body(t, sent.Spec.Token),
		"application/yaml":                    []byte("spec:\n  token: " + sent.Spec.Token + "\n"),
		"application/vnd.kubernetes.protobuf": append([]byte("k8s\x00"), protobuf...),
	} {
		if status, answer, got := ask(t, w, contentType, text); status != 201 || !answer.Status.Authenticated {
			t.Errorf("%s: %d %s", contentType, status, got)
		}
	}
	for about, text := range map[string]string{"nothing": "", "no token": "{}", "no JSON": "{", "another kind": `{"kind":"Pod","apiVersion":"v1","spec":{"token":"x"}}`} {
		if status, _, got := ask(t, w, "application/json", []byte(text)); status != 400 {
			t.Errorf("%s: %d %s", about, status, got)
		} else if (about == "nothing" || about == "no token") && !strings.Contains(got, `"field":"spec.token"`) {
			t.Errorf("%s: no cause names the field: %s", about, got)
		}
	}
}

// away is a store that cannot be reached.
type away struct{ store.Store }

func (away) GetByDigest(context.Context, string) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

// A bearer that cannot be checked is an error and not refused, because a cluster would cache the refusal. Source:
// ADR-0012; promise 6 of the design.
func TestWhatCannotBeChecked(t *testing.T) {
	t.Parallel()
	bearer := func(w *issuertest.World) []byte {
		caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
		return body(t, w.Issue(caller, model.DirectClusterEndpointTokenSpec{}).Status.Token)
	}
	t.Run("the register is away", func(t *testing.T) {
		w := world(t)
		text := bearer(w)
		stores := w.Env.Stores
		env := fresh(w.Env)
		env.Stores = func(resource string) store.Store {
			if resource == "directclusterendpointtokens" {
				return away{stores(resource)}
			}
			return stores(resource)
		}
		w.Env = env
		if status, _, got := ask(t, w, "application/json", text); status != 503 {
			t.Errorf("%d %s", status, got)
		}
	})
	t.Run("the signing keys cannot be opened", func(t *testing.T) {
		w := world(t)
		text := bearer(w)
		ring, err := encryption.Parse(encryption.Generate())
		if err != nil {
			t.Fatal(err)
		}
		w.Env.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
		if status, _, got := ask(t, w, "application/json", text); status != 500 {
			t.Errorf("%d %s", status, got)
		}
	})
	t.Run("the platform issues no tokens", func(t *testing.T) {
		w := world(t)
		text := bearer(w)
		w.Env.Tokens.Issuer = ""
		if status, answer, got := ask(t, w, "application/json", text); status != 201 || answer.Status.Authenticated || answer.Status.Error != "token of another issuer" {
			t.Errorf("%d %s", status, got)
		}
	})
}

// fresh returns an environment with the same fields that has opened nothing yet.
func fresh(env *platform.Environment) *platform.Environment {
	return &platform.Environment{
		Stores: env.Stores, Now: env.Now, Random: env.Random, Encryption: env.Encryption, Log: env.Log, Config: env.Config,
		Version: env.Version, Tokens: env.Tokens,
	}
}
