// Package localtest has helpers that the tests of several packages below local share: an environment with its own state,
// files, and captured output.
package localtest

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// GivenKey and OtherKey are admin keys that a test passes in.
const (
	GivenKey = secret.String("given-key-8Kx20wQm57ZtLp93VrNc4Hd6")
	OtherKey = secret.String("other-key-8Kx20wQm57ZtLp93VrNc4Hd6")
)

// Root is the identity of the admin key.
var Root = identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})

// Environment returns an environment with its own state, and the URL of that state.
func Environment(t *testing.T) (*platform.Environment, string) {
	t.Helper()
	url := redistest.Embedded(t)
	client := redistest.Open(t, url)
	return process.New(settings.Settings{Version: "test"}, process.World{Stores: client.Resource, Log: slog.New(slog.DiscardHandler)}).Env, url
}

// Keys returns the access keys of a state.
func Keys(t *testing.T, env *platform.Environment) []model.OwnedAccessKey {
	t.Helper()
	list, err := resource.List(t.Context(), kinds.AccessKeys(env), resource.ListInput{Caller: Root})
	if err != nil {
		t.Fatal(err)
	}
	return list.(*model.OwnedAccessKeyList).Items
}

// WantAdmin fails the test unless a key is an admin key whose object has that name.
func WantAdmin(t *testing.T, env *platform.Environment, bearer secret.String, name string) {
	t.Helper()
	caller, err := accesskey.OpenAuthenticator(env).Bearer(t.Context(), bearer)
	if err != nil {
		t.Errorf("the key is refused: %v", err)
		return
	}
	if caller.Owner != Root.Owner || !caller.Admin() || caller.Scope != nil {
		t.Errorf("the key is of %v", caller)
	}
	if rest, ok := strings.CutPrefix(caller.Key, name); !ok || strings.HasSuffix(name, "-") != (rest != "") {
		t.Errorf("the key's object is %q", caller.Key)
	}
}

// Stdout returns the standard output of do. Tests that use it cannot be parallel.
func Stdout(t *testing.T, do func()) string {
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

// Read returns the content of a file. A file that cannot be read ends the test.
func Read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Write writes a file that only its owner can read. A failure ends the test.
func Write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WantPrivate fails the test if other users can read a file.
func WantPrivate(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode(); mode != 0o600 {
		t.Errorf("the mode of %s is %v", filepath.Base(file), mode)
	}
}

// Names returns the names of the entries in a folder.
func Names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, each := range entries {
		list = append(list, each.Name())
	}
	return list
}

// Folder makes a folder with files.
func Folder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		Write(t, file, text)
	}
	return folder
}
