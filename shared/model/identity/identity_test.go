package identity_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"management.platform.sh/shared/model/identity"
)

func user(name string) identity.Owner    { return identity.Owner{Kind: identity.User, Name: name} }
func team(name string) identity.Owner    { return identity.Owner{Kind: identity.Team, Name: name} }
func subject(name string) identity.Owner { return identity.Owner{Kind: identity.Subject, Name: name} }

func TestCaller(t *testing.T) {
	everybody := []string{"platform:authenticated", "system:authenticated"}
	for _, row := range []struct {
		section  string
		sentence string
		owner    identity.Owner
		extra    []string
		groups   []string
		owners   []string
		admin    bool
		username string
	}{
		{"ADR-0005", "users have a group of their own", user("a"), nil, append([]string{"platform:user:a"}, everybody...), []string{"user:a"}, false, "a"},
		{"ADR-0005", "a team's key has the team's group", team("dev"), nil, append([]string{"platform:team:dev"}, everybody...), []string{"team:dev"}, false, "platform:team:dev"},
		{"Spec 2.5", "a subject has the groups of everybody", subject("ci"), nil, everybody, []string{"subject:ci"}, false, "platform:subject:ci"},
		{"Spec 2.5", "extra groups apply", user("a"), []string{"ops"}, append([]string{"platform:user:a", "ops"}, everybody...), []string{"user:a"}, false, "a"},
		{"ADR-0005", "no group twice", user("a"), []string{"ops", "platform:user:a", "ops"}, append([]string{"platform:user:a", "ops"}, everybody...), []string{"user:a"}, false, "a"},
		{"ADR-0005", "members own what belongs to their teams", user("a"), []string{"platform:team:dev", "platform:team:ops"},
			append([]string{"platform:user:a", "platform:team:dev", "platform:team:ops"}, everybody...), []string{"team:dev", "team:ops", "user:a"}, false, "a"},
		{"ADR-0005", "a subject can be a member", subject("ci"), []string{"platform:team:dev"}, append([]string{"platform:team:dev"}, everybody...), []string{"subject:ci", "team:dev"}, false, "platform:subject:ci"},
		{"ADR-0005", "a team group without a name is not a team", user("a"), []string{"platform:team:"}, append([]string{"platform:user:a", "platform:team:"}, everybody...), []string{"user:a"}, false, "a"},
		{"ADR-0005", "the group of another user gives nothing", user("a"), []string{"platform:user:b"}, append([]string{"platform:user:a", "platform:user:b"}, everybody...), []string{"user:a"}, false, "a"},
		{"ADR-0005", "a member of platform:admins owns everything", user("a"), []string{"platform:admins"}, append([]string{"platform:user:a", "platform:admins"}, everybody...), nil, true, "a"},
		{"ADR-0005", "a user named admins is no admin", user("platform:admins"), nil, append([]string{"platform:user:platform:admins"}, everybody...), []string{"user:platform:admins"}, false, "platform:admins"},
		{"ADR-0005", "a team named admins is no admin", team("admins"), nil, append([]string{"platform:team:admins"}, everybody...), []string{"team:admins"}, false, "platform:team:admins"},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			extra := slices.Clone(row.extra)
			caller := identity.New(row.owner, row.extra)
			slices.Sort(row.groups)
			if !slices.Equal(caller.Groups, row.groups) {
				t.Errorf("groups are %q, want %q", caller.Groups, row.groups)
			}
			if !slices.Equal(row.extra, extra) {
				t.Errorf("the extra groups of the key were changed to %q", row.extra)
			}
			if owners := caller.Owners(); !slices.Equal(owners, row.owners) || (owners == nil) != row.admin {
				t.Errorf("owners are %q, want %q", owners, row.owners)
			}
			if caller.Admin() != row.admin || caller.Owner.Username() != row.username {
				t.Errorf("admin %v, username %q", caller.Admin(), caller.Owner.Username())
			}
			for _, group := range row.groups {
				if !caller.InGroup(group) {
					t.Errorf("not in %q", group)
				}
			}
			if caller.InGroup("") || caller.InGroup("nobody") {
				t.Errorf("in a group that the caller does not have")
			}
			for _, owner := range append(row.owners, "user:z", "team:z", "subject:z", "") {
				if want := row.admin || slices.Contains(row.owners, owner); caller.Owns(owner) != want {
					t.Errorf("owns %q: not %v", owner, want)
				}
			}
		})
	}
}

// The username and the groups of an owner are enough to name the owner. Source: ADR-0012.
func TestNamed(t *testing.T) {
	for _, owner := range []identity.Owner{
		{Kind: identity.User, Name: "ana"}, {Kind: identity.Team, Name: "dev"}, {Kind: identity.Subject, Name: "ana"},
		{Kind: identity.User, Name: "platform:team:dev"}, {Kind: identity.Subject, Name: "platform:team:dev"},
		{Kind: identity.Team, Name: "ana"}, {Kind: identity.User, Name: "platform:subject:ana"},
	} {
		caller := identity.New(owner, []string{"ops"})
		if got := identity.OwnerByUsername(owner.Username(), caller.Groups); got != owner {
			t.Errorf("%v becomes %v", owner, got)
		}
	}
	// Tokens of earlier builds have the names of subjects without a prefix.
	if got := identity.OwnerByUsername("ci", identity.New(subject("ci"), nil).Groups); got != subject("ci") {
		t.Errorf("an earlier subject becomes %v", got)
	}
}

// A user, a team and a subject of the same name have three different usernames. Names that clusters or the platform define
// are reserved. Source: ADR-0022.
func TestUsernames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) string {
			prefix := rapid.SampledFrom([]string{"", "system:", "platform:", "platform:team:", "platform:subject:", "platform"}).Draw(t, "prefix")
			return prefix + rapid.SampledFrom([]string{"a", "b", ":", "system:a", "platform:a"}).Draw(t, "rest")
		})
		owner := rapid.Custom(func(t *rapid.T) identity.Owner {
			return identity.Owner{Kind: rapid.SampledFrom([]identity.OwnerKind{identity.User, identity.Team, identity.Subject}).Draw(t, "kind"), Name: name.Draw(t, "name")}
		}).Filter(func(o identity.Owner) bool { return o.Reserved() == "" })
		one, other := owner.Draw(t, "one"), owner.Draw(t, "other")
		if (one == other) != (one.Username() == other.Username()) {
			t.Fatalf("%v and %v have the usernames %q and %q", one, other, one.Username(), other.Username())
		}
		if username := one.Username(); strings.HasPrefix(username, "system:") || identity.OwnerByUsername(username, identity.New(one, nil).Groups) != one {
			t.Fatalf("%v has the username %q", one, username)
		}
	})
	for name, want := range map[string]string{
		"system:masters": "system:", "platform:admins": "platform:", "platform:": "platform:", "system": "", "a system:": "", "ana": "",
	} {
		if got := user(name).Reserved(); got != want {
			t.Errorf("%q is reserved for %q, want %q", name, got, want)
		}
	}
}

// An object names one owner, or none. Source: Spec 2.5.
func TestOwnerOf(t *testing.T) {
	if got := identity.OwnerOf("", "", ""); got != (identity.Owner{}) {
		t.Errorf("no field names %v", got)
	}
	user, team, subject := identity.Owner{}.Fields()
	if user+team+subject != "" {
		t.Errorf("nobody has the fields %q, %q, %q", user, team, subject)
	}
	for _, kind := range []identity.OwnerKind{identity.User, identity.Team, identity.Subject} {
		owner := identity.Owner{Kind: kind, Name: "a"}
		user, team, subject := owner.Fields()
		if got := (map[identity.OwnerKind]string{identity.User: user, identity.Team: team, identity.Subject: subject})[kind]; got != "a" || user+team+subject != "a" {
			t.Errorf("%v has the fields %q, %q, %q", owner, user, team, subject)
		}
	}
}

// Owners of different kinds or names are different. Callers own themselves. Source: ADR-0005.
func TestOwnership(t *testing.T) {
	owner := rapid.Custom(func(t *rapid.T) identity.Owner {
		return identity.Owner{
			Kind: rapid.SampledFrom([]identity.OwnerKind{identity.User, identity.Team, identity.Subject}).Draw(t, "kind"),
			Name: rapid.SampledFrom([]string{"a", "b", "user:a", "platform:team:a", "platform:admins", "team:b"}).Draw(t, "name"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		first, other := owner.Draw(t, "one"), owner.Draw(t, "other")
		if (first == other) != (first.String() == other.String()) {
			t.Fatalf("%v and %v have the names %q and %q", first, other, first, other)
		}
		if got := identity.OwnerOf(first.Fields()); got != first {
			t.Fatalf("the fields of %v are those of %v", first, got)
		}
		caller := identity.New(first, nil)
		if !caller.Owns(first.String()) || caller.Owns(other.String()) != (first == other) {
			t.Fatalf("%v owns %q", first, caller.Owners())
		}
	})
}
