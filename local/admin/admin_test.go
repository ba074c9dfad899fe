package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// unrecorded makes a change without an audit.
func unrecorded(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

func ensure(t *testing.T, env *platform.Environment, given secret.String, file string) secret.String {
	t.Helper()
	bearer, err := Ensure(t.Context(), env, unrecorded, given, File(file))
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

func TestEnsureAdminIsMadeOnce(t *testing.T) {
	t.Parallel()
	env, _ := localtest.Environment(t)
	file := filepath.Join(t.TempDir(), "admin.key")
	first := ensure(t, env, "", file)
	if string(localtest.Read(t, file)) != first.Reveal()+"\n" {
		t.Error("the file does not hold the key")
	}
	localtest.WantPrivate(t, file)
	localtest.WantAdmin(t, env, first, "admin")
	for range 2 {
		if again := ensure(t, env, "", file); again != first {
			t.Error("the next start has another key")
		}
	}
	if list := localtest.Keys(t, env); len(list) != 1 || list[0].Spec.Key != "" {
		t.Errorf("the state has %d keys", len(list))
	}
	if other, _ := localtest.Environment(t); ensure(t, other, "", filepath.Join(t.TempDir(), "admin.key")) == first {
		t.Error("another folder has the same key")
	}
}

// The file and the state may differ when a start finds them.
func TestEnsureAdmin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		// happens is called between the first start and the next one.
		happens func(t *testing.T, env *platform.Environment, file string)
		given   secret.String
		same    bool
		name    string
		total   int
	}{
		{"the file was edited", func(t *testing.T, _ *platform.Environment, file string) {
			localtest.Write(t, file, "\n  "+string(localtest.Read(t, file))+"\r\n\n")
		}, "", true, "admin", 1},
		{"others may read the file", func(t *testing.T, _ *platform.Environment, file string) {
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "", true, "admin", 1},
		{"a key is given", func(*testing.T, *platform.Environment, string) {}, localtest.GivenKey, false, "admin-", 2},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			env, _ := localtest.Environment(t)
			file := filepath.Join(t.TempDir(), "admin.key")
			first := ensure(t, env, "", file)
			row.happens(t, env, file)
			then := ensure(t, env, row.given, file)
			if (then == first) != row.same || row.given != "" && then != row.given {
				t.Errorf("the key is the same: %v", then == first)
			}
			localtest.WantAdmin(t, env, then, row.name)
			if list := localtest.Keys(t, env); len(list) != row.total {
				t.Errorf("the state has %d keys", len(list))
			}
			if string(localtest.Read(t, file)) != then.Reveal()+"\n" {
				t.Error("the file does not hold the key")
			}
			localtest.WantPrivate(t, file)
			if again := ensure(t, env, "", file); again != then || len(localtest.Keys(t, env)) != row.total {
				t.Error("the start after that has another key")
			}
		})
	}
}

// A start makes no unrequested key if the platform has an admin: a key with the rights of admins, or a user. Source:
// ADR-0047.
func TestEnsureAdminBesideAnotherAdmin(t *testing.T) {
	t.Parallel()
	for about, before := range map[string]struct {
		happens func(t *testing.T, env *platform.Environment)
		kept    string
	}{
		"a folder without a key":    {func(*testing.T, *platform.Environment) {}, ""},
		"a folder with another key": {func(*testing.T, *platform.Environment) {}, localtest.OtherKey.Reveal()},
		"a user is the admin": {func(t *testing.T, env *platform.Environment) {
			user := &model.User{
				ObjectMeta: metav1.ObjectMeta{Name: "ana"}, Spec: model.UserSpec{ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}},
			}
			if _, err := resource.Create(t.Context(), kinds.Users(env), resource.CreateInput[*model.User]{Caller: localtest.Root, Object: user}); err != nil {
				t.Fatal(err)
			}
			remove(t, env, "admin")
		}, ""},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			env, _ := localtest.Environment(t)
			ensure(t, env, "", filepath.Join(t.TempDir(), "admin.key"))
			before.happens(t, env)
			count := len(localtest.Keys(t, env))
			file := filepath.Join(t.TempDir(), "admin.key")
			if before.kept != "" {
				localtest.Write(t, file, before.kept)
			}
			if bearer, err := Ensure(t.Context(), env, unrecorded, "", File(file)); !errors.Is(err, ErrPresent) || bearer != "" {
				t.Errorf("%v", err)
			}
			text, err := os.ReadFile(file)
			if before.kept == "" && err == nil || string(text) != before.kept {
				t.Errorf("the file has changed: %v", err)
			}
			if list := localtest.Keys(t, env); len(list) != count {
				t.Errorf("the state has %d keys", len(list))
			}
		})
	}
}

// Of many processes that start at once on an empty state, each with a folder of its own, one makes the admin key.
func TestEnsureAdminAtOnce(t *testing.T) {
	t.Parallel()
	env, _ := localtest.Environment(t)
	folder := t.TempDir()
	var created, refused atomic.Int64
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			file := filepath.Join(folder, fmt.Sprint(i))
			switch _, err := Ensure(t.Context(), env, unrecorded, "", File(file)); {
			case err == nil:
				created.Add(1)
			case errors.Is(err, ErrPresent):
				refused.Add(1)
				if _, err := os.Stat(file); err == nil {
					t.Error("the file has a key that the state does not have")
				}
			default:
				t.Error(err)
			}
		})
	}
	running.Wait()
	if created.Load() != 1 || refused.Load() != 7 || len(localtest.Keys(t, env)) != 1 {
		t.Errorf("made %d, refused %d, keys %d", created.Load(), refused.Load(), len(localtest.Keys(t, env)))
	}
}

// A first admin key that was deleted stays deleted: after a restart, with another data folder, and
// for a given key. Without the file there is another key. Source: ADR-0022.
func TestADeletedAdminKeyStaysDeleted(t *testing.T) {
	t.Parallel()
	for about, given := range map[string]secret.String{"a key of the folder": "", "a given key": localtest.GivenKey} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			env, _ := localtest.Environment(t)
			folder := t.TempDir()
			file := filepath.Join(folder, "admin.key")
			first := ensure(t, env, given, file)
			remove(t, env, "admin")
			for _, again := range []string{file, file, filepath.Join(folder, "other.key")} {
				if bearer, err := Ensure(t.Context(), env, unrecorded, first, File(again)); !errors.Is(err, ErrDeleted) || bearer != first {
					t.Errorf("the next start: %v", err)
				}
			}
			if list := localtest.Keys(t, env); len(list) != 0 {
				t.Errorf("the state has %d keys", len(list))
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if then := ensure(t, env, "", file); then == first {
				t.Error("the same key again")
			} else {
				localtest.WantAdmin(t, env, then, "admin")
			}
		})
	}
}

func remove(t *testing.T, env *platform.Environment, name string) {
	t.Helper()
	if _, err := resource.Delete(t.Context(), kinds.AccessKeys(env), resource.DeleteInput{Caller: localtest.Root, Name: name}); err != nil {
		t.Fatal(err)
	}
}

// A disabled admin key stays disabled after a restart. A folder without the file gets another key.
func TestEnsureAdminLeavesADisabledKey(t *testing.T) {
	t.Parallel()
	env, _ := localtest.Environment(t)
	file := filepath.Join(t.TempDir(), "admin.key")
	first := ensure(t, env, "", file)
	if _, err := resource.Patch(t.Context(), kinds.AccessKeys(env), resource.PatchInput{
		Caller: localtest.Root, Name: "admin", Type: resource.MergePatch, Patch: []byte(`{"spec":{"disabled":true}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if again := ensure(t, env, "", file); again != first || len(localtest.Keys(t, env)) != 1 {
		t.Error("the start has another key")
	}
	if _, err := accesskey.OpenAuthenticator(env).Bearer(t.Context(), first); err == nil {
		t.Error("the key works")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	localtest.WantAdmin(t, env, ensure(t, env, "", file), "admin-")
}

// An invalid key is refused and nothing is written. The error names its source and does not quote it.
func TestEnsureAdminRefuses(t *testing.T) {
	t.Parallel()
	const cut = "pak_4Hd68Kx20wQm57ZtLp93VrNc"
	for _, row := range []struct {
		about string
		given secret.String
		kept  string
	}{
		{"a short key", "short-key-8Kx20wQm57ZtLp", ""},
		{"a key with a blank", localtest.GivenKey + " ", ""},
		{"an empty file", "", "\n"},
		{"a file that was cut", "", cut},
		{"a file with two keys", "", localtest.GivenKey.Reveal() + "\n" + localtest.OtherKey.Reveal() + "\n"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			env, _ := localtest.Environment(t)
			file := filepath.Join(t.TempDir(), "admin.key")
			if row.kept != "" {
				localtest.Write(t, file, row.kept)
			}
			bearer, err := Ensure(t.Context(), env, unrecorded, row.given, File(file))
			if err == nil || bearer != "" {
				t.Fatalf("error %v", err)
			}
			for _, text := range []string{row.given.Reveal(), strings.TrimSpace(row.kept), localtest.GivenKey.Reveal()} {
				if text != "" && strings.Contains(err.Error(), text) {
					t.Error("the error tells the key")
				}
			}
			if strings.Contains(err.Error(), file) != (row.kept != "") {
				t.Errorf("the error is %v", err)
			}
			if list := localtest.Keys(t, env); len(list) != 0 {
				t.Errorf("the state has %d keys", len(list))
			}
			if row.kept != "" && string(localtest.Read(t, file)) != row.kept {
				t.Error("the file was changed")
			} else if _, err := os.Stat(file); row.kept == "" && err == nil {
				t.Error("the file was written")
			}
		})
	}
}

func TestEnsureAdminErrors(t *testing.T) {
	t.Parallel()
	env, _ := localtest.Environment(t)
	folder := t.TempDir()
	if _, err := Ensure(t.Context(), env, unrecorded, "", File(folder)); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder in place of the file: %v", err)
	}
	if list := localtest.Keys(t, env); len(list) != 0 {
		t.Errorf("a key was made that nobody can know; the state has %d", len(list))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(folder, "admin.key")
	if _, err := Ensure(ctx, env, unrecorded, "", File(file)); err == nil {
		t.Error("a key was made without the state")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file has a key that the state does not have")
	}
	// The key in the file is the key of the next start, even if the state did not store it.
	broken := errors.New("broken")
	fails := func(context.Context, func(context.Context) error) error { return broken }
	if _, err := Ensure(t.Context(), env, fails, "", File(file)); !errors.Is(err, broken) {
		t.Errorf("a change that fails: %v", err)
	}
	kept := strings.TrimSpace(string(localtest.Read(t, file)))
	if bearer := ensure(t, env, "", file); bearer.Reveal() != kept || len(localtest.Keys(t, env)) != 1 {
		t.Error("the next start has another key")
	}
}

// A first admin key is made even if the quota of its owner is used up: without it no caller could make room.
func TestEnsureAdminBeyondItsQuota(t *testing.T) {
	t.Parallel()
	env, _ := localtest.Environment(t)
	env.Quota = store.Quota{Objects: 1, Bytes: 1}
	localtest.WantAdmin(t, env, ensure(t, env, "", filepath.Join(t.TempDir(), "admin.key")), "admin")
	localtest.WantAdmin(t, env, ensure(t, env, localtest.GivenKey, filepath.Join(t.TempDir(), "admin.key")), "admin-")
}
