package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// reachable stores users, teams, a project and a virtual cluster that they reach in different ways, and returns the world.
func reachable(t *testing.T) *issuertest.World {
	t.Helper()
	w := issuertest.New(t)
	for _, user := range []string{"admin", "auditor", "owner", "teamowner", "manager", "tester", "guest", "viewer", "updater", "stranger", "gone"} {
		object := &model.User{ObjectMeta: metav1.ObjectMeta{Name: user}, Spec: model.UserSpec{DisplayName: strings.ToUpper(user), Disabled: user == "gone"}}
		if user == "admin" || user == "auditor" {
			object.Spec.ClusterRoles = []model.ClusterRole{{Name: map[string]string{"admin": model.ClusterRoleAdmin, "auditor": model.ClusterRoleAuditor}[user]}}
		}
		if _, err := resource.Create(t.Context(), kinds.Users(w.Env), resource.CreateInput[*model.User]{Caller: issuertest.Root, Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	w.Team("testers", "tester", "gone")
	w.Team("guests", "guest", "admin")
	project := &model.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: model.ProjectSpec{
		Owner: &model.ProjectOwner{User: "manager"},
		Members: []model.ProjectMember{
			{Kind: model.ProjectMemberTeam, Name: "testers", Role: model.ProjectRoleUse}, {Kind: model.ProjectMemberUser, Name: "viewer", Role: model.ProjectRoleView},
			{Kind: model.ProjectMemberUser, Name: "admin", Role: model.ProjectRoleAdmin}, {Kind: model.ProjectMemberUser, Name: "owner", Role: model.ProjectRoleUse},
		},
	}}
	if _, err := resource.Create(t.Context(), kinds.Projects(w.Env), resource.CreateInput[*model.Project]{Caller: issuertest.Root, Object: project}); err != nil {
		t.Fatal(err)
	}
	instance := &model.VirtualClusterInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "p-shop", Name: "dev"}, Spec: model.VirtualClusterInstanceSpec{
		Owner: &model.InstanceOwner{User: "owner"},
		Access: []model.InstanceAccess{
			{Verbs: []string{"update"}, Users: []string{"updater"}}, {Verbs: []string{"use"}, Teams: []string{"guests"}, Users: []string{"named", "owner"}},
		},
	}}
	if _, err := resource.Create(t.Context(), kinds.Instances(w.Env), resource.CreateInput[*model.VirtualClusterInstance]{Caller: issuertest.Root, Namespace: "p-shop", Object: instance}); err != nil {
		t.Fatal(err)
	}
	w.Key("first", "robot", model.OwnedAccessKeySpec{Groups: []string{identity.Admins}})
	w.Key("disabled", "off", model.OwnedAccessKeySpec{Groups: []string{identity.Admins}})
	w.Change("disabled", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	w.Key("narrow", "narrow", model.OwnedAccessKeySpec{Groups: []string{identity.Admins}, Scope: &model.Scope{}})
	return w
}

// The answer names who may make a request, in which ways, and through which teams.
func TestWhoCan(t *testing.T) {
	t.Parallel()
	w := reachable(t)
	access := review.OpenAccess(w.Env, kinds.Readers(w.Env))
	for _, row := range []struct {
		request model.ScopePreviewRequest
		want    []string
	}{
		{model.ScopePreviewRequest{Verb: "create", Resource: "virtualclusterinstances", Subresource: "kubeconfig", Namespace: "p-shop", Name: "dev"}, []string{
			`team guests: Access: spec.access[1] of the instance gives "use"`, `team testers: Project: role "use" in the project "shop"`,
			`user admin (guests): Admin: member of platform:admins; Project: role "admin" in the project "shop"; Access: spec.access[1] of the instance gives "use"`, `user guest (guests): Access: spec.access[1] of the instance gives "use"`,
			`user manager: Project: role "admin" in the project "shop"`, `user named: Access: spec.access[1] of the instance gives "use"`, `user owner: Project: role "use" in the project "shop"; Owner: owner of the object; Access: spec.access[1] of the instance gives "use"`,
			`user tester (testers): Project: role "use" in the project "shop"`, `user robot by first: Admin: member of platform:admins`,
		}},
		{model.ScopePreviewRequest{Verb: "delete", Resource: "virtualclusterinstances", Namespace: "p-shop", Name: "dev"}, []string{
			`user admin: Admin: member of platform:admins; Project: role "admin" in the project "shop"`, `user manager: Project: role "admin" in the project "shop"`, `user owner: Owner: owner of the object`,
			`user robot by first: Admin: member of platform:admins`,
		}},
		{model.ScopePreviewRequest{Verb: "create", Resource: "virtualclusterinstances", Namespace: "p-shop"}, []string{
			`user admin: Admin: member of platform:admins; Project: role "admin" in the project "shop"`, `user manager: Project: role "admin" in the project "shop"`,
			`user robot by first: Admin: member of platform:admins`,
		}},
		{model.ScopePreviewRequest{Verb: "update", Resource: "teams", Name: "testers"}, []string{
			`user admin: Admin: member of platform:admins`, `user robot by first: Admin: member of platform:admins`,
		}},
		{model.ScopePreviewRequest{Verb: "get", Resource: "teams", Name: "testers"}, []string{
			`team testers: Owner: member of the team`, `user admin: Admin: member of platform:admins`, `user auditor: Admin: member of platform:admins`, `user tester (testers): Owner: member of the team`,
			`user robot by first: Admin: member of platform:admins`,
		}},
	} {
		row.request.Group = model.GroupName
		status, err := access.Preview(t.Context(), issuertest.Root, &model.ScopePreviewSpec{WhoCan: &row.request})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, subject := range status.Subjects {
			text := "team " + subject.Team
			if subject.User != "" {
				text = "user " + subject.User
			}
			if subject.User != "" && subject.User != "named" && subject.AccessKey == "" && subject.DisplayName != strings.ToUpper(subject.User) {
				t.Errorf("%s has the display name %q", text, subject.DisplayName)
			}
			if len(subject.Teams) > 0 {
				text += fmt.Sprintf(" (%s)", strings.Join(subject.Teams, ", "))
			}
			if subject.AccessKey != "" {
				text += " by " + subject.AccessKey
			}
			text += ": " + subject.Source + ": " + subject.Reason
			for _, also := range subject.Also {
				text += "; " + also.Source + ": " + also.Reason
			}
			got = append(got, text)
		}
		if !slices.Equal(got, row.want) || status.Incomplete {
			t.Errorf("%+v:\n%s\nwant\n%s", row.request, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// The answer names the same users as the decisions about requests with keys of all users.
func TestWhoCanAgrees(t *testing.T) {
	t.Parallel()
	w := reachable(t)
	access := review.OpenAccess(w.Env, kinds.Readers(w.Env))
	users := []string{"admin", "auditor", "guest", "manager", "named", "owner", "stranger", "tester", "updater", "viewer"}
	callers := map[string]identity.Caller{}
	for _, user := range users {
		callers[user] = w.Key("of-"+user, user, model.OwnedAccessKeySpec{})
	}
	names := map[string]string{
		"ownedaccesskeys": "of-owner", "virtualclusterinstances": "dev", "users": "tester", "teams": "guests", "projects": "shop", "trustrules": "absent",
		"directclusterendpointtokens": "absent",
	}
	permitted, refused := 0, 0
	for resourceName, name := range names {
		for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
			for _, subresource := range []string{"", "kubeconfig", "accesskeys"} {
				request := scope.Request{Verb: verb, Group: model.GroupName, Resource: resourceName, Subresource: subresource, Name: name}
				if resourceName == "virtualclusterinstances" {
					request.Namespace = "p-shop"
				}
				status, err := access.Preview(t.Context(), issuertest.Root, &model.ScopePreviewSpec{WhoCan: &model.ScopePreviewRequest{
					Verb: verb, Group: model.GroupName, Resource: resourceName, Subresource: subresource, Namespace: request.Namespace, Name: name,
				}})
				if code := apierror.From(err).Status().Code; err != nil && (code == 422 || code == 404) {
					continue // the API has no such request, or no such object
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, user := range users {
					decision, err := access.Decide(t.Context(), callers[user], request)
					if err != nil {
						t.Fatal(err)
					}
					listed := slices.ContainsFunc(status.Subjects, func(subject model.ScopePreviewSubject) bool { return subject.User == user })
					// A user without an object counts if the object names them.
					if listed != decision.Allowed && user != "named" {
						t.Errorf("%s %s/%s %s: the answer names %s: %t, and the decision is %+v", verb, resourceName, subresource, name, user, listed, decision)
					}
					if decision.Allowed {
						permitted++
					} else {
						refused++
					}
				}
			}
		}
	}
	if permitted < 100 || refused < 100 {
		t.Errorf("%d permitted and %d refused: the requests are too narrow", permitted, refused)
	}
}

// Only callers who may see all users and teams, and admins of the project, get an answer. Mistakes are named at their fields.
func TestWhoCanRefusals(t *testing.T) {
	t.Parallel()
	w := reachable(t)
	access := review.OpenAccess(w.Env, kinds.Readers(w.Env))
	use := &model.ScopePreviewRequest{Verb: "create", Group: model.GroupName, Resource: "virtualclusterinstances", Subresource: "kubeconfig", Namespace: "p-shop", Name: "dev"}
	listing := model.Scope{Rules: []model.ScopeRule{{Verbs: []string{"list"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"users", "teams"}}}}}}
	usersAlone := model.Scope{Rules: []model.ScopeRule{{Verbs: []string{"list"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"users"}}}}}}
	for _, row := range []struct {
		user  string
		scope *model.Scope
		code  int32
	}{
		{"admin", nil, 0}, {"auditor", nil, 0}, {"manager", nil, 0}, {"admin", &listing, 0},
		{"admin", &usersAlone, 403}, {"owner", nil, 403}, {"tester", nil, 403}, {"stranger", nil, 403},
	} {
		caller := w.Key(fmt.Sprintf("%s-%d-%t", row.user, row.code, row.scope == nil), row.user, model.OwnedAccessKeySpec{Scope: row.scope})
		_, err := access.Preview(t.Context(), caller, &model.ScopePreviewSpec{WhoCan: use})
		if code := int32(0); err != nil && apierror.From(err).Status().Code != row.code || err == nil && row.code != code {
			t.Errorf("%s with the scope %+v: %v", row.user, row.scope, err)
		}
	}
	elsewhere := *use
	elsewhere.Namespace = "p-other"
	if _, err := access.Preview(t.Context(), w.Key("manager", "manager", model.OwnedAccessKeySpec{}), &model.ScopePreviewSpec{WhoCan: &elsewhere}); apierror.From(err).Status().Code != 403 {
		t.Errorf("an admin of another project: %v", err)
	}
	absent := *use
	absent.Name = "absent"
	if _, err := access.Preview(t.Context(), issuertest.Root, &model.ScopePreviewSpec{WhoCan: &absent}); apierror.From(err).Status().Code != 404 {
		t.Errorf("a virtual cluster that does not exist: %v", err)
	}
	for want, spec := range map[string]model.ScopePreviewSpec{
		"spec":             {WhoCan: use, Namespace: "p-shop"},
		"spec.whoCan.verb": {WhoCan: &model.ScopePreviewRequest{Resource: "configs"}},
		"spec.whoCan.path": {WhoCan: &model.ScopePreviewRequest{Verb: "get", Path: "/version"}},
		"spec.whoCan":      {WhoCan: &model.ScopePreviewRequest{Verb: "use", Group: model.GroupName, Resource: "virtualclusterinstances"}},
	} {
		_, err := access.Preview(t.Context(), issuertest.Root, &spec)
		status := apierror.From(err).Status()
		if status.Code != 422 || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != want {
			t.Errorf("%s: %+v", want, status)
		}
	}
}
