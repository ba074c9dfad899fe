package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/authorize"
	"management.platform.sh/shared/signin/connectors"
)

// teams returns the groups of each team.
func (w *world) teams() map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	for _, record := range w.stored("teams") {
		team := &model.Team{}
		if err := json.Unmarshal(record.Object, team); err != nil {
			w.t.Fatal(err)
		}
		found[record.Name] = team.Spec.Groups
	}
	return found
}

// of returns the names of the teams that list a group.
func (w *world) of(group string) []string {
	w.t.Helper()
	var names []string
	for name, groups := range w.teams() {
		if slices.Contains(groups, group) {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) makeTeam(name string, spec model.TeamSpec) {
	w.t.Helper()
	_, err := resource.Create(w.t.Context(), kinds.Teams(w.env), resource.CreateInput[*model.Team]{Caller: root, Object: &model.Team{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A sign-in makes a team for each group that none lists. It never takes a team or a name over, and leaves teams as they are.
func TestTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makeTeam("web", model.TeamSpec{Users: []string{"bob"}})
	w.makeTeam("platformers", model.TeamSpec{Groups: []string{"infra"}, Disabled: true})
	w.makeTeam("ops", model.TeamSpec{Groups: []string{"operators"}})
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: &model.OwnedAccessKey{
		Spec: model.OwnedAccessKeySpec{Team: "qa"},
	}}); err != nil {
		t.Fatal(err)
	}
	w.provider.person["groups"] = []string{
		"dev", "Dev", "operators", "infra", "web", "qa", "admin", "Platform", "system", "Team", "日本", identity.TeamPrefix + "web", identity.Admins,
	}
	caller := w.signIn()
	for group, name := range map[string]string{"Dev": "dev", "operators": "ops", "infra": "platformers"} {
		if got := w.of(group); !slices.Equal(got, []string{name}) {
			t.Errorf("the group %q has the teams %q, want %q", group, got, name)
		}
	}
	for group, stem := range map[string]string{
		"dev": "dev", "web": "web", "qa": "qa", "admin": "admin", "Platform": "platform", "system": "system", "Team": "team", "日本": "team",
	} {
		if got := w.of(group); len(got) != 1 || !strings.HasPrefix(got[0], stem+"-") || !caller.InGroup(identity.TeamPrefix+got[0]) {
			t.Errorf("the group %q has the teams %q, and the caller is in %q", group, got, caller.Groups)
		}
	}
	if caller.Admin() || caller.InGroup(identity.TeamPrefix+"web") || caller.InGroup(identity.TeamPrefix+"qa") || caller.InGroup(identity.TeamPrefix+"platformers") ||
		!caller.InGroup(identity.TeamPrefix+"dev") || !caller.InGroup(identity.TeamPrefix+"ops") {
		t.Errorf("the caller is in %q", caller.Groups)
	}
	before := w.teams()
	if len(before) != 12 {
		t.Errorf("the teams are %v", before)
	}
	w.signIn()
	w.provider.person["groups"] = []string{"dev"}
	if again := w.signIn(); again.InGroup(identity.TeamPrefix+"dev") || fmt.Sprint(w.teams()) != fmt.Sprint(before) {
		t.Errorf("the caller is in %q, and the teams are %v", again.Groups, w.teams())
	}
	w.config.Auth.DisableTeamCreation = true
	w.provider.person["groups"] = []string{"new"}
	if w.signIn(); len(w.of("new")) > 0 {
		t.Error("a team was made in spite of disableTeamCreation")
	}
}

// A sign-in makes fifty teams at most, and the next one more. Filters come before.
func TestManyTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var groups []string
	for i := range 60 {
		groups = append(groups, fmt.Sprintf("g-%d", i), fmt.Sprintf("x-%d", i))
	}
	w.config.Auth.GroupsFilters = []string{"^g-"}
	w.provider.person["groups"] = groups
	for _, want := range []int{50, 60, 60} {
		if w.signIn(); len(w.teams()) != want {
			t.Errorf("there are %d teams, want %d", len(w.teams()), want)
		}
	}
}

// Sign-ins at the same time make one team for each group.
func TestTeamsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.person["groups"] = []string{"ops", "Ops", "OPS", "web"}
	browsers, addresses := make([]*browser, 4), make([]string, 4)
	for i := range browsers {
		browsers[i] = w.browser()
		addresses[i] = base + "/auth/oidc/callback?" + w.provider.login(browsers[i].start()).Encode()
	}
	var group sync.WaitGroup
	for i, b := range browsers {
		group.Go(func() { b.send(addresses[i], nil) })
	}
	group.Wait()
	w.signIn()
	if teams := w.teams(); len(teams) != 4 {
		t.Errorf("the teams are %v", teams)
	}
	for _, name := range []string{"ops", "Ops", "OPS", "web"} {
		if got := w.of(name); len(got) != 1 {
			t.Errorf("the group %q has the teams %q", name, got)
		}
	}
}

// A sign-in that takes the last admin away is refused, and says so. It works once there is another admin.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.person["groups"] = []string{"bosses"}
	w.makeTeam("bosses", model.TeamSpec{Groups: []string{"bosses"}, ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}})
	if caller := w.signIn(); !caller.Admin() {
		t.Fatalf("the caller is in %q", caller.Groups)
	}
	w.provider.person["groups"] = []string{}
	if notes := w.finish(); notes[annotations.AnnotationOutcome] != "last_admin" {
		t.Errorf("%v", notes)
	}
	if answer := w.browser().prove(); answer.StatusCode != http.StatusForbidden || !strings.Contains(text(t, answer), model.ClusterRoleAdmin) {
		t.Errorf("%d", answer.StatusCode)
	}
	if ana := w.user("ana"); !slices.Equal(ana.Spec.SSOGroups, []string{"bosses"}) {
		t.Errorf("the groups are %q", ana.Spec.SSOGroups)
	}
	if _, err := resource.Create(t.Context(), kinds.Users(w.env), resource.CreateInput[*model.User]{Caller: root, Object: &model.User{
		ObjectMeta: metav1.ObjectMeta{Name: "bob"}, Spec: model.UserSpec{ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}},
	}}); err != nil {
		t.Fatal(err)
	}
	if caller := w.signIn(); caller.Admin() {
		t.Errorf("the caller is in %q", caller.Groups)
	}
}

// finish signs in up to the callback, and returns what the audit says of it.
func (w *world) finish() map[string]string {
	w.t.Helper()
	b := w.browser()
	query := w.provider.login(b.start())
	cookies := map[string]string{}
	for name, cookie := range b.cookies {
		cookies[name] = cookie.Value
	}
	// The annotations of a refusal come with its error.
	result, _ := finishlogin.Do(w.t.Context(), finishlogin.Deps{Callback: authorize.OpenCallback(w.env, kinds.Users(w.env), kinds.Teams(w.env), kinds.AccessKeys(w.env)), Provider: connectors.Open(w.env)}, frame.FormInput{
		Segment: func(string) string { return "oidc" }, Query: query, Cookies: cookies,
	})
	return result.Annotations
}

// The audit says what a sign-in has changed: by names, and never more than fits.
func TestNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	notes := w.finish()
	for name, want := range map[string]string{
		annotations.AnnotationConnector: "oidc", annotations.AnnotationUser: "ana", annotations.AnnotationCreated: "ana", annotations.AnnotationAdded: "dev",
		annotations.AnnotationTeams: "dev", annotations.AnnotationRemoved: "", annotations.AnnotationLeft: "", annotations.AnnotationDropped: "",
	} {
		if notes[name] != want {
			t.Errorf("%s is %q, want %q", name, notes[name], want)
		}
	}
	if subject := notes[annotations.AnnotationSubject]; subject == "" || strings.Contains(subject, "1001") {
		t.Errorf("the subject is %q", subject)
	}
	long := make([]string, 60)
	for i := range long {
		long[i] = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 200))
	}
	w.provider.person["groups"] = append(long, identity.Admins, "system:masters")
	notes = w.finish()
	if notes[annotations.AnnotationRemoved] != "dev" || notes[annotations.AnnotationDropped] != "2" || notes[annotations.AnnotationLeft] != "10" || notes[annotations.AnnotationCreated] != "" ||
		!strings.HasSuffix(notes[annotations.AnnotationAdded], " more") || len(notes[annotations.AnnotationAdded]) > 1200 || len(notes[annotations.AnnotationTeams]) > 1200 {
		t.Errorf("%q", notes)
	}
	w.config.Auth.DisableUserCreation, w.provider.person["sub"] = true, "1002"
	if notes = w.finish(); notes[annotations.AnnotationOutcome] != "not_set_up" || notes[annotations.AnnotationSubject] == "" || len(w.teams()) != 51 {
		t.Errorf("%q, and %d teams", notes, len(w.teams()))
	}
}
