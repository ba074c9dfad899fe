package audit_test

import (
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
)

// A new sink is checked, one that stays is not, and one that this program does not have is a problem. Source: ADR-0024.
func TestChecker(t *testing.T) {
	t.Parallel()
	check := audit.Checker([]audit.Opener{audit.Output(io.Discard)})
	for sentence, row := range map[string]struct {
		was, next *model.ConfigAudit
		want      string
	}{
		"standard output":                 {nil, &model.ConfigAudit{Enabled: true, Path: "-"}, ""},
		"a directory":                     {&model.ConfigAudit{Enabled: true, Path: "-"}, &model.ConfigAudit{Enabled: true, Path: "/a"}, "audit.path"},
		"a store":                         {nil, &model.ConfigAudit{Enabled: true, Path: "-", DataStoreEndpoint: "redis://a"}, "audit.dataStoreEndpoint"},
		"a directory that stays":          {&model.ConfigAudit{Enabled: true, Path: "/a"}, &model.ConfigAudit{Enabled: true, Path: "/a", Level: new(int32(2))}, ""},
		"a directory that was not in use": {&model.ConfigAudit{Path: "/a"}, &model.ConfigAudit{Enabled: true, Path: "/a"}, "audit.path"},
	} {
		var fields string
		for _, problem := range check(t.Context(), row.was, row.next, field.NewPath("audit")) {
			fields += problem.Field
		}
		if fields != row.want {
			t.Errorf("%s: %q, want %q", sentence, fields, row.want)
		}
	}
}
