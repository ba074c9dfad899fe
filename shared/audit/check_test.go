package audit_test

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
)

// A new sink is checked, a sink that stays is not, and a sink that this program does not have is a problem. Source:
// ADR-0024.
func TestChecker(t *testing.T) {
	t.Parallel()
	check := audit.Checker([]audit.Opener{audit.Output(io.Discard)})
	for sentence, row := range map[string]struct {
		was, next *model.ConfigAudit
		// want are the fields, and says is in the text.
		want, says string
	}{
		"standard output":                 {nil, &model.ConfigAudit{Enabled: true, Path: "-"}, "", ""},
		"a directory":                     {&model.ConfigAudit{Enabled: true, Path: "-"}, &model.ConfigAudit{Enabled: true, Path: "/a"}, "audit.path", ""},
		"a store":                         {nil, &model.ConfigAudit{Enabled: true, Path: "-", DataStoreEndpoint: "redis://a"}, "audit.dataStoreEndpoint", ""},
		"a store of another process":      {nil, &model.ConfigAudit{Enabled: true, Path: "-", DataStoreEndpoint: "${A}"}, "audit.dataStoreEndpoint", "is not known here"},
		"a directory that stays":          {&model.ConfigAudit{Enabled: true, Path: "/a"}, &model.ConfigAudit{Enabled: true, Path: "/a", Level: new(int32(2))}, "", ""},
		"a directory that was not in use": {&model.ConfigAudit{Path: "/a"}, &model.ConfigAudit{Enabled: true, Path: "/a"}, "audit.path", ""},
	} {
		var fields, texts string
		for _, problem := range check(t.Context(), row.was, row.next, field.NewPath("audit")) {
			fields, texts = fields+problem.Field, texts+problem.Detail
		}
		if fields != row.want || !strings.Contains(texts, row.says) {
			t.Errorf("%s: %q (%s), want %q", sentence, fields, texts, row.want)
		}
	}
}
