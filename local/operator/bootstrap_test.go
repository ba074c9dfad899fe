package operator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

// Bootstrap prints the key and nothing else. Each run adds a key.
func TestBootstrapPrints(t *testing.T) {
	env, url := localtest.Environment(t)
	seen := map[string]bool{}
	for i, given := range []secret.String{"", "", localtest.GivenKey, localtest.GivenKey} {
		command := &Bootstrap{Redis: secret.String(url), AdminKey: given}
		text := localtest.Stdout(t, func() {
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
		localtest.WantAdmin(t, env, secret.String(key), name)
		seen[key] = true
	}
	if len(seen) != 3 || len(localtest.Keys(t, env)) != 3 {
		t.Errorf("%d keys were printed, %d are there", len(seen), len(localtest.Keys(t, env)))
	}
}

// An existing key that is not an enabled admin key without a scope is refused.
func TestBootstrapRefusesAKeyOfOthers(t *testing.T) {
	for _, spec := range []model.OwnedAccessKeySpec{
		{User: "ana"},
		{User: "root", Groups: []string{identity.Admins}, Disabled: true},
		{User: "root", Groups: []string{identity.Admins}, Scope: &model.Scope{}},
	} {
		env, url := localtest.Environment(t)
		spec.Key = localtest.GivenKey.Reveal()
		if _, err := resource.Create(t.Context(), kinds.AccessKeys(env).WithFieldManager(fieldmanager.New), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: localtest.Root, Object: &model.OwnedAccessKey{Spec: spec},
		}); err != nil {
			t.Fatal(err)
		}
		var err error
		printed := localtest.Stdout(t, func() {
			err = (&Bootstrap{Redis: secret.String(url), AdminKey: localtest.GivenKey}).Run(t.Context())
		})
		if err == nil || !strings.HasPrefix(err.Error(), "--admin-key: ") || printed != "" {
			t.Errorf("%+v: %v, printed %q", spec, err, printed)
		}
	}
}

// A key that cannot be printed is lost, which is an error.
func TestBootstrapThatCannotPrint(t *testing.T) {
	_, url := localtest.Environment(t)
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	before := os.Stdout
	os.Stdout = closed
	defer func() { os.Stdout = before }()
	if err := (&Bootstrap{Redis: secret.String(url)}).Run(t.Context()); err == nil {
		t.Error("it reports success")
	}
}

// If Redis cannot be reached, every command names the flag in its error, without the secrets in the URL.
func TestRedisThatIsNotThere(t *testing.T) {
	t.Parallel()
	url := secret.String("unix://:hunter2@" + filepath.Join(t.TempDir(), "nobody.sock"))
	file := filepath.Join(t.TempDir(), "config.yaml")
	localtest.Write(t, file, "auth: {}\n")
	for about, run := range map[string]func(context.Context) error{
		"bootstrap": (&Bootstrap{Redis: url}).Run,
		"configure": (&Configure{Redis: url, File: file}).Run,
		"verify":    (&Verify{Redis: url, Path: t.TempDir()}).Run,
	} {
		if err := run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "--redis: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error is %v", about, err)
		}
	}
}
