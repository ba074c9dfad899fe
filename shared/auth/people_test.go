package auth_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// society is a state with users and teams, and processes that authenticate with it.
type society struct {
	t      *testing.T
	client *redisstore.Client
	now    time.Time
	uids   int
}

func newSociety(t *testing.T) *society {
	return &society{t: t, client: redistest.Open(t, redistest.Embedded(t)), now: born}
}

// process is a process that uses the state: its keys, and its authenticator.
func (s *society) process() (*accesskey.Registry, *auth.Authenticator) {
	env := &platform.Environment{
		Stores: s.client.Resource, Now: func() time.Time { return s.now }, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
	}
	return accesskey.Open(env), accesskey.OpenAuthenticator(env)
}

// storeObject writes a user, a team or a project as it is stored. The uid of an object that exists stays.
func (s *society) storeObject(object metav1.Object) {
	s.t.Helper()
	resource := directory.Users
	switch object.(type) {
	case *model.Team:
		resource = directory.Teams
	case *model.Project:
		resource = directory.Projects
	}
	state := s.client.Resource(resource)
	record, err := state.Get(s.t.Context(), object.GetName())
	if err == nil {
		var old metav1.PartialObjectMetadata
		if err := json.Unmarshal(record.Object, &old); err != nil {
			s.t.Fatal(err)
		}
		object.SetUID(old.UID)
	} else {
		s.uids++
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		record = store.Record{Name: object.GetName(), Created: s.now}
	}
	if record.Object, err = json.Marshal(object); err != nil {
		s.t.Fatal(err)
	}
	if record.Revision == 0 {
		_, err = state.Create(s.t.Context(), record)
	} else {
		_, err = state.Update(s.t.Context(), record)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// remove removes a user or a team.
func (s *society) remove(resource, name string) {
	s.t.Helper()
	state := s.client.Resource(resource)
	record, err := state.Get(s.t.Context(), name)
	if err == nil {
		_, err = state.Delete(s.t.Context(), name, record.Revision)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func user(name string, spec model.UserSpec) *model.User {
	return &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func team(name string, spec model.TeamSpec) *model.Team {
	return &model.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

var adminRole = []model.ClusterRole{{Name: model.ClusterRoleAdmin}}

// rights returns the groups of a bearer except the groups that every caller has, or the text of the refusal.
func rights(a *auth.Authenticator, bearer secret.String) string {
	caller, err := a.Bearer(context.Background(), bearer)
	if err != nil {
		return apierror.From(err).Error()
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(caller.Groups), func(group string) bool {
		return group == identity.Authenticated || group == identity.KubernetesAuthenticated
	}), " ")
}

func (s *society) create(keys *accesskey.Registry, caller identity.Caller, spec model.OwnedAccessKeySpec) (*model.OwnedAccessKey, error) {
	written, err := resource.Create(s.t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller, Object: &model.OwnedAccessKey{Spec: spec},
	})
	return written.Object, err
}

func (s *society) mustCreate(keys *accesskey.Registry, caller identity.Caller, spec model.OwnedAccessKeySpec) (bearer secret.String) {
	s.t.Helper()
	key, err := s.create(keys, caller, spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret.String(key.Spec.Key)
}

// The roles of a caller in projects are those at the moment of the request, in every process, and come from the teams that the key has.
// Source: ADR-0037.
func TestRolesOfCallers(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	_, b := s.process()
	s.storeObject(user("ana", model.UserSpec{}))
	s.storeObject(team("shop", model.TeamSpec{Users: []string{"ana"}}))
	bearers := map[string]secret.String{
		"ana":              s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana"}),
		"ana without shop": s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"platform:user:ana"}}),
		"ben, no object":   s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ben"}),
		"shop":             s.mustCreate(keys, admin, model.OwnedAccessKeySpec{Team: "shop"}),
		"subject ana":      s.mustCreate(keys, admin, model.OwnedAccessKeySpec{Subject: "ana"}),
		"admin":            s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "root", Groups: []string{identity.Admins}}),
	}
	member := func(kind, name, role string) model.ProjectMember {
		return model.ProjectMember{Kind: kind, Name: name, Role: role}
	}
	project := func(name string, owner *model.ProjectOwner, members ...model.ProjectMember) {
		s.storeObject(&model.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.ProjectSpec{Owner: owner, Members: members}})
	}
	for _, step := range []struct {
		sentence string
		do       func()
		want     map[string]map[string]string
	}{
		{"no projects", func() {}, nil},
		{"a user and a team", func() {
			project("web", nil, member("User", "ana", "view"), member("User", "ben", "use"), member("Team", "shop", "admin"), member("User", "root", "use"))
		}, map[string]map[string]string{"ana": {"web": "admin"}, "ana without shop": {"web": "view"}, "ben, no object": {"web": "use"}, "shop": {"web": "admin"}}},
		{"an owner of another one", func() { project("api", &model.ProjectOwner{User: "ben"}) },
			map[string]map[string]string{"ana": {"web": "admin"}, "ana without shop": {"web": "view"}, "ben, no object": {"web": "use", "api": "admin"}, "shop": {"web": "admin"}}},
		{"somebody has left the team", func() { s.storeObject(team("shop", model.TeamSpec{})) },
			map[string]map[string]string{"ana": {"web": "view"}, "ana without shop": {"web": "view"}, "ben, no object": {"web": "use", "api": "admin"}, "shop": {"web": "admin"}}},
		{"a role was taken away", func() { project("web", nil, member("User", "ana", "view")) },
			map[string]map[string]string{"ana": {"web": "view"}, "ana without shop": {"web": "view"}, "ben, no object": {"api": "admin"}}},
		{"a project is gone", func() { s.remove(directory.Projects, "api") },
			map[string]map[string]string{"ana": {"web": "view"}, "ana without shop": {"web": "view"}}},
	} {
		step.do()
		for who, bearer := range bearers {
			for process, authenticator := range map[string]*auth.Authenticator{"a": a, "b": b} {
				caller, err := authenticator.Bearer(t.Context(), bearer)
				if err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(caller.Roles, step.want[who]) {
					t.Errorf("%s: in the process %s, %s has the roles %v, want %v", step.sentence, process, who, caller.Roles, step.want[who])
				}
			}
		}
	}
}

// The rights of a key are the current rights of its owner, in every process. Source: ADR-0029.
func TestRightsOfOwners(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	_, b := s.process()
	oldKey := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"builders", "platform:team:shop"}})
	ofTeam := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{Team: "shop"})
	subject := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{Subject: "ci", Groups: []string{"builders"}})
	var secondKey, narrowed, child secret.String
	for _, step := range []struct {
		sentence string
		do       func()
		// want are the rights of the keys before, made and narrowed.
		want [3]string
		team string
	}{
		{"without objects, keys say what they give", func() {}, [3]string{"builders platform:team:shop platform:user:ana"}, "platform:team:shop"},
		{"a user has the groups of their object, and the key narrows them", func() {
			s.storeObject(user("ana", model.UserSpec{Groups: []string{"builders", "testers"}}))
			secondKey = s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana"})
			narrowed = s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"testers", "granted"}})
		}, [3]string{"builders platform:user:ana", "builders platform:user:ana testers", "granted platform:user:ana testers"}, "platform:team:shop"},
		{"a team that lists the user", func() {
			s.storeObject(team("shop", model.TeamSpec{Users: []string{"ana"}}))
		}, [3]string{"builders platform:team:shop platform:user:ana", "builders platform:team:shop platform:user:ana testers", "granted platform:user:ana testers"}, "platform:team:shop"},
		{"a team by a group, with a role", func() {
			s.storeObject(team("ops", model.TeamSpec{Groups: []string{"testers"}, ClusterRoles: adminRole}))
		}, [3]string{"builders platform:team:shop platform:user:ana", "builders platform:admins platform:team:ops platform:team:shop platform:user:ana testers", "granted platform:user:ana testers"}, "platform:team:shop"},
		{"a disabled team gives nothing", func() {
			s.storeObject(team("ops", model.TeamSpec{Groups: []string{"testers"}, ClusterRoles: adminRole, Disabled: true}))
			s.storeObject(team("shop", model.TeamSpec{Users: []string{"ana"}, Disabled: true}))
		}, [3]string{"builders platform:user:ana", "builders platform:user:ana testers", "granted platform:user:ana testers"}, "the owner of this access key is disabled"},
		{"who has left a team is not in it", func() {
			s.storeObject(team("shop", model.TeamSpec{Users: []string{"ben"}, ClusterRoles: adminRole}))
		}, [3]string{"builders platform:user:ana", "builders platform:user:ana testers", "granted platform:user:ana testers"}, "platform:admins platform:team:shop"},
		{"a team that is removed, with a key that an earlier build made", func() { s.remove(directory.Teams, "shop") },
			[3]string{"builders platform:user:ana", "builders platform:user:ana testers", "granted platform:user:ana testers"}, "platform:team:shop"},
		{"a role of the user, and groups of the provider", func() {
			s.storeObject(user("ana", model.UserSpec{SSOGroups: []string{"testers", "platform:admins", "system:masters"}, ClusterRoles: adminRole}))
			caller, err := a.Bearer(t.Context(), secondKey)
			if err != nil {
				t.Fatal(err)
			}
			child = s.mustCreate(keys, caller, model.OwnedAccessKeySpec{})
		}, [3]string{"platform:user:ana", "platform:admins platform:user:ana testers", "granted platform:user:ana testers"}, "platform:team:shop"},
		{"a disabled user", func() { s.storeObject(user("ana", model.UserSpec{Disabled: true})) }, [3]string{
			"the owner of this access key is disabled", "the owner of this access key is disabled", "the owner of this access key is disabled",
		}, "platform:team:shop"},
		{"an enabled one again", func() { s.storeObject(user("ana", model.UserSpec{})) },
			[3]string{"platform:user:ana", "platform:user:ana", "granted platform:user:ana"}, "platform:team:shop"},
		{"signed out everywhere", func() { s.storeObject(user("ana", model.UserSpec{TokenGeneration: 1})) }, [3]string{
			"the owner of this access key has signed out everywhere", "the owner of this access key has signed out everywhere",
			"the owner of this access key has signed out everywhere",
		}, "platform:team:shop"},
		{"a new key after that", func() {
			narrowed = s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana"})
		}, [3]string{
			"the owner of this access key has signed out everywhere", "the owner of this access key has signed out everywhere", "platform:user:ana",
		}, "platform:team:shop"},
		{"another user of the name", func() {
			s.remove(directory.Users, "ana")
			s.storeObject(user("ana", model.UserSpec{}))
		}, [3]string{"platform:user:ana", "the owner of this access key no longer exists", "the owner of this access key no longer exists"}, "platform:team:shop"},
		{"a user that is being deleted", func() {
			leaving := user("ana", model.UserSpec{})
			leaving.DeletionTimestamp = &metav1.Time{Time: s.now}
			s.storeObject(leaving)
		}, [3]string{
			"the owner of this access key no longer exists", "the owner of this access key no longer exists", "the owner of this access key no longer exists",
		}, "platform:team:shop"},
	} {
		step.do()
		for name, process := range map[string]*auth.Authenticator{"the process that wrote": a, "another process": b} {
			for i, bearer := range []secret.String{oldKey, secondKey, narrowed} {
				if got := rights(process, bearer); bearer != "" && got != step.want[i] {
					t.Errorf("%s: key %d in %s: %q, want %q", step.sentence, i, name, got, step.want[i])
				}
			}
			if got := rights(process, ofTeam); got != step.team {
				t.Errorf("%s: the key of the team in %s: %q, want %q", step.sentence, name, got, step.team)
			}
			if got := rights(process, subject); got != "builders" {
				t.Errorf("%s: the key of a subject in %s: %q", step.sentence, name, got)
			}
		}
	}
	if got := rights(b, child); got != "the owner of this access key no longer exists" {
		t.Errorf("the key that a user made: %q", got)
	}
}

// A key that is bound to a key of another owner ends with that owner. Source: ADR-0021, ADR-0029.
func TestBoundToAnotherOwner(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	s.storeObject(user("root", model.UserSpec{ClusterRoles: adminRole}))
	makers := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "root", TTLSeconds: 3600})
	caller, err := a.Bearer(t.Context(), makers)
	if err != nil {
		t.Fatal(err)
	}
	bearer := s.mustCreate(keys, caller, model.OwnedAccessKeySpec{User: "ben"})
	_, b := s.process()
	for _, step := range []struct {
		disabled bool
		want     string
	}{
		{false, "platform:user:ben"}, {true, "a key that this access key was made with no longer works"}, {false, "platform:user:ben"},
	} {
		s.storeObject(user("root", model.UserSpec{ClusterRoles: adminRole, Disabled: step.disabled}))
		for _, process := range []*auth.Authenticator{a, b} {
			if got := rights(process, bearer); got != step.want {
				t.Errorf("disabled %v: %q, want %q", step.disabled, got, step.want)
			}
		}
	}
}

// A process that has authenticated only subjects also records the owners of new keys.
func TestKeyMadeBySubject(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, _ := s.process()
	bearer := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{Subject: "terraform", Groups: []string{identity.Admins}})
	s.storeObject(user("ana", model.UserSpec{}))
	keys, a := s.process()
	caller, err := a.Bearer(t.Context(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := s.create(keys, caller, model.OwnedAccessKeySpec{User: "ana"}); err != nil || key.Status.Owner == nil {
		t.Errorf("%+v, %v", key, err)
	}
}

// New keys record their owner. They are refused for owners who may not use the platform, and with groups that only
// teams and roles give. Source: ADR-0029.
func TestKeysOfOwners(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	s.storeObject(user("ana", model.UserSpec{Groups: []string{"builders"}, TokenGeneration: 3}))
	s.storeObject(user("off", model.UserSpec{Disabled: true}))
	s.storeObject(team("shop", model.TeamSpec{Users: []string{"ana"}}))
	ana, err := a.Bearer(t.Context(), s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		sentence string
		caller   identity.Caller
		spec     model.OwnedAccessKeySpec
		// owner and granted are recorded in the key; refused is the field of the refusal.
		owner, granted, refused string
	}{
		{"an admin for a user", admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"builders", "more"}}, "uid-1/3", "more", ""},
		{"the user", ana, model.OwnedAccessKeySpec{Groups: []string{"builders"}}, "uid-1/3", "", ""},
		{"a member for the team", ana, model.OwnedAccessKeySpec{Team: "shop"}, "uid-3/0", "", ""},
		{"a group that the team does not have", ana, model.OwnedAccessKeySpec{Team: "shop", Groups: []string{"builders"}}, "", "", "spec.groups[0]"},
		{"for nobody that has an object", admin, model.OwnedAccessKeySpec{User: "ben", Groups: []string{"platform:admins"}}, "", "", ""},
		{"a group that a team gives", admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"platform:team:shop", "platform:team:ops"}}, "", "", "spec.groups[1]"},
		{"for a disabled user", admin, model.OwnedAccessKeySpec{User: "off"}, "", "", "spec.user"},
		{"a user for a disabled one learns nothing of it", ana, model.OwnedAccessKeySpec{User: "off"}, "", "", "spec.user"},
	} {
		key, err := s.create(keys, row.caller, row.spec)
		if row.refused != "" {
			details := apierror.From(err).Status().Details
			if code(err) != 403 || details == nil || len(details.Causes) != 1 || details.Causes[0].Field != row.refused {
				t.Errorf("%s: %v, %+v", row.sentence, err, details)
			}
			if row.caller.Key == ana.Key && row.spec.User == "off" && strings.Contains(fmt.Sprint(err), "disabled") {
				t.Errorf("%s: %v", row.sentence, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.sentence, err)
			continue
		}
		noted := ""
		if owner := key.Status.Owner; owner != nil {
			noted = fmt.Sprintf("%s/%d", owner.UID, owner.Generation)
		}
		if noted != row.owner || strings.Join(key.Status.Granted, " ") != row.granted {
			t.Errorf("%s: owner %q, granted %q", row.sentence, noted, key.Status.Granted)
		}
	}
	// Updates keep the recorded values. A group that an admin adds is granted, and a removed group is forgotten.
	key, err := s.create(keys, admin, model.OwnedAccessKeySpec{User: "ana", Groups: []string{"more"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		caller        identity.Caller
		patch, wanted string
	}{
		{ana, `{"spec":{"displayName":"x"}}`, "more"},
		{admin, `{"spec":{"groups":["more","again","platform:admins"]}}`, "more again"},
		{admin, `{"spec":{"groups":["again","builders"]}}`, "again builders"},
		{ana, `{"spec":{"groups":["builders"]},"status":{"granted":["platform:admins"],"owner":null}}`, "builders"},
	} {
		result, err := resource.Patch(t.Context(), keys, resource.PatchInput{
			Caller: step.caller, Name: key.Name, Type: resource.MergePatch, Patch: []byte(step.patch),
		})
		if err != nil {
			t.Fatalf("%s: %v", step.patch, err)
		}
		got := result.Object.Status
		if strings.Join(got.Granted, " ") != step.wanted || got.Owner == nil || got.Owner.UID != "uid-1" {
			t.Errorf("%s: granted %q, owner %+v", step.patch, got.Granted, got.Owner)
		}
	}
}

// A key that names some of the groups of its owner cannot make or become a key with more rights: neither by naming no
// groups, nor for a team with a role, nor with a group that was granted to it alone. Source: ADR-0029.
func TestNarrowedKeysStayNarrow(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	s.storeObject(user("ana", model.UserSpec{Groups: []string{"builders", "testers"}}))
	s.storeObject(team("ops", model.TeamSpec{Users: []string{"ana"}, ClusterRoles: adminRole}))
	s.storeObject(team("shop", model.TeamSpec{Users: []string{"ana"}}))
	for _, row := range []struct {
		about  string
		groups []string
		// want are the rights of a key that names no groups: the rights of its maker, except for granted ones.
		want string
	}{
		{"some groups", []string{"testers", "platform:team:ops", "platform:team:shop"}, "platform:team:ops platform:team:shop platform:user:ana testers"},
		{"the group of the name", []string{"platform:user:ana"}, "platform:user:ana"},
		{"a group that was granted", []string{"granted"}, "platform:user:ana"},
	} {
		bearer := s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana", Groups: row.groups})
		caller, err := a.Bearer(t.Context(), bearer)
		if err != nil {
			t.Fatal(err)
		}
		if got := rights(a, s.mustCreate(keys, caller, model.OwnedAccessKeySpec{})); got != row.want {
			t.Errorf("%s: the key that was made has %q, want %q", row.about, got, row.want)
		}
		for why, patch := range map[string]string{"no groups": `{"spec":{"groups":null}}`, "an empty list": `{"spec":{"groups":[]}}`} {
			_, err := resource.Patch(t.Context(), keys, resource.PatchInput{Caller: caller, Name: caller.Key, Type: resource.MergePatch, Patch: []byte(patch)})
			if apierror.From(err).Status().Code != 403 {
				t.Errorf("%s: an update to %s: %v", row.about, why, err)
			}
		}
		for owner, spec := range map[string]model.OwnedAccessKeySpec{
			"a team of admins":        {Team: "ops"},
			"a group of the owner":    {Groups: []string{"builders"}},
			"a group that is granted": {Groups: []string{"granted"}},
		} {
			if made, err := s.create(keys, caller, spec); err == nil || apierror.From(err).Status().Code != 403 {
				t.Errorf("%s makes a key with %s: %+v, %v", row.about, owner, made, err)
			}
		}
	}
	whole, err := a.Bearer(t.Context(), s.mustCreate(keys, admin, model.OwnedAccessKeySpec{User: "ana"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := rights(a, s.mustCreate(keys, whole, model.OwnedAccessKeySpec{Team: "ops"})); got != "platform:admins platform:team:ops" {
		t.Errorf("a member with all rights makes a key of the team with %q", got)
	}
}
