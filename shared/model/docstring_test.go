package model_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The docstrings are the source of `kubectl explain`, so each type and field has a docstring: a sentence that begins with
// its name. The docstring of a type also names its source.
func TestEveryTypeAndFieldHasADocstring(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var seen int
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				if declaration.Name.IsExported() {
					checkDocstring(t, files, declaration.Pos(), declaration.Doc, declaration.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					seen += checkSpec(t, files, declaration, spec)
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("looked at %d types and fields only", seen)
	}
}

func checkSpec(t *testing.T, files *token.FileSet, declaration *ast.GenDecl, spec ast.Spec) int {
	t.Helper()
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		doc := spec.Doc
		if doc == nil {
			doc = declaration.Doc
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				checkDocstring(t, files, spec.Pos(), doc, name.Name)
			}
		}
		return 0
	case *ast.TypeSpec:
		checkDocstring(t, files, spec.Pos(), declaration.Doc, spec.Name.Name)
		if !strings.Contains(declaration.Doc.Text(), "Source: ") {
			t.Errorf("%s: %s does not say its source", files.Position(spec.Pos()), spec.Name.Name)
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return 1
		}
		for _, field := range structure.Fields.List {
			var tag string
			if field.Tag != nil {
				tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			}
			switch {
			case len(field.Names) > 0:
				checkDocstring(t, files, field.Pos(), field.Doc, field.Names[0].Name)
			case !strings.Contains(tag, "inline"):
				checkDocstring(t, files, field.Pos(), field.Doc, "Metadata")
			}
		}
		return 1 + len(structure.Fields.List)
	default:
		return 0
	}
}

func checkDocstring(t *testing.T, files *token.FileSet, position token.Pos, doc *ast.CommentGroup, name string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, ""))
	if !strings.HasPrefix(text, name+" ") || !strings.HasSuffix(text, ".") {
		t.Errorf("%s: the docstring of %s is no sentence that begins with its name: %q", files.Position(position), name, text)
	}
}
