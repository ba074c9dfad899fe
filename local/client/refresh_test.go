package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// refresher is a token endpoint, with a program that is signed in there.
type refresher struct {
	*signedIn
	t      *testing.T
	clock  atomic.Int64
	asked  atomic.Int64
	answer func(http.ResponseWriter, *http.Request)
	warned strings.Builder
}

func newRefresher(t *testing.T) *refresher {
	t.Helper()
	r := &refresher{t: t}
	r.clock.Store(time.Now().Unix())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n := r.asked.Add(1)
		if r.answer != nil {
			r.answer(w, q)
			return
		}
		if q.URL.Path != "/base/auth/token" || q.FormValue("grant_type") != "refresh_token" || q.FormValue("client_id") != loginClient ||
			q.FormValue("refresh_token") != "refresh-"+strconv.FormatInt(n-1, 10) {
			t.Errorf("%s with %v", q.URL, q.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token": "key-" + strconv.FormatInt(n, 10), "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-" + strconv.FormatInt(n, 10),
		})
	}))
	t.Cleanup(server.Close)
	r.signedIn = &signedIn{
		host: "platform.example", server: server.URL + "/base", folder: t.TempDir(), client: server.Client(), warn: &r.warned,
		now: func() time.Time { return time.Unix(r.clock.Load(), 0) },
	}
	r.kept(time.Hour)
	return r
}

// kept keeps the first key for that long.
func (r *refresher) kept(life time.Duration) {
	r.t.Helper()
	if err := (loginGrant{Key: "key-0", Expires: r.now().Add(life), Refresh: "refresh-0"}).keep(r.folder); err != nil {
		r.t.Fatal(err)
	}
}

// wants fails the test unless the key is that one, in both files.
func (r *refresher) wants(about, key string) {
	r.t.Helper()
	got, err := r.currentKey(r.t.Context())
	if err != nil || got.Key != key {
		r.t.Errorf("%s: %q, %v", about, got.Key, err)
	}
	if text, err := os.ReadFile(filepath.Join(r.folder, loginKey)); err != nil || string(text) != key {
		r.t.Errorf("%s: the file of the key has %q, %v", about, text, err)
	}
}

// A key that ends soon is renewed before, and both files follow.
func TestRenewedInTime(t *testing.T) {
	t.Parallel()
	r := newRefresher(t)
	r.wants("a young key", "key-0")
	r.clock.Add(int64((55 * time.Minute).Seconds()))
	r.wants("a key that ends soon", "key-1")
	r.wants("the next question", "key-1")
	if n := r.asked.Load(); n != 1 {
		t.Errorf("the platform was asked %d times", n)
	}
	for _, name := range []string{loginRefresh, loginKey} {
		if info, err := os.Stat(filepath.Join(r.folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// Programs that need a new key at the same moment ask for one: a refresh token works once.
func TestRenewedOnce(t *testing.T) {
	t.Parallel()
	r := newRefresher(t)
	r.kept(time.Minute)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got, err := r.currentKey(t.Context()); err != nil || got.Key != "key-1" {
				t.Errorf("%q, %v", got.Key, err)
			}
		})
	}
	group.Wait()
	if n := r.asked.Load(); n != 1 {
		t.Errorf("the platform was asked %d times", n)
	}
}

// A platform that does not answer leaves the key as it is until its end. One that refuses the token says what to do.
func TestNotRenewed(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"x"}`))
	}
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	r := newRefresher(t)
	r.kept(time.Minute)
	r.answer = broken
	r.wants("while it does not answer", "key-0")
	if !strings.Contains(r.warned.String(), "expires at") {
		t.Errorf("it warns %q", r.warned.String())
	}
	r.clock.Add(60)
	if _, err := r.currentKey(t.Context()); err == nil || !strings.Contains(err.Error(), "renewing the access key") {
		t.Errorf("after the end: %v", err)
	}
	r.answer = refused
	r.kept(time.Minute)
	if _, err := r.currentKey(t.Context()); err == nil || err.Error() != "the sign-in has ended; sign in again with platform login --refresh platform.example" {
		t.Errorf("refused: %v", err)
	}
	r.answer = nil
	r.asked.Store(0)
	r.wants("when the platform answers again", "key-1")
}

// A sign-in without a refresh token is a key. Files of other programs are no sign-in.
func TestNothingToRenew(t *testing.T) {
	t.Parallel()
	r := newRefresher(t)
	if err := (loginGrant{Key: "long"}).keep(r.folder); err != nil {
		t.Fatal(err)
	}
	r.clock.Add(1 << 30)
	r.wants("a key without a refresh token", "long")
	for _, text := range []string{"", "{}", "x", `{"accessKey":"x"}`} {
		if err := os.WriteFile(filepath.Join(r.folder, loginRefresh), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.currentKey(t.Context()); err == nil || !strings.Contains(err.Error(), "sign in again") {
			t.Errorf("%q: %v", text, err)
		}
	}
	r.folder = t.TempDir()
	if _, err := r.currentKey(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nobody is signed in: %v", err)
	}
	if n := r.asked.Load(); n != 0 {
		t.Errorf("the platform was asked %d times", n)
	}
}

// Commands that name a HOST renew the key of a sign-in with a refresh token, as the plugins of kubectl do.
func TestHostRenews(t *testing.T) {
	r := newRefresher(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	_, folder, err := platformOf(r.server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reach(t.Context(), r.server, ""); err == nil || !strings.Contains(err.Error(), "not signed in") {
		t.Errorf("nobody is signed in: %v", err)
	}
	for life, want := range map[time.Duration]string{time.Hour: "key-0", time.Minute: "key-1"} {
		if err := (loginGrant{Key: "key-0", Expires: time.Now().Add(life), Refresh: "refresh-0"}).keep(folder); err != nil {
			t.Fatal(err)
		}
		if at, err := reach(t.Context(), r.server, ""); err != nil || at.key != want || at.base != r.server {
			t.Errorf("%s: %+v, %v", life, at, err)
		}
	}
}
