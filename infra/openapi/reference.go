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

Bodies are JSON or YAML. A method is followed by its verb and by the function that serves it, where the API is deployed. A route without
a verb is not part of the Kubernetes API. ¹ is a second path of the same resource, ² is also served at the root of the host.

| path | object | methods |
|---|---|---|
`

const objectsHead = `
## Objects

A field without a type is a string. Each kind with a route of its own, and each list, has three more fields: ` + "`apiVersion`, `kind`" + `, which
` + "`kubectl api-resources`" + ` shows, and ` + "`metadata`" + `, an [ObjectMeta](#objectmeta) or in lists a [ListMeta](#listmeta). A list has its objects in ` + "`items`" + `. Types of Kubernetes have
one sentence each; ` + "`kubectl explain`" + ` prints their fields. ` + "`spec` and `status`" + ` are described at their own type.
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
	page.WriteString("\n## Parameters\n\nParameters of the query, and of the path where they say so. One without a type is a string.\n\n")
	for _, row := range parameterRows(document.Paths) {
		page.WriteString(row)
	}
	page.WriteString("\n## Errors\n\nEvery error is a [Status](#status). `reason` is for programs, `message` for people, and `details.causes` has each field that is\nwrong. A client that gets `Retry-After` waits that long.\n\n| code | reason | header | when |\n|---|---|---|---|\n")
	for _, row := range failures {
		page.WriteString(row)
	}
	page.WriteString(objectsHead)
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(names[a], names[b]) }) {
		if isList(document.Components.Schemas[name]) {
			continue
		}
		writeObject(&page, names, name, document.Components.Schemas[name])
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
	objects, methods := map[string]string{}, map[string][]string{}
	for _, f := range functions {
		for _, e := range f.Endpoints {
			served := e.Method
			switch {
			case e.Resource.Resource == "":
			case schemaNames[e.Kind]:
				objects[e.Path] = fmt.Sprintf("[%s](#%s)", e.Kind, strings.ToLower(e.Kind))
			default:
				objects[e.Path] = e.Kind
			}
			if e.Resource.Resource != "" {
				served += " " + e.Verb
			}
			if e.IsAlias {
				served += "¹"
			}
			if e.Root {
				served += "²"
			}
			methods[e.Path] = append(methods[e.Path], fmt.Sprintf("%s `%s`", served, f.Name))
		}
	}
	var rows []string
	for _, path := range slices.Sorted(maps.Keys(methods)) {
		slices.Sort(methods[path])
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", path, objects[path], strings.Join(methods[path], ", ")))
	}
	return rows
}

func parameterRows(paths *spec3.Paths) []string {
	rows := map[string]bool{}
	add := func(parameters []*spec3.Parameter) {
		for _, p := range parameters {
			var facts []string
			if p.Schema != nil && !slices.Equal(p.Schema.Type, []string{"string"}) {
				facts = append(facts, strings.Join(p.Schema.Type, " or "))
			}
			if p.In != "query" {
				facts = append(facts, "in the "+p.In)
			}
			meaning := p.Description
			if p.In == "path" && p.Name == "name" {
				// The path tells which kind of object it is.
				meaning = "Name of the object."
			}
			rows[item(p.Name, facts, cell(meaning))] = true
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

// item returns the line of a field or parameter.
func item(name string, facts []string, meaning string) string {
	line := "- `" + name + "`"
	if len(facts) > 0 {
		line += " (" + strings.Join(facts, ", ") + ")"
	}
	if meaning != "" {
		line += ": " + meaning
	}
	return line + "\n"
}

// isKind reports whether a schema has the three fields that objects with a route, and lists, have in common.
func isKind(schema *spec.Schema) bool {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if _, is := schema.Properties[name]; !is {
			return false
		}
	}
	return true
}

// isList reports whether a schema has the objects of a list, and nothing else.
func isList(schema *spec.Schema) bool {
	_, items := schema.Properties["items"]
	return items && isKind(schema) && len(schema.Properties) == 4
}

// ofKubernetes reports whether the name of a schema is one of Kubernetes.
func ofKubernetes(name string) bool { return strings.HasPrefix(name, "io.k8s.") }

var (
	firstSentence = regexp.MustCompile(`^.*?\.(?:$| [A-Z0-9])`)
	standard      = regexp.MustCompile(`^metadata is standard (?:object|list) metadata\. ?`)
)

// meaningOf returns the description of a field, or of the object itself, without the name that stands before it: "ttl is the lifetime" says
// "The lifetime". Of a description of Kubernetes it returns the first sentence.
func meaningOf(name, description string, inKubernetes bool) string {
	text := strings.Join(strings.Fields(description), " ")
	if inKubernetes {
		if first := firstSentence.FindString(text); first != "" {
			text = first[:strings.LastIndex(first, ".")+1]
		}
	}
	first, rest, _ := strings.Cut(text, " ")
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if !strings.EqualFold(first, name) || rest == "" {
		return cell(text)
	}
	return cell(strings.ToUpper(rest[:1]) + rest[1:])
}

func writeObject(page *strings.Builder, names map[string]string, schemaName string, schema *spec.Schema) {
	heading, foreign := names[schemaName], ofKubernetes(schemaName)
	fmt.Fprintf(page, "\n### %s\n\n%s\n", heading, meaningOf(heading, schema.Description, foreign))
	if foreign {
		return
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		meaning := meaningOf(name, property.Description, false)
		if isKind(schema) {
			switch name {
			case "apiVersion", "kind":
				continue
			case "metadata":
				if meaning = standard.ReplaceAllString(strings.Join(strings.Fields(property.Description), " "), ""); meaning == "" {
					continue
				}
			case "spec", "status":
				if reference := refOf(&property); reference != "" {
					meaning = ""
				}
			}
		}
		var facts []string
		if kind := typeOf(names, &property); kind != "string" {
			facts = append(facts, kind)
		}
		if slices.Contains(schema.Required, name) {
			facts = append(facts, "required")
		}
		items = append(items, item(name, facts, meaning))
	}
	if len(items) > 0 {
		page.WriteString("\n" + strings.Join(items, ""))
	}
}

// refOf returns the schema that a field refers to, if it refers to one.
func refOf(schema *spec.Schema) string {
	if len(schema.AllOf) == 1 {
		return refOf(&schema.AllOf[0])
	}
	return schema.Ref.String()
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
