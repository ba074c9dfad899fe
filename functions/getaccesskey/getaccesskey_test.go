package getaccesskey

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model/identity"
)

func TestDo(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t)}
	want := accesskeytest.Seed(t, deps.Keys, "ci")
	for _, row := range []struct {
		about  string
		caller identity.Caller
		name   string
		code   int32
	}{
		{"the caller's own", accesskeytest.Ana, "ci", 0},
		{"an admin's view", identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), "ci", 0},
		{"another user's does not exist", accesskeytest.Ben, "ci", 404},
		{"an absent one", accesskeytest.Ana, "cd", 404},
	} {
		got, err := Do(t.Context(), deps, Input{Caller: row.caller, Name: row.name})
		if accesskeytest.Code(err) != row.code {
			t.Errorf("%s: %v", row.about, err)
		}
		if err == nil && !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", row.about, got, want)
		}
	}
}
