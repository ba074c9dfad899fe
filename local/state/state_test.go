package state

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var quiet = slog.New(slog.DiscardHandler)

// redisSettings returns the settings of a runner with a state and a data folder.
func redisSettings(url secret.String, folder string) settings.Settings {
	s := settings.Default()
	s.Redis.URL, s.Redis.URLFrom, s.Runner.Data = url, settings.RedisURL, folder
	return s
}

// The description of the state has the servers in the URL, and none of its secrets.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		given secret.String
		want  string
	}{
		{"a host", "redis://example.com:6379", "example.com:6379"},
		{"a database", "redis://example.com:6379/3", "example.com:6379/3"},
		{"a password", "redis://:hunter2@example.com:6379", "example.com:6379"},
		{"a user and a password", "rediss://user:hunter2@example.com:6379", "example.com:6379"},
		{"a password with special characters", "redis://:hunter2%2F%40%2C@example.com", "example.com"},
		{"a password in the query", "redis://example.com?password=hunter2", "example.com"},
		{"a fragment", "redis://example.com#hunter2", "example.com"},
		{"IPv6", "redis://:hunter2@[::1]:6379", "[::1]:6379"},
		{"a socket", "unix:///run/redis.sock", "/run/redis.sock"},
		{"a socket with a password", "unix://:hunter2@/run/redis.sock", "/run/redis.sock"},
		{"a cluster", "redis://:hunter2@a:1, redis://b:2,redis://c:3", "a:1, b:2, c:3"},
		{"seeds", "redis-cluster://:hunter2@a,b:2,c", "a, b:2, c"},
		{"sentinels", "rediss-sentinel://user:hunter2@a:1,b:2/state?sentinel_password=hunter2", "a:1, b:2/state"},
		{"what is no URL", "redis://:hunter2@a:b", ""},
		{"nothing", "", ""},
	} {
		if got := Hosts(row.given); got != row.want {
			t.Errorf("%s: %q", row.about, got)
		}
	}
}

func TestOpenStateWhereOneIsGiven(t *testing.T) {
	t.Parallel()
	url, folder := redistest.Embedded(t), t.TempDir()
	opened, err := Open(t.Context(), redisSettings(secret.String(url), folder), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(opened.Description, strings.TrimPrefix(url, "redis://")) {
		t.Errorf("it is described as %q", opened.Description)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	if list := localtest.Names(t, folder); len(list) != 0 {
		t.Errorf("the data folder holds %q", list)
	}
}

func TestOpenStateRefuses(t *testing.T) {
	t.Parallel()
	for _, given := range []secret.String{"http://:hunter2@example.com", "redis://:hunter2@example.com:port", "hunter2", "redis://:hunter2@a,redis://:hunter2@b:port"} {
		opened, err := Open(t.Context(), redisSettings(given, t.TempDir()), quiet)
		if err == nil || opened != nil || !strings.HasPrefix(err.Error(), settings.RedisURL+": ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", strings.ReplaceAll(given.Reveal(), "hunter2", "..."), err)
		}
	}
}

// If redis-server does not start, the error names it, and nothing keeps running. A temporary folder for the socket is
// removed.
func TestChildStateThatDoesNotStart(t *testing.T) {
	temporary, program := t.TempDir(), filepath.Join(t.TempDir(), "absent")
	for name, folder := range map[string]string{
		"a short path": t.TempDir(),
		"a long path":  filepath.Join(t.TempDir(), strings.Repeat("long/", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", temporary)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			opened, err := childState(ctx, program, redisstore.Options{}, folder, quiet)
			if err == nil || opened != nil || !strings.Contains(err.Error(), program) {
				t.Errorf("the error is %v", err)
			}
			if list := localtest.Names(t, temporary); len(list) != 0 {
				t.Errorf("%q stays behind", list)
			}
		})
	}
}

// Only their user can read the files of the state, also files that an earlier version has made.
func TestFilesArePrivate(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not on PATH")
	}
	folder := t.TempDir()
	early := filepath.Join(folder, "redis", "early")
	if err := os.MkdirAll(filepath.Dir(early), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(early, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	opened, err := childState(t.Context(), program, redisstore.Options{Timeout: 30 * time.Second}, folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	_, wrong := opened.Client.Resource("ownedaccesskeys").Create(t.Context(), store.Record{Name: "a", Created: time.Unix(1, 0), Object: []byte("{}")})
	if err := errors.Join(wrong, opened.Close()); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the rights %v", path, info.Mode())
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}
