package signin_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/functions/approvedevice"
	"management.platform.sh/functions/checkpassword"
	"management.platform.sh/functions/confirmlogin"
	"management.platform.sh/functions/describelogin"
	"management.platform.sh/functions/exchangetoken"
	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/requestdevice"
	"management.platform.sh/functions/revokecredentials"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/functions/trysignin"
	"management.platform.sh/functions/whoami"
	"management.platform.sh/local/client"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// served is a world whose platform listens, and the files of somebody who signs in at it.
type served struct {
	*world
	server                 *httptest.Server
	folder, ca, kubeconfig string
}

func serve(t *testing.T) *served {
	t.Helper()
	w := newWorld(t)
	handler := w.server.Mount(describelogin.Function, startlogin.Function, finishlogin.Function, confirmlogin.Function, exchangetoken.Function,
		checkpassword.Function, whoami.Function, revokecredentials.Function, requestdevice.Function, approvedevice.Function,
		trysignin.Function)
	w.handler = handler
	s := &served{world: w, server: httptest.NewTLSServer(handler), folder: t.TempDir()}
	t.Cleanup(s.server.Close)
	w.config.Auth.OIDC.RedirectURI = s.server.URL + "/auth/oidc/callback"
	s.ca, s.kubeconfig = filepath.Join(s.folder, "ca.crt"), filepath.Join(s.folder, "kubeconfig")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	if err := os.WriteFile(s.ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(s.folder, "config"))
	t.Setenv("HOME", s.folder)
	return s
}

func (s *served) login(open func(string) error) *client.Login {
	return &client.Login{Host: s.server.URL, Authority: s.ca, Browser: true, Timeout: time.Minute, Output: s.kubeconfig, Open: open}
}

// browse does what a person does in the browser, up to the address to which the browser comes back.
func (s *served) browse(address, decision string) string {
	b := s.browser()
	begun := b.send(address, nil)
	callback := b.send(s.server.URL+"/auth/oidc/callback?"+s.provider.login(begun.Header.Get("Location")).Encode(), nil)
	at, err := url.Parse(callback.Header.Get("Location"))
	if err != nil {
		s.t.Error(err)
		return ""
	}
	decided := b.send(s.server.URL+"/auth/confirm", url.Values{"id": {at.Query().Get("id")}, "decision": {decision}}, "Sec-Fetch-Site", "same-origin")
	return decided.Header.Get("Location")
}

// visit loads a page of the program.
func (s *served) visit(address string) int {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// whoAmI asks the platform with the current context of the kubeconfig.
func (s *served) whoAmI() (status int, text string) {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, config.Host+"/apis/management.platform.sh/v1/selves", strings.NewReader("{}"))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := api.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// keyFiles are the files with keys.
func (s *served) keyFiles() []string {
	found, err := filepath.Glob(filepath.Join(s.folder, "config", "management.platform.sh", "*", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(file string) bool { return filepath.Base(file) == "ca.crt" })
}

// A person signs in with a browser, and the kubeconfig works; other answers at the loopback address are ignored. A later sign-in
// replaces the key. After a sign-out the key is refused, and no file has it. Source: ADR-0031; RFC 8252.
func TestLoginCommand(t *testing.T) {
	s := serve(t)
	browse := func(address string) error {
		back := s.browse(address, "allow")
		at, err := url.Parse(back)
		if err != nil {
			return err
		}
		for _, change := range []func(url.Values){
			func(query url.Values) { query.Set("state", "another") },
			func(query url.Values) { query.Set("iss", "https://evil.example") },
			func(query url.Values) { query.Del("code") },
		} {
			other, query := *at, at.Query()
			change(query)
			other.RawQuery = query.Encode()
			if status := s.visit(other.String()); status != http.StatusBadRequest {
				t.Errorf("%s: %d", other.RawQuery, status)
			}
		}
		elsewhere := *at
		elsewhere.Path = "/callback"
		if status := s.visit(elsewhere.String()); status != http.StatusBadRequest {
			t.Errorf("another path: %d", status)
		}
		if status := s.visit(back); status != http.StatusOK {
			t.Errorf("the browser came back to %d", status)
		}
		return nil
	}
	for range 2 {
		if err := s.login(browse).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status, text := s.whoAmI(); status != http.StatusCreated || !strings.Contains(text, `"ana"`) {
			t.Fatalf("the kubeconfig is answered with %d %s", status, text)
		}
	}
	files := s.keyFiles()
	if len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	key, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, s.kubeconfig) {
		at, err := os.Stat(file)
		if err != nil || at.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, at, err)
		}
	}
	if text, err := os.ReadFile(s.kubeconfig); err != nil || strings.Contains(string(text), string(key)) {
		t.Errorf("the kubeconfig has the key, or %v", err)
	}
	logout := &client.Logout{Host: s.server.URL}
	if err := logout.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], key, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := s.whoAmI(); status != http.StatusUnauthorized {
		t.Errorf("after the sign-out the key is answered with %d %s", status, text)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := logout.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "not signed in") {
		t.Errorf("a second sign-out: %v", err)
	}
}

// A sign-in that fails writes nothing. Source: ADR-0031.
func TestLoginCommandFails(t *testing.T) {
	s := serve(t)
	for _, row := range []struct {
		about  string
		change func(*client.Login)
		want   string
	}{
		{"the person denies", func(c *client.Login) {
			c.Open = func(address string) error { s.visit(s.browse(address, "deny")); return nil }
		}, "the sign-in was refused (access_denied)"},
		{"the code is not one", func(c *client.Login) {
			c.Open = func(address string) error {
				at, err := url.Parse(address)
				if err != nil {
					return err
				}
				s.visit(at.Query().Get("redirect_uri") + "?" + url.Values{"code": {"x"}, "state": {at.Query().Get("state")}, "iss": {s.server.URL}}.Encode())
				return nil
			}
		}, "invalid_grant"},
		{"nobody signs in", func(c *client.Login) { c.Browser, c.Timeout = false, time.Millisecond }, "nobody has signed in within 1ms"},
		{"no browser can be opened", func(c *client.Login) {
			c.Timeout, c.Open = time.Millisecond, func(string) error { return errors.New("no display") }
		}, "nobody has signed in"},
		{"another connector", func(c *client.Login) { c.Connector = "saml" }, "--connector: must be one of oidc"},
		{"without TLS", func(c *client.Login) { c.Host = "http://platform.example" }, "invalid platform"},
		{"no host", func(c *client.Login) { c.Host = "https://" }, "invalid platform"},
		{"a name and a password", func(c *client.Login) { c.Host = "https://a:b@platform.example" }, "invalid platform"},
		{"another authority", func(c *client.Login) { c.Authority = "" }, "asking how to sign in"},
		{"the standard output", func(c *client.Login) { c.Output = "-" }, "--output"},
	} {
		login := s.login(nil)
		row.change(login)
		if err := login.Run(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.about, err, row.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waiting := s.login(func(string) error { return nil })
	if err := waiting.Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a program that is ended: %v", err)
	}
	s.config.Auth.OIDC = nil
	if err := s.login(nil).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "use --username") {
		t.Errorf("without a page for passwords: %v", err)
	}
	s.config.Auth.Password = &model.PasswordAuth{Disabled: true}
	if err := s.login(nil).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "use --access-key-stdin") {
		t.Errorf("without connectors: %v", err)
	}
	if _, err := os.Stat(s.kubeconfig); !errors.Is(err, os.ErrNotExist) || len(s.keyFiles()) > 0 {
		t.Errorf("%v, %v", s.keyFiles(), err)
	}
}

// An access key can be given in place of a sign-in. One that the platform refuses is not written. Source: ADR-0031.
func TestLoginCommandWithKey(t *testing.T) {
	s := serve(t)
	if err := s.login(func(address string) error { s.visit(s.browse(address, "allow")); return nil }).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := s.keyFiles()
	if len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	own, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"": "has no access key", "pak_unknown": "the platform refuses the access key"} {
		login := s.login(nil)
		login.KeyStdin, login.Input = true, strings.NewReader(key+"\n")
		if err := login.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", key, err, want)
		}
	}
	if len(s.keyFiles()) > 0 {
		t.Errorf("%v", s.keyFiles())
	}
	login := s.login(nil)
	login.KeyStdin, login.Input = true, bytes.NewReader(own)
	if err := login.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, text := s.whoAmI(); status != http.StatusCreated {
		t.Errorf("%d %s", status, text)
	}
	// A sign-out forgets the key, and does not end it: it was there before.
	logout := &client.Logout{Host: s.server.URL}
	if err := logout.Run(t.Context()); err != nil || len(s.keyFiles()) > 0 {
		t.Errorf("%v, %v", err, s.keyFiles())
	}
	works := func() bool {
		_, err := accesskey.OpenAuthenticator(s.env).Bearer(t.Context(), secret.String(own))
		return err == nil
	}
	if !works() {
		t.Error("the key of somebody else has ended")
	}
	// The key of a sign-in after it ends with its sign-out.
	if err := s.login(func(address string) error { s.visit(s.browse(address, "allow")); return nil }).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if own, err = os.ReadFile(s.keyFiles()[0]); err != nil {
		t.Fatal(err)
	}
	if err := logout.Run(t.Context()); err != nil || works() || len(s.keyFiles()) > 0 {
		t.Errorf("%v, it works: %v, %v", err, works(), s.keyFiles())
	}
}

// messages is what the person reads. It is safe for concurrent use.
type messages struct {
	mu    sync.Mutex
	text  strings.Builder
	found chan string
}

func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text.Write(p)
	if code := regexp.MustCompile(`\n  ([A-Z]{4}-[A-Z]{4})\n`).FindStringSubmatch(m.text.String()); code != nil {
		select {
		case m.found <- code[1]:
		default:
		}
	}
	return len(p), nil
}

// Over SSH the program shows a code, waits until somebody has allowed it elsewhere, and writes the key. After a refusal, and at the end
// of its time, it writes nothing. Source: RFC 8628; ADR-0031.
func TestLoginCommandWithCode(t *testing.T) {
	s := serve(t)
	t.Setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
	t.Setenv("BROWSER", "")
	for _, row := range []struct{ decision, want string }{{"deny", "access_denied"}, {"allow", ""}} {
		shown := &messages{found: make(chan string, 1)}
		login := s.login(nil)
		login.Messages = shown
		ended := make(chan error, 1)
		go func() { ended <- login.Run(t.Context()) }()
		var code string
		select {
		case code = <-shown.found:
		case err := <-ended:
			t.Fatalf("the program has ended: %v", err)
		}
		b := s.browser()
		choice := text(t, b.send(s.server.URL+"/auth/device", url.Values{"user_code": {code}}, "Sec-Fetch-Site", "same-origin"))
		begun := b.send(way(t, choice, "oidc"), nil)
		callback := b.send(s.server.URL+"/auth/oidc/callback?"+s.provider.login(begun.Header.Get("Location")).Encode(), nil)
		at, err := url.Parse(callback.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		b.decide(at.Query().Get("id"), row.decision)
		err = <-ended
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || len(s.keyFiles()) > 0) {
			t.Errorf("%s: %v, files %v", row.decision, err, s.keyFiles())
		}
	}
	if status, body := s.whoAmI(); status != http.StatusCreated || !strings.Contains(body, `"ana"`) {
		t.Errorf("%d %s", status, body)
	}
	login := s.login(nil)
	login.Device, login.Timeout, login.Messages = true, time.Millisecond, io.Discard
	if err := login.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody has signed in within 1ms") {
		t.Errorf("nobody: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := login.Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a program that is ended: %v", err)
	}
	s.env.DeviceLogin = settings.Off
	if err := login.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "gives no codes") {
		t.Errorf("off: %v", err)
	}
}
