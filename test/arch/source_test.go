package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// uncommented finds packages without exactly one package comment that begins as godoc requires, and written comments that
// two packages share.
func uncommented(rooms []*room) []string {
	var findings []string
	said := map[string]string{}
	for _, r := range rooms {
		var places []string
		for _, f := range r.files {
			if f.tree.Doc == nil {
				continue
			}
			places = append(places, f.path)
			begin := "Package " + f.tree.Name.Name + " "
			if f.tree.Name.Name == "main" {
				begin = "Command " + path.Base(r.path) + " "
			}
			rest, ok := strings.CutPrefix(f.tree.Doc.Text(), begin)
			if !ok {
				findings = append(findings, fmt.Sprintf("%s: the package comment does not begin with %q", f.path, begin))
				continue
			}
			first, _, _ := strings.Cut(rest, ". ")
			if other := said[first]; other != "" && !f.generated {
				findings = append(findings, fmt.Sprintf("%s: the package comment is that of %s", f.path, other))
			}
			said[first] = f.path
		}
		if len(places) != 1 {
			findings = append(findings, fmt.Sprintf("%s has %d package comments, not one: %q", r.path, len(places), places))
		}
	}
	return findings
}

// published reports whether a room is code whose godoc others read.
func published(r *room) bool {
	return strings.HasPrefix(r.path, "functions/") || strings.HasPrefix(r.path, "shared/")
}

// miscommented finds comments of exported identifiers that do not begin with their names. An identifier whose form says everything has
// no comment.
func miscommented(rooms []*room) []string {
	var findings []string
	for _, r := range rooms {
		if !published(r) {
			continue
		}
		for _, f := range r.files {
			if f.test || f.generated {
				continue
			}
			check := func(name string, doc *ast.CommentGroup) {
				text := doc.Text()
				first := word.FindStringSubmatch(text)
				if ast.IsExported(name) && text != "" && (first == nil || first[1] != name) {
					findings = append(findings, fmt.Sprintf("%s: the comment of %s does not begin with its name: %.40q", f.path, name, text))
				}
			}
			for _, d := range f.tree.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil || ast.IsExported(receiver(d)) {
						check(d.Name.Name, d.Doc)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						switch spec := spec.(type) {
						case *ast.TypeSpec:
							check(spec.Name.Name, either(spec.Doc, d.Doc))
						case *ast.ValueSpec:
							if d.Lparen.IsValid() && spec.Doc == nil && (d.Doc != nil || spec.Comment != nil) {
								continue
							}
							check(spec.Names[0].Name, either(spec.Doc, d.Doc))
						}
					}
				}
			}
		}
	}
	return findings
}

func either(first, second *ast.CommentGroup) *ast.CommentGroup {
	if first != nil {
		return first
	}
	return second
}

// receiver returns the type of a method.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// calls names the packages that use settings and the clock directly. Functions get these only from their environment.
// Test support is exempt. The store records when events were written, which only decides about their trimming.
const calls = `
os.Environ:
os.ExpandEnv:
os.Getenv: shared/audit/postgressink/postgrestest shared/syncpatch/worker
os.LookupEnv:
os.Setenv:
time.Now: shared/audit shared/audit/filesink shared/audit/postgressink/... shared/audit/redissink shared/api/fairness shared/api/frame shared/process shared/state/redisstore shared/syncpatch/expression shared/syncpatch/worker
time.Since: shared/audit/filesink shared/audit/postgressink shared/api/fairness shared/api/frame shared/state/redisstore shared/syncpatch/expression
time.Until: shared/audit
`

// compilers names the package that compiles regular expressions: at their first use, so that this is not part of a start.
const compilers = `
regexp.MustCompile: shared/model/lazyregexp
`

// grasped finds uses of what is in the table, in functions and shared, by packages that the table does not name. Instead says what
// to do.
func grasped(rooms []*room, table []line, instead string) []string {
	var findings []string
	for _, r := range rooms {
		if !published(r) || support(r.path) {
			continue
		}
		for _, f := range r.files {
			if f.test {
				continue
			}
			ast.Inspect(f.tree, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := selector.X.(*ast.Ident)
				if !ok {
					return true
				}
				name := of.Name + "." + selector.Sel.Name
				i := slices.IndexFunc(table, func(l line) bool { return l.name == name })
				if i >= 0 && !matchesAny(table[i].patterns, r.path) {
					findings = append(findings, fmt.Sprintf("%s uses %s: %s", f.path, name, instead))
				}
				return true
			})
		}
	}
	return findings
}

// inlined finds functions that the compiler may inline although they open a registry: those that call platform.Single, and
// those of the kinds that take an environment. A package into which one is inlined compiles the verbs of its kinds once more
// (ADR-0019).
func inlined(rooms []*room) []string {
	var findings []string
	for _, r := range rooms {
		if !published(r) || support(r.path) {
			continue
		}
		for _, f := range r.files {
			for _, d := range f.tree.Decls {
				opener, ok := d.(*ast.FuncDecl)
				if !ok || f.test || !opens(r, opener) || directed(opener, "//go:noinline") {
					continue
				}
				findings = append(findings, fmt.Sprintf("%s: %s may be inlined: add //go:noinline", f.path, opener.Name.Name))
			}
		}
	}
	return findings
}

// opens reports whether a function returns something that an environment has once.
func opens(r *room, f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Body == nil {
		return false
	}
	if matches("shared/kinds/...", r.path) && f.Name.IsExported() &&
		len(f.Type.Params.List) == 1 && selected(f.Type.Params.List[0].Type) == "platform.Environment" {
		return true
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && selected(call.Fun) == "platform.Single" {
			found = true
		}
		return !found
	})
	return found
}

// selected is the text of package.Name, or of a pointer to it. Empty for everything else.
func selected(e ast.Expr) string {
	if pointer, ok := e.(*ast.StarExpr); ok {
		e = pointer.X
	}
	if selector, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := selector.X.(*ast.Ident); ok {
			return of.Name + "." + selector.Sel.Name
		}
	}
	return ""
}

// directed reports whether a function has a directive for the compiler.
func directed(f *ast.FuncDecl, directive string) bool {
	return f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == directive })
}

// vocabulary are the exported words of an operation. An operation that lists may be watched.
var vocabulary = []string{"Deps", "Input", "Output", "Do", "WatchInput", "Watch", "ListInput", "Function"}

// misnamed finds operations that do not consist of the usual words. An operation that is only a verb of a stored resource is
// `var Function = crud.Update("updateuser", ...)` and exports nothing else. All others have Deps, Function and Do, and Input if they serve
// requests. An operation with several endpoints has a function for each in place of Do.
func misnamed(rooms []*room) []string {
	var findings []string
	for _, r := range rooms {
		name, below := strings.CutPrefix(r.path, "functions/")
		if !below || name == "catalog" {
			continue
		}
		say := func(format string, args ...any) {
			findings = append(findings, r.path+": "+fmt.Sprintf(format, args...))
		}
		if strings.Contains(name, "/") {
			say("an operation has no packages below it")
			continue
		}
		words, questions, more := map[string]ast.Node{}, []string{}, []string{}
		for _, f := range r.files {
			if f.test {
				continue
			}
			if f.tree.Name.Name != name {
				say("the package is called %s", f.tree.Name.Name)
			}
			for word, node := range exported(f.tree) {
				words[word] = node
				do, isFunc := node.(*ast.FuncDecl)
				if isFunc && !plain(do) {
					say("%s is not func(context.Context, Deps, Input) (..., error)", word)
				}
				switch {
				case slices.Contains(vocabulary, word):
				case isFunc && do.Recv == nil:
					questions = append(questions, word)
				default:
					more = append(more, word)
				}
			}
		}
		slices.Sort(more)
		slices.Sort(questions)
		for _, word := range more {
			say("exports %s; the words of an operation are %q", word, vocabulary)
		}
		if called, isVerb := verbName(words["Function"]); isVerb {
			delete(words, "Function")
			if called != name {
				say("the name of Function is %q", called)
			}
			for _, word := range slices.Sorted(maps.Keys(words)) {
				say("exports %s, and Function is a verb of package crud", word)
			}
			continue
		}
		fields := literal(words["Function"])
		switch value, ok := fields["Name"].(*ast.BasicLit); {
		case fields == nil:
			say("there is no Function")
		case !ok || value.Value != `"`+name+`"`:
			say("the Name of Function is not %q", name)
		}
		if words["Deps"] == nil {
			say("there is no Deps")
		}
		if fields["Endpoints"] != nil && words["Input"] == nil {
			say("there is no Input, and it serves requests")
		}
		if several := len(questions) > 1; several == (words["Do"] != nil) || len(questions) == 1 {
			say("it needs Do, or else a function for each of several questions; it has %q", questions)
		}
	}
	return findings
}

// exported are the exported identifiers at the top of a file, with what they stand for.
func exported(f *ast.File) map[string]ast.Node {
	found := map[string]ast.Node{}
	add := func(name string, node ast.Node) {
		if ast.IsExported(name) {
			found[name] = node
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name.Name, d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name, spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name, spec)
					}
				}
			}
		}
	}
	return found
}

// plain reports whether a function takes a context, Deps and at most Input, and returns something and an error.
func plain(f *ast.FuncDecl) bool {
	var takes, returns []string
	for _, list := range []struct {
		fields *ast.FieldList
		into   *[]string
	}{{f.Type.Params, &takes}, {f.Type.Results, &returns}} {
		if list.fields == nil {
			return false
		}
		for _, field := range list.fields.List {
			text := "other"
			switch of := field.Type.(type) {
			case *ast.Ident:
				text = of.Name
			case *ast.SelectorExpr:
				text = of.Sel.Name
			}
			for range max(1, len(field.Names)) {
				*list.into = append(*list.into, text)
			}
		}
	}
	want := []string{"Context", "Deps", "Input"}
	if name := f.Name.Name; name == "Watch" || name == "List" {
		want[2] = name + "Input"
	}
	return f.Recv == nil && len(takes) > 1 && len(takes) < 4 && slices.Equal(takes, want[:len(takes)]) &&
		len(returns) == 2 && returns[1] == "error"
}

// verbName returns the name of a function that is made by package crud: the first argument of the innermost call.
func verbName(node ast.Node) (name string, isVerb bool) {
	spec, ok := node.(*ast.ValueSpec)
	if !ok || len(spec.Values) != 1 {
		return "", false
	}
	value := spec.Values[0]
	for {
		call, ok := value.(*ast.CallExpr)
		if !ok || !strings.HasPrefix(selected(call.Fun), "crud.") || len(call.Args) == 0 {
			break
		}
		value, isVerb = call.Args[0], true
	}
	if text, ok := value.(*ast.BasicLit); ok && isVerb {
		return strings.Trim(text.Value, `"`), true
	}
	return "", isVerb
}

// literal are the fields of var Function = &frame.Function{...}.
func literal(node ast.Node) map[string]ast.Expr {
	spec, ok := node.(*ast.ValueSpec)
	if !ok || len(spec.Values) != 1 {
		return nil
	}
	address, ok := spec.Values[0].(*ast.UnaryExpr)
	if !ok || address.Op != token.AND {
		return nil
	}
	value, ok := address.X.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	fields := map[string]ast.Expr{}
	for _, element := range value.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = pair.Value
			}
		}
	}
	return fields
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	report(t, uncommented(all(t)))
}

func TestPackageCommentsFinds(t *testing.T) {
	t.Parallel()
	expect(t, uncommented(plant(t, map[string]string{
		"local/main.go":      "// Package main is wrong.\npackage main",
		"shared/a/a.go":      "// Package a keeps things. It is small.\npackage a",
		"shared/b/b.go":      "// Package b keeps things. It is big.\npackage b",
		"shared/c/c.go":      "// Package c is here.\npackage c",
		"shared/c/c_test.go": "// Package c_test is here too.\npackage c_test",
		"shared/d/d.go":      "package d",
		"test/e/e_test.go":   "// Package e_test stands alone.\npackage e_test",
	})), `does not begin with "Command local "`, "b/b.go: the package comment is that of shared/a/a.go",
		"shared/c has 2", "shared/d has 0")
}

func TestDocComments(t *testing.T) {
	t.Parallel()
	report(t, miscommented(all(t)))
}

func TestDocCommentsFinds(t *testing.T) {
	t.Parallel()
	expect(t, miscommented(plant(t, map[string]string{
		"shared/a/a.go": `package a
// Said is said.
func Said() {}
// A Thing is said.
type Thing struct{}
// says nothing.
func (*Thing) Method() {}
func (hidden) Method() {}
type hidden struct{}
// Words of a group.
const (One = 1; Two = 2)
const (
	Three = 3 // behind the line
	Four = 4
)
type Unsaid int
// Unsaids are another word.
func Unsaidly() {}
// Wrong name.
var Value int
`,
		"shared/a/a_test.go": "package a\nfunc TestUnsaid() {}",
		"shared/a/zz.go":     "// Code generated by planting. DO NOT EDIT.\n\npackage a\nfunc Unsaid2() {}",
		"local/a.go":         "package main\nfunc Unsaid() {}",
	})), "comment of Method", "comment of Unsaidly", "comment of Value")
}

func TestCalls(t *testing.T) {
	t.Parallel()
	report(t, grasped(all(t), lines(calls), "ask the Environment"))
	report(t, grasped(all(t), lines(compilers), "use package lazyregexp"))
}

func TestCallsFinds(t *testing.T) {
	t.Parallel()
	const source = "package a\nvar x, now, y = os.Getenv(`X`), time.Now, regexp.MustCompile(`y`)\n"
	planted := plant(t, map[string]string{
		"functions/whoami/a.go":                      source,
		"shared/api/frame/a.go":                      source,
		"shared/api/frame/a_test.go":                 source,
		"shared/state/redisstore/redistest/embed.go": source,
		"shared/model/lazyregexp/a.go":               "package a\nvar y = regexp.MustCompile(`y`)\n",
		"local/a.go":                                 source,
	})
	expect(t, grasped(planted, lines(calls), "x"),
		"functions/whoami/a.go uses os.Getenv: x", "functions/whoami/a.go uses time.Now: x", "shared/api/frame/a.go uses os.Getenv: x")
	expect(t, grasped(planted, lines(compilers), "x"), "functions/whoami/a.go uses regexp.MustCompile: x", "shared/api/frame/a.go uses regexp.MustCompile: x")
}

func TestInlined(t *testing.T) {
	t.Parallel()
	report(t, inlined(all(t)))
}

func TestInlinedFinds(t *testing.T) {
	t.Parallel()
	expect(t, inlined(plant(t, map[string]string{
		"shared/kinds/kinds.go": `package kinds
// Users are in one line.
func Users(env *platform.Environment) *user.Registry { return Open(env).Users }
// Graph has the directive.
//
//go:noinline
func Graph(env *platform.Environment) *resource.Graph { return Open(env).Graph }
func Two(env *platform.Environment, more int) int { return more }
func hidden(env *platform.Environment) int { return 1 }
`,
		"shared/kinds/user/open.go": `package user
func Open(env *platform.Environment) *Registry { return platform.Single(env, open) }
`,
		"shared/credentials/issuer/issuer.go": `package issuer
func Open(env *platform.Environment) *Issuer { return &Issuer{env} }
func opened(env *platform.Environment) *Keys { return platform.Single(env, func(env *platform.Environment) *Keys { return nil }) }
`,
		"shared/kinds/user/open_test.go": "package user\nfunc Opened(env *platform.Environment) *Registry { return platform.Single(env, open) }\n",
	})), "issuer.go: opened may", "shared/kinds/kinds.go: Users may", "shared/kinds/user/open.go: Open may")
}

func TestOperations(t *testing.T) {
	t.Parallel()
	report(t, misnamed(all(t)))
}

func TestOperationsFinds(t *testing.T) {
	t.Parallel()
	const do = "func Do(context.Context, Deps, Input) (Output, error) { return nil, nil }\n"
	expect(t, misnamed(plant(t, map[string]string{
		"functions/catalog/catalog.go": "package catalog\nvar Functions int",
		"functions/good/a.go":          "package good\ntype Deps struct{}\ntype Input int\n" + do + "var Function = &frame.Function{Name: `good`, Endpoints: nil}",
		"functions/clock/a.go":         "package clock\ntype Deps struct{}\nfunc Do(context.Context, Deps) (int, error) { return 0, nil }\nvar Function = &frame.Function{Name: \"clock\"}",
		"functions/deep/er/a.go":       "package er",
		"functions/empty/a.go":         "package other",
		"functions/verb/a.go":          "package verb\nvar Function = crud.Encrypting(crud.Update(\"verb\", definition, open))\nfunc open() {}",
		"functions/verbose/a.go":       "package verbose\nvar Function = crud.Get(\"verb\", definition, open)\ntype Deps struct{}",
		"functions/lone/a.go":          "package lone\ntype Deps struct{}\nfunc Ask(_ context.Context, a, b Deps) error { return nil }\nvar Function = &frame.Function{Name: \"lone\", Endpoints: nil}\nconst More = 1",
	})), "functions/deep/er: an operation has no packages", "empty: the package is called other", "empty: there is no Function",
		"empty: there is no Deps", "empty: it needs Do", "functions/good: the Name of Function", "lone: Ask is not func", "lone: exports More",
		"lone: there is no Input", "lone: it needs Do", "verbose: the name of Function is \"verb\"", "verbose: exports Deps")
}
