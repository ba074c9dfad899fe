package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The list of deprecated fields and the docstrings name the same fields. Source: Spec 9.
func TestDeprecatedIsComplete(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{}
	for kind, names := range deprecated {
		for name := range names {
			fields[kind.Name()+"."+name] = true
		}
	}
	documented := map[string]bool{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") || strings.HasPrefix(file.Name(), "zz_") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			kind, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := kind.Type.(*ast.StructType); ok {
				for _, field := range body.Fields.List {
					if strings.Contains(field.Doc.Text(), "Deprecated: ") {
						documented[kind.Name.Name+"."+field.Names[0].Name] = true
					}
				}
			}
			return true
		})
	}
	if !maps.Equal(fields, documented) || len(fields) == 0 {
		t.Errorf("listed are %v, documented %v", slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(documented)))
	}
}

func TestDeprecatedFields(t *testing.T) {
	t.Parallel()
	key := &OwnedAccessKey{Spec: OwnedAccessKeySpec{
		Parent: "a", DisplayName: "Nightly",
		Scope: &Scope{AllowPlatformCLI: true, Rules: []ScopeRule{{Verbs: []string{"get"}}}, Projects: []ScopeProject{{Project: "a"}}},
	}}
	got := slices.Sorted(maps.Keys(DeprecatedFields(key)))
	if want := []string{"spec.parent", "spec.scope.allowPlatformCli", "spec.scope.rules"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if found := DeprecatedFields(&OwnedAccessKey{Spec: OwnedAccessKeySpec{Scope: &Scope{}}}); len(found) > 0 {
		t.Errorf("found %v in a key without them", found)
	}
	if found := DeprecatedFields(&Config{Status: ConfigStatus{WorkspaceSubDomain: "*.example.com"}}); found["status.workspaceSubDomain"] == "" {
		t.Errorf("found %v in a configuration", found)
	}
}
