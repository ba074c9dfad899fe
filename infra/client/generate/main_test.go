package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// The files of the repository are what the generator makes of the model. They import apimachinery alone, and cite no specification.
func TestGenerate(t *testing.T) {
	t.Parallel()
	texts, err := generate(filepath.Join(root, source))
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) != 3 {
		t.Fatalf("there are %d files", len(texts))
	}
	cites := regexp.MustCompile(`Source:|ADR-|Spec \d|"\*\*\*"`)
	for name, text := range texts {
		if kept, err := os.ReadFile(filepath.Join(root, target, name)); err != nil || string(kept) != string(text) {
			t.Errorf("%s is not what the model says, %v: run make gen", name, err)
		}
		if found := cites.Find(text); found != nil {
			t.Errorf("%s: %q", name, found)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); !strings.HasPrefix(path, "k8s.io/apimachinery/") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// Of each declaration clients get what requests and responses need.
func TestGenerateLeavesOut(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("package model\n\nimport \"management.platform.sh/shared/model/secret\"\n\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`// Key is a key. Source: Spec 1.
//
// +k8s:deepcopy-gen=true
type Key struct {
	// Text is the key,
	// a secret. Source: Spec
	// 2; ADR-0001.
	// +optional
	// +listType=atomic
	Text []secret.String ` + "`json:\"text,omitempty\" sentTo:\"url\"`" + `
}

// Behaviour is behaviour.
func Behaviour() {}

// Named is a method.
func (k Key) Named() {}

type hidden struct{}

// LastAppliedAnnotation is for the server.
const LastAppliedAnnotation = "a"
`)
	texts, err := generate(folder)
	if err != nil {
		t.Fatal(err)
	}
	const want = `// Key is a key.
type Key struct {
	// Text is the key, a secret.
	// +optional
	// +listType=atomic
	Text []string ` + "`json:\"text,omitempty\"`" + `
}

// Named is a method.
func (k Key) Named() {}
`
	if text := string(texts["zz_generated.types.go"]); !strings.HasSuffix(text, "import ()\n\n"+want) {
		t.Errorf("%s", text)
	}
	write("type Key struct {\n\tText secret.Unknown\n}\n")
	if _, err := generate(folder); err == nil {
		t.Error("a type that clients do not have is generated")
	}
}
