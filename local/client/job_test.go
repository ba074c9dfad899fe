package client

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/model/secret"
)

// exchangeServer is a platform that exchanges the tokens of jobs, and the server of GitHub Actions that gives them.
type exchangeServer struct {
	*httptest.Server
	t *testing.T
	// asked are the tokens that were exchanged, and audience the latest audience that GitHub Actions was asked for.
	mu       sync.Mutex
	asked    []string
	audience string
	// names are the Idempotency-Keys of the exchanges.
	names []string
	// loses says how the next response is lost: connectionLost, or the status of a gateway. 0: it is not lost.
	loses atomic.Int32
	// refuses reports whether the platform refuses every token.
	refuses atomic.Bool
}

const connectionLost = 1

func newExchangeServer(t *testing.T) *exchangeServer {
	t.Helper()
	s := &exchangeServer{t: t}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *exchangeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/github" && r.Header.Get("Authorization") == "Bearer runner":
		s.audience = r.URL.Query().Get("audience")
		_ = json.NewEncoder(w).Encode(map[string]string{"value": "github-token"})
	case r.URL.Path == "/kubernetes/management/auth/token" && r.PostFormValue("grant_type") == exchangeGrant && r.PostFormValue("subject_token_type") == jwtType:
		if s.refuses.Load() {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_request","error_description":"no trust rule fits the token"}`))
			return
		}
		s.asked = append(s.asked, r.PostFormValue("subject_token")+"/"+r.PostFormValue("rule"))
		s.names = append(s.names, r.Header.Get("Idempotency-Key"))
		switch s.loses.Swap(0) {
		case connectionLost:
			panic(http.ErrAbortHandler)
		case http.StatusBadGateway:
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("key-", len(s.asked)), "expires_in": 600})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// job returns a job of this server, without any variable of a CI system.
func (s *exchangeServer) job(variables ...string) *job {
	for _, name := range []string{jobTokenVariable, jobTokenFile, githubURL, githubBearer, "GITHUB_ACTIONS", "GITLAB_CI"} {
		s.t.Setenv(name, "")
	}
	for i := 0; i+1 < len(variables); i += 2 {
		s.t.Setenv(variables[i], variables[i+1])
	}
	at := time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)
	return &job{
		server: s.URL + "/kubernetes/management", client: newRepeatingClient(s.Client(), nil), projected: filepath.Join(s.t.TempDir(), "absent"), now: func() time.Time { return at },
	}
}

// An exchange whose answer is lost is repeated under its name.
func TestLostExchange(t *testing.T) {
	s := newExchangeServer(t)
	j := s.job(jobTokenVariable, "mine")
	for _, lost := range []int32{connectionLost, http.StatusBadGateway} {
		s.names = nil
		s.loses.Store(lost)
		if _, err := j.key(t.Context()); err != nil || len(s.names) != 2 || s.names[0] == "" || s.names[0] != s.names[1] {
			t.Errorf("%v, asked as %q", err, s.names)
		}
		if _, err := j.key(t.Context()); err != nil || s.names[2] == s.names[0] {
			t.Errorf("%v, asked as %q", err, s.names)
		}
	}
}

// Each system has its place for the token of a job.
func TestJobTokens(t *testing.T) {
	s := newExchangeServer(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("file-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for about, row := range map[string]struct {
		variables []string
		change    func(*job)
		want      string
	}{
		"GitHub Actions":    {[]string{"GITHUB_ACTIONS", "true", githubURL, s.URL + "/github?api-version=2", githubBearer, "runner"}, nil, "github-token/"},
		"GitLab CI":         {[]string{"GITLAB_CI", "true", jobTokenVariable, "gitlab-token"}, nil, "gitlab-token/"},
		"a file by name":    {[]string{jobTokenFile, file, jobTokenVariable, "other"}, nil, "file-token/"},
		"a flag":            {[]string{jobTokenVariable, "other"}, func(j *job) { j.file, j.rule = file, "deploy" }, "file-token/deploy"},
		"Kubernetes":        {nil, func(j *job) { j.projected = file }, "file-token/"},
		"the audience":      {[]string{githubURL, s.URL + "/github", githubBearer, "runner"}, func(j *job) { j.audience = "theirs" }, "github-token/"},
		"a variable before": {[]string{githubURL, s.URL + "/github", githubBearer, "runner", jobTokenVariable, "mine"}, nil, "mine/"},
	} {
		j := s.job(row.variables...)
		if row.change != nil {
			row.change(j)
		}
		s.asked, s.audience = nil, ""
		got, err := j.key(t.Context())
		if err != nil || got.Token != "key-1" || len(s.asked) != 1 || s.asked[0] != row.want || got.Expires.Sub(got.Issued) != 10*time.Minute {
			t.Errorf("%s: %v %v %q", about, got.Issued, err, s.asked)
		}
		want := s.URL
		if j.audience != "" {
			want = j.audience
		}
		if strings.HasPrefix(row.want, "github") && s.audience != want {
			t.Errorf("%s: the audience is %q", about, s.audience)
		}
	}
}

// A job without a token gets an error that names what is missing, and quotes no secret.
func TestJobWithoutToken(t *testing.T) {
	s := newExchangeServer(t)
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for about, row := range map[string]struct {
		variables []string
		want      string
	}{
		"GitHub Actions":  {[]string{"GITHUB_ACTIONS", "true"}, "id-token: write"},
		"GitLab CI":       {[]string{"GITLAB_CI", "true"}, jobTokenVariable},
		"anything else":   {nil, jobTokenVariable},
		"an empty file":   {[]string{jobTokenFile, empty}, "is empty"},
		"an absent file":  {[]string{jobTokenFile, empty + "2"}, "no such file"},
		"plain HTTP":      {[]string{githubURL, "http://elsewhere.example/x?secret=1", githubBearer, "runner"}, githubURL},
		"another runner":  {[]string{githubURL, s.URL + "/github", githubBearer, "wrong-8Kx20wQm57"}, "404"},
		"a closed server": {[]string{githubURL, "http://127.0.0.1:1/github?secret=1", githubBearer, "runner"}, "GitHub Actions"},
	} {
		_, err := s.job(row.variables...).key(t.Context())
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret=1") || strings.Contains(err.Error(), "wrong-8Kx20wQm57") {
			t.Errorf("%s: %v", about, err)
		}
	}
	s.refuses.Store(true)
	if _, err := s.job(jobTokenVariable, "mine").key(t.Context()); err == nil || !strings.Contains(err.Error(), "no trust rule fits") {
		t.Errorf("a refusal: %v", err)
	}
}

// A plugin that runs often exchanges a token once, also beside other plugins, and again when a fifth of the lifetime of
// the key is left. Another job has another key.
func TestJobKeyIsKept(t *testing.T) {
	s := newExchangeServer(t)
	j := s.job(jobTokenVariable, "mine")
	start, folder := j.now(), t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if key, err := j.cachedKey(t.Context(), folder); err != nil || key != "key-1" {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait()
	for _, row := range []struct {
		after time.Duration
		want  secret.String
	}{{7 * time.Minute, "key-1"}, {8 * time.Minute, "key-2"}} {
		j.now = func() time.Time { return start.Add(row.after) }
		if key, err := j.cachedKey(t.Context(), folder); err != nil || key != row.want {
			t.Errorf("after %s: another key, %v", row.after, err)
		}
	}
	// The token no longer works, but the key that was exchanged for it does.
	s.refuses.Store(true)
	j.now = func() time.Time { return start.Add(17 * time.Minute) }
	if key, err := j.cachedKey(t.Context(), folder); err != nil || key != "key-2" {
		t.Errorf("a key that still works: %v", err)
	}
	j.now = func() time.Time { return start.Add(18 * time.Minute) }
	if _, err := j.cachedKey(t.Context(), folder); err == nil {
		t.Error("a key that has ended is used")
	}
	s.refuses.Store(false)
	other := s.job(jobTokenVariable, "another job")
	if key, err := other.cachedKey(t.Context(), folder); err != nil || key != "key-3" {
		t.Errorf("another job: %v", err)
	}
	files, err := os.ReadDir(folder)
	files = slices.DeleteFunc(files, func(file os.DirEntry) bool { return file.Name() == jobLock })
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", file.Name(), err)
		}
	}
}

// platform login --ci writes a context as every sign-in does.
func TestLoginAsJob(t *testing.T) {
	s := newExchangeServer(t)
	s.job(jobTokenVariable, "mine")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	authority := filepath.Join(home, "ca.pem")
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := (&Login{Host: s.URL, Authority: authority, CI: true, Rule: "deploy", Output: kubeconfig}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil || !strings.Contains(string(text), "tokenFile:") || strings.Contains(string(text), "key-1") {
		t.Errorf("the kubeconfig is %s, %v", text, err)
	}
	if len(s.asked) != 1 || s.asked[0] != "mine/deploy" {
		t.Errorf("asked %q", s.asked)
	}
	// The token works once. A container that starts again uses the key that it gave.
	s.refuses.Store(true)
	if err := (&Login{Host: s.URL, Authority: authority, CI: true, Rule: "deploy", Output: kubeconfig}).Run(t.Context()); err != nil || len(s.asked) != 1 {
		t.Errorf("again: %v, asked %q", err, s.asked)
	}
	// Later commands verify the platform with the authority of the last sign-in.
	server, _, err := platformOf(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(keptAuthority(server)); err != nil || !bytes.Equal(kept, given) {
		t.Errorf("the authority is %q, %v", kept, err)
	}
	if err := (&Login{Host: s.URL, CI: true, Rule: "deploy", Output: kubeconfig}).Run(t.Context()); err != nil || keptAuthority(server) != "" {
		t.Errorf("without an authority: %v, kept %q", err, keptAuthority(server))
	}
	if err := (&Login{Host: s.URL, CI: true, Output: filepath.Join(home, "none")}).Run(t.Context()); err == nil {
		t.Error("a refused job signs in")
	}
	if _, err := os.Stat(filepath.Join(home, "none")); !os.IsNotExist(err) {
		t.Error("a refused job has a kubeconfig")
	}
}
