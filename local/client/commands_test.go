package client

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/model"
)

// flaky is a platform, and a server of GitHub Actions, behind a proxy that spoils the first response to each method and
// path.
type flaky struct {
	*httptest.Server
	// spoil answers in place of the platform. Nil: the proxy spoils nothing.
	spoil http.HandlerFunc

	mu    sync.Mutex
	asked map[string]int
}

func newFlaky(t *testing.T, spoil http.HandlerFunc) *flaky {
	t.Helper()
	f := &flaky{spoil: spoil, asked: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A proxy reads the request before it answers.
	_, _ = io.Copy(io.Discard, r.Body)
	f.mu.Lock()
	f.asked[r.Method+" "+r.URL.Path]++
	first := f.asked[r.Method+" "+r.URL.Path] == 1
	f.mu.Unlock()
	if first {
		f.spoil(w, r)
		return
	}
	f.answer(w, r)
}

// requests returns how often each request arrived. A request whose connection was cut may still be served.
func (f *flaky) requests() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.asked)
}

// answer is the response of the platform.
func (f *flaky) answer(w http.ResponseWriter, r *http.Request) {
	base := f.URL + basePath
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, basePath), "/apis/management.platform.sh/v1")
	end := metav1.NewTime(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	status, body := http.StatusOK, any(nil)
	key := model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", UID: "uid-ci"}, Spec: model.OwnedAccessKeySpec{User: "ana", Key: "pak_new", Disabled: true}}
	switch r.Method + " " + path {
	case "GET /auth/info":
		body = map[string]any{"methods": ways{
			SSO: []connector{{ID: "oidc", Issuer: f.URL, LoginEndpoint: base + "/auth/oidc/login", TokenEndpoint: base + "/auth/token"}},
		}}
	case "POST /auth/password/login":
		body = map[string]any{"code": "c"}
	case "POST /auth/token":
		body = map[string]any{"access_token": "pak_given", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r"}
	case "GET /github":
		body = map[string]any{"value": "github-token"}
	case "POST /selves":
		self := model.Self{Status: model.SelfStatus{User: &model.SelfUser{Name: "ana"}, UID: "user:ana"}}
		status, body = http.StatusCreated, self
	case "POST /signintrials":
		trial := model.SignInTrial{Status: model.SignInTrialStatus{Address: "https://platform.example", Trial: "t", Report: &model.SignInTrialReport{}}}
		status, body = http.StatusCreated, trial
	case "POST /credentialrevocations":
		status = http.StatusAccepted
	case "POST /directclusterendpointtokens":
		token := model.DirectClusterEndpointToken{}
		token.Status.Token, token.Status.ExpirationTimestamp = "eyJ", &end
		status, body = http.StatusCreated, token
	case "POST /namespaces/p-shop/virtualclusterinstances/dev/kubeconfig":
		made := model.VirtualClusterInstanceKubeConfig{}
		made.Status.KubeConfig, made.Status.ExpirationTimestamp = "apiVersion: v1\nkind: Config\n", &end
		status, body = http.StatusCreated, made
	case "POST /ownedaccesskeys":
		status, body = http.StatusCreated, key
	case "GET /ownedaccesskeys/ci", "PATCH /ownedaccesskeys/ci", "DELETE /ownedaccesskeys/ci":
		body = key
	case "GET /ownedaccesskeys/rotated", "PATCH /ownedaccesskeys/rotated":
		body = model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "rotated", UID: "uid-rotated"}, Spec: model.OwnedAccessKeySpec{User: "ana"}}
	default:
		if r.Method != http.MethodGet {
			status = http.StatusNotFound
		}
		body = map[string]any{"items": []any{}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// command is a command of the program.
type command interface {
	Run(ctx context.Context) error
}

// trySignIn is doctor --sign-in with a host.
type trySignIn struct{ host string }

func (c trySignIn) Run(ctx context.Context) error {
	_, err := TrySignIn(ctx, c.host, "", "oidc", func(string) {})
	return err
}

// commandRow is a command of a test, against a host.
type commandRow struct {
	command func(host string) command
	// once means that the command makes a credential: a request whose connection is cut is not sent again. The first one of keys rotate is a dry run.
	once bool
}

// commandRows are the commands that use the platform, except the sign-in of a device. Commands that write a file write
// into the file f of a folder.
func commandRows(folder string) map[string]commandRow {
	file := filepath.Join(folder, "f")
	// visit is a browser in which a person signs in at once.
	visit := func(address string) error {
		at, err := url.Parse(address)
		if err != nil {
			return err
		}
		query := at.Query()
		answer, err := http.Get(query.Get("redirect_uri") + "?" + url.Values{"code": {"c"}, "state": query["state"], "iss": {at.Scheme + "://" + at.Host}}.Encode())
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	login := func(host string) *Login {
		return &Login{Host: host, Timeout: time.Minute, Output: file, Browser: true, Open: visit, Messages: io.Discard}
	}
	with := func(change func(c *Login)) func(string) command {
		return func(host string) command {
			c := login(host)
			change(c)
			return c
		}
	}
	return map[string]commandRow{
		"login": {with(func(*Login) {}), true},
		"login --username": {with(func(c *Login) {
			c.Username, c.Password, c.Input = "ana", true, strings.NewReader("secret")
		}), true},
		"login --access-key-stdin": {with(func(c *Login) { c.KeyStdin, c.Input = true, strings.NewReader("pak_given") }), false},
		"login --ci":               {with(func(c *Login) { c.CI = true }), false},
		"logout":                   {func(host string) command { return &Logout{Host: host} }, false},
		"credential":               {func(host string) command { return &Credential{Host: host} }, false},
		"whoami": {func(host string) command {
			return &WhoAmI{platformAddress: platformAddress{Host: host}, Output: "text", Out: io.Discard}
		}, false},
		"token": {func(host string) command {
			return &Token{Server: host, Key: "pak_mine", TTL: time.Hour, Cache: folder}
		}, true},
		"token --ci": {func(host string) command { return &Token{Server: host, CI: true, Cache: folder} }, true},
		"kubeconfig": {func(host string) command {
			return &Kubeconfig{Instance: "p-shop/dev", Host: host, Output: file}
		}, true},
		"keys list": {func(host string) command {
			return &KeyList{platformAddress: platformAddress{Host: host}, Output: "text", Out: io.Discard}
		}, false},
		"keys list -o name": {func(host string) command {
			return &KeyList{platformAddress: platformAddress{Host: host}, Output: "name", Out: io.Discard}
		}, false},
		"keys create": {func(host string) command {
			return &KeyCreate{Name: "ci", platformAddress: platformAddress{Host: host}, Output: "text", Out: io.Discard, Messages: io.Discard}
		}, true},
		"keys rotate": {func(host string) command {
			return &KeyRotate{Name: "rotated", platformAddress: platformAddress{Host: host}, Grace: time.Hour, Output: "text", Out: io.Discard, Messages: io.Discard}
		}, false},
		"keys disable": {func(host string) command {
			return &KeyDisable{Name: "ci", platformAddress: platformAddress{Host: host}, Out: io.Discard}
		}, false},
		"keys tree": {func(host string) command {
			return &KeyTree{Name: "ci", platformAddress: platformAddress{Host: host}, Output: "text", Out: io.Discard}
		}, false},
		"keys end": {func(host string) command {
			return &KeyEnd{Name: "ci", platformAddress: platformAddress{Host: host}, Yes: true, Out: io.Discard}
		}, false},
		"doctor --sign-in":         {func(host string) command { return trySignIn{host} }, false},
		"whoami by the kubeconfig": {func(string) command { return &WhoAmI{Output: "text", Out: io.Discard} }, false},
		"kubeconfig --platform": {func(string) command {
			return &Kubeconfig{Instance: "p-shop/dev", Platform: os.Getenv("KUBECONFIG"), Output: file}
		}, true},
		"revoke by the kubeconfig": {func(string) command {
			return &Revoke{Input: strings.NewReader("pak_found"), Out: io.Discard, Warnings: io.Discard}
		}, false},
		"revoke": {func(host string) command {
			return &Revoke{Host: host, Input: strings.NewReader("pak_found"), Out: io.Discard, Warnings: io.Discard}
		}, false},
	}
}

// prepare makes the files and variables that a command needs: a kubeconfig, a sign-in and a job.
func (f *flaky) prepare(t *testing.T, about string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	config := clientcmdapi.NewConfig()
	config.Clusters["f"], config.AuthInfos["f"] = &clientcmdapi.Cluster{Server: f.URL + basePath}, &clientcmdapi.AuthInfo{Token: "pak_mine"}
	config.Contexts["f"], config.CurrentContext = &clientcmdapi.Context{Cluster: "f", AuthInfo: "f"}, "f"
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	if err := clientcmd.WriteToFile(*config, os.Getenv("KUBECONFIG")); err != nil {
		t.Fatal(err)
	}
	(&exchangeServer{t: t, Server: f.Server}).job(githubURL, f.URL+"/github", githubBearer, "runner")
	if !strings.HasPrefix(about, "login") {
		_, folder, err := platformOf(f.URL)
		if err != nil {
			t.Fatal(err)
		}
		kept := loginGrant{Key: "pak_mine"}
		if about == "credential" {
			kept = loginGrant{Key: "pak_mine", Refresh: "r", Expires: time.Now().Add(-time.Minute)}
		}
		if err := kept.keep(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// Every command continues when a proxy, or a platform that is about to change its primary, refuses the first request of
// each path. If the connection is cut before the response, these commands continue: a command that reads or ends
// something, and a command whose repetition the platform recognizes (an exchange and a refresh). A command that makes
// another credential sends its request once, because the request may have had its effect. The sign-in of a device is in
// TestDeviceGoesOn.
func TestCommandsGoOn(t *testing.T) {
	refusing := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
		}
	}
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for about := range commandRows("") {
		for how, spoil := range map[string]http.HandlerFunc{"503": refusing(503), "429": refusing(429), "a cut connection": cut} {
			t.Run(about+", "+how, func(t *testing.T) {
				f := newFlaky(t, spoil)
				f.prepare(t, about)
				row := commandRows(t.TempDir())[about]
				err := row.command(f.URL).Run(t.Context())
				asked := f.requests()
				if lost := row.once && how == "a cut connection"; (err != nil) != lost {
					t.Errorf("%v after %v", err, asked)
				} else if lost {
					for request, times := range asked {
						exchanged := about == "token --ci" && strings.HasSuffix(request, "/auth/token")
						if times > 1 && strings.HasPrefix(request, http.MethodPost) && !exchanged {
							t.Errorf("%s was sent %d times", request, times)
						}
					}
				}
			})
		}
	}
}

// spoilt is the change that a proxy makes to a response.
type spoilt struct {
	name string
	// harmless means that no command reads the changed part.
	harmless bool
	do       func(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc)
}

// rewritten changes an object in JSON.
func rewritten(change func(map[string]any)) func(http.ResponseWriter, *http.Request, http.HandlerFunc) {
	return func(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
		recorder := httptest.NewRecorder()
		answer(recorder, r)
		var object map[string]any
		_ = json.Unmarshal(recorder.Body.Bytes(), &object)
		if object != nil {
			change(object)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(recorder.Code)
		_ = json.NewEncoder(w).Encode(object)
	}
}

// eachField calls a function with each field of an object and of the objects in it.
func eachField(object map[string]any, change func(object map[string]any, name string)) {
	for name, value := range object {
		if inner, isObject := value.(map[string]any); isObject {
			eachField(inner, change)
			continue
		}
		change(object, name)
	}
}

// Every command ends with one line, or continues, however a proxy changes the first response of each path. It shows no
// text that is not from the platform, writes no file if it fails, and never takes an empty text for a credential.
func TestCommandsEnd(t *testing.T) {
	const canary = "canary-of-the-proxy"
	page := func(status int) spoilt {
		return spoilt{name: strconv.Itoa(status), do: func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>"+canary)
		}}
	}
	for _, spoil := range []spoilt{
		page(http.StatusForbidden), page(http.StatusInternalServerError), page(http.StatusBadGateway), page(http.StatusOK),
		{name: "no answer", do: func(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { <-r.Context().Done() }},
		{name: "2 MB", do: func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"`+canary+`": "`+strings.Repeat("x", 2<<20)+`"}`)
		}},
		{name: "a field more", harmless: true, do: rewritten(func(object map[string]any) { object["xOfThisVendor"] = map[string]any{"a": []any{1.5, nil}} })},
		{name: "null", do: rewritten(func(object map[string]any) {
			eachField(object, func(object map[string]any, name string) { object[name] = nil })
		})},
		{name: "another type", do: rewritten(func(object map[string]any) {
			eachField(object, func(object map[string]any, name string) { object[name] = map[string]any{canary: true} })
		})},
	} {
		for about := range commandRows("") {
			t.Run(about+", "+spoil.name, func(t *testing.T) {
				var f *flaky
				f = newFlaky(t, func(w http.ResponseWriter, r *http.Request) { spoil.do(w, r, f.answer) })
				f.prepare(t, about)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if spoil.name == "no answer" {
					ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
				}
				folder := t.TempDir()
				row := commandRows(folder)[about]
				err := row.command(f.URL).Run(ctx)
				_, missing := os.Stat(filepath.Join(folder, "f"))
				switch {
				case err == nil && row.once && spoil.name == "null":
					t.Error("an empty text is taken for a credential")
				case err == nil:
					return
				case spoil.harmless:
					t.Error(err)
				}
				if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "canary") || strings.Contains(text, "<html") || len(text) > 400 {
					t.Errorf("the command ends with %q", text)
				}
				if missing == nil {
					t.Errorf("it fails with %v, and has written a file", err)
				}
			})
		}
	}
}
