package adoption

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
)

var root = identity.New(identity.Owner{Kind: identity.Subject, Name: "root"}, []string{identity.Admins})

// state is a platform with keys that are older than its users, and two processes that use it.
type state struct {
	t    *testing.T
	envs [2]*platform.Environment
}

func newState(t *testing.T) *state {
	t.Helper()
	s := &state{t: t}
	url := redistest.Embedded(t)
	now := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	for i := range s.envs {
		s.envs[i] = &platform.Environment{
			Stores: redistest.Open(t, url).Resource, Now: func() time.Time { return now }, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
			Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
		}
	}
	return s
}

func bearer(name string) string { return accesskey.Digest(secret.String(name)) }

func (s *state) key(name string, owner identity.Owner, disabled bool, groups ...string) error {
	spec := model.OwnedAccessKeySpec{Key: bearer(name), Groups: groups, Disabled: disabled}
	spec.User, spec.Team, spec.Subject = owner.Fields()
	_, err := resource.Create(s.t.Context(), kinds.AccessKeys(s.envs[0]), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
	})
	return err
}

func (s *state) mustKey(name string, owner identity.Owner, groups ...string) {
	s.t.Helper()
	if err := s.key(name, owner, false, groups...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *state) team(name string, spec model.TeamSpec) {
	s.t.Helper()
	if _, err := resource.Create(s.t.Context(), kinds.Teams(s.envs[0]), resource.CreateInput[*model.Team]{
		Caller: root, Object: &model.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *state) disable(name string, disabled bool) {
	s.t.Helper()
	if _, err := resource.Patch(s.t.Context(), kinds.AccessKeys(s.envs[0]), resource.PatchInput{
		Caller: root, Name: name, Type: resource.MergePatch, Patch: fmt.Appendf(nil, `{"spec":{"disabled":%v}}`, disabled),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// rights returns the groups of a caller with a key. Both processes must return the same.
func (s *state) rights(name string) ([]string, error) {
	s.t.Helper()
	first, err := accesskey.OpenAuthenticator(s.envs[0]).Bearer(s.t.Context(), secret.String(bearer(name)))
	second, again := accesskey.OpenAuthenticator(s.envs[1]).Bearer(s.t.Context(), secret.String(bearer(name)))
	if (err == nil) != (again == nil) || !slices.Equal(first.Groups, second.Groups) {
		s.t.Errorf("%s: %v, %v at one process and %v, %v at the other", name, first.Groups, err, second.Groups, again)
	}
	return first.Groups, err
}

func accept(*Plan) error { return nil }

func user(name string) identity.Owner { return identity.Owner{Kind: identity.User, Name: name} }
func team(name string) identity.Owner { return identity.Owner{Kind: identity.Team, Name: name} }

// The plan lists the changes for each owner and their keys. Source: ADR-0033.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.team("ops", model.TeamSpec{Users: []string{"ben"}, ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}})
	s.mustKey("ana-ci", user("ana"))
	s.mustKey("ana-laptop", user("ana"), "staff", identity.TeamPrefix+"web", identity.Admins)
	s.mustKey("ben", user("ben"))
	s.mustKey("robot", team("web"), "dev", identity.Admins)
	s.mustKey("spaces", user("Carl C."))
	s.mustKey("subject", identity.Owner{Kind: identity.Subject, Name: "job"}, identity.Admins)
	if err := s.key("old", user("dan"), true, identity.Admins, "staff"); err != nil {
		t.Fatal(err)
	}
	got, err := Open(s.envs[0]).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{
		Users: []User{
			{Name: "ana", Groups: []string{"staff"}, Admin: true, Keys: 2}, {Name: "ben", Through: []string{"ops"}, Keys: 1}, {Name: "dan", Keys: 1},
		},
		Teams: []Team{{Name: "web", New: true, Users: []string{"ana"}}},
		Keys: []Key{
			{Name: "ana-ci", Narrowed: "platform:user:ana"}, {Name: "ben", Narrowed: "platform:user:ben"},
			{Name: "old", Granted: []string{"staff"}, Lost: []string{identity.Admins}},
			{Name: "robot", Granted: []string{"dev"}, Lost: []string{identity.Admins}},
		},
	}
	if len(got.Blocked) != 1 || got.Blocked[0].Owner != user("Carl C.") || got.Blocked[0].Keys != 1 || got.Blocked[0].Why == "" {
		t.Errorf("blocked are %+v", got.Blocked)
	}
	got.Blocked = nil
	for i := range got.Users {
		if len(got.Users[i].Groups) == 0 {
			got.Users[i].Groups = nil
		}
		if len(got.Users[i].Through) == 0 {
			got.Users[i].Through = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is\n%+v, want\n%+v", got, want)
	}
	if lost := got.Losses(); len(lost) != 2 {
		t.Errorf("the losses are %+v", lost)
	}
	// Nothing is written before the plan is accepted.
	no := errors.New("no")
	if _, err := Open(s.envs[0]).Apply(t.Context(), func(*Plan) error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if again, err := Open(s.envs[0]).Plan(t.Context()); err != nil || len(again.Users) != 3 || len(again.Keys) != 4 {
		t.Errorf("after a refusal: %+v, %v", again, err)
	}
}

// Whatever keys there are, and wherever a run is interrupted: no key gains a right, no key loses a right that the plan
// does not name, and the next run has nothing to do. Source: ADR-0033.
func TestRightsStay(t *testing.T) {
	t.Parallel()
	possible := []string{"dev", "staff", identity.Admins, identity.TeamPrefix + "ops", identity.TeamPrefix + "web", identity.UserPrefix + "ben"}
	owners := []identity.Owner{user("ana"), user("ben"), user("carl"), team("ops"), team("web"), {Kind: identity.Subject, Name: "job"}}
	rapid.Check(t, func(rt *rapid.T) {
		s := newState(t)
		some := func(from []string, label string) []string {
			return slices.DeleteFunc(slices.Clone(from), func(string) bool { return rapid.IntRange(0, 2).Draw(rt, label) > 0 })
		}
		s.mustKey("admin", identity.Owner{Kind: identity.Subject, Name: "first"}, identity.Admins)
		if rapid.Bool().Draw(rt, "there is a team") {
			spec := model.TeamSpec{Users: some([]string{"ana", "ben", "carl"}, "member"), Groups: some([]string{"dev", "staff"}, "group")}
			if rapid.Bool().Draw(rt, "of admins") {
				spec.ClusterRoles = []model.ClusterRole{{Name: model.ClusterRoleAdmin}}
			}
			s.team("ops", spec)
		}
		before, disabled := map[string][]string{}, map[string]bool{}
		for i := range rapid.IntRange(1, 7).Draw(rt, "keys") {
			name, owner := fmt.Sprint("key-", i), rapid.SampledFrom(owners).Draw(rt, "owner")
			groups := some(possible, "group")
			disabled[name] = rapid.IntRange(0, 3).Draw(rt, "disabled") == 0
			if err := s.key(name, owner, false, groups...); apierrors.IsForbidden(err) {
				// The owner is a team that exists.
				continue
			} else if err != nil {
				rt.Fatal(err)
			}
			got, err := s.rights(name)
			if err != nil {
				rt.Fatalf("%s before: %v", name, err)
			}
			if before[name] = got; disabled[name] {
				s.disable(name, true)
			}
		}
		adopter := Open(s.envs[rapid.IntRange(0, 1).Draw(rt, "process")])
		first, err := adopter.Plan(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		losses := map[string][]string{}
		for _, key := range first.Losses() {
			losses[key.Name] = key.Lost
		}
		check := func(about string) {
			for name, had := range before {
				if disabled[name] {
					continue
				}
				got, err := s.rights(name)
				want := slices.DeleteFunc(slices.Clone(had), func(group string) bool { return slices.Contains(losses[name], group) })
				whole := slices.Equal(got, had)
				if err != nil || !whole && !slices.Equal(got, want) {
					rt.Fatalf("%s: %s has %q, %v; it had %q, and may lose %q", about, name, got, err, had, losses[name])
				}
			}
		}
		parts := *first
		switch rapid.SampledFrom([]string{"nowhere", "keys", "teams", "a user"}).Draw(rt, "breaks off after") {
		case "keys":
			parts.Teams, parts.Users = nil, nil
		case "teams":
			parts.Users = nil
		case "a user":
			parts.Users = parts.Users[:min(1, len(parts.Users))]
		default:
			parts = Plan{}
		}
		if err := adopter.write(t.Context(), &parts); err != nil {
			rt.Fatal(err)
		}
		check("after a run that broke off")
		if _, err := adopter.Apply(t.Context(), accept); err != nil {
			rt.Fatal(err)
		}
		check("after the run")
		for name := range before {
			if disabled[name] {
				s.disable(name, false)
				disabled[name] = false
			}
		}
		check("with all keys enabled")
		if err := adopter.Demand(t.Context(), accept); err != nil {
			rt.Fatal(err)
		}
		check("where every owner needs an object")
		if last, err := Open(s.envs[1]).Plan(t.Context()); err != nil || !last.Empty() {
			rt.Fatalf("there is still to do: %+v, %v", last, err)
		}
	})
}

// Where every owner needs an object, every process refuses a key without one from the next request on, and no such key
// is made. Source: ADR-0033.
func TestDemand(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.mustKey("first", user("ana"), identity.Admins)
	s.mustKey("spaces", user("Carl C."))
	s.mustKey("job", identity.Owner{Kind: identity.Subject, Name: "job"})
	for _, name := range []string{"first", "spaces", "job"} {
		if _, err := s.rights(name); err != nil {
			t.Errorf("%s before: %v", name, err)
		}
	}
	if err := Open(s.envs[0]).Demand(t.Context(), accept); err != nil {
		t.Fatal(err)
	}
	for name, works := range map[string]bool{"first": true, "spaces": false, "job": true} {
		if _, err := s.rights(name); (err == nil) != works || err != nil && !apierrors.IsUnauthorized(err) {
			t.Errorf("%s after: %v", name, err)
		}
	}
	for _, env := range s.envs {
		caller, err := accesskey.OpenAuthenticator(env).Bearer(t.Context(), secret.String(bearer("first")))
		if err != nil {
			t.Fatal(err)
		}
		for owner, want := range map[identity.Owner]int32{user("nobody"): 422, team("none"): 422, user("ana"): 0, {Kind: identity.Subject, Name: "x"}: 0} {
			var spec model.OwnedAccessKeySpec
			spec.User, spec.Team, spec.Subject = owner.Fields()
			_, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
				Caller: caller, Object: &model.OwnedAccessKey{Spec: spec},
			})
			var status apierrors.APIStatus
			if (err == nil) != (want == 0) || err != nil && (!errors.As(err, &status) || status.Status().Code != want) {
				t.Errorf("a key of %v: %v", owner, err)
			}
		}
	}
	// The last admin stays: the key of an owner without an object does not count as one.
	if err := s.key("other", user("Eve E."), false, identity.Admins); err == nil {
		t.Error("a key of an owner who cannot have an object is made")
	}
	if _, err := resource.Delete(t.Context(), kinds.Users(s.envs[1]), resource.DeleteInput{Caller: root, Name: "ana"}); !apierrors.IsConflict(err) {
		t.Errorf("the last admin is deleted: %v", err)
	}
}
