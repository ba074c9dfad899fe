package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
)

// referencePage is the document for readers with the content of the API's documents for programs.
const referencePage = "docs/reference.md"

const referenceHead = `<!-- make gen writes this page. -->
# API reference

Every route, parameter, error and field of the API, from its own description and from the catalog of functions. All paths are below
` + "`%s`" + `. [limits.md](limits.md) has every limit, [conformance.md](conformance.md) where the API differs from Kubernetes.

## Routes

Bodies are JSON or YAML. A route without a verb is not part of the Kubernetes API. The function is what serves the route, where the API
is deployed.

| method and path | verb | object | function |
|---|---|---|---|
`

// reference returns the page. root is the top of the repository, and v3 is the OpenAPI document.
func reference(root string, v3 []byte, functions []*frame.Function) ([]byte, error) {
	var document spec3.OpenAPI
	if err := json.Unmarshal(v3, &document); err != nil {
		return nil, fmt.Errorf("reading OpenAPI v3 back: %w", err)
	}
	names, err := headings(document.Components.Schemas)
	if err != nil {
		return nil, err
	}
	failures, err := failureRows(filepath.Join(root, "shared", "model", "apierror", "apierror.go"))
	if err != nil {
		return nil, err
	}
	var page strings.Builder
	fmt.Fprintf(&page, referenceHead, frame.BasePath)
	for _, row := range routeRows(functions, names) {
		page.WriteString(row)
	}
	page.WriteString("\n## Parameters\n\n| parameter | in | type | meaning |\n|---|---|---|---|\n")
	for _, row := range parameterRows(document.Paths) {
		page.WriteString(row)
	}
	page.WriteString("\n## Errors\n\nEvery error is a [Status](#status). `reason` is for programs, `message` for people, and `details.causes` has each field that is\nwrong. A client that gets `Retry-After` waits that long.\n\n| code | reason | header | when |\n|---|---|---|---|\n")
	for _, row := range failures {
		page.WriteString(row)
	}
	page.WriteString("\n## Objects\n")
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(names[a], names[b]) }) {
		writeObject(&page, names, names[name], document.Components.Schemas[name])
	}
	return []byte(page.String()), nil
}

// headings are the short names of the schemas. Each one is unique in the page.
func headings(schemas map[string]*spec.Schema) (map[string]string, error) {
	headingOf, taken := map[string]string{}, map[string]string{"objects": "", "errors": "", "routes": "", "parameters": ""}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		short := name[strings.LastIndex(name, ".")+1:]
		if other, is := taken[strings.ToLower(short)]; is {
			return nil, fmt.Errorf("the page would have two headings %s: %s and %s", short, name, other)
		}
		taken[strings.ToLower(short)], headingOf[name] = name, short
	}
	return headingOf, nil
}

// cell makes a text fit into a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}

func routeRows(functions []*frame.Function, names map[string]string) []string {
	schemaNames := map[string]bool{}
	for _, short := range names {
		schemaNames[short] = true
	}
	var rows []string
	for _, f := range functions {
		for _, e := range f.Endpoints {
			object := e.Kind
			if e.Lists || e.Verb == "list" {
				object += "List"
			}
			switch {
			case e.Resource.Resource == "":
				object = ""
			case schemaNames[object]:
				object = fmt.Sprintf("[%s](#%s)", object, strings.ToLower(object))
			}
			verb := ""
			if e.Resource.Resource != "" {
				verb = e.Verb
			}
			path := e.Path
			if e.IsAlias {
				verb += " (second path)"
			}
			if e.Root {
				object += " also at the root of the host"
			}
			// The path comes first, so that rows of one path stand together.
			rows = append(rows, fmt.Sprintf("%s\x00| `%s %s` | %s | %s | `%s` |\n", path, e.Method, path, verb, strings.TrimSpace(object), f.Name))
		}
	}
	slices.Sort(rows)
	for i, row := range rows {
		_, rows[i], _ = strings.Cut(row, "\x00")
	}
	return rows
}

func parameterRows(paths *spec3.Paths) []string {
	rows := map[string]bool{}
	add := func(parameters []*spec3.Parameter) {
		for _, p := range parameters {
			kind := ""
			if p.Schema != nil {
				kind = strings.Join(p.Schema.Type, " or ")
			}
			meaning := p.Description
			if p.In == "path" && p.Name == "name" {
				// The path tells which kind of object it is.
				meaning = "Name of the object."
			}
			rows[fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.Name, p.In, kind, cell(meaning))] = true
		}
	}
	for _, path := range paths.Paths {
		add(path.Parameters)
		for _, operation := range []*spec3.Operation{path.Get, path.Put, path.Post, path.Delete, path.Patch} {
			if operation != nil {
				add(operation.Parameters)
			}
		}
	}
	return slices.Sorted(maps.Keys(rows))
}

var answersWith = regexp.MustCompile(`^\w+ answers (\d{3})( with Retry-After)?: (.*?\.)(?: |$)`)

// failureRows reads the errors from the comments of their constructors, and the reasons from their bodies.
func failureRows(file string) ([]string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading the errors: %w", err)
	}
	var rows []string
	reasons := map[string]string{}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Body != nil {
			reasons[f.Name.Name] = reasonIn(f.Body, reasons)
		}
		if !ok || f.Recv != nil || !f.Name.IsExported() {
			continue
		}
		comment := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if !strings.HasPrefix(comment, f.Name.Name+" answers ") {
			continue
		}
		said := answersWith.FindStringSubmatch(comment)
		if said == nil || reasons[f.Name.Name] == "" {
			return nil, fmt.Errorf("%s: the comment must be \"%[1]s answers CODE[ with Retry-After]: when.\", and the body must have the reason", f.Name.Name)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", said[1], reasons[f.Name.Name], strings.TrimPrefix(said[2], " with "), cell(strings.ToUpper(said[3][:1])+said[3][1:])))
	}
	slices.Sort(rows)
	return rows, nil
}

// reasonIn returns the reason of a Status in the body of a constructor: the constant, or the reason of the constructor
// that it calls, from Kubernetes or from this file.
func reasonIn(body *ast.BlockStmt, above map[string]string) string {
	reason := ""
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && reason == "" {
			if name, ok := call.Fun.(*ast.Ident); ok {
				reason = above[name.Name]
			}
		}
		selected, ok := n.(*ast.SelectorExpr)
		if !ok || reason != "" {
			return reason == ""
		}
		qualifier, _ := selected.X.(*ast.Ident)
		if qualifier == nil {
			return true
		}
		if name, found := strings.CutPrefix(selected.Sel.Name, "StatusReason"); found && qualifier.Name == "metav1" {
			reason = name
		} else if name, found := strings.CutPrefix(selected.Sel.Name, "New"); found && qualifier.Name == "apierrors" {
			reason = strings.TrimPrefix(strings.TrimSuffix(name, "Error"), "Resource")
		}
		return true
	})
	return reason
}

func writeObject(page *strings.Builder, names map[string]string, heading string, schema *spec.Schema) {
	fmt.Fprintf(page, "\n### %s\n\n%s\n", heading, cell(schema.Description))
	if len(schema.Properties) == 0 {
		return
	}
	page.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		kind := typeOf(names, &property)
		if slices.Contains(schema.Required, name) {
			kind += ", required"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", name, kind, cell(property.Description))
	}
}

// typeOf describes the type of a field, with a link to the object.
func typeOf(names map[string]string, schema *spec.Schema) string {
	link := func(ref string) string {
		short := names[ref[strings.LastIndex(ref, "/")+1:]]
		return fmt.Sprintf("[%s](#%s)", short, strings.ToLower(short))
	}
	switch {
	case schema.Ref.String() != "":
		return link(schema.Ref.String())
	case len(schema.AllOf) == 1:
		return typeOf(names, &schema.AllOf[0])
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeOf(names, schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(names, schema.AdditionalProperties.Schema)
	case len(schema.Enum) > 0:
		var values []string
		for _, value := range schema.Enum {
			values = append(values, fmt.Sprintf("`%v`", value))
		}
		return strings.Join(values, " or ")
	case schema.Format != "":
		return strings.Join(schema.Type, " or ") + " (" + schema.Format + ")"
	default:
		return cmp.Or(strings.Join(schema.Type, " or "), "any value")
	}
}

// writeReference writes the page into the repository.
func writeReference(root string) error {
	files, err := documents(resources)
	if err != nil {
		return err
	}
	page, err := reference(root, files[v3Name], catalog.Functions)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, referencePage), page, 0o644); err != nil {
		return fmt.Errorf("writing the reference: %w", err)
	}
	return nil
}
