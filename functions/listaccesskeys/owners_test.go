package listaccesskeys

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// The keys of a user or a team are below that object, for callers who see the object. Source: ADR-0029.
func TestOfOwners(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	root := issuertest.Root
	w.User("ana")
	w.User("ben")
	w.Team("web", "ana")
	deps := open(w.Env)
	for _, name := range []string{"ana", "ana-two"} {
		w.Key(name, "ana", model.OwnedAccessKeySpec{})
	}
	w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(w.Env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "robot"}, Spec: model.OwnedAccessKeySpec{Team: "web"}},
	}); err != nil {
		t.Fatal(err)
	}
	ana, ben := w.Caller("ana"), w.Caller("ben")
	for _, row := range []struct {
		about  string
		caller identity.Caller
		team   bool
		of     string
		want   []string
		code   int32
	}{
		{"a user their own", ana, false, "ana", []string{"ana", "ana-two"}, 0},
		{"an admin those of a user", root, false, "ana", []string{"ana", "ana-two"}, 0},
		{"an admin those of another user", root, false, "ben", []string{"ben"}, 0},
		{"another user", ben, false, "ana", nil, 404},
		{"a user that does not exist", root, false, "carl", nil, 404},
		{"a member those of the team", ana, true, "web", []string{"robot"}, 0},
		{"somebody else those of the team", ben, true, "web", nil, 404},
		{"a name of the other kind", root, true, "ana", nil, 404},
	} {
		do := listOfUser
		if row.team {
			do = listOfTeam
		}
		got, err := do(t.Context(), deps, Input{Caller: row.caller, Parent: row.of})
		if row.code != 0 {
			if accesskeytest.Code(err) != row.code {
				t.Errorf("%s: %v", row.about, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		var names []string
		for _, key := range got.(*model.OwnedAccessKeyList).Items {
			names = append(names, key.Name)
		}
		if !slices.Equal(names, row.want) {
			t.Errorf("%s: %q, want %q", row.about, names, row.want)
		}
	}
	// The continue token of one owner's list does not continue the list of another owner.
	page, err := listOfUser(t.Context(), deps, Input{Caller: root, Parent: "ana", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	next := page.(*model.OwnedAccessKeyList).Continue
	if _, err := listOfUser(t.Context(), deps, Input{Caller: root, Parent: "ben", Limit: 1, Continue: next}); next == "" || accesskeytest.Code(err) != 400 {
		t.Errorf("the token %q continues the list of another user: %v", next, err)
	}
}
