// Package revocation_test measures how long a revoked credential is accepted by each kind of verifier, in the worst order of events that the
// caches permit, with a clock of its own. docs/security.md promises no shorter time. Source: ADR-0012.
package revocation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/signing/token/remote"
)

const (
	document = "../../docs/security.md"
	header   = "| Verifier | One token is deleted | The access key behind it is deleted, disabled or expired | The user or team is disabled | A signing key is tainted |"
	group    = "/apis/management.platform.sh/v1"
	// second is the resolution of the tests' clock, and period the interval of schedules.
	second = time.Second
	period = time.Minute
	// life is the lifetime of tokens here. theirEnd is the document's entry for verifiers that never learn of revocations.
	life     = time.Hour
	theirEnd = "the token's end"
)

// promises returns the cells of the table by the verifier.
func promises(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+header+"\n")
	if !found {
		t.Fatalf("%s has no table %q", document, header)
	}
	rows := map[string][]string{}
	for i, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// world is a platform that is served over TLS, with a token that was requested with the key "ci".
type world struct {
	*issuertest.World
	t      *testing.T
	server *httptest.Server
	base   string
	token  *model.DirectClusterEndpointToken
	bearer string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: issuertest.New(t), t: t}
	var handler http.Handler
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { handler.ServeHTTP(out, r) }))
	t.Cleanup(w.server.Close)
	w.base = w.server.URL + frame.BasePath
	w.Env.Tokens.Issuer = w.base
	handler = process.NewServer(w.Env).Mount(catalog.Functions...)
	w.createUser("ana")
	w.Key("cluster", "cluster", model.OwnedAccessKeySpec{Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "agent"}}}})
	w.token = w.Issue(w.Key("ci", "ana", model.OwnedAccessKeySpec{}), model.DirectClusterEndpointTokenSpec{TTLSeconds: int64(life / second)})
	w.bearer = w.token.Status.Token
	return w
}

// root is an admin without a key.
var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// list lists keys with the key "ci".
func (w *world) list() error {
	if status, text := w.ask(http.MethodGet, group+"/ownedaccesskeys", "ci", ""); status != http.StatusOK {
		return errors.New(text)
	}
	return nil
}

// ask sends a request with a key and returns the status and the body.
func (w *world) ask(method, path, key, body string) (int, string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+key)
	}
	response, err := w.server.Client().Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// The three ways to revoke.
func (w *world) deleteToken() {
	w.t.Helper()
	if status, text := w.ask(http.MethodDelete, group+"/directclusterendpointtokens/"+w.token.Name, "ci", ""); status != http.StatusOK {
		w.t.Fatalf("%d %s", status, text)
	}
}

func (w *world) disableKey() {
	w.t.Helper()
	w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
}

func (w *world) createUser(name string) {
	w.t.Helper()
	if _, err := resource.Create(w.t.Context(), kinds.Users(w.Env), resource.CreateInput[*model.User]{
		Caller: root, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) disableUser() {
	w.t.Helper()
	if _, err := resource.Patch(w.t.Context(), kinds.Users(w.Env), resource.PatchInput{
		Caller: root, Name: "ana", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`),
	}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) taint() {
	w.t.Helper()
	keys := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Keys
	set, err := keys.Current(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := keys.Taint(w.t.Context(), set.Signing.ID()); err != nil {
		w.t.Fatal(err)
	}
}

// refreshProcesses makes the platform's processes read a document again, as if another client had requested it.
func (w *world) refreshProcesses(path string) {
	w.t.Helper()
	if status, text := w.ask(http.MethodGet, path, "", ""); status != http.StatusOK {
		w.t.Fatalf("%d %s", status, text)
	}
}

// review sends the token to the webhook. It returns an error if the webhook refuses the token.
func (w *world) review() error {
	status, text := w.ask(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", "cluster", fmt.Sprintf(`{"spec":{"token":%q}}`, w.bearer))
	switch {
	case status != http.StatusCreated:
		w.t.Fatalf("%d %s", status, text)
	case !strings.Contains(text, `"authenticated":true`):
		return errors.New(text)
	}
	return nil
}

// offline is a cluster that verifies tokens itself.
func (w *world) offline(withoutDenyList bool) func() error {
	w.t.Helper()
	platform, err := remote.New(remote.Options{Issuer: w.base, Client: w.server.Client(), WithoutDenyList: withoutDenyList, Now: w.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	verifier := platform.Verifier(w.base)
	return func() error {
		_, err := verifier.Verify(w.t.Context(), secret.String(w.bearer))
		if err != nil && token.Refusal(err) == nil {
			w.t.Fatal(err)
		}
		return err
	}
}

// must fails the test unless a verification succeeds.
func (w *world) must(verify func() error) {
	w.t.Helper()
	if err := verify(); err != nil {
		w.t.Fatalf("refused before it was revoked: %v", err)
	}
}

// timeAccepted returns how long a token is accepted after its revocation.
func (w *world) timeAccepted(verify func() error, revoke func()) time.Duration {
	w.t.Helper()
	w.must(verify)
	revoke()
	return w.timeUntilRefused(verify, nil)
}

// early is the time between the worst moment and the next refresh: the data of the platform's processes is just not too old.
const early = 9 * second

// prepareFetch prepares the worst moment for a cluster that verifies tokens itself: it will fetch the document again soon, and the platform's
// processes have just read the data of their answer.
func (w *world) prepareFetch(verify func() error, path string, maxAge time.Duration) {
	w.t.Helper()
	w.must(verify)
	w.Pass(maxAge - early)
	w.must(verify)
	w.refreshProcesses(path)
}

// timeUntilRefused lets time pass until a token is refused, and returns the elapsed time. It calls each every second, unless each is nil.
func (w *world) timeUntilRefused(verify func() error, each func(passed time.Duration)) time.Duration {
	w.t.Helper()
	for passed := time.Duration(0); passed <= 2*life; passed += second {
		if each != nil {
			each(passed)
		}
		if verify() != nil {
			return passed
		}
		w.Pass(second)
	}
	w.t.Fatal("never refused")
	return 0
}

// timeUntilDenied returns how long a cluster that reads the deny list accepts a token whose key ends.
func (w *world) timeUntilDenied(end func()) time.Duration {
	w.t.Helper()
	verify := w.offline(false)
	w.must(verify)
	w.Pass(issuer.RevokedMaxAge - early)
	w.must(verify)
	w.Sweep()
	end()
	return w.timeUntilRefused(verify, func(passed time.Duration) {
		if passed > 0 && passed%period == 0 {
			w.refreshProcesses(issuer.RevokedPath)
			w.Sweep()
		}
	})
}

func TestPromises(t *testing.T) {
	const (
		deleted = iota
		disabled
		off
		tainted
	)
	for _, row := range []struct {
		verifier string
		column   int
		measure  func(w *world) time.Duration
	}{
		{"this API, access keys", disabled, func(w *world) time.Duration {
			return w.timeAccepted(w.list, w.disableKey)
		}},
		{"this API, access keys", off, func(w *world) time.Duration { return w.timeAccepted(w.list, w.disableUser) }},
		{"webhook `reviewtokens`", deleted, func(w *world) time.Duration { return w.timeAccepted(w.review, w.deleteToken) }},
		{"webhook `reviewtokens`", disabled, func(w *world) time.Duration { return w.timeAccepted(w.review, w.disableKey) }},
		{"webhook `reviewtokens`", off, func(w *world) time.Duration { return w.timeAccepted(w.review, w.disableUser) }},
		{"webhook `reviewtokens`", tainted, func(w *world) time.Duration { return w.timeAccepted(w.review, w.taint) }},
		{"package `token/remote`: keys and deny list", deleted, func(w *world) time.Duration {
			verify := w.offline(false)
			w.prepareFetch(verify, issuer.RevokedPath, issuer.RevokedMaxAge)
			return w.timeAccepted(verify, w.deleteToken)
		}},
		{"package `token/remote`: keys and deny list", disabled, func(w *world) time.Duration { return w.timeUntilDenied(w.disableKey) }},
		{"package `token/remote`: keys and deny list", off, func(w *world) time.Duration { return w.timeUntilDenied(w.disableUser) }},
		{"package `token/remote`: keys and deny list", tainted, func(w *world) time.Duration {
			verify := w.offline(false)
			w.prepareFetch(verify, issuer.KeysPath, issuer.KeysMaxAge)
			return w.timeAccepted(verify, w.taint)
		}},
		{"package `token/remote`: keys alone", deleted, func(w *world) time.Duration { return w.timeAccepted(w.offline(true), w.deleteToken) }},
		{"package `token/remote`: keys alone", disabled, func(w *world) time.Duration { return w.timeAccepted(w.offline(true), w.disableKey) }},
		{"package `token/remote`: keys alone", off, func(w *world) time.Duration { return w.timeAccepted(w.offline(true), w.disableUser) }},
		{"package `token/remote`: keys alone", tainted, func(w *world) time.Duration {
			verify := w.offline(true)
			w.prepareFetch(verify, issuer.KeysPath, issuer.KeysMaxAge)
			return w.timeAccepted(verify, w.taint)
		}},
	} {
		t.Run(fmt.Sprint(row.verifier, " ", row.column), func(t *testing.T) {
			t.Parallel()
			cells := promises(t)[row.verifier]
			if len(cells) != 4 {
				t.Fatalf("the document has no row %q", row.verifier)
			}
			promised := life
			if cells[row.column] != theirEnd {
				var err error
				if promised, err = time.ParseDuration(cells[row.column]); err != nil {
					t.Fatal(err)
				}
			}
			took := row.measure(newWorld(t))
			t.Logf("refused after %v, promised %v", took, promised)
			// A promise that is much longer than the worst case would be useless.
			if took > promised || took < promised-2*second {
				t.Errorf("refused after %v; the document says %v", took, promised)
			}
		})
	}
}

// After a signing key is tainted, valid tokens are still accepted: clusters that fetched the keys before know the key that signs now, and the
// webhook reads the keys again for an unknown key. Source: ADR-0022.
func TestTaintLocksNobodyOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.review)
	status, text := w.ask(http.MethodGet, issuer.KeysPath, "", "")
	var published token.JWKS
	if err := json.Unmarshal([]byte(text), &published); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v", status, err)
	}
	verifier := token.Verifier{Keys: published, Issuer: w.base, Audiences: []string{w.base}, Now: w.Now}
	for range 2 {
		w.taint()
		// The process that issues tokens has the keys of the last second.
		w.Pass(second)
		status, text := w.ask(http.MethodPost, group+"/directclusterendpointtokens", "ci", `{"spec":{"ttl":60}}`)
		var made model.DirectClusterEndpointToken
		if err := json.Unmarshal([]byte(text), &made); status != http.StatusCreated || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		w.bearer = made.Status.Token
		if _, err := verifier.Verify(t.Context(), secret.String(w.bearer)); err != nil {
			t.Errorf("a cluster that fetched the keys before: %v", err)
		}
		if err := w.review(); err != nil {
			t.Errorf("the webhook: %v", err)
		}
		// Clusters that fetch the keys in between know the next key, too.
		w.Pass(10 * second)
		_, text = w.ask(http.MethodGet, issuer.KeysPath, "", "")
		if err := json.Unmarshal([]byte(text), &published); err != nil {
			t.Fatal(err)
		}
		verifier.Keys = published
	}
}
