package drift_test

import (
	"os/exec"
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
	for _, f := range catalog.Functions {
		writes := false
		for _, endpoint := range f.Endpoints {
			// A review is not stored, and the record of a token never changes: its fields need no owners.
			changes := slices.ContainsFunc(catalog.Functions, func(other *frame.Function) bool {
				return slices.ContainsFunc(other.Endpoints, func(o frame.Endpoint) bool {
					return o.Resource == endpoint.Resource && o.Verb == "update"
				})
			})
			// Subresources return what they create and do not change the resource, except a rollback of the configuration.
			changes = changes && (endpoint.Verb != "create" || endpoint.Subresource == "" || endpoint.Resource == platformconfig.Definition.Resource)
			writes = writes || changes && slices.Contains([]string{"create", "update", "patch"}, endpoint.Verb)
		}
		list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "management.platform.sh/functions/"+f.Name).Output()
		if err != nil {
			t.Fatal(err)
		}
		if links := slices.Contains(strings.Fields(string(list)), "management.platform.sh/shared/api/fieldmanager"); links != writes {
			t.Errorf("%s: links the field manager: %v, want %v", f.Name, links, writes)
		}
	}
}
