package drift_test

import (
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/platformconfig"
)

// Only functions that write the fields of objects link the field manager. Source: ADR-0008.
func TestWhoLinksTheFieldManager(t *testing.T) {
	t.Parallel()
	links := map[string]bool{}
	listed, err := run("go", "list", "-f", `{{.Name}}{{range .Deps}} {{.}}{{end}}`, "./functions/...")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(listed) {
		name, packages, _ := strings.Cut(line, " ")
		links[name] = slices.Contains(strings.Fields(packages), "management.platform.sh/shared/api/fieldmanager")
	}
	for _, f := range catalog.Functions {
		writes := false
		for _, endpoint := range f.Endpoints {
			// A review is not stored, and the record of a token never changes: its fields need no owners.
			changes := slices.ContainsFunc(catalog.Functions, func(other *frame.Function) bool {
				return slices.ContainsFunc(other.Endpoints, func(o frame.Endpoint) bool {
					return o.Resource == endpoint.Resource && o.Verb == "update"
				})
			})
			// Subresources return the object that they create and do not change the resource. The exceptions are a rollback of the
			// configuration, and a sign-out and a new password of a user.
			changes = changes && (endpoint.Verb != "create" || endpoint.Subresource == "" ||
				endpoint.Resource == platformconfig.Definition.Resource || endpoint.Subresource == "signout" || endpoint.Subresource == "password")
			writes = writes || changes && slices.Contains([]string{"create", "update", "patch"}, endpoint.Verb)
		}
		if found, known := links[f.Name]; !known || found != writes {
			t.Errorf("%s: links the field manager: %v, want %v", f.Name, found, writes)
		}
	}
}
