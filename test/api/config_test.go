package api_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// The bearer tokens of the callers.
const (
	adminBearer  = "admin-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	anaBearer    = "ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-01"
	benBearer    = "ben-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-01"
	narrowBearer = "narrow-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	loginBearer  = "login-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-"
)

// configWorld is the whole catalog over a real state, which also holds the configuration, with a clock.
type configWorld struct {
	t       *testing.T
	env     *platform.Environment
	handler http.Handler
	// mount makes a process with functions, which opens what they need in an environment of its own.
	mount   func(env *platform.Environment, functions ...*frame.Function) http.Handler
	metrics http.Handler
	log     bytes.Buffer
	now     time.Time
}

func newConfigWorld(t *testing.T, redisURL string) *configWorld {
	t.Helper()
	state := redistest.Open(t, redisURL)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	c := &configWorld{t: t, now: time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)}
	registry := prometheus.NewRegistry()
	counters := metrics.New(registry)
	log := slog.New(slog.NewJSONHandler(&c.log, nil))
	clock, random := func() time.Time { return c.now }, rand.Reader
	keyring := func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	current := platformconfig.New(platformconfig.Options{
		Store: state.Resource("configs"), Keyring: keyring,
		Now: clock, Random: random, Log: log, Report: counters.Configuration,
	})
	c.env = &platform.Environment{
		Stores: state.Resource, Now: clock, Random: random, Encryption: keyring, Log: log, Version: "test",
		Tokens: settings.Tokens{Issuer: "https://platform.example"},
	}
	c.mount = func(env *platform.Environment, functions ...*frame.Function) http.Handler {
		platformconfig.Use(env, current)
		server := process.NewServer(env)
		server.Configuration, server.Metrics = current, counters
		return server.Mount(functions...)
	}
	c.handler = c.mount(c.env, catalog.Functions...)
	c.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return c
}

// seed makes the keys.
func (c *configWorld) seed() {
	c.t.Helper()
	root := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	for name, spec := range map[string]model.OwnedAccessKeySpec{
		"admin":  {User: "root", Groups: []string{identity.Admins}, Key: adminBearer},
		"ana":    {User: "ana", Key: anaBearer},
		"ben":    {User: "ben", Key: benBearer},
		"narrow": {User: "root", Groups: []string{identity.Admins}, Key: narrowBearer, Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "platformCLI"}}}},
		"login":  {User: "ana", Key: loginBearer},
	} {
		object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		result, err := resource.Create(c.t.Context(), kinds.AccessKeys(c.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: object})
		if err != nil {
			c.t.Fatal(err)
		}
		if name != "login" {
			continue
		}
		// Logins write keys of type Login, which clients may not do.
		record, err := kinds.AccessKeys(c.env).Store.Get(c.t.Context(), result.Object.Name)
		if err != nil {
			c.t.Fatal(err)
		}
		record.Object = bytes.Replace(record.Object, []byte(`"type":"User"`), []byte(`"type":"Login"`), 1)
		if _, err := kinds.AccessKeys(c.env).Store.Update(c.t.Context(), record); err != nil {
			c.t.Fatal(err)
		}
	}
}

// createNarrowKey makes an admin's key with a scope of one rule, and returns its bearer token.
func (c *configWorld) createNarrowKey(name string, rule model.ScopeRule) string {
	c.t.Helper()
	name = strings.ReplaceAll(name, " ", "-")
	bearer := name + "-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	object := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: model.OwnedAccessKeySpec{
			User: "root", Groups: []string{identity.Admins}, Key: bearer, Scope: &model.Scope{Rules: []model.ScopeRule{rule}},
		},
	}
	if _, err := resource.Create(c.t.Context(), kinds.AccessKeys(c.env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Object: object,
	}); err != nil {
		c.t.Fatal(err)
	}
	return bearer
}

// request is one request. The zero value of contentType is JSON, or a merge patch for PATCH.
type request struct{ bearer, method, path, body, contentType, accept string }

// send sends a request and returns the answer with its body.
func (c *configWorld) send(r request) (*http.Response, string) {
	c.t.Helper()
	if r.contentType == "" {
		r.contentType = map[bool]string{true: mergePatch, false: "application/json"}[r.method == http.MethodPatch]
	}
	outgoing := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	for name, value := range map[string]string{"Content-Type": r.contentType, "Accept": r.accept} {
		if value != "" {
			outgoing.Header.Set(name, value)
		}
	}
	if r.bearer != "" {
		outgoing.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	recorder := httptest.NewRecorder()
	c.handler.ServeHTTP(recorder, outgoing)
	return recorder.Result(), recorder.Body.String()
}

// ask sends a request and returns the answer with its body.
func (c *configWorld) ask(bearer, method, path, body string) (*http.Response, string) {
	c.t.Helper()
	return c.send(request{bearer: bearer, method: method, path: path, body: body})
}

// watch returns the first events of a watch, and then leaves it.
func (c *configWorld) watch(bearer, path string, count int) []string {
	c.t.Helper()
	server := httptest.NewServer(c.handler)
	// It returns when the watch has ended.
	defer server.Close()
	ctx, leave := context.WithCancel(c.t.Context())
	defer leave()
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	sent.Header.Set("Authorization", "Bearer "+bearer)
	answer, err := server.Client().Do(sent)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	events := []string{}
	for lines := bufio.NewScanner(answer.Body); len(events) < count && lines.Scan(); {
		events = append(events, lines.Text())
	}
	return events
}

// expect sends a request and returns the body of an answer with that status.
func (c *configWorld) expect(status int, bearer, method, path, body string) string {
	c.t.Helper()
	answer, text := c.ask(bearer, method, path, body)
	if answer.StatusCode != status {
		c.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	return text
}

const (
	configs  = "/apis/management.platform.sh/v1/configs"
	config   = "/apis/management.platform.sh/v1/config"
	keysPath = "/apis/management.platform.sh/v1/ownedaccesskeys"
	selves   = "/apis/management.platform.sh/v1/selves"
)

// setConfig changes the configuration, as an admin does.
func (c *configWorld) setConfig(status string) {
	c.t.Helper()
	c.expect(200, adminBearer, "PATCH", config+"/config", `{"status":`+status+`}`)
}

// The configuration over HTTP: who may read it, reveal secrets, write it, read its history and roll it back.
// Source: Spec 2.7, 4 rows 2 and 3; ADR-0015.
func TestConfig(t *testing.T) {
	t.Parallel()
	c := newConfigWorld(t, redistest.Embedded(t))
	c.seed()
	c.setConfig(`{"auth":{"oidc":{"issuerUrl":"https://a.example","clientSecret":"canary"}},"audit":{"dataStoreEndpoint":"redis://:canary@a.example"}}`)
	for _, base := range []string{config, configs, frame.BasePath + config} {
		for _, bearer := range []string{adminBearer, anaBearer, narrowBearer} {
			list := c.expect(200, bearer, "GET", base, "")
			if !strings.Contains(list, `"kind":"ConfigList"`) || strings.Count(list, `"name":"config"`) != 1 || strings.Contains(list, "canary") || !strings.Contains(list, `"clientSecret":"***"`) {
				t.Errorf("%s: %s", base, list)
			}
			one := c.expect(200, bearer, "GET", base+"/config", "")
			if !strings.Contains(one, `"kind":"Config"`) || !strings.Contains(one, `"loginAccessKeyTTLSeconds":1728000`) || strings.Contains(one, "canary") {
				t.Errorf("%s: %s", base, one)
			}
		}
		// Secrets are for admins whose scope permits the verb.
		for _, path := range []string{base + "?reveal=true", base + "/config?reveal=true"} {
			if text := c.expect(200, adminBearer, "GET", path, ""); !strings.Contains(text, `"clientSecret":"canary"`) || !strings.Contains(text, "redis://:canary@a.example") {
				t.Errorf("%s: %s", path, text)
			}
			for _, bearer := range []string{anaBearer, narrowBearer} {
				if text := c.expect(403, bearer, "GET", path, ""); !strings.Contains(text, "reveal") {
					t.Errorf("%s: %s", path, text)
				}
			}
			c.expect(401, "", "GET", path, "")
		}
		if text := c.expect(200, adminBearer, "GET", base+"/config?reveal=false", ""); strings.Contains(text, "canary") {
			t.Error(text)
		}
		c.expect(404, adminBearer, "GET", base+"/other", "")
		c.expect(403, anaBearer, "GET", base+"/config/history", "")
		c.expect(403, anaBearer, "POST", base+"/config/rollback", `{"spec":{"revision":"2"}}`)
		c.expect(403, anaBearer, "PUT", base+"/config", `{}`)
		c.expect(403, anaBearer, "PATCH", base+"/config", `{}`)
		c.expect(403, narrowBearer, "PATCH", base+"/config", `{}`)
		c.expect(405, adminBearer, "DELETE", base+"/config", "")
		c.expect(405, adminBearer, "POST", base, "{}")
		// Every caller who may read it may watch it, without secrets.
		for _, query := range []string{"?watch=true", "?watch=true&reveal=true"} {
			if events := c.watch(anaBearer, base+query, 1); len(events) != 1 || !strings.Contains(events[0], `{"type":"ADDED","object":{"kind":"Config"`) ||
				!strings.Contains(events[0], `"clientSecret":"***"`) || strings.Contains(events[0], "canary") {
				t.Errorf("%s: %q", base, events)
			}
		}
	}
	if !strings.Contains(c.log.String(), `"verb":"reveal"`) || strings.Contains(c.log.String(), "canary") {
		t.Errorf("the log is %s", &c.log)
	}
	// A Table for kubectl get.
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	if _, text := c.send(request{bearer: adminBearer, method: "GET", path: configs + "?includeObject=Object", accept: table}); !strings.Contains(text, `"cells":["config","True","True","2","0s"]`) || strings.Contains(text, "canary") {
		t.Errorf("%s", text)
	}
	// PUT: the object is sent back with a change, and the secret stays.
	text := c.expect(200, adminBearer, "GET", config+"/config", "")
	text = c.expect(200, adminBearer, "PUT", config+"/config", strings.Replace(text, `"status":{"auth":{`, `"status":{"platformHost":"p.example","auth":{`, 1))
	if !strings.Contains(text, `"platformHost":"p.example"`) || !strings.Contains(c.expect(200, adminBearer, "GET", config+"/config?reveal=1", ""), "canary") {
		t.Error(text)
	}
	if text := c.expect(422, adminBearer, "PUT", config+"/config?fieldValidation=Ignore", `{"status":{"colour":"red","audit":{"enabled":1},"platformHost":"a/b"}}`); !strings.Contains(text, "status.colour") ||
		!strings.Contains(text, "status.audit.enabled") || !strings.Contains(text, "status.platformHost") {
		t.Error(text)
	}
	if text := c.expect(200, adminBearer, "GET", config+"/config/history", ""); !strings.Contains(text, `"author":"user:root"`) || !strings.Contains(text, `{"path":"status.platformHost","to":"p.example"}`) || strings.Contains(text, "canary") {
		t.Error(text)
	}
	if text := c.expect(201, adminBearer, "POST", config+"/config/rollback?dryRun=All", `{"spec":{"revision":"2"}}`); !strings.Contains(text, `{"path":"status.platformHost","from":"p.example"}`) {
		t.Error(text)
	}
	c.expect(400, adminBearer, "POST", config+"/config/rollback", `{"kind":"Config"}`)
	c.expect(201, adminBearer, "POST", config+"/config/rollback", `{"spec":{"revision":"2"}}`)
	if text := c.expect(200, adminBearer, "GET", config+"/config", ""); strings.Contains(text, "platformHost") {
		t.Error(text)
	}
	// A request for a Table of something that has none is refused, and nothing is executed.
	for _, row := range []struct{ method, path, body string }{
		{"GET", "/config/history", ""}, {"POST", "/config/rollback", `{"spec":{"revision":"3"}}`},
	} {
		answer, text := c.send(request{bearer: adminBearer, method: row.method, path: config + row.path, body: row.body, accept: table})
		if answer.StatusCode != 406 {
			t.Errorf("%s %s: %d %s", row.method, row.path, answer.StatusCode, text)
		}
	}
	if text := c.expect(200, adminBearer, "GET", config+"/config", ""); strings.Contains(text, "platformHost") {
		t.Error(text)
	}
	recorder := httptest.NewRecorder()
	c.metrics.ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", http.NoBody))
	if text := recorder.Body.String(); !strings.Contains(text, "platform_config_revision 4\n") || !strings.Contains(text, `platform_config_reloads_total{result="loaded"}`) {
		t.Error(text)
	}
	c.setConfig(`{"disableConfigEndpoint":true}`)
	c.expect(403, adminBearer, "PATCH", config+"/config", `{"status":{"disableConfigEndpoint":false}}`)
}

// Every field of the configuration that the API uses takes effect. Source: Spec 2.7, 5, 8.
func TestConfigEffects(t *testing.T) {
	t.Parallel()
	c := newConfigWorld(t, redistest.Embedded(t))
	c.seed()
	t.Run("authenticateVersionEndpoint", func(*testing.T) {
		c.expect(200, "", "GET", "/version", "")
		c.setConfig(`{"authenticateVersionEndpoint":true}`)
		c.expect(401, "", "GET", "/version", "")
		c.expect(200, anaBearer, "GET", "/version", "")
		c.setConfig(`{"authenticateVersionEndpoint":null}`)
		c.expect(200, "", "GET", "/version", "")
	})
	t.Run("projectNamespacePrefix", func(t *testing.T) {
		for status, prefix := range map[string]string{`{"projectNamespacePrefix":"team-"}`: "team-", `{"projectNamespacePrefix":null}`: "p-"} {
			c.setConfig(status)
			if text := c.expect(201, anaBearer, "POST", selves, ""); !strings.Contains(text, fmt.Sprintf(`"projectNamespacePrefix":%q`, prefix)) {
				t.Error(text)
			}
			if got := c.env.Project(prefix + "a"); got != "a" {
				t.Errorf("with %s the project is %q", prefix, got)
			}
		}
	})
	t.Run("customHttpHeaders", func(t *testing.T) {
		c.setConfig(`{"auth":{"customHttpHeaders":{"X-Frame-Options":"DENY","x-a":"b"}}}`)
		for _, row := range []struct {
			bearer, method, path string
			set                  bool
		}{
			{anaBearer, "POST", selves, true},
			{"", "POST", selves, true},
			{anaBearer, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
			{anaBearer, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
			{anaBearer, "GET", keysPath, false},
			{"", "GET", "/version", false},
		} {
			answer, _ := c.ask(row.bearer, row.method, row.path, "")
			if got := answer.Header.Get("X-Frame-Options") == "DENY" && answer.Header.Get("X-A") == "b"; got != row.set {
				t.Errorf("%s %s: %v", row.method, row.path, answer.Header)
			}
		}
		c.setConfig(`{"auth":{"customHttpHeaders":null}}`)
	})
	begun := c.now
	t.Run("loginAccessKeyTTLSeconds", func(t *testing.T) {
		// The default is 20 days.
		c.now = begun.Add(20*24*time.Hour - time.Second)
		c.expect(200, loginBearer, "GET", keysPath, "")
		c.now = begun.Add(20 * 24 * time.Hour)
		if text := c.expect(401, loginBearer, "GET", keysPath, ""); !strings.Contains(text, "access key expired") {
			t.Error(text)
		}
		c.expect(200, anaBearer, "GET", keysPath, "")
		// 0 disables the limit, also for the key that was just refused.
		c.setConfig(`{"auth":{"loginAccessKeyTTLSeconds":0}}`)
		c.expect(200, loginBearer, "GET", keysPath, "")
		// A lower limit leaves keys a day.
		c.setConfig(`{"auth":{"loginAccessKeyTTLSeconds":60}}`)
		c.expect(200, loginBearer, "GET", keysPath, "")
		c.now = c.now.Add(24 * time.Hour)
		c.expect(401, loginBearer, "GET", keysPath, "")
		c.expect(200, anaBearer, "GET", keysPath, "")
		c.setConfig(`{"auth":{"loginAccessKeyTTLSeconds":0}}`)
	})
	t.Run("accessKeyMaxTTLSeconds", func(t *testing.T) {
		c.now = begun.Add(time.Hour)
		c.setConfig(`{"auth":{"accessKeyMaxTTLSeconds":172800}}`)
		c.expect(200, anaBearer, "GET", keysPath, "")
		var key model.OwnedAccessKey
		if err := json.Unmarshal([]byte(c.expect(200, anaBearer, "GET", keysPath+"/ana", "")), &key); err != nil {
			t.Fatal(err)
		}
		if end := key.Status.ExpirationTimestamp; end == nil || !end.Time.Equal(begun.Add(48*time.Hour)) {
			t.Errorf("the key ends at %v", end)
		}
		c.now = begun.Add(48 * time.Hour)
		for _, bearer := range []string{anaBearer, loginBearer, adminBearer} {
			c.expect(401, bearer, "GET", keysPath, "")
		}
	})
}

// A function without any configuration serves nothing. A function that has loaded one continues.
func TestConfigUnavailable(t *testing.T) {
	t.Parallel()
	c := newConfigWorld(t, "redis://127.0.0.1:1")
	c.expect(503, "", "GET", "/version", "")
	c.expect(503, anaBearer, "GET", keysPath, "")
	c.expect(404, "", "GET", "/nowhere", "")
}
