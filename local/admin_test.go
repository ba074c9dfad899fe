package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const (
	givenKey = secret.String("given-key-8Kx20wQm57ZtLp93VrNc4Hd6")
	otherKey = secret.String("other-key-8Kx20wQm57ZtLp93VrNc4Hd6")
)

// root is who the admin key stands for.
var root = identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})

// environment is one over a state of its own, and the URL of that state.
func environment(t *testing.T) (*frame.Environment, string) {
	t.Helper()
	url := redistest.Embedded(t)
	client, err := redisstore.Open(url, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return newEnvironment(client, slog.New(slog.DiscardHandler), "", nil, prometheus.NewRegistry()), url
}

func ensure(t *testing.T, env *frame.Environment, given secret.String, file string) secret.String {
	t.Helper()
	bearer, err := ensureAdmin(t.Context(), env, given, file)
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

// keysOf are the access keys of a state.
func keysOf(t *testing.T, env *frame.Environment) []model.OwnedAccessKey {
	t.Helper()
	list, err := resource.List(t.Context(), env.AccessKeys(), resource.ListInput{Caller: root})
	if err != nil {
		t.Fatal(err)
	}
	return list.(*model.OwnedAccessKeyList).Items
}

// wantAdmin fails unless a key is an admin's, by the name of the object.
func wantAdmin(t *testing.T, env *frame.Environment, bearer secret.String, name string) {
	t.Helper()
	caller, err := env.Authenticator().Bearer(t.Context(), bearer)
	if err != nil {
		t.Errorf("the key is refused: %v", err)
		return
	}
	if caller.Owner != root.Owner || !caller.Admin() || caller.Scope != nil {
		t.Errorf("the key is of %v", caller)
	}
	if rest, ok := strings.CutPrefix(caller.Key, name); !ok || strings.HasSuffix(name, "-") != (rest != "") {
		t.Errorf("the key's object is %q", caller.Key)
	}
}

func TestEnsureAdminIsMadeOnce(t *testing.T) {
	t.Parallel()
	env, _ := environment(t)
	file := filepath.Join(t.TempDir(), "admin.key")
	first := ensure(t, env, "", file)
	if string(read(t, file)) != first.Reveal()+"\n" {
		t.Error("the file does not hold the key")
	}
	wantPrivate(t, file)
	wantAdmin(t, env, first, "admin")
	for range 2 {
		if again := ensure(t, env, "", file); again != first {
			t.Error("the next start has another key")
		}
	}
	if list := keysOf(t, env); len(list) != 1 || list[0].Spec.Key != "" {
		t.Errorf("the state has %d keys", len(list))
	}
	if other, _ := environment(t); ensure(t, other, "", filepath.Join(t.TempDir(), "admin.key")) == first {
		t.Error("another folder has the same key")
	}
}

// A start finds a file and a state that may have nothing to do with each other.
func TestEnsureAdmin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		// happens is between the first start and the next one.
		happens func(t *testing.T, env *frame.Environment, file string)
		given   secret.String
		same    bool
		name    string
		total   int
	}{
		{"the file is gone", func(t *testing.T, _ *frame.Environment, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, "", false, "admin-", 2},
		{"the object is gone", func(t *testing.T, env *frame.Environment, _ string) { remove(t, env, "admin") }, "", true, "admin", 1},
		{"the object is gone and another has its name", func(t *testing.T, env *frame.Environment, _ string) {
			remove(t, env, "admin")
			if _, err := resource.Create(t.Context(), env.AccessKeys(), resource.CreateInput[*model.OwnedAccessKey]{
				Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "admin"}},
			}); err != nil {
				t.Fatal(err)
			}
		}, "", true, "admin-", 2},
		{"the file has another key", func(t *testing.T, _ *frame.Environment, file string) {
			write(t, file, otherKey.Reveal())
		}, "", false, "admin-", 2},
		{"the file was edited", func(t *testing.T, _ *frame.Environment, file string) {
			write(t, file, "\n  "+string(read(t, file))+"\r\n\n")
		}, "", true, "admin", 1},
		{"others may read the file", func(t *testing.T, _ *frame.Environment, file string) {
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "", true, "admin", 1},
		{"a key is given", func(*testing.T, *frame.Environment, string) {}, givenKey, false, "admin-", 2},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			env, _ := environment(t)
			file := filepath.Join(t.TempDir(), "admin.key")
			first := ensure(t, env, "", file)
			row.happens(t, env, file)
			then := ensure(t, env, row.given, file)
			if (then == first) != row.same || row.given != "" && then != row.given {
				t.Errorf("the key is the same: %v", then == first)
			}
			wantAdmin(t, env, then, row.name)
			if list := keysOf(t, env); len(list) != row.total {
				t.Errorf("the state has %d keys", len(list))
			}
			if string(read(t, file)) != then.Reveal()+"\n" {
				t.Error("the file does not hold the key")
			}
			wantPrivate(t, file)
			if again := ensure(t, env, "", file); again != then || len(keysOf(t, env)) != row.total {
				t.Error("the start after that has another key")
			}
		})
	}
}

func remove(t *testing.T, env *frame.Environment, name string) {
	t.Helper()
	if _, err := resource.Delete(t.Context(), env.AccessKeys(), resource.DeleteInput{Caller: root, Name: name}); err != nil {
		t.Fatal(err)
	}
}

// Who has disabled the admin key does not find it back at work after a restart. A folder without the file gets
// another one.
func TestEnsureAdminLeavesADisabledKey(t *testing.T) {
	t.Parallel()
	env, _ := environment(t)
	file := filepath.Join(t.TempDir(), "admin.key")
	first := ensure(t, env, "", file)
	if _, err := resource.Patch(t.Context(), env.AccessKeys(), resource.PatchInput{
		Caller: root, Name: "admin", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if again := ensure(t, env, "", file); again != first || len(keysOf(t, env)) != 1 {
		t.Error("the start has another key")
	}
	if _, err := env.Authenticator().Bearer(t.Context(), first); err == nil {
		t.Error("the key works")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantAdmin(t, env, ensure(t, env, "", file), "admin-")
}

// What is no key is refused, whence it comes is said, what it is is not, and nothing is written.
func TestEnsureAdminRefuses(t *testing.T) {
	t.Parallel()
	const cut = "pak_4Hd68Kx20wQm57ZtLp93VrNc"
	for _, row := range []struct {
		about string
		given secret.String
		kept  string
	}{
		{"a short key", "short-key-8Kx20wQm57ZtLp", ""},
		{"a key with a blank", givenKey + " ", ""},
		{"an empty file", "", "\n"},
		{"a file that was cut", "", cut},
		{"a file with two keys", "", givenKey.Reveal() + "\n" + otherKey.Reveal() + "\n"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			env, _ := environment(t)
			file := filepath.Join(t.TempDir(), "admin.key")
			if row.kept != "" {
				write(t, file, row.kept)
			}
			bearer, err := ensureAdmin(t.Context(), env, row.given, file)
			if err == nil || bearer != "" {
				t.Fatalf("error %v", err)
			}
			for _, text := range []string{row.given.Reveal(), strings.TrimSpace(row.kept), givenKey.Reveal()} {
				if text != "" && strings.Contains(err.Error(), text) {
					t.Error("the error tells the key")
				}
			}
			if strings.Contains(err.Error(), file) != (row.kept != "") {
				t.Errorf("the error is %v", err)
			}
			if list := keysOf(t, env); len(list) != 0 {
				t.Errorf("the state has %d keys", len(list))
			}
			if row.kept != "" && string(read(t, file)) != row.kept {
				t.Error("the file was changed")
			} else if _, err := os.Stat(file); row.kept == "" && err == nil {
				t.Error("the file was written")
			}
		})
	}
}

func TestEnsureAdminErrors(t *testing.T) {
	t.Parallel()
	env, _ := environment(t)
	folder := t.TempDir()
	if _, err := ensureAdmin(t.Context(), env, "", folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder in place of the file: %v", err)
	}
	if list := keysOf(t, env); len(list) != 0 {
		t.Errorf("a key was made that nobody can know; the state has %d", len(list))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(folder, "admin.key")
	if _, err := ensureAdmin(ctx, env, "", file); err == nil {
		t.Error("a key was made without the state")
	}
	// What was written down before is the key of the next start.
	kept := strings.TrimSpace(string(read(t, file)))
	if bearer, err := ensureAdmin(t.Context(), env, "", file); err != nil || bearer.Reveal() != kept || len(keysOf(t, env)) != 1 {
		t.Errorf("the next start: %v", err)
	}
}

// stdout replaces standard output and returns what was written to it. Its user cannot be parallel.
func stdout(t *testing.T, do func()) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = writer
	defer func() { os.Stdout = before }()
	text := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(reader)
		text <- all
	}()
	do()
	_ = writer.Close()
	return string(<-text)
}

// Bootstrap prints the key and nothing else, and adds one to what is there.
func TestBootstrapPrints(t *testing.T) {
	env, url := environment(t)
	seen := map[string]bool{}
	for i, given := range []secret.String{"", "", givenKey, givenKey} {
		command := &bootstrapCommand{Redis: secret.String(url), AdminKey: given}
		text := stdout(t, func() {
			if err := command.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
		key, ok := strings.CutSuffix(text, "\n")
		if !ok || given != "" && key != given.Reveal() {
			t.Fatalf("it printed %q", text)
		}
		if err := accesskey.CheckBearer(secret.String(key)); err != nil {
			t.Errorf("it printed %q: %v", text, err)
		}
		name := "admin-"
		if i == 0 {
			name = "admin"
		}
		wantAdmin(t, env, secret.String(key), name)
		seen[key] = true
	}
	if len(seen) != 3 || len(keysOf(t, env)) != 3 {
		t.Errorf("%d keys were printed, %d are there", len(seen), len(keysOf(t, env)))
	}
}

// A key that is there already and opens nothing, or not everything, is no first admin key.
func TestBootstrapRefusesAKeyOfOthers(t *testing.T) {
	for _, spec := range []model.OwnedAccessKeySpec{
		{User: "ana"},
		{User: "root", Groups: []string{identity.Admins}, Disabled: true},
		{User: "root", Groups: []string{identity.Admins}, Scope: &model.Scope{}},
	} {
		env, url := environment(t)
		spec.Key = givenKey.Reveal()
		if _, err := resource.Create(t.Context(), env.AccessKeys().Managed(fieldmanager.New), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: root, Object: &model.OwnedAccessKey{Spec: spec},
		}); err != nil {
			t.Fatal(err)
		}
		var err error
		printed := stdout(t, func() {
			err = (&bootstrapCommand{Redis: secret.String(url), AdminKey: givenKey}).Run(t.Context())
		})
		if err == nil || !strings.HasPrefix(err.Error(), "--admin-key: ") || printed != "" {
			t.Errorf("%+v: %v, printed %q", spec, err, printed)
		}
	}
}

// A key that could not be shown is lost, which is an error.
func TestBootstrapThatCannotPrint(t *testing.T) {
	_, url := environment(t)
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	before := os.Stdout
	os.Stdout = closed
	defer func() { os.Stdout = before }()
	if err := (&bootstrapCommand{Redis: secret.String(url)}).Run(t.Context()); err == nil {
		t.Error("it reports success")
	}
}

// The announcement says where everything is, and no key.
func TestAnnounce(t *testing.T) {
	command := &serveCommand{Data: "data", AdminKey: givenKey, Redis: "redis://:hunter2@example.com:6379"}
	for _, plain := range []string{"", "127.0.0.1:81"} {
		text := stdout(t, func() { command.announce("127.0.0.1:80", plain, "Redis at "+hosts(command.Redis)) })
		for _, part := range []string{"https://127.0.0.1:80/kubernetes/management\n", "example.com:6379\n", filepath.Join("data", "admin.key"), filepath.Join("data", "kubeconfig")} {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q:\n%s", part, text)
			}
		}
		if strings.Contains(text, "http://127.0.0.1:81/kubernetes/management\n") != (plain != "") {
			t.Errorf("with plain HTTP at %q:\n%s", plain, text)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, givenKey.Reveal()) {
			t.Errorf("it tells a secret:\n%s", text)
		}
	}
}

func TestOpenKeyring(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.key")
	made, err := openKeyring("", file)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := made.Seal([]byte("x"), "a")
	if err != nil {
		t.Fatal(err)
	}
	again, err := openKeyring("", file)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := again.Open(sealed, "a"); err != nil || string(opened) != "x" {
		t.Errorf("the next start: %q, %v", opened, err)
	}
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", about, err)
	}
	given, err := openKeyring(encryption.Generate(), file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := given.Open(sealed, "a"); err == nil {
		t.Error("the given key is not the one in the file")
	}
	if _, err := openKeyring("hunter2", file); err == nil || !strings.Contains(err.Error(), "--encryption-key") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad one: %v", err)
	}
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyring("", file); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad file: %v", err)
	}
}
