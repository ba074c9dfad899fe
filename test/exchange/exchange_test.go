// Package exchange_test lets jobs exchange their tokens for access keys, and refuses those who should get none, through the functions as
// they are deployed. Source: ADR-0036.
package exchange_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/createtrustrule"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/getvirtualclusterinstance"
	"management.platform.sh/functions/listvirtualclusterinstances"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/tokenexchange"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

const (
	host = "platform.example"
	base = "https://" + host
)

var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// issuer is a server that signs the tokens of jobs.
type issuer struct {
	t      testing.TB
	server *httptest.Server
	key    *ecdsa.PrivateKey
	asked  atomic.Int64
	// serve replaces all answers. Nil: they are right.
	serve http.HandlerFunc
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.server = httptest.NewTLSServer(i)
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.asked.Add(1)
	if i.serve != nil {
		i.serve(w, r)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "none", "HS256"}}
	case "/keys":
		point, err := i.key.PublicKey.Bytes()
		if err != nil {
			i.t.Error(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		answer = map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
		}}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// sign returns a token with a header and claims.
func (i *issuer) sign(header, claims map[string]any) string {
	i.t.Helper()
	part := func(object any) string {
		text, err := json.Marshal(object)
		if err != nil {
			i.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(header) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// clock is the clock of a world. It is safe for concurrent use.
type clock struct{ seconds atomic.Int64 }

func (c *clock) Now() time.Time           { return time.Unix(c.seconds.Load(), 0).UTC() }
func (c *clock) forward(by time.Duration) { c.seconds.Add(int64(by / time.Second)) }

// world is a platform with an issuer of tokens, a user ana, a team web and two virtual clusters of the team.
type world struct {
	t       testing.TB
	clock   clock
	env     *platform.Environment
	handler http.Handler
	issuer  *issuer
	log     processtest.Log
	serial  atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, issuer: newIssuer(t)}
	w.clock.seconds.Store(time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC).Unix())
	client := redistest.Open(t, redistest.Embedded(t))
	w.env = &platform.Environment{
		Stores: client.Resource, Now: w.clock.Now, Random: rand.Reader, Log: slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Config:  func() *model.ConfigStatus { return &model.ConfigStatus{PlatformHost: host} },
		Version: "test", LocalSigners: true,
	}
	w.handler = process.NewServer(w.env).Mount(
		exchangetoken.Function, createtrustrule.Function, getvirtualclusterinstance.Function, listvirtualclusterinstances.Function)
	all := kinds.Open(w.env)
	made(t, all.Users, &model.User{ObjectMeta: metav1.ObjectMeta{Name: "ana"}})
	made(t, all.Teams, &model.Team{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: model.TeamSpec{Users: []string{"ana"}}})
	for _, name := range []string{"shop", "other"} {
		made(t, all.Instances, &model.VirtualClusterInstance{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "p-web"}, Spec: model.VirtualClusterInstanceSpec{Owner: &model.InstanceOwner{Team: "web"}},
		})
	}
	return w
}

func made[T resource.Object](t testing.TB, in *resource.Registry[T], object T) T {
	t.Helper()
	result, err := resource.Create(t.Context(), in, resource.CreateInput[T]{Caller: root, Namespace: object.GetNamespace(), Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Object
}

// rule makes a rule for the issuer of the world, which gives the team web the virtual cluster shop.
func (w *world) rule(name string, match ...model.TrustRuleCondition) *model.TrustRule {
	w.t.Helper()
	return made(w.t, kinds.TrustRules(w.env), w.manifest(name, match...))
}

func (w *world) manifest(name string, match ...model.TrustRuleCondition) *model.TrustRule {
	return &model.TrustRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.TrustRuleSpec{
		Issuer: w.issuer.server.URL, CAData: w.issuer.authority(), Match: match, Once: new(true), Owner: &model.TrustRuleOwner{Team: "web"},
		Scope: &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "web", VirtualCluster: "shop"}}},
	}}
}

// change updates a rule.
func (w *world) change(name string, change func(*model.TrustRule)) {
	w.t.Helper()
	rules := kinds.TrustRules(w.env)
	rule, err := resource.Get(w.t.Context(), rules, resource.GetInput{Caller: root, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	rule = rule.DeepCopy()
	change(rule)
	if _, err := resource.Update(w.t.Context(), rules, resource.UpdateInput[*model.TrustRule]{Caller: root, Name: name, Object: rule}); err != nil {
		w.t.Fatal(err)
	}
}

// github are the claims of a job of GitHub Actions, on the branch main of acme/shop.
func (w *world) github() map[string]any {
	return w.claims(map[string]any{
		"sub": "repo:acme@12/shop@345:ref:refs/heads/main", "repository": "acme/shop", "repository_id": "345", "repository_owner": "acme",
		"repository_owner_id": "12", "ref": "refs/heads/main", "ref_type": "branch", "event_name": "push", "sha": strings.Repeat("a", 40),
		"run_id": "99", "run_attempt": "1", "workflow_ref": "acme/shop/.github/workflows/deploy.yml@refs/heads/main", "actor": "ana",
	})
}

// claims are claims with those that every token has.
func (w *world) claims(more map[string]any) map[string]any {
	now := w.clock.Now().Unix()
	claims := map[string]any{
		"iss": w.issuer.server.URL, "aud": base, "iat": now, "nbf": now - 5, "exp": now + 300, "jti": fmt.Sprintf("job-%d", w.serial.Add(1)),
	}
	maps.Copy(claims, more)
	return claims
}

// mainOnly are conditions for the branch main of one repository.
var mainOnly = []model.TrustRuleCondition{{Claim: "repository_id", Is: "345"}, {Claim: "ref", Is: "refs/heads/main"}, {Claim: "event_name", IsOneOf: []string{"push", "workflow_dispatch"}}}

func (w *world) token(claims map[string]any) string {
	return w.issuer.sign(map[string]any{"alg": "ES256", "kid": "1", "typ": "JWT"}, claims)
}

// trade exchanges a token.
func (w *world) trade(token string, more ...string) (status int, answer map[string]any) {
	w.t.Helper()
	return w.attempt("", token, more...)
}

// attempt exchanges a token in a request with an Idempotency-Key. Empty: it has none.
func (w *world) attempt(name, token string, more ...string) (status int, answer map[string]any) {
	w.t.Helper()
	form := url.Values{"grant_type": {tokenexchange.GrantType}, "subject_token": {token}, "subject_token_type": {tokenexchange.TypeJWT}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, base+"/auth/token", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if name != "" {
		request.Header.Set("Idempotency-Key", name)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	answer = map[string]any{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		w.t.Errorf("%s: %v", recorder.Body, err)
	}
	return recorder.Code, answer
}

// key exchanges a token and returns the access key.
func (w *world) key(claims map[string]any, more ...string) secret.String {
	w.t.Helper()
	status, answer := w.trade(w.token(claims), more...)
	key, _ := answer["access_token"].(string)
	if status != http.StatusOK || key == "" {
		w.t.Fatalf("the exchange: %d %v", status, answer)
	}
	return secret.String(key)
}

// get sends a GET with a key, and returns the status.
func (w *world) get(key secret.String, path string) int {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, base+"/kubernetes/management/apis/management.platform.sh/v1"+path, nil)
	request.Header.Set("Authorization", "Bearer "+key.Reveal())
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder.Code
}

const (
	shop  = "/namespaces/p-web/virtualclusterinstances/shop"
	other = "/namespaces/p-web/virtualclusterinstances/other"
)

// nothing fails the test if there is a key.
func (w *world) nothing(about string) {
	w.t.Helper()
	page, err := w.env.Stores("ownedaccesskeys").List(w.t.Context(), store.Query{})
	if err != nil || len(page.Records) > 0 {
		w.t.Errorf("%s: there are %d keys, %v", about, len(page.Records), err)
	}
}

// The tokens of four systems become keys that live for ten minutes and reach one virtual cluster.
func TestJobsGetKeys(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		match  []model.TrustRuleCondition
		claims func(w *world) map[string]any
	}{
		"GitHub": {mainOnly, (*world).github},
		"GitHub, by the subject with ids": {
			[]model.TrustRuleCondition{{Claim: "repository_owner_id", Is: "12"}, {Claim: "sub", HasPrefix: "repo:acme@12/shop@345:"}}, (*world).github,
		},
		"GitLab": {
			[]model.TrustRuleCondition{{Claim: "project_id", Is: "77"}, {Claim: "ref_protected", Is: "true"}, {Claim: "ref", Is: "main"}},
			func(w *world) map[string]any {
				return w.claims(map[string]any{
					"aud": []string{base}, "sub": "project_path:acme/shop:ref_type:branch:ref:main", "namespace_id": "7", "project_id": "77",
					"project_path": "acme/shop", "ref": "main", "ref_protected": "true", "pipeline_id": "5", "job_id": "6", "user_login": "ana",
				})
			},
		},
		"Kubernetes": {
			[]model.TrustRuleCondition{{Claim: "sub", Is: "system:serviceaccount:ci:deployer"}},
			func(w *world) map[string]any {
				return w.claims(map[string]any{
					"aud": []string{base}, "sub": "system:serviceaccount:ci:deployer",
					"kubernetes.io": map[string]any{"namespace": "ci", "serviceaccount": map[string]any{"name": "deployer", "uid": "u"}},
				})
			},
		},
		"SPIFFE": {
			[]model.TrustRuleCondition{{Claim: "sub", HasPrefix: "spiffe://acme.example/ci/"}},
			func(w *world) map[string]any {
				claims := w.claims(map[string]any{"sub": "spiffe://acme.example/ci/deploy"})
				delete(claims, "jti")
				delete(claims, "nbf")
				return claims
			},
		},
		"a number": {
			[]model.TrustRuleCondition{{Claim: "project_id", Is: "77"}},
			func(w *world) map[string]any { return w.claims(map[string]any{"project_id": 77}) },
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rule("jobs", row.match...)
			claims := row.claims(w)
			status, answer := w.trade(w.token(claims))
			if status != http.StatusOK || answer["token_type"] != "Bearer" || answer["issued_token_type"] != tokenexchange.TypeAccess ||
				answer["expires_in"] != 600.0 || answer["team"] != "web" || answer["user"] != nil {
				t.Fatalf("the answer is %d %v", status, answer)
			}
			text, _ := answer["access_token"].(string)
			key := secret.String(text)
			for path, want := range map[string]int{
				shop: http.StatusOK, other: http.StatusForbidden, "/namespaces/p-web/virtualclusterinstances": http.StatusForbidden, "/virtualclusterinstances": http.StatusForbidden,
			} {
				if got := w.get(key, path); got != want {
					t.Errorf("GET %s: %d, want %d", path, got, want)
				}
			}
			name, _ := answer["access_key"].(string)
			stored, err := resource.Get(t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if stored.Spec.Type != model.AccessKeyTypeOther || stored.Status.TrustRule == nil || stored.Status.TrustRule.Name != "jobs" || stored.Spec.Scope == nil {
				t.Errorf("the key is %+v %+v", stored.Spec, stored.Status)
			}
			for _, claim := range []string{"sub", "run_id", "sha", "pipeline_id"} {
				if said, ok := claims[claim].(string); ok && stored.Annotations[tokenexchange.AnnotationClaim+claim] != said {
					t.Errorf("the annotation for %s is %q", claim, stored.Annotations[tokenexchange.AnnotationClaim+claim])
				}
			}
			w.clock.forward(10*time.Minute - time.Second)
			if got := w.get(key, shop); got != http.StatusOK {
				t.Errorf("a second before the end: %d", got)
			}
			w.clock.forward(time.Second)
			if got := w.get(key, shop); got != http.StatusUnauthorized {
				t.Errorf("at the end: %d", got)
			}
			if strings.Contains(w.log.String(), text) {
				t.Error("the log has the key")
			}
		})
	}
}

// Tokens that a rule for the branch main does not accept: nobody gets a key, and nothing is noted.
func TestOthersGetNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	now := w.clock.Now().Unix()
	with := func(name string, value any) string {
		claims := w.github()
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
		return w.token(claims)
	}
	good := w.token(w.github())
	parts := strings.Split(good, ".")
	evil := &issuer{t: t, key: newIssuer(t).key}
	for about, token := range map[string]string{
		"a fork":                       with("repository_id", "346"),
		"a renamed owner's repository": with("repository_id", "999"),
		"another form of the id":       with("repository_id", "345@*"),
		"a wildcard":                   with("repository_id", "@*"),
		"a list":                       with("repository_id", []string{"345"}),
		"null":                         with("repository_id", json.RawMessage("null")),
		"no id":                        with("repository_id", nil),
		"a pull request":               with("ref", "refs/pull/7/merge"),
		"a pull request of the branch": with("event_name", "pull_request"),
		"another branch":               with("ref", "refs/heads/main2"),
		"another audience":             with("aud", "https://elsewhere.example"),
		"a longer audience":            with("aud", base+".evil.example"),
		"several audiences":            with("aud", []string{base, "https://elsewhere.example"}),
		"our audience twice":           with("aud", []string{base, base}),
		"no audience":                  with("aud", nil),
		"expired":                      with("exp", now-1),
		"no expiry":                    with("exp", nil),
		"an old one":                   with("iat", now-600),
		"one of the future":            with("iat", now+120),
		"not valid yet":                with("nbf", now+120),
		"no time":                      with("iat", nil),
		"a time as a text":             with("iat", "soon"),
		"another issuer":               with("iss", "https://elsewhere.example"),
		"the issuer with a slash":      with("iss", w.issuer.server.URL+"/"),
		"no issuer":                    with("iss", nil),
		"another key":                  evil.sign(map[string]any{"alg": "ES256", "kid": "1"}, w.github()),
		"an unknown key":               evil.sign(map[string]any{"alg": "ES256", "kid": "2"}, w.github()),
		"no signature":                 parts[0] + "." + parts[1] + ".",
		"no algorithm":                 base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"a changed claim":              parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+w.issuer.server.URL+`","repository_id":"345"}`)) + "." + parts[2],
		"another form":                 `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"no token":                     "pak_0000000000000000000000000000000000000000000000",
		"a large one":                  with("more", strings.Repeat("a", 17<<10)),
	} {
		status, answer := w.trade(token)
		if status != http.StatusBadRequest || answer["error"] != "invalid_request" || answer["error_description"] == "" {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	for about, more := range map[string][]string{
		"another rule":        {"rule", "none"},
		"another type":        {"subject_token_type", tokenexchange.TypeAccess},
		"no type":             {"subject_token_type", ""},
		"another wanted type": {"requested_token_type", tokenexchange.TypeIDToken},
		"an actor":            {"actor_token", good},
		"another client":      {"client_id", "evil"},
		"a scope":             {"scope", "admin"},
		"another target":      {"audience", "https://elsewhere.example"},
		"another resource":    {"resource", "https://elsewhere.example"},
		"a longer target":     {"audience", base + ".evil.example"},
		"a path of ours":      {"resource", base + "/auth/token"},
	} {
		if status, answer := w.trade(good, more...); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	w.nothing("after all refusals")
	if page, err := w.env.Stores(logins.Resource).List(t.Context(), store.Query{}); err != nil || len(page.Records) > 0 {
		t.Errorf("%d uses are noted, %v", len(page.Records), err)
	}
	// None of it used the token up. The platform itself is a target that may be named.
	w.key(w.github())
	w.key(w.github(), "audience", base, "resource", base)
	if status, answer := w.trade(good); status != http.StatusOK {
		t.Errorf("the right token: %d %v", status, answer)
	}
}

// A token works once, also if many send it at the same time, in whatever form of its signature.
func TestOnce(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"jti", "no jti"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rule("jobs", mainOnly...)
			claims := w.github()
			if id != "jti" {
				delete(claims, "jti")
			}
			token := w.token(claims)
			parts := strings.Split(token, ".")
			// ECDSA has a second signature for the same text: (r, n-s).
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil {
				t.Fatal(err)
			}
			twin := parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(mirrored(signature))
			var won atomic.Int64
			var group sync.WaitGroup
			for i := range 16 {
				group.Go(func() {
					status, answer := w.trade([]string{token, twin}[i%2])
					switch {
					case status == http.StatusOK:
						won.Add(1)
					case status != http.StatusBadRequest || answer["error"] != "invalid_request":
						t.Errorf("%d %v", status, answer)
					}
				})
			}
			group.Wait()
			if won.Load() != 1 {
				t.Errorf("%d requests have got a key", won.Load())
			}
			w.clock.forward(4 * time.Minute)
			if status, _ := w.trade(token); status != http.StatusBadRequest {
				t.Errorf("later: %d", status)
			}
			if id == "jti" {
				// Another token with the same id is the same one.
				claims["sha"] = strings.Repeat("b", 40)
				if status, _ := w.trade(w.token(claims)); status != http.StatusBadRequest {
					t.Errorf("the same jti: %d", status)
				}
			}
		})
	}
}

// A rule may let a token work for as long as it is valid: each exchange makes an access key.
func TestSeveralTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Once = nil })
	token := w.token(w.github())
	for range 2 {
		status, answer := w.trade(token)
		if key, _ := answer["access_token"].(string); status != http.StatusOK || w.get(secret.String(key), shop) != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
	}
	if keys, err := w.env.Stores("ownedaccesskeys").List(t.Context(), store.Query{}); err != nil || len(keys.Records) != 2 {
		t.Errorf("%d keys, %v", len(keys.Records), err)
	}
	w.clock.forward(11 * time.Minute)
	if status, answer := w.trade(token); status != http.StatusBadRequest {
		t.Errorf("later: %d %v", status, answer)
	}
}

// A request whose answer was lost is repeated with its Idempotency-Key: the lost access key ends. Nobody else can use the token again.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	keyOf := func(answer map[string]any) secret.String {
		key, _ := answer["access_token"].(string)
		return secret.String(key)
	}
	token := w.token(w.github())
	_, lost := w.attempt("mine", token)
	for about, name := range map[string]string{"without a name": "", "with another name": "other"} {
		if status, answer := w.attempt(name, token); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", about, status, answer)
		}
	}
	w.clock.forward(59 * time.Second)
	status, answer := w.attempt("mine", token)
	if status != http.StatusOK || w.get(keyOf(lost), shop) != http.StatusUnauthorized || w.get(keyOf(answer), shop) != http.StatusOK {
		t.Errorf("the repetition: %d %v", status, answer)
	}
	if status, answer := w.attempt("mine", token); status != http.StatusBadRequest {
		t.Errorf("after the access key was used: %d %v", status, answer)
	}
	late := w.token(w.github())
	w.attempt("late", late)
	w.clock.forward(time.Minute)
	if status, answer := w.attempt("late", late); status != http.StatusBadRequest {
		t.Errorf("a minute later: %d %v", status, answer)
	}
	unnamed := w.token(w.github())
	w.trade(unnamed)
	if status, answer := w.attempt("mine", unnamed); status != http.StatusBadRequest {
		t.Errorf("after a request without a name: %d %v", status, answer)
	}
	if status, _ := w.attempt(strings.Repeat("x", 256), w.token(w.github())); status != http.StatusBadRequest {
		t.Errorf("a long name: %d", status)
	}
}

// Of the same request several times at the same time, one access key works at the end.
func TestLostAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	token := w.token(w.github())
	keys := make([]secret.String, 8)
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() {
			if status, answer := w.attempt("mine", token); status == http.StatusOK {
				key, _ := answer["access_token"].(string)
				keys[i] = secret.String(key)
			}
		})
	}
	group.Wait()
	good := 0
	for _, key := range keys {
		if key != "" && w.get(key, shop) == http.StatusOK {
			good++
		}
	}
	if good != 1 {
		t.Errorf("%d access keys work", good)
	}
	if left, err := w.env.Stores("ownedaccesskeys").List(t.Context(), store.Query{}); err != nil || len(left.Records) != 1 {
		t.Errorf("%d access keys are left, %v", len(left.Records), err)
	}
}

// mirrored is the other signature with the same r.
func mirrored(signature []byte) []byte {
	s := new(big.Int).SetBytes(signature[32:])
	twin := slices.Clone(signature)
	s.Sub(elliptic.P256().Params().N, s).FillBytes(twin[32:])
	return twin
}

// Only issuers that an enabled rule names are asked.
func TestNobodyElseIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attacker := newIssuer(t)
	claims := w.github()
	claims["iss"] = attacker.server.URL
	token := attacker.sign(map[string]any{"alg": "ES256", "kid": "1", "jku": attacker.server.URL + "/keys"}, claims)
	if status, answer := w.trade(token); status != http.StatusBadRequest {
		t.Errorf("without a rule: %d %v", status, answer)
	}
	w.rule("jobs", mainOnly...)
	if status, answer := w.trade(token); status != http.StatusBadRequest {
		t.Errorf("with a rule for another issuer: %d %v", status, answer)
	}
	disabled := w.manifest("evil", mainOnly...)
	disabled.Spec.Issuer, disabled.Spec.CAData, disabled.Spec.Disabled = attacker.server.URL, attacker.authority(), true
	made(t, kinds.TrustRules(w.env), disabled)
	if status, answer := w.trade(token); status != http.StatusBadRequest {
		t.Errorf("with a disabled rule: %d %v", status, answer)
	}
	if asked := attacker.asked.Load() + w.issuer.asked.Load(); asked != 0 {
		t.Errorf("the issuers were asked %d times", asked)
	}
}

// However many tokens name unknown keys, the issuer is asked for its keys once a minute.
func TestKeysAreAskedForOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	w.key(w.github())
	storm := func() {
		for i := range 20 {
			token := w.issuer.sign(map[string]any{"alg": "ES256", "kid": fmt.Sprint("unknown-", i)}, w.github())
			if status, _ := w.trade(token); status != http.StatusBadRequest {
				t.Errorf("an unknown key: %d", status)
			}
		}
	}
	storm()
	if asked := w.issuer.asked.Load(); asked != 2 {
		t.Errorf("the issuer was asked %d times, want its metadata and its keys", asked)
	}
	w.clock.forward(time.Minute)
	storm()
	if asked := w.issuer.asked.Load(); asked != 3 {
		t.Errorf("a minute later the issuer was asked %d times", asked)
	}
	w.key(w.github())
}

// Answers of issuers that cannot be used give no key, and end in time.
func TestIssuersThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		serve http.HandlerFunc
		want  int
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example", http.StatusFound)
		}, http.StatusBadRequest},
		"not found": {http.NotFound, http.StatusBadRequest},
		"no JSON":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }, http.StatusBadRequest},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"` + strings.Repeat("a", 2<<20) + `"}`))
		}, http.StatusBadRequest},
		"another one": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"https://elsewhere.example","jwks_uri":"https://elsewhere.example/k"}`))
		}, http.StatusBadRequest},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.StatusServiceUnavailable},
	} {
		w := newWorld(t)
		w.rule("jobs", mainOnly...)
		w.issuer.serve = row.serve
		if status, answer := w.trade(w.token(w.github())); status != row.want {
			t.Errorf("%s: %d %v", about, status, answer)
		}
		w.nothing(about)
		// The issuer recovers.
		w.issuer.serve = nil
		w.clock.forward(time.Minute)
		w.key(w.github())
	}
}

// A key ends with its rule at the next request, and works again with it. Its scope is that of the rule now.
func TestKeysAreBoundToTheirRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule("jobs", mainOnly...)
	key := w.key(w.github())
	want := func(about string, status int) {
		t.Helper()
		if got := w.get(key, shop); got != status {
			t.Errorf("%s: %d, want %d", about, got, status)
		}
	}
	want("at first", http.StatusOK)
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Disabled = true })
	want("disabled", http.StatusUnauthorized)
	if _, err := accesskey.OpenAuthenticator(w.env).Bearer(t.Context(), key); !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "trust rule") {
		t.Errorf("the reason is %v", err)
	}
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Disabled = false })
	want("enabled", http.StatusOK)
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Owner = &model.TrustRuleOwner{User: "ana"} })
	want("another owner", http.StatusUnauthorized)
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Owner = &model.TrustRuleOwner{Team: "web"} })
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Scope.VirtualClusters[0].VirtualCluster = "other" })
	want("another scope", http.StatusForbidden)
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Scope.VirtualClusters[0].VirtualCluster = "*" })
	want("a wider scope", http.StatusOK)
	if got := w.get(key, other); got != http.StatusForbidden {
		t.Errorf("the key got wider: %d", got)
	}
	if _, err := resource.Delete(t.Context(), kinds.TrustRules(w.env), resource.DeleteInput{Caller: root, Name: "jobs", UID: rule.UID}); err != nil {
		t.Fatal(err)
	}
	want("deleted", http.StatusUnauthorized)
	w.rule("jobs", mainOnly...)
	want("another rule of the name", http.StatusUnauthorized)
}

// What is made with the key of a job ends with the rule as well, and a job cannot prolong or widen its key. Nor can its owner.
func TestChildrenAndChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	key := w.key(w.github())
	authenticator, keys := accesskey.OpenAuthenticator(w.env), kinds.AccessKeys(w.env)
	caller, err := authenticator.Bearer(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	child, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: "child"}, Spec: model.OwnedAccessKeySpec{Scope: caller.Scope},
	}})
	if err != nil {
		t.Fatal(err)
	}
	bearer := secret.String(child.Object.Spec.Key)
	for range 2 {
		// The second request is that of a process that knows the key.
		if got := w.get(bearer, shop); got != http.StatusOK {
			t.Errorf("the child: %d", got)
		}
	}
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Disabled = true })
	if got := w.get(bearer, shop); got != http.StatusUnauthorized {
		t.Errorf("the child of a disabled rule: %d", got)
	}
	w.change("jobs", func(rule *model.TrustRule) { rule.Spec.Disabled = false })
	web := identity.New(identity.Owner{Kind: identity.Team, Name: "web"}, nil)
	for about, by := range map[string]identity.Caller{"the job": caller, "the owner": web, "an admin": root} {
		for field, change := range map[string]func(*model.OwnedAccessKey){
			"ttl":    func(key *model.OwnedAccessKey) { key.Spec.TTLSeconds = 0 },
			"scope":  func(key *model.OwnedAccessKey) { key.Spec.Scope = nil },
			"groups": func(key *model.OwnedAccessKey) { key.Spec.Groups = []string{"more"} },
			"owner":  func(key *model.OwnedAccessKey) { key.Spec.Team, key.Spec.User = "", "ana" },
		} {
			stored, err := resource.Get(t.Context(), keys, resource.GetInput{Caller: root, Name: caller.Key})
			if err != nil {
				t.Fatal(err)
			}
			stored = stored.DeepCopy()
			change(stored)
			if _, err := resource.Update(t.Context(), keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: by, Name: caller.Key, Object: stored}); !apierrors.IsForbidden(err) {
				t.Errorf("%s changes the %s: %v", about, field, err)
			}
		}
	}
	stored, err := resource.Get(t.Context(), keys, resource.GetInput{Caller: web, Name: caller.Key})
	if err != nil {
		t.Fatal(err)
	}
	stored = stored.DeepCopy()
	stored.Spec.Disabled = true
	if _, err := resource.Update(t.Context(), keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: web, Name: caller.Key, Object: stored}); err != nil {
		t.Error(err)
	}
	if got := w.get(key, shop); got != http.StatusUnauthorized {
		t.Errorf("a disabled key: %d", got)
	}
}

// The owner counts at the moment of the exchange and of each request.
func TestOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	key := w.key(w.github())
	teams := kinds.Teams(w.env)
	set := func(disabled bool) {
		t.Helper()
		team, err := resource.Get(t.Context(), teams, resource.GetInput{Caller: root, Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		team = team.DeepCopy()
		team.Spec.Disabled = disabled
		if _, err := resource.Update(t.Context(), teams, resource.UpdateInput[*model.Team]{Caller: root, Name: "web", Object: team}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	if got := w.get(key, shop); got != http.StatusUnauthorized {
		t.Errorf("a key of a disabled team: %d", got)
	}
	token := w.token(w.github())
	if status, answer := w.trade(token); status != http.StatusBadRequest {
		t.Errorf("a disabled team: %d %v", status, answer)
	}
	set(false)
	// The refusal did not use the token up.
	if status, answer := w.trade(token); status != http.StatusOK {
		t.Errorf("an enabled team: %d %v", status, answer)
	}
	absent := w.manifest("absent", model.TrustRuleCondition{Claim: "run_id", Is: "1"})
	absent.Spec.Owner = &model.TrustRuleOwner{User: "nobody"}
	made(t, kinds.TrustRules(w.env), absent)
	claims := w.github()
	claims["run_id"], claims["repository_id"] = "1", "1"
	if status, answer := w.trade(w.token(claims)); status != http.StatusBadRequest {
		t.Errorf("an owner without an object: %d %v", status, answer)
	}
}

// Of several rules, the one that fits makes the key. If several fit, the job names one.
func TestSeveralRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("main", mainOnly...)
	w.rule("release", model.TrustRuleCondition{Claim: "ref", HasPrefix: "refs/tags/"})
	w.key(w.github())
	w.rule("all", model.TrustRuleCondition{Claim: "repository_owner_id", Is: "12"})
	token := w.token(w.github())
	if status, answer := w.trade(token); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer["error_description"]), "rule") {
		t.Errorf("two rules: %d %v", status, answer)
	}
	if status, answer := w.trade(token, "rule", "release"); status != http.StatusBadRequest {
		t.Errorf("a rule that does not fit: %d %v", status, answer)
	}
	if status, answer := w.trade(token, "rule", "all"); status != http.StatusOK {
		t.Errorf("a rule that fits: %d %v", status, answer)
	}
	// A change of the rules counts at the next exchange.
	w.change("main", func(rule *model.TrustRule) { rule.Spec.Disabled = true })
	w.key(w.github())
}

// A job learns what it can mend, and nothing about rules that do not fit.
func TestTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("jobs", mainOnly...)
	texts := map[string][]string{}
	for about, change := range map[string]func(map[string]any){
		"expired":   func(claims map[string]any) { claims["exp"] = w.clock.Now().Unix() - 1 },
		"too old":   func(claims map[string]any) { claims["iat"] = w.clock.Now().Unix() - 601 },
		"audience":  func(claims map[string]any) { claims["aud"] = "x" },
		"no trust":  func(claims map[string]any) { claims["ref"] = "x" },
		"no trust ": func(claims map[string]any) { claims["repository_id"] = "x" },
	} {
		claims := w.github()
		change(claims)
		_, answer := w.trade(w.token(claims))
		text := fmt.Sprint(answer["error_description"])
		if !strings.Contains(text, strings.TrimSpace(about)) {
			t.Errorf("%s: %s", about, text)
		}
		texts[strings.TrimSpace(about)] = append(texts[strings.TrimSpace(about)], text)
	}
	if both := texts["no trust"]; len(slices.Compact(both)) != 1 {
		t.Errorf("a refusal tells which condition does not hold: %q", both)
	}
	// An issuer that nobody names, and one whose signature is wrong, read the same.
	claims := w.github()
	claims["iss"] = "https://elsewhere.example"
	_, unknown := w.trade(w.token(claims))
	forged := &issuer{t: t, key: newIssuer(t).key}
	_, wrong := w.trade(forged.sign(map[string]any{"alg": "ES256", "kid": "1"}, w.github()))
	if unknown["error_description"] != wrong["error_description"] {
		t.Errorf("%v, and %v", unknown, wrong)
	}
}

// Only admins see and write trust rules, and a narrow credential of an admin makes no wider rule.
func TestRulesAreForAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules := kinds.TrustRules(w.env)
	w.rule("jobs", mainOnly...)
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.TeamPrefix + "web"})
	if _, err := resource.Get(t.Context(), rules, resource.GetInput{Caller: ana, Name: "jobs"}); !apierrors.IsNotFound(err) {
		t.Errorf("a member of the team sees the rule: %v", err)
	}
	if _, err := resource.Delete(t.Context(), rules, resource.DeleteInput{Caller: ana, Name: "jobs"}); !apierrors.IsNotFound(err) {
		t.Errorf("a member of the team deletes the rule: %v", err)
	}
	if auth.Decide(ana, scope.Request{Verb: "create", Group: model.GroupName, Resource: "trustrules"}).Allowed {
		t.Error("a member of the team creates rules")
	}
	narrow := root
	narrow.Owner = identity.Owner{Kind: identity.Team, Name: "web"}
	narrow.Scope = &model.Scope{Projects: []model.ScopeProject{{Project: "web"}}, Rules: []model.ScopeRule{{Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"trustrules"}}}}}}
	if _, err := resource.Create(t.Context(), rules, resource.CreateInput[*model.TrustRule]{Caller: narrow, Object: w.manifest("within", mainOnly...)}); err != nil {
		t.Error(err)
	}
	wide := w.manifest("wide", mainOnly...)
	wide.Spec.Scope = &model.Scope{Projects: []model.ScopeProject{{Project: "*"}}}
	if _, err := resource.Create(t.Context(), rules, resource.CreateInput[*model.TrustRule]{Caller: narrow, Object: wide}); !apierrors.IsForbidden(err) {
		t.Errorf("a wider rule: %v", err)
	}
}
