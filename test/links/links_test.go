// Package links proves which deployments a change leaves unchanged. The program of a function contains only the code that the function runs. So
// a changed rule of one kind makes a new program for the functions of that kind, and the same bytes for other functions. Source: ADR-0010,
// ADR-0019.
package links

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/infra/lambda/bootstrap"
)

// module is the folder with the go.mod of the project.
const module = "../.."

// edits are changes to the rules of instances: the text of a rule, and a variable of the package, which is initialized even if no code uses it.
var edits = []struct{ file, old, new string }{
	{"shared/kinds/instance/validate.go", `"must have a name"`, `"needs a name of its own"`},
	{"shared/kinds/instance/table.go", `Name: "Phase"`, `Name: "Stage"`},
}

// TestBytes builds functions as for AWS Lambda before and after rules of instances change.
func TestBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it links five programs")
	}
	t.Parallel()
	folder := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "functions", "infra/lambda", "shared"} {
		if err := copyAll(filepath.Join(module, part), filepath.Join(folder, part)); err != nil {
			t.Fatal(err)
		}
	}
	unaffected := []string{"discoverapi", "publishkeys"}
	const affected = "createvirtualclusterinstance"
	before := build(t, folder, append(unaffected, affected)...)
	for _, edit := range edits {
		file := filepath.Join(folder, edit.file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.ReplaceAll(text, []byte(edit.old), []byte(edit.new))
		if bytes.Equal(changed, text) {
			t.Fatalf("%s has no %s to change", edit.file, edit.old)
		}
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := build(t, folder, append(unaffected, affected)...)
	for _, name := range unaffected {
		if before[name] != after[name] {
			t.Errorf("%s is another program after a change to the rules of instances", name)
		}
	}
	if before[affected] == after[affected] {
		t.Errorf("%s is the same program after a change to the rules of instances: this test finds nothing", affected)
	}
}

// build returns the digests of the programs of functions.
func build(t *testing.T, folder string, names ...string) map[string]string {
	t.Helper()
	digests := map[string]string{}
	for _, name := range names {
		program := filepath.Join(t.TempDir(), name)
		command := bootstrap.Command(program, "./infra/lambda/functions/"+name)
		command.Dir = folder
		command.Env = append(command.Env, "GOOS=linux", "GOARCH=amd64", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
		content, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		digests[name] = hex.EncodeToString(sum[:])
	}
	return digests
}

// copyAll copies a file, or a folder without its tests.
func copyAll(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rest)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasSuffix(path, "_test.go") || !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
