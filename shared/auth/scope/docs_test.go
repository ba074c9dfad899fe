package scope

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
)

const docsFile = "../../../docs/scopes.md"

func readDocs(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatalf("reading the documentation: %v", err)
	}
	return string(data)
}

// tableOf returns the rows of the table with that header, without backquotes.
func tableOf(t *testing.T, docs, header string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(docs, "\n"+header+"\n")
	if !ok {
		t.Fatalf("%s has no table %q", docsFile, header)
	}
	var rows [][]string
	for i, line := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "`", ""))
		}
		rows = append(rows, cells)
	}
	return rows
}

func cell(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func names(resources []schema.GroupResource, paths []string) []string {
	var list []string
	for _, gr := range resources {
		list = append(list, gr.String())
	}
	return append(list, paths...)
}

func TestDocumentedRoles(t *testing.T) {
	var want [][]string
	for _, r := range roles {
		want = append(want, []string{r.name, cell(r.verbs), cell(names(r.resources, r.paths)), cell(names(r.unconfined, nil)), cell(r.implies)})
	}
	got := tableOf(t, readDocs(t), "| Role | Verbs | Resources and paths | Also when limited | Implies |")
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the table of roles in %s is\n%q\nthe code says\n%q", docsFile, got, want)
	}
}

func TestDocumentedAlways(t *testing.T) {
	var want [][]string
	for _, p := range append(slices.Clone(selfRequests), credentialRequests) {
		want = append(want, []string{cell(p.verbs), cell(names(p.resources, p.paths))})
	}
	got := tableOf(t, readDocs(t), "| Verbs | Resources and paths |")
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the table of what every key may do in %s is\n%q\nthe code says\n%q", docsFile, got, want)
	}
}

// examples reads every fenced YAML block as an access key.
func examples(t *testing.T, docs string) map[string]model.OwnedAccessKey {
	t.Helper()
	keys := map[string]model.OwnedAccessKey{}
	for _, block := range strings.Split(docs, "```yaml\n")[1:] {
		text, _, ok := strings.Cut(block, "```")
		if !ok {
			t.Fatalf("an example is not closed:\n%s", block)
		}
		var key model.OwnedAccessKey
		if err := yaml.UnmarshalStrict([]byte(text), &key); err != nil {
			t.Fatalf("reading the example:\n%s\n%v", text, err)
		}
		if key.APIVersion != model.SchemeGroupVersion.String() || key.Kind != "OwnedAccessKey" || key.Name == "" {
			t.Errorf("the example is no named OwnedAccessKey:\n%s", text)
		}
		if _, twice := keys[key.Name]; twice {
			t.Errorf("two examples are called %q", key.Name)
		}
		keys[key.Name] = key
	}
	if len(keys) == 0 {
		t.Fatalf("%s has no examples", docsFile)
	}
	return keys
}

func TestDocumentedExamples(t *testing.T) {
	docs := readDocs(t)
	keys := examples(t, docs)
	for name, key := range keys {
		if key.Spec.Scope == nil {
			t.Errorf("the example %q has no scope", name)
		}
		for _, err := range Validate(key.Spec.Scope, field.NewPath("spec", "scope")) {
			t.Errorf("the example %q: %v", name, err)
		}
	}
	for _, row := range tableOf(t, docs, "| Key | Verb | Resource | Project | Name | Permitted |") {
		key, ok := keys[row[0]]
		if !ok {
			t.Errorf("the table names a key %q that is no example", row[0])
			continue
		}
		resource, subresource, _ := strings.Cut(row[2], "/")
		r := Request{
			Verb: row[1], Group: model.GroupName, Resource: resource, Subresource: subresource,
			Project: row[3], Name: row[4], Target: TargetManagement,
		}
		if r.Project != "" {
			r.Namespace = "p-" + r.Project
		}
		if want := map[string]bool{"yes": true, "no": false}; Allows(key.Spec.Scope, r) != want[row[5]] {
			t.Errorf("the table says %q to %q, the code does not", row[5], row[:5])
		}
	}
}

func TestDocumentedMessages(t *testing.T) {
	docs := readDocs(t)
	refusal := Refusal(Request{
		Verb: "get", Group: model.GroupName, Resource: instances, Namespace: "p-team-b", Name: "dev", Project: "team-b", Target: TargetManagement,
	})
	excess := Exceeds(
		&model.Scope{Projects: []model.ScopeProject{{Project: "team-b"}}},
		&model.Scope{Projects: []model.ScopeProject{{Project: "team-a"}}}, field.NewPath("spec", "scope"))
	for _, text := range []string{refusal, excess[0].Detail, excess[0].Field} {
		if !strings.Contains(docs, text) {
			t.Errorf("%s does not show %q", docsFile, text)
		}
	}
}

func TestRoles(t *testing.T) {
	for _, name := range Roles() {
		r, ok := lookupRole(name)
		if !ok {
			t.Errorf("there is no role %q", name)
		}
		for _, implied := range r.implies {
			i, ok := lookupRole(implied)
			if !ok {
				t.Errorf("the role %q implies %q, which is not a role", name, implied)
			}
			if len(i.verbs) > 0 || len(i.implies) > 0 {
				t.Errorf("the role %q implies %q, whose permissions and implications Allows and Exceeds do not follow", name, implied)
			}
		}
	}
}
