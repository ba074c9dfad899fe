package user_test

import (
	"sync"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// The user and admins can sign a user out. For other callers the user does not exist. A dry run raises nothing, and each of
// several simultaneous sign-outs raises the generation once. Source: ADR-0029.
func TestSignOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.user("ana", model.UserSpec{TokenGeneration: 3}); err != nil {
		t.Fatal(err)
	}
	signOut := func(caller identity.Caller, name string, dry bool) (int64, error) {
		done, err := user.SignOutUser(t.Context(), w.Users, resource.SubresourceInput[*model.UserSignOut]{
			Caller: caller, Name: name, Object: &model.UserSignOut{}, DryRun: dry,
		})
		if err != nil {
			return 0, err
		}
		return done.Object.Status.TokenGeneration, nil
	}
	ben := identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
	for _, row := range []struct {
		about  string
		caller identity.Caller
		name   string
		dry    bool
		code   int32
		want   int64
	}{
		{"a dry run", ana, "ana", true, 200, 4},
		{"the user", ana, "ana", false, 200, 4},
		{"an admin", admin, "ana", false, 200, 5},
		{"another user", ben, "ana", false, 404, 0},
		{"a user that does not exist", admin, "ben", false, 404, 0},
	} {
		if got, err := signOut(row.caller, row.name, row.dry); got != row.want || code(err) != row.code {
			t.Errorf("%s: generation %d, %v; want %d and %d", row.about, got, err, row.want, row.code)
		}
	}
	const many = 8
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if _, err := signOut(ana, "ana", false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := signOut(ana, "ana", true); err != nil || got != 5+many+1 {
		t.Errorf("after %d sign-outs at the same time the next generation is %d, %v; want %d", many, got, err, 5+many+1)
	}
	if decision := w.Users.Admit(ben, "create", user.SignOut, &model.User{}); code(decision) != 403 {
		t.Errorf("a caller who may see the user and is no admin: %v", decision)
	}
}
