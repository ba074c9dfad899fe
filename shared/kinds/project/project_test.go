package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

var ofTest = &rules{Settings{Namespace: func(project string) string { return "p-" + project }}}

// A refusal names the field of each mistake. Source: ADR-0037.
func TestValidate(t *testing.T) {
	t.Parallel()
	members := func(count int) []model.ProjectMember {
		var list []model.ProjectMember
		for i := range count {
			list = append(list, model.ProjectMember{Kind: "User", Name: fmt.Sprint("u", i), Role: "use"})
		}
		return list
	}
	for about, row := range map[string]struct {
		name   string
		owners int
		spec   model.ProjectSpec
		want   []string
	}{
		"empty":            {"web", 0, model.ProjectSpec{}, nil},
		"full":             {"web", 0, model.ProjectSpec{DisplayName: "Web", Description: "Shop", Owner: &model.ProjectOwner{Team: "web"}, Members: members(maxMembers)}, nil},
		"too many members": {"web", 0, model.ProjectSpec{Members: members(maxMembers + 1)}, []string{"spec.members"}},
		"no namespace":     {"a.b", 0, model.ProjectSpec{}, []string{"metadata.name"}},
		"a long namespace": {strings.Repeat("a", 62), 0, model.ProjectSpec{}, []string{"metadata.name"}},
		"a long name":      {strings.Repeat("a", 61), 0, model.ProjectSpec{}, nil},
		"an owner object":  {"web", 1, model.ProjectSpec{}, []string{"metadata.ownerReferences"}},
		"no owner":         {"web", 0, model.ProjectSpec{Owner: &model.ProjectOwner{}}, []string{"spec.owner"}},
		"two owners":       {"web", 0, model.ProjectSpec{Owner: &model.ProjectOwner{User: "a", Team: "b"}}, []string{"spec.owner.team"}},
		"no user":          {"web", 0, model.ProjectSpec{Owner: &model.ProjectOwner{User: "A"}}, []string{"spec.owner.user"}},
		"no team":          {"web", 0, model.ProjectSpec{Owner: &model.ProjectOwner{Team: "a b"}}, []string{"spec.owner.team"}},
		"an empty member":  {"web", 0, model.ProjectSpec{Members: make([]model.ProjectMember, 1)}, []string{"spec.members[0].kind", "spec.members[0].role", "spec.members[0].name"}},
		"a member twice": {"web", 0, model.ProjectSpec{Members: []model.ProjectMember{
			{Kind: "User", Name: "a", Role: "use"}, {Kind: "Team", Name: "a", Role: "use"}, {Kind: "User", Name: "a", Role: "admin"},
		}}, []string{"spec.members[2].name"}},
		"unknown words": {"web", 0, model.ProjectSpec{Members: []model.ProjectMember{{Kind: "user", Name: "a", Role: "Admin"}}}, []string{"spec.members[0].kind", "spec.members[0].role"}},
		"long texts":    {"web", 0, model.ProjectSpec{DisplayName: strings.Repeat("a", 1<<12), Description: strings.Repeat("a", 1<<13)}, []string{"spec.displayName", "spec.description"}},
	} {
		project := &model.Project{ObjectMeta: metav1.ObjectMeta{Name: row.name, OwnerReferences: make([]metav1.OwnerReference, row.owners)}, Spec: row.spec}
		var got []string
		for _, problem := range ofTest.Validate(project, nil) {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: problems with %q, want %q", about, got, row.want)
		}
	}
}

// Members see a project, and its owner and members with the role admin may write it. Source: ADR-0037.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	project := &model.Project{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: model.ProjectSpec{
		Owner: &model.ProjectOwner{User: "olga"}, Members: []model.ProjectMember{
			{Kind: "User", Name: "ana", Role: "admin"}, {Kind: "User", Name: "ben", Role: "use"}, {Kind: "Team", Name: "watchers", Role: "view"}, {Kind: "Team", Name: "ops", Role: "admin"},
		},
	}}
	user := func(name string, groups ...string) identity.Caller {
		return identity.New(identity.Owner{Kind: identity.User, Name: name}, groups)
	}
	for about, row := range map[string]struct {
		caller       identity.Caller
		sees, writes bool
	}{
		"the owner":                     {user("olga"), true, true},
		"an admin of the project":       {user("ana"), true, true},
		"a user":                        {user("ben"), true, false},
		"a viewer by a team":            {user("cleo", identity.TeamPrefix+"watchers"), true, false},
		"an admin by a team":            {user("ben", identity.TeamPrefix+"ops"), true, true},
		"a stranger":                    {user("cleo"), false, false},
		"a user with a team's name":     {user("ops"), false, false},
		"an admin of the platform":      {user("root", identity.Admins), true, true},
		"a subject with a user's name":  {identity.New(identity.Owner{Kind: identity.Subject, Name: "ana"}, nil), false, false},
		"an admin of another one alone": {func() identity.Caller { c := user("cleo"); c.Roles = map[string]string{"shop": "admin"}; return c }(), false, false},
	} {
		if got := ofTest.Sees(row.caller, project); got.Allowed != row.sees || !row.sees && !got.Hidden {
			t.Errorf("%s sees it: %+v, want %v", about, got, row.sees)
		}
		if got := ofTest.Permits(row.caller, "delete", "", project); got.Allowed != row.writes || got.Reason == "" {
			t.Errorf("%s deletes it: %+v, want %v", about, got, row.writes)
		}
	}
}
