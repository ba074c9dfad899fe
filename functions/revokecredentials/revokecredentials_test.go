package revokecredentials_test

import (
	"crypto/elliptic"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/state/store"
)

const path = "/apis/management.platform.sh/v1/credentialrevocations"

var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// world is a platform with a log.
type world struct {
	*issuertest.World
	t   *testing.T
	api http.Handler
	log strings.Builder
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{World: issuertest.New(t), t: t}
	w.Env.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	w.api = process.NewServer(w.Env).Mount(revokecredentials.Function)
	return w
}

// post sends texts without a credential.
func (w *world) post(texts ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, strings.NewReader(`{"spec":{"credentials":[`+strings.Join(quoted, ",")+`]}}`))
	request.Header.Set("Content-Type", "application/json")
	// A credential is ignored, also one that is refused.
	request.Header.Set("Authorization", "Bearer nonsense")
	answer := httptest.NewRecorder()
	w.api.ServeHTTP(answer, request)
	return answer
}

// works reports whether an access key is accepted.
func (w *world) works(name string) bool {
	_, err := accesskey.OpenAuthenticator(w.Env).Bearer(w.t.Context(), secret.String(issuertest.Bearer+name))
	return err == nil
}

// second is the token with the second form of its signature.
func second(t *testing.T, text string) string {
	t.Helper()
	at := strings.LastIndexByte(text, '.') + 1
	signature, err := base64.RawURLEncoding.DecodeString(text[at:])
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(signature[32:]))
	return text[:at] + base64.RawURLEncoding.EncodeToString(append(signature[:32:32], s.FillBytes(make([]byte, 32))...))
}

// Whatever a text is, the answer is the same. Credentials are refused at the next request, and nothing else is.
// Source: ADR-0022.
func TestRevoke(t *testing.T) {
	t.Parallel()
	w := open(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	w.Key("held", "ana", model.OwnedAccessKeySpec{Scope: &model.Scope{}})
	w.Key("off", "ana", model.OwnedAccessKeySpec{})
	w.Change("off", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	w.Key("kept", "ana", model.OwnedAccessKeySpec{})
	kept := kinds.AccessKeys(w.Env)
	if _, err := resource.Patch(t.Context(), kept, resource.PatchInput{
		Caller: root, Name: "kept", Type: resource.MergePatch, Patch: []byte(`{"metadata":{"finalizers":["a.b/c"]}}`),
	}); err != nil {
		t.Fatal(err)
	}
	w.Key("pending", "ana", model.OwnedAccessKeySpec{})
	if _, err := resource.Delete(t.Context(), kept, resource.DeleteInput{Caller: root, Name: "pending", GracePeriodSeconds: new(int64(3600))}); err != nil {
		t.Fatal(err)
	}
	w.Key("other", "ana", model.OwnedAccessKeySpec{})
	token, other := w.Issue(ana, model.DirectClusterEndpointTokenSpec{}), w.Issue(ana, model.DirectClusterEndpointTokenSpec{})

	want := w.post("nothing")
	if want.Code != http.StatusAccepted || strings.Contains(want.Body.String(), "nothing") {
		t.Fatalf("%d %s", want.Code, want.Body)
	}
	for about, text := range map[string]string{
		"a key":                               issuertest.Bearer + "ana",
		"it again":                            issuertest.Bearer + "ana",
		"a key with an empty scope":           issuertest.Bearer + "held",
		"a disabled key":                      issuertest.Bearer + "off",
		"a key with a finalizer":              issuertest.Bearer + "kept",
		"a key within its grace period":       issuertest.Bearer + "pending",
		"no key":                              issuertest.Bearer + "nobody",
		"a token":                             token.Status.Token,
		"the second form of another token":    second(t, other.Status.Token),
		"another token without its signature": other.Status.Token[:strings.LastIndexByte(other.Status.Token, '.')+1],
		"the id of another token":             string(other.UID),
		"the name of another key":             "other",
		"the digest of another key":           accesskey.Digest(issuertest.Bearer + "other"),
		"nothing at all":                      "",
		"a long text":                         strings.Repeat("x", 20_000),
		"a text with a line end":              issuertest.Bearer + "other\n",
	} {
		got := w.post(text)
		if got.Code != want.Code || got.Body.String() != want.Body.String() || !slices.Equal(names(got.Header()), names(want.Header())) {
			t.Errorf("%s: %d %s %v", about, got.Code, got.Body, got.Header())
		}
		if text != "" && strings.Contains(w.log.String(), text) {
			t.Errorf("%s: the log has it", about)
		}
	}
	for _, name := range []string{"ana", "held", "off", "kept", "pending"} {
		if w.works(name) {
			t.Errorf("%s works", name)
		}
		// The text is not brought back, neither by an admin who applies a manifest again.
		key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name + "-again"}}
		key.Spec = model.OwnedAccessKeySpec{User: "ana", Key: issuertest.Bearer + name}
		_, err := resource.Create(t.Context(), kept, resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: key})
		if accesskeytest.Code(err) != http.StatusUnprocessableEntity {
			t.Errorf("%s is brought back: %v", name, err)
		}
	}
	if !w.works("other") || !w.Revoked(string(token.UID)) || !slices.Contains(w.Denied(), string(token.UID)) {
		t.Error("the token is not revoked, or another key is")
	}
	if log := w.log.String(); !strings.Contains(log, "ownedaccesskeys/ana/"+ana.KeyUID) {
		t.Errorf("the log does not name what was revoked: %s", log)
	}
}

// A retired text counts for the owner of its key. Of an owner whose quota is used up, the key ends all the same, and the text is on no
// list. An admin disables such a key, and its text is on the list. Source: ADR-0022.
func TestRetiredTextsCount(t *testing.T) {
	t.Parallel()
	w := open(t)
	keys := kinds.AccessKeys(w.Env)
	for _, name := range []string{"first", "second", "third", "off"} {
		w.Key(name, "ana", model.OwnedAccessKeySpec{})
	}
	w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	off := resource.PatchInput{Caller: root, Name: "off", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`)}
	keys.Quota = store.Quota{Objects: 2}
	for _, name := range []string{"first", "second", "third", "ben"} {
		w.post(issuertest.Bearer + name)
		if w.works(name) {
			t.Errorf("%s works", name)
		}
	}
	if _, err := resource.Patch(t.Context(), keys, off); err != nil {
		t.Errorf("an admin disables a key: %v", err)
	}
	if _, err := resource.Delete(t.Context(), keys, resource.DeleteInput{Caller: root, Name: "off"}); err != nil {
		t.Fatal(err)
	}
	keys.Quota = store.Quota{}
	for name, code := range map[string]int32{"first": 422, "second": 422, "third": 0, "ben": 422, "off": 422} {
		key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name + "-again"}}
		key.Spec = model.OwnedAccessKeySpec{User: "ana", Key: issuertest.Bearer + name}
		_, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: key})
		if code == 0 && err != nil || code != 0 && accesskeytest.Code(err) != code {
			t.Errorf("the text of %s again: %v, not %d", name, err, code)
		}
	}
}

// A token is revoked alone, and its key and its siblings are not.
func TestRevokeToken(t *testing.T) {
	t.Parallel()
	w := open(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	token, other := w.Issue(ana, model.DirectClusterEndpointTokenSpec{}), w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	if got := w.post("x", token.Status.Token); got.Code != http.StatusAccepted {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if !w.Revoked(string(token.UID)) || w.Revoked(string(other.UID)) || !w.works("ana") {
		t.Error("the token works, or its key or its sibling does not")
	}
}

// A client of OAuth revokes a key or a token, and nothing else. The answer is the same whatever the text was, and the event names what was
// revoked. Source: RFC 7009, 2.
func TestRevocationEndpoint(t *testing.T) {
	t.Parallel()
	w := open(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	w.Key("other", "ana", model.OwnedAccessKeySpec{})
	token := w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	send := func(form url.Values) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, oauth.RevokePath, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer := httptest.NewRecorder()
		w.api.ServeHTTP(answer, request)
		return answer
	}
	for _, form := range []url.Values{
		{"token": {"nothing"}}, {"token": {"nothing"}, "client_id": {oauth.ClientID}},
		{"token": {issuertest.Bearer + "nobody"}, "token_type_hint": {"access_token"}}, {"token": {token.Status.Token}, "token_type_hint": {"x"}},
		{"token": {issuertest.Bearer + "ana"}, "token_type_hint": {"refresh_token"}}, {"token": {issuertest.Bearer + "ana"}},
	} {
		if got := send(form); got.Code != http.StatusOK || got.Body.String() != "{}\n" || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %d %s", form, got.Code, got.Body)
		}
	}
	if w.works("ana") || !w.works("other") || !w.Revoked(string(token.UID)) {
		t.Error("the key or its token works, or another key does not")
	}
	if log := w.log.String(); strings.Count(log, "ownedaccesskeys/ana/"+ana.KeyUID) != 1 || strings.Count(log, "a credential was given back") != 2 {
		t.Errorf("the log names something else: %s", log)
	}
	for about, form := range map[string]url.Values{
		"another client": {"token": {issuertest.Bearer + "other"}, "client_id": {"x"}}, "two": {"token": {issuertest.Bearer + "other", "x"}}, "none": {},
	} {
		if got := send(form); got.Code != http.StatusBadRequest || !w.works("other") {
			t.Errorf("%s: %d %s", about, got.Code, got.Body)
		}
	}
}

// names are the names of header fields. Their values may hold times and ids.
func names(header http.Header) []string {
	var list []string
	for name := range header {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// A request without texts, and one with too many, is refused before anything is revoked.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	for about, texts := range map[string][]string{"none": {}, "11": slices.Repeat([]string{issuertest.Bearer + "ana"}, 11)} {
		if got := w.post(texts...); got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), "spec.credentials") {
			t.Errorf("%s: %d %s", about, got.Code, got.Body)
		}
	}
	if !w.works("ana") {
		t.Error("a refused request has revoked a key")
	}
}
