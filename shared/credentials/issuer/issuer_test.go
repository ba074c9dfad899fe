package issuer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// claimsOf reads a token with another library than the library that signed it. The library gets only the published keys.
func claimsOf(t *testing.T, w *issuertest.World, text string) (jwt.MapClaims, string) {
	t.Helper()
	keys, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{}
	parsed, err := jwt.ParseWithClaims(text, claims, func(given *jwt.Token) (any, error) {
		for _, key := range keys.Public.Keys {
			if key.ID == given.Header["kid"] {
				return key.Key, nil
			}
		}
		return nil, errors.New("no such kid")
	}, jwt.WithTimeFunc(w.Now))
	if err != nil {
		t.Fatal(err)
	}
	return claims, parsed.Method.Alg()
}

// The claims of a token. Source: D15 of the design; Spec 2.4.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Env.Tokens.Audiences = []string{"cluster-a", "cluster-b"}
	narrow := &model.Scope{Projects: []model.ScopeProject{{Project: "a"}, {Project: "b"}}}
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{Groups: []string{"dev"}, Scope: narrow})
	object := w.Issue(caller, model.DirectClusterEndpointTokenSpec{Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}})
	claims, algorithm := claimsOf(t, w, object.Status.Token)
	born := float64(issuertest.Born.Unix())
	want := jwt.MapClaims{
		"iss": issuertest.URL, "sub": "ana", "aud": []any{"cluster-a", "cluster-b"}, "iat": born, "nbf": born, "exp": born + 3600,
		"jti": string(object.UID), "groups": []any{"dev", "platform:authenticated", "platform:user:ana"},
		"scope": map[string]any{"projects": []any{map[string]any{"project": "a"}}},
	}
	if algorithm != "ES256" || !reflect.DeepEqual(claims, want) {
		t.Errorf("%s of\n%v\nwant\n%v", algorithm, claims, want)
	}
	status := object.Status
	status.Token = ""
	if want := (model.DirectClusterEndpointTokenStatus{
		ExpirationTimestamp: &metav1.Time{Time: issuertest.Born.Add(time.Hour)}, User: "ana", AccessKey: "ci", AccessKeyUID: caller.KeyUID,
		Groups:    []string{"dev", "platform:authenticated", "platform:user:ana"},
		CreatedBy: &model.AccessKeyReference{Name: "ci", UID: caller.KeyUID},
		Lineage:   []model.AccessKeyAncestor{{Name: "ci", UID: caller.KeyUID, Bounds: true}},
	}); !reflect.DeepEqual(status, want) {
		t.Errorf("recorded %+v, want %+v", status, want)
	}
	if !strings.HasPrefix(object.Name, "token-") || object.Spec.TTLSeconds != 3600 {
		t.Errorf("recorded as %s with %+v", object.Name, object.Spec)
	}
	// A token without a scope has the caller's scope. Without configured audiences, the audience is the issuer.
	w.Env.Tokens.Audiences = nil
	claims, _ = claimsOf(t, w, w.Issue(caller, model.DirectClusterEndpointTokenSpec{}).Status.Token)
	if !reflect.DeepEqual(claims["aud"], []any{issuertest.URL}) ||
		!reflect.DeepEqual(claims["scope"], map[string]any{"projects": []any{map[string]any{"project": "a"}, map[string]any{"project": "b"}}}) {
		t.Errorf("with nothing said: %v", claims)
	}
	claims, _ = claimsOf(t, w, w.Issue(w.Key("free", "ben", model.OwnedAccessKeySpec{}), model.DirectClusterEndpointTokenSpec{}).Status.Token)
	if scope, narrowed := claims["scope"]; narrowed {
		t.Errorf("an unscoped caller got %v", scope)
	}
}

func TestAlgorithm(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Env.Tokens.Algorithm = token.RS256
	text := w.Issue(w.Key("ci", "ana", model.OwnedAccessKeySpec{}), model.DirectClusterEndpointTokenSpec{}).Status.Token
	if _, algorithm := claimsOf(t, w, text); algorithm != "RS256" {
		t.Errorf("signed by %s", algorithm)
	}
}

// The lifetime of a token. Source: Spec 2.4, 5; ADR-0011.
func TestEnd(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		key      model.OwnedAccessKeySpec
		cap      int64
		max      time.Duration
		later    time.Duration
		ttl      int64
		want     time.Duration
		warnings int
	}{
		"the default":                         {ttl: 0, want: time.Hour},
		"no default above the longest":        {max: 10 * time.Minute, want: 10 * time.Minute},
		"as asked":                            {ttl: 90, want: 90 * time.Second},
		"the longest":                         {ttl: 86400, want: 24 * time.Hour},
		"above the longest":                   {ttl: 86401, want: 24 * time.Hour, warnings: 1},
		"far above":                           {ttl: 1<<63 - 1, want: 24 * time.Hour, warnings: 1},
		"not beyond the key":                  {key: model.OwnedAccessKeySpec{TTLSeconds: 600}, ttl: 900, want: 10 * time.Minute, warnings: 1},
		"what is left of the key":             {key: model.OwnedAccessKeySpec{TTLSeconds: 600}, later: 9 * time.Minute, ttl: 900, want: time.Minute, warnings: 1},
		"the platform's cap":                  {cap: 600, ttl: 900, want: 10 * time.Minute, warnings: 1},
		"from the last activity of the key":   {key: model.OwnedAccessKeySpec{TTLSeconds: 600, TTLAfterLastActivity: true}, later: 9 * time.Minute, ttl: 600, want: time.Minute, warnings: 1},
		"the default, and the key ends first": {key: model.OwnedAccessKeySpec{TTLSeconds: 60}, want: time.Minute, warnings: 1},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := issuertest.New(t)
			w.Env.Config().Auth = &model.ConfigAuth{AccessKeyMaxTTLSeconds: row.cap}
			w.Env.Tokens.MaxTTL = row.max
			w.Key("ci", "ana", row.key)
			w.Pass(row.later)
			begin := w.Now()
			written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: w.Caller("ci"), Object: &model.DirectClusterEndpointToken{
				Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: row.ttl},
			}})
			if err != nil {
				t.Fatal(err)
			}
			claims, _ := claimsOf(t, w, written.Object.Status.Token)
			want := begin.Add(row.want)
			if end := written.Object.Status.ExpirationTimestamp; !end.Time.Equal(want) || claims["exp"] != float64(want.Unix()) || len(written.Warnings) != row.warnings {
				t.Errorf("ends %s, as a claim %v, want %s; warnings %q", end, claims["exp"], want, written.Warnings)
			}
		})
	}
}

// A key in its grace period issues no token that lives longer than the grace period.
func TestEndOfGracePeriod(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	caller.KeyExpires = issuertest.Born.Add(90*time.Second + time.Millisecond)
	object := w.Issue(caller, model.DirectClusterEndpointTokenSpec{})
	if got := object.Status.ExpirationTimestamp.Sub(issuertest.Born); got != 90*time.Second {
		t.Errorf("ends after %s", got)
	}
	caller.KeyExpires = issuertest.Born.Add(time.Millisecond)
	_, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{}})
	if accesskeytest.Code(err) != 401 {
		t.Errorf("in its last second: %v", err)
	}
}

// A refusal names all mistakes at once, and stores nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	parent := &model.Scope{
		Roles:           []model.ScopeRole{{Role: scope.RoleVCluster, Projects: []string{"a"}}},
		Projects:        []model.ScopeProject{{Project: "a"}},
		Spaces:          []model.ScopeSpace{{Project: "b", Space: "s"}},
		VirtualClusters: []model.ScopeVirtualCluster{{Project: "b", VirtualCluster: "v"}},
		Clusters:        []model.ScopeCluster{{Cluster: "c"}},
		Rules:           []model.ScopeRule{{Verbs: []string{"get"}}},
	}
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{Scope: parent})
	free := w.Key("free", "ana", model.OwnedAccessKeySpec{})
	groups := make([]string, 200)
	for i := range groups {
		groups[i] = strings.Repeat("g", 100) + fmt.Sprint(i)
	}
	many := w.Key("many", "ana", model.OwnedAccessKeySpec{Groups: groups})
	within := func(s model.Scope) *model.DirectClusterEndpointToken {
		return &model.DirectClusterEndpointToken{Spec: model.DirectClusterEndpointTokenSpec{Scope: &s}}
	}
	for about, row := range map[string]struct {
		caller identity.Caller
		object *model.DirectClusterEndpointToken
		code   int32
		fields []string
	}{
		"a negative ttl": {free, &model.DirectClusterEndpointToken{Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: -1}}, 422, []string{"spec.ttl"}},
		"a wider role": {caller, within(model.Scope{Roles: []model.ScopeRole{{Role: scope.RoleVCluster, Projects: []string{"a"}}, {Role: scope.RoleAgent}}}),
			403, []string{"spec.scope.roles[1]"}},
		"a wider project":         {caller, within(model.Scope{Projects: []model.ScopeProject{{Project: "a"}, {Project: "*"}}}), 403, []string{"spec.scope.projects[1]"}},
		"a wider space":           {caller, within(model.Scope{Spaces: []model.ScopeSpace{{Project: "b", Space: "*"}}}), 403, []string{"spec.scope.spaces[0]"}},
		"a wider virtual cluster": {caller, within(model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "c", VirtualCluster: "v"}}}), 403, []string{"spec.scope.virtualClusters[0]"}},
		"a wider cluster":         {caller, within(model.Scope{Clusters: []model.ScopeCluster{{Cluster: "d"}}}), 403, []string{"spec.scope.clusters[0]"}},
		"a wider rule":            {caller, within(model.Scope{Rules: []model.ScopeRule{{Verbs: []string{"delete"}}}}), 403, []string{"spec.scope.rules[0]"}},
		"the command line":        {caller, within(model.Scope{AllowPlatformCLI: true}), 403, []string{"spec.scope.allowPlatformCli"}},
		"two wider ones": {caller, within(model.Scope{Projects: []model.ScopeProject{{Project: "z"}}, Clusters: []model.ScopeCluster{{Cluster: "z"}}}),
			403, []string{"spec.scope.projects[0]", "spec.scope.clusters[0]"}},
		"an unknown role": {free, within(model.Scope{Roles: []model.ScopeRole{{Role: "king"}}}), 422, []string{"spec.scope.roles[0].role"}},
		"a scope that contradicts itself": {free, within(model.Scope{Rules: []model.ScopeRule{{Resources: []model.ScopeGroupResources{
			{Resources: []string{"pods", "*"}}, {ResourceNames: []string{"a"}},
		}}}}), 422, []string{"spec.scope.rules[0].resources[0].resources[1]", "spec.scope.rules[0].resources[1].resources"}},
		"a finalizer and an owner": {free, &model.DirectClusterEndpointToken{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"example.com/x"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "b"}},
		}}, 422, []string{"metadata.finalizers", "metadata.ownerReferences"}},
		"a name and a ttl": {free, &model.DirectClusterEndpointToken{ObjectMeta: metav1.ObjectMeta{Name: "No Name"},
			Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: -5}}, 422, []string{"metadata.name", "spec.ttl"}},
		"too large a token": {many, &model.DirectClusterEndpointToken{}, 422, []string{"spec.scope"}},
	} {
		for _, dryRun := range []bool{true, false} {
			written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: row.caller, Object: row.object, DryRun: dryRun})
			if accesskeytest.Code(err) != row.code || written.Object != nil {
				t.Errorf("%s: %v, %v", about, written.Object, err)
				continue
			}
			var fields []string
			for _, cause := range apierror.From(err).Status().Details.Causes {
				fields = append(fields, cause.Field)
			}
			if !reflect.DeepEqual(fields, row.fields) {
				t.Errorf("%s: causes for %q, want %q", about, fields, row.fields)
			}
		}
	}
	if left := w.Records(); len(left) != 0 {
		t.Errorf("refused, and recorded: %q", left)
	}
}

// A dry run shows the result without a usable token.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: caller, DryRun: true, Object: &model.DirectClusterEndpointToken{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "ci-"}, Status: model.DirectClusterEndpointTokenStatus{Token: "mine", User: "root"},
	}})
	if err != nil || written.Object.Status.Token != "" || written.Object.Status.User != "ana" || !strings.HasPrefix(written.Object.Name, "ci-") {
		t.Errorf("%+v, %v", written.Object, err)
	}
	if left := w.Records(); len(left) != 0 || !w.Revoked(string(written.Object.UID)) {
		t.Errorf("a dry run left %q", left)
	}
}

// If a generated name is taken, the server generates another one. The token belongs to the record that was written.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	i := issuer.Open(w.Env, issuedtoken.Open(w.Env))
	issue := func(generateName string, uids byte) (issuer.Output, error) {
		// The name is drawn before the uid: all requests draw the same name and different uids.
		i.Register.Random = io.MultiReader(strings.NewReader("abcde"), rand.NewChaCha8([32]byte{uids}))
		return i.Issue(t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{
			ObjectMeta: metav1.ObjectMeta{GenerateName: generateName},
		}})
	}
	first, err := issue("", 1)
	if err != nil {
		t.Fatal(err)
	}
	for uids, generateName := range []string{"", "token-"} {
		second, err := issue(generateName, byte(uids+2))
		if err != nil || second.Object.Name == first.Object.Name {
			t.Fatalf("%q: %v, %v", generateName, second.Object, err)
		}
		if claims, _ := claimsOf(t, w, second.Object.Status.Token); claims["jti"] != string(second.Object.UID) || w.Revoked(string(second.Object.UID)) {
			t.Errorf("%q: the token says %v, the record is %s", generateName, claims["jti"], second.Object.UID)
		}
	}
}

// The record, in every form, has all fields but the token.
func TestTokenIsShownOnce(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	agent := "kubectl/v1.37\x00\n " + strings.Repeat("ü", 400)
	written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: caller, UserAgent: agent, Object: &model.DirectClusterEndpointToken{}})
	if err != nil {
		t.Fatal(err)
	}
	record, err := kinds.IssuedTokens(w.Env).Store.Get(t.Context(), written.Object.Name)
	if err != nil {
		t.Fatal(err)
	}
	signature := written.Object.Status.Token[strings.LastIndexByte(written.Object.Status.Token, '.')+1:]
	if len(signature) < 80 || strings.Contains(string(record.Object), signature) {
		t.Errorf("the record is %s", record.Object)
	}
	var stored model.DirectClusterEndpointToken
	if err := json.Unmarshal(record.Object, &stored); err != nil {
		t.Fatal(err)
	}
	if got := stored.Status.UserAgent; !strings.HasPrefix(got, "kubectl/v1.37   ü") || len(got) > 256 {
		t.Errorf("the user agent is %q", got)
	}
	if record.Owner != "user:ana" || record.Digest != string(stored.UID) || !slices.Equal(record.References, []string{caller.KeyUID}) {
		t.Errorf("found by %+v", record)
	}
}

// If the signing keys cannot be opened, the caller gets a clear 500, and the log gets the cause.
func TestBrokenKeys(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	w.Issue(caller, model.DirectClusterEndpointTokenSpec{})
	good := w.Env.Encryption
	other, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{}})
		return err
	}
	for about, row := range map[string]struct {
		spoil  func()
		code   int32
		cause  error
		answer string
	}{
		"another encryption key": {func() { w.Env.Encryption = func(context.Context) (*encryption.Keyring, error) { return other, nil } }, 500, encryption.ErrUnknownKey, "signing keys"},
		"no encryption key":      {func() { w.Env.Encryption = nil }, 500, encryption.ErrNoKey, "signing keys"},
		"no issuer":              {func() { w.Env.Tokens.Issuer = "" }, 500, nil, "issues no tokens"},
		"a text that is not PEM": {func() { w.Env.Tokens.SigningKeys = "hunter2" }, 500, nil, "signing keys"},
	} {
		w.Env.Encryption, w.Env.Tokens.Issuer, w.Env.Tokens.SigningKeys = good, issuertest.URL, ""
		row.spoil()
		err := ask()
		status := apierror.From(err).Status()
		if status.Code != row.code || !strings.Contains(status.Message, row.answer) || row.cause != nil && !errors.Is(err, row.cause) || errors.Unwrap(err) == nil {
			t.Errorf("%s: %v, because of %v", about, err, errors.Unwrap(err))
		}
		if strings.Contains(fmt.Sprint(status, errors.Unwrap(err)), "hunter2") {
			t.Errorf("%s: the answer or the log quotes a key", about)
		}
	}
	if left := w.Records(); len(left) != 1 {
		t.Errorf("recorded without being issued: %q", left)
	}
}

// If the state is unavailable, the response is 503. No caller gets a token whose record may be missing.
func TestStateAway(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	away, err := redisstore.Open("redis://127.0.0.1:1", redisstore.Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	i := issuer.Open(w.Env, issuedtoken.Open(w.Env))
	if _, err := i.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.Register.Store = away.Resource("directclusterendpointtokens")
	written, err := i.Issue(t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{}})
	if accesskeytest.Code(err) != 503 || written.Object != nil {
		t.Errorf("%v, %v", written.Object, err)
	}
	stores := w.Env.Stores
	w.Env.Stores = func(resource string) store.Store {
		if resource == "signingkeys" {
			return away.Resource(resource)
		}
		return stores(resource)
	}
	if _, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Current(t.Context()); accesskeytest.Code(err) != 503 {
		t.Errorf("without the keys: %v", err)
	}
}

// The documents, as verifiers get them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	i := issuer.Open(w.Env, issuedtoken.Open(w.Env))
	configuration, err := i.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(document any) string {
		t.Helper()
		encoded, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	const want = `{"issuer":"` + issuertest.URL + `","jwks_uri":"` + issuertest.URL + `/openid/v1/jwks","response_types_supported":["id_token"],` +
		`"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","RS256"]}`
	if got := text(configuration); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	keys, err := i.PublicKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, _ := i.Current(t.Context())
	var read token.JWKS
	if err := json.Unmarshal([]byte(text(keys)), &read); err != nil || !reflect.DeepEqual(read, set.Public) {
		t.Errorf("%s, %v", text(keys), err)
	}
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	object := w.Issue(caller, model.DirectClusterEndpointTokenSpec{})
	first, err := i.RevokedTokens(t.Context())
	if err != nil || text(first) != `{"issuer":"`+issuertest.URL+`","revoked":[]}` {
		t.Errorf("%s, %v", text(first), err)
	}
	record, _ := i.Register.Store.Get(t.Context(), object.Name)
	if _, err := i.Register.Store.Delete(t.Context(), record.Name, record.Revision); err != nil {
		t.Fatal(err)
	}
	if again, _ := i.RevokedTokens(t.Context()); text(again) != text(first) {
		t.Error("the list was read before its time")
	}
	w.Pass(10 * time.Second)
	second, err := i.RevokedTokens(t.Context())
	entry := fmt.Sprintf(`{"jti":%q,"exp":%d}`, object.UID, object.Status.ExpirationTimestamp.Unix())
	if err != nil || text(second) != `{"issuer":"`+issuertest.URL+`","revoked":[`+entry+"]}" {
		t.Errorf("%s, %v, want %s", text(second), err, entry)
	}
	w.Pass(time.Hour)
	if third, err := i.RevokedTokens(t.Context()); err != nil || text(third) != text(first) {
		t.Errorf("after its end: %s, %v", text(third), err)
	}
}

// If a first attempt fails after its write, a repetition of the request finds the one record, and the token expires when that
// record says.
func TestIssueAgain(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	issue := func() *model.DirectClusterEndpointToken {
		t.Helper()
		written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{
			Caller: caller, Object: &model.DirectClusterEndpointToken{}, Random: rand.NewChaCha8([32]byte{7}),
		})
		if err != nil {
			t.Fatal(err)
		}
		return written.Object
	}
	first := issue()
	w.Pass(time.Minute)
	second := issue()
	claims, _ := claimsOf(t, w, second.Status.Token)
	if first.UID != second.UID || len(w.Records()) != 1 {
		t.Errorf("%s and %s; records %q", first.UID, second.UID, w.Records())
	}
	if end := float64(first.Status.ExpirationTimestamp.Unix()); claims["exp"] != end || claims["jti"] != string(first.UID) {
		t.Errorf("the record ends at %v, the token says %v", end, claims)
	}
}
