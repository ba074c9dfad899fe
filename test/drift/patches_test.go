package drift_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/expression"
)

const patchesPage = "docs/patches.md"

var (
	recipeBlock = regexp.MustCompile("(?ms)^```yaml (\\w+)\n(.*?)^```$")
	// fileBlock matches a file whose first line is its name.
	fileBlock = regexp.MustCompile("(?ms)^```yaml\n# (\\S+)\n(.*?)^```$")
)

// recipe is a section of the page with patches and two objects.
type recipe struct {
	title   string
	patches []model.SyncPatch
	// from is tenant or host: the side of the first object.
	from       string
	in, result map[string]any
}

// recipes returns the recipes of the page. Each recipe has exactly the three blocks.
func recipes(t *testing.T, page string) []recipe {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## Recipes\n")
	if !found {
		t.Fatal("there is no heading Recipes")
	}
	var all []recipe
	for _, part := range strings.Split(text, "\n### ")[1:] {
		title, _, _ := strings.Cut(part, "\n")
		blocks := recipeBlock.FindAllStringSubmatch(part, -1)
		if len(blocks) != 3 || blocks[0][1] != "patches" || !slices.Equal(slices.Sorted(slices.Values([]string{blocks[1][1], blocks[2][1]})), []string{"host", "tenant"}) {
			t.Fatalf("%s: there are %d blocks; patches, tenant and host are expected", title, len(blocks))
		}
		r := recipe{title: title, from: blocks[1][1]}
		if err := yaml.UnmarshalStrict([]byte(blocks[0][2]), &r.patches); err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		for i, into := range []*map[string]any{&r.in, &r.result} {
			text, err := yaml.YAMLToJSONStrict([]byte(blocks[i+1][2]))
			if err == nil {
				err = utiljson.Unmarshal(text, into)
			}
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
		}
		all = append(all, r)
	}
	return all
}

// Every recipe turns its first object into the second. If every patch is reversible, the way back works too.
func TestRecipes(t *testing.T) {
	t.Parallel()
	all := recipes(t, files(t)[patchesPage])
	if len(all) < 10 {
		t.Errorf("there are %d recipes", len(all))
	}
	for _, r := range all {
		request := syncpatch.Request{
			Patches: r.patches, Object: r.in, Checks: []string{model.CheckRoundTrip, model.CheckFixpoint},
			Context: syncpatch.Context{Tenant: syncpatch.Tenant{Name: "my-vcluster", Namespace: "my-vcluster-ns"}},
		}
		if r.from == "host" {
			request.Direction = model.HostToTenant
		}
		reversible := true
		for _, patch := range r.patches {
			reversible = reversible && (patch.Expression == "" || patch.ReverseExpression != "") && r.from == "tenant"
		}
		if !reversible {
			request.Checks = nil
		}
		checked, problems := request.Check()
		if checked == nil {
			t.Errorf("%s: %v", r.title, syncpatch.Errors(problems))
			continue
		}
		result, err := syncpatch.Evaluate(t.Context(), checked, syncpatch.Limits{Expression: time.Minute, Object: time.Minute})
		if err != nil || result.Error != nil || !reflect.DeepEqual(result.Object, r.result) {
			t.Errorf("%s: it makes %v (%v, %+v), the page has %v", r.title, result.Object, err, result.Error, r.result)
			continue
		}
		for _, check := range result.Checks {
			if !check.Passed {
				t.Errorf("%s: %s: %+v", r.title, check.Type, check)
			}
		}
	}
}

var (
	// defaultsRow matches a row of the table of defaults.
	defaultsRow = regexp.MustCompile("(?m)^\\| `(true|false|auto)` \\| (.*) \\|$")
	// defaultsSide matches the resources of one side in a row.
	defaultsSide = regexp.MustCompile(`below .(toHost|fromHost). ([^;]*)`)
)

// The page has every default that expressions see in the configuration of the tenant.
func TestDefaultsOfPatches(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(files(t)[patchesPage], "\n### Defaults\n")
	section, _, _ = strings.Cut(section, "\n### ")
	page := map[string]string{}
	for _, row := range defaultsRow.FindAllStringSubmatch(section, -1) {
		for _, side := range defaultsSide.FindAllStringSubmatch(row[2], -1) {
			for _, name := range strings.Split(strings.ReplaceAll(side[2], " and ", ", "), ", ") {
				page[side[1]+"."+strings.TrimSpace(name)] = row[1]
			}
		}
	}
	checked, problems := syncpatch.Request{
		Object:  map[string]any{"a": nil},
		Patches: []model.SyncPatch{{Path: "a", Expression: "context.tenant.config.sync"}},
	}.Check()
	if checked == nil {
		t.Fatal(syncpatch.Errors(problems))
	}
	result, err := syncpatch.Evaluate(t.Context(), checked, syncpatch.Limits{Expression: time.Minute, Object: time.Minute})
	if err != nil || result.Error != nil {
		t.Fatal(err, result.Error)
	}
	code := map[string]string{}
	var walk func(at string, of any)
	walk = func(path string, of any) {
		entries, _ := of.(map[string]any)
		for name, value := range entries {
			if name != "enabled" {
				walk(strings.TrimPrefix(path+"."+name, "."), value)
			} else if value != false {
				code[path] = fmt.Sprint(value)
			}
		}
	}
	walk("", result.Object["a"])
	if !reflect.DeepEqual(page, code) {
		t.Errorf("the page has %v, and expressions see %v", page, code)
	}
}

// The studio offers and explains the names of the page's table, which are the names that expressions can use, and the fields of a patch.
func TestStudioLanguage(t *testing.T) {
	t.Parallel()
	p := files(t)
	var language struct{ Names, Fields []struct{ Name, Help string } }
	if err := json.Unmarshal([]byte(p["functions/serveconsole/web/studio/language.json"]), &language); err != nil {
		t.Fatal(err)
	}
	roots := map[string]bool{}
	for _, one := range language.Names {
		root, _, _ := strings.Cut(one.Name, ".")
		roots[root] = true
		if one.Help == "" {
			t.Errorf("%s is not explained", one.Name)
		}
	}
	// An expression with an unknown name is told all names.
	_, err := expression.Compile("unknown")
	if err == nil || len(roots) < 6 {
		t.Fatalf("the names are %v; an unknown name is %v", roots, err)
	}
	for root := range roots {
		if !strings.Contains(err.Error(), root) {
			t.Errorf("%s is not among the names that the error lists: %v", root, err)
		}
	}
	var fields []string
	for _, one := range language.Fields {
		if !strings.Contains(one.Name, ".") {
			fields = append(fields, one.Name)
		}
	}
	var want []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[model.SyncPatch]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	if !slices.Equal(fields, want) {
		t.Errorf("the fields are %q, and a patch has %q", fields, want)
	}
}

// The examples of the patch studio are the files and the recipes of the page, word for word.
func TestStudioExamples(t *testing.T) {
	t.Parallel()
	p := files(t)
	var examples []struct{ Title, Configuration, Tenant, Host string }
	if err := json.Unmarshal([]byte(p["functions/serveconsole/web/examples.json"]), &examples); err != nil {
		t.Fatal(err)
	}
	page := p[patchesPage]
	if len(examples) != 1+len(recipes(t, page)) {
		t.Fatalf("there are %d examples", len(examples))
	}
	named := map[string]string{}
	for _, file := range fileBlock.FindAllStringSubmatch(page, -1) {
		named[file[1]] = file[2]
	}
	if first := examples[0]; first.Configuration != named["vcluster.yaml"] || first.Tenant != named["pod.yaml"] || first.Host != named["host.yaml"] {
		t.Errorf("the first example has other files: %+v", first)
	}
	for _, one := range examples[1:] {
		for _, text := range []string{"\n### " + one.Title + "\n", "```yaml patches\n" + one.Configuration + "```", "```yaml tenant\n" + one.Tenant + "```", "```yaml host\n" + one.Host + "```"} {
			if !strings.Contains(page, text) {
				t.Errorf("%s: the page does not have %q", one.Title, text)
			}
		}
	}
}

// The page has the grammar and the limits of the code. Its commands are run by a story, on the same files and with the same outcome.
func TestPatchesPage(t *testing.T) {
	t.Parallel()
	p := files(t)
	page := p[patchesPage]
	limits := syncpatch.DefaultLimits()
	for _, limit := range []expression.Limit{
		expression.LimitTime, expression.LimitTotal, syncpatch.LimitMemory, expression.LimitResult, expression.LimitDepth,
	} {
		if message := limits.Exceeded(limit).Error(); !strings.Contains(page, "| "+message+" |") {
			t.Errorf("the page does not have the message %q", message)
		}
	}
	grammar := 0
	for l := range strings.Lines(p["shared/syncpatch/path.go"]) {
		if rule, found := strings.CutPrefix(l, "//\t"); found && strings.Contains(rule, " = ") {
			grammar++
			if !strings.Contains(page, "\n"+rule) {
				t.Errorf("the page does not have the rule %q", rule)
			}
		}
	}
	if grammar != 5 {
		t.Errorf("the code has %d rules of the grammar", grammar)
	}
	story := p["test/script/testdata/patches.txtar"]
	blocks := fileBlock.FindAllStringSubmatch(page, -1)
	for _, file := range blocks {
		if !strings.Contains(story, "\n-- "+file[1]+" --\n"+file[2]+"-- ") {
			t.Errorf("no story has the file %s of the page", file[1])
		}
	}
	if len(blocks) != 4 {
		t.Errorf("the page has %d files", len(blocks))
	}
	commands, output := 0, ""
	for _, piece := range paragraphs(page) {
		command, isCommand := strings.CutPrefix(piece.text, "$ build/platform ")
		switch {
		case isCommand:
			commands++
			if !strings.Contains(story, "\nplatform "+command+"\n") {
				t.Errorf("no story runs platform %s", command)
			}
			output = command
		case !piece.code || piece.text == "" || strings.HasPrefix(piece.text, "$ "):
			output = ""
		case output != "" && !strings.Contains(story, "\n"+piece.text+"\n"):
			t.Errorf("no story of platform %s has the line %q", output, piece.text)
		}
	}
	if commands < 3 {
		t.Errorf("the page has %d commands", commands)
	}
}
