package createaccesskey

import (
	"testing"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// A key that is created below a user or a team belongs to the user or team. Only callers who may create keys there can create it.
// Source: ADR-0029.
func TestOfOwners(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	root := issuertest.Root
	w.User("ana")
	w.User("ben")
	w.Team("web", "ana")
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	for _, row := range []struct {
		about  string
		caller identity.Caller
		team   bool
		of     string
		spec   model.OwnedAccessKeySpec
		owner  identity.Owner
		code   int32
	}{
		{"for oneself", ana, false, "ana", model.OwnedAccessKeySpec{}, identity.Owner{Kind: identity.User, Name: "ana"}, 0},
		{"with the owner in the body as well", ana, false, "ana", model.OwnedAccessKeySpec{User: "ana"}, identity.Owner{Kind: identity.User, Name: "ana"}, 0},
		{"by an admin", root, false, "ana", model.OwnedAccessKeySpec{}, identity.Owner{Kind: identity.User, Name: "ana"}, 0},
		{"by a member", ana, true, "web", model.OwnedAccessKeySpec{}, identity.Owner{Kind: identity.Team, Name: "web"}, 0},
		{"for another user", ben, false, "ana", model.OwnedAccessKeySpec{}, identity.Owner{}, 404},
		{"for a team of others", ben, true, "web", model.OwnedAccessKeySpec{}, identity.Owner{}, 404},
		{"for a user that does not exist", root, false, "carl", model.OwnedAccessKeySpec{}, identity.Owner{}, 404},
		{"with another owner in the body", root, false, "ana", model.OwnedAccessKeySpec{User: "ben"}, identity.Owner{}, 422},
		{"with an owner of another kind in the body", root, true, "web", model.OwnedAccessKeySpec{User: "web"}, identity.Owner{}, 422},
		{"with two owners in the body", root, false, "ana", model.OwnedAccessKeySpec{User: "ana", Team: "web"}, identity.Owner{}, 422},
		{"with a group that the owner does not have", ana, false, "ana", model.OwnedAccessKeySpec{Groups: []string{identity.Admins}}, identity.Owner{}, 403},
	} {
		do := createOfUser
		if row.team {
			do = createOfTeam
		}
		before, err := kinds.AccessKeys(w.Env).Store.List(t.Context(), store.Query{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := do(t.Context(), deps, Input{Caller: row.caller, Parent: row.of, Object: &model.OwnedAccessKey{Spec: row.spec}})
		after, listErr := kinds.AccessKeys(w.Env).Store.List(t.Context(), store.Query{})
		if listErr != nil {
			t.Fatal(listErr)
		}
		if made := len(after.Records) - len(before.Records); row.code != 0 {
			if accesskeytest.Code(err) != row.code || made != 0 {
				t.Errorf("%s: %v, %d keys", row.about, err, made)
			}
			continue
		}
		if err != nil || accesskey.OwnerOf(&got.Object.Spec) != row.owner || got.Object.Spec.Key == "" {
			t.Errorf("%s: %+v, %v", row.about, got.Object, err)
		}
	}
}
