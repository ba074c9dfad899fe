package directory_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// The widest role among those of a caller and of their teams counts, and only teams that the caller has. Source:
// ADR-0037.
func TestRoles(t *testing.T) {
	t.Parallel()
	client := redistest.Open(t, redistest.Embedded(t))
	projects := client.Resource(directory.Projects)
	directory := directory.New(client.Resource(directory.Users), client.Resource(directory.Teams), projects, client.Resource(directory.Mode))
	ana := identity.Owner{Kind: identity.User, Name: "ana"}
	see := func() {
		t.Helper()
		read, err := directory.Read(t.Context(), ana)
		must(t, err)
		_, err = directory.StateOf(t.Context(), ana, read)
		must(t, err)
	}
	expect := func(about string, owner identity.Owner, groups []string, want map[string]string) {
		t.Helper()
		see()
		if got := directory.Roles(identity.New(owner, groups)); !maps.Equal(got, want) {
			t.Errorf("%s: %v has the roles %v, want %v", about, owner, got, want)
		}
	}
	stored := map[string]store.Record{}
	storeProject := func(name string, spec model.ProjectSpec) {
		t.Helper()
		text, err := json.Marshal(model.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
		must(t, err)
		record, exists := stored[name]
		record.Object = text
		if exists {
			record.Revision, err = projects.Update(t.Context(), record)
		} else {
			record.Name, record.Created = name, time.Unix(1, 0)
			record.Revision, err = projects.Create(t.Context(), record)
		}
		must(t, err)
		stored[name] = record
	}
	user := func(name, role string) model.ProjectMember {
		return model.ProjectMember{Kind: model.ProjectMemberUser, Name: name, Role: role}
	}
	team := func(name, role string) model.ProjectMember {
		return model.ProjectMember{Kind: model.ProjectMemberTeam, Name: name, Role: role}
	}
	expect("no projects", ana, nil, nil)
	storeProject("web", model.ProjectSpec{Owner: &model.ProjectOwner{Team: "ops"}, Members: []model.ProjectMember{user("ana", "view"), team("dev", "use"), user("ops", "view")}})
	storeProject("shop", model.ProjectSpec{Owner: &model.ProjectOwner{User: "ana"}, Members: []model.ProjectMember{user("ana", "view"), team("ana", "use")}})
	expect("a member and an owner", ana, nil, map[string]string{"web": "view", "shop": "admin"})
	expect("with a team", ana, []string{identity.TeamPrefix + "dev"}, map[string]string{"web": "use", "shop": "admin"})
	expect("with two teams", ana, []string{identity.TeamPrefix + "dev", identity.TeamPrefix + "ops"}, map[string]string{"web": "admin", "shop": "admin"})
	expect("again, alone", ana, nil, map[string]string{"web": "view", "shop": "admin"})
	expect("a team", identity.Owner{Kind: identity.Team, Name: "dev"}, nil, map[string]string{"web": "use"})
	expect("a user with the name of a team", identity.Owner{Kind: identity.User, Name: "dev"}, nil, nil)
	expect("a subject with the name of a user", identity.Owner{Kind: identity.Subject, Name: "ana"}, nil, nil)
	expect("an admin of the platform", ana, []string{identity.Admins}, nil)
	storeProject("web", model.ProjectSpec{Members: []model.ProjectMember{team("dev", "view")}})
	expect("after a change", ana, nil, map[string]string{"shop": "admin"})
	_, err := projects.Delete(t.Context(), "shop", stored["shop"].Revision)
	must(t, err)
	expect("after a deletion", ana, nil, nil)
}
