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
	"management.platform.sh/shared/model"
)

// referencePage is the document for readers with the content of the API's documents for programs.
const referencePage = "docs/reference.md"

const referenceHead = `<!-- make gen writes this page. -->
# API reference

Every route, parameter, error and field of the API, except fields that are only stored, from its own description and from the
catalog of functions. All paths are below ` + "`%s`" + `. [limits.md](limits.md) has every limit, [conformance.md](conformance.md) where the API differs from Kubernetes.

## Routes

Bodies are JSON or YAML. A method is followed by its verb and by the function that serves it, where the API is deployed. A route without
a verb is not part of the Kubernetes API. ¹ is also served at the root of the host. Second paths are left out: ` + "`config`" + ` in
place of ` + "`configs`, and a list below `v1/watch/`" + `, which is the watch of that list.

| path | object | methods |
|---|---|---|
`

const objectsHead = `
## Objects

A field without a type is a string. Each kind with a route of its own, and each list, has three more fields: ` + "`apiVersion`, `kind`" + `, which
` + "`kubectl api-resources`" + ` shows, and ` + "`metadata`" + `. A list has its objects in ` + "`items`" + `. A type without a link is one of Kubernetes: ` + "`kubectl explain`" + `
prints its fields. ` + "`spec` and `status`" + ` are described at their own type. Where an object has no sentence, the field that leads to it describes it.
Fields of the configuration that are [only stored](configuration.md#what-is-only-stored) are left out.

### Fields of several objects

`

// commonFrom and commonWords say which fields are described once: those that this many objects have in the same words, and not in fewer words.
const commonFrom, commonWords = 4, 12

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
	described := describedSchemas(document.Components.Schemas)
	maps.DeleteFunc(names, func(name, _ string) bool { return !described[name] })
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
	page.WriteString("\n## Errors\n\nEvery error is a `Status` of Kubernetes. `reason` is for programs, `message` for people, and `details.causes` has each field that is\nwrong. A client that gets `Retry-After` waits that long. Each sentence in the last column is a case of its own.\n\n| code | reason | header | when |\n|---|---|---|---|\n")
	for _, row := range failures {
		page.WriteString(row)
	}
	page.WriteString(objectsHead)
	for _, text := range objects(names, document.Components.Schemas) {
		page.WriteString(text)
	}
	return []byte(page.String()), nil
}

// describedSchemas returns the platform's objects that have a section. An object that only stored blocks of the configuration lead to has none.
func describedSchemas(schemas map[string]*spec.Schema) map[string]bool {
	storedBlocks := model.StoredBlocks()
	isStored := func(name, field string) bool {
		return strings.HasSuffix(name, ".ConfigStatus") && slices.Contains(storedBlocks, field)
	}
	below := map[string]bool{}
	var collect func(name string, into map[string]bool)
	collect = func(name string, into map[string]bool) {
		if schemas[name] == nil || into[name] {
			return
		}
		into[name] = true
		for field, property := range schemas[name].Properties {
			if !isStored(name, field) {
				collect(objectOf(&property), into)
			}
		}
	}
	for name, schema := range schemas {
		for field, property := range schema.Properties {
			if isStored(name, field) {
				collect(objectOf(&property), below)
			}
		}
	}
	described := map[string]bool{}
	for name := range schemas {
		if !below[name] {
			collect(name, described)
		}
	}
	maps.DeleteFunc(described, func(name string, _ bool) bool { return ofKubernetes(name) })
	return described
}

// objects returns the fields of several objects, and the sections of the objects.
func objects(names map[string]string, schemas map[string]*spec.Schema) []string {
	own := slices.DeleteFunc(slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(names[a], names[b]) }), func(name string) bool {
		return isList(schemas[name])
	})
	itemsOf, count, told := map[string][]fieldItem{}, map[string]int{}, map[string]bool{}
	for _, name := range own {
		itemsOf[name] = fieldItems(names, schemas[name])
		for _, field := range itemsOf[name] {
			count[field.text]++
			told[field.object+" "+field.meaning] = true
		}
	}
	isCommon := func(field fieldItem) bool {
		return count[field.text] >= commonFrom && len(strings.Fields(field.text)) >= commonWords
	}
	common := map[string]bool{}
	var sections []string
	for _, name := range own {
		var section strings.Builder
		fmt.Fprintf(&section, "\n### %s\n", names[name])
		if meaning := meaningOf(names[name], schemas[name].Description); !told[name+" "+meaning] {
			section.WriteString("\n" + meaning + "\n")
		}
		if len(itemsOf[name]) > 0 {
			section.WriteString("\n")
		}
		for _, field := range itemsOf[name] {
			if isCommon(field) {
				common[field.text] = true
				fmt.Fprintf(&section, "- [`%s`](#fields-of-several-objects)\n", field.name)
			} else {
				section.WriteString(field.text)
			}
		}
		sections = append(sections, section.String())
	}
	return append(slices.Sorted(maps.Keys(common)), sections...)
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

// isSecondPath reports whether a route has a second path that the page names in a sentence.
func isSecondPath(e frame.Endpoint) bool {
	return e.IsAlias && (strings.Contains(e.Path, "/v1/watch/") || strings.Contains(e.Path+"/", "/v1/config/"))
}

func routeRows(functions []*frame.Function, names map[string]string) []string {
	schemaNames := map[string]bool{}
	for _, short := range names {
		schemaNames[short] = true
	}
	objects, methods := map[string]string{}, map[string][]string{}
	for _, f := range functions {
		for _, e := range f.Endpoints {
			if isSecondPath(e) {
				continue
			}
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
			if e.Root {
				served += "¹"
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

// failureRows reads the errors from the comments of their constructors, and the reasons from their bodies. Errors that differ in their meaning
// alone have one row.
func failureRows(file string) ([]string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading the errors: %w", err)
	}
	meanings, reasons := map[string][]string{}, map[string]string{}
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
		begin := fmt.Sprintf("| %s | %s | %s | ", said[1], reasons[f.Name.Name], strings.TrimPrefix(said[2], " with "))
		meanings[begin] = append(meanings[begin], cell(strings.ToUpper(said[3][:1])+said[3][1:]))
	}
	var rows []string
	for _, begin := range slices.Sorted(maps.Keys(meanings)) {
		rows = append(rows, begin+strings.Join(slices.Sorted(slices.Values(meanings[begin])), " ")+" |\n")
	}
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

var standard = regexp.MustCompile(`^metadata is standard (?:object|list) metadata\. ?`)

// meaningOf returns the description of a field, or of the object itself, without the name that stands before it: "ttl is the lifetime" says
// "The lifetime".
func meaningOf(name, description string) string {
	text := strings.Join(strings.Fields(description), " ")
	first, rest, _ := strings.Cut(text, " ")
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if !strings.EqualFold(first, name) || rest == "" {
		return cell(text)
	}
	return cell(strings.ToUpper(rest[:1]) + rest[1:])
}

// fieldItem is a field of an object, with its line on the page and the name of the schema that it refers to, if any.
type fieldItem struct{ name, object, meaning, text string }

// fieldItems returns the fields of an object that its section has.
func fieldItems(names map[string]string, schema *spec.Schema) []fieldItem {
	var items []fieldItem
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		meaning := meaningOf(name, property.Description)
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
		object := objectOf(&property)
		items = append(items, fieldItem{name, object, meaning, item(name, facts, meaning)})
	}
	return items
}

// objectOf returns the name of the schema that a field, or its elements, refer to.
func objectOf(schema *spec.Schema) string {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return objectOf(schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return objectOf(schema.AdditionalProperties.Schema)
	}
	reference := refOf(schema)
	return reference[strings.LastIndex(reference, "/")+1:]
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
		name := ref[strings.LastIndex(ref, "/")+1:]
		short, has := names[name]
		if !has {
			return name[strings.LastIndex(name, ".")+1:]
		}
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
