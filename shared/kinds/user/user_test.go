package user_test

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var (
	admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	ana   = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	roles = []model.ClusterRole{{Name: model.ClusterRoleAdmin}}
)

// world has the stored kinds over an empty state.
type world struct {
	*kinds.Stored
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	config := &model.ConfigStatus{}
	return &world{t: t, Stored: kinds.Open(&platform.Environment{
		Stores: client.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return config },
	})}
}

func code(err error) int32 {
	if err == nil {
		return 200
	}
	return apierror.From(err).Status().Code
}

// fields returns the fields that an error names.
func fields(err error) []string {
	var names []string
	for _, cause := range apierror.From(err).Status().Details.Causes {
		names = append(names, cause.Field)
	}
	return names
}

func (w *world) user(name string, spec model.UserSpec) error {
	_, err := resource.Create(w.t.Context(), w.Users, resource.CreateInput[*model.User]{
		Caller: admin, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
	})
	return err
}

func (w *world) patch(caller identity.Caller, name, patch string) error {
	_, err := resource.Patch(w.t.Context(), w.Users, resource.PatchInput{
		Caller: caller, Name: name, Type: resource.MergePatch, Patch: []byte(patch),
	})
	return err
}

func (w *world) delete(name string) error {
	_, err := resource.Delete(w.t.Context(), w.Users, resource.DeleteInput{Caller: admin, Name: name})
	return err
}

func (w *world) key(name, owner string, groups ...string) {
	w.t.Helper()
	if _, err := resource.Create(w.t.Context(), w.AccessKeys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: admin, Object: &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.OwnedAccessKeySpec{User: owner, Groups: groups},
		},
	}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) expect(about string, err error, want int32) {
	w.t.Helper()
	if got := code(err); got != want {
		w.t.Errorf("%s: %d %v, want %d", about, got, err, want)
	}
}

// A refusal names everything that is wrong with a user. Source: ADR-0029.
func TestValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.user("ana", model.UserSpec{
		DisplayName: strings.Repeat("a", 257), Username: "system:ana", Email: "ana", Icon: "http://a.example/a.png", Subject: "1",
		Groups: []string{"platform:admins", "a", "a", ""}, SSOGroups: []string{"system:masters"},
		ClusterRoles: []model.ClusterRole{{Name: "root"}}, TokenGeneration: -1,
	})
	w.expect("a wrong user", err, 422)
	want := []string{
		"spec.clusterRoles[0].name", "spec.connector", "spec.displayName", "spec.email", "spec.groups[0]", "spec.groups[2]", "spec.groups[3]",
		"spec.icon", "spec.ssoGroups[0]", "spec.tokenGeneration", "spec.username",
	}
	if got := fields(err); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the answer names %q, want %q", got, want)
	}
	w.expect("a user", w.user("ana", model.UserSpec{Connector: "corp", Subject: "1", TokenGeneration: 2}), 200)
	err = w.user("ben", model.UserSpec{Connector: "corp", Subject: "1"})
	w.expect("the same identity", err, 422)
	if got := fields(err); !slices.Equal(got, []string{"spec.subject"}) {
		t.Errorf("the answer names %q", got)
	}
	w.expect("the subject of another connector", w.user("ben", model.UserSpec{Connector: "other", Subject: "1"}), 200)
	w.expect("taking an identity", w.patch(admin, "ben", `{"spec":{"connector":"corp"}}`), 422)
	w.expect("a lower generation", w.patch(admin, "ana", `{"spec":{"tokenGeneration":1}}`), 422)
}

// Users see themselves, and can change their display name and icon. Source: ADR-0029.
func TestSelf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.expect("ana", w.user("ana", model.UserSpec{}), 200)
	w.expect("ben", w.user("ben", model.UserSpec{}), 200)
	w.expect("the display name", w.patch(ana, "ana", `{"spec":{"displayName":"Ana","icon":"https://a.example/a.png"}}`), 200)
	w.expect("another user", w.patch(ana, "ben", `{"spec":{"displayName":"Ana"}}`), 404)
	err := w.patch(ana, "ana", `{"metadata":{"labels":{"a":"b"}},"spec":{"clusterRoles":[{"name":"platform-admin"}],"groups":["a"],"disabled":true,"tokenGeneration":1}}`)
	w.expect("rights", err, 403)
	if got := fields(err); !slices.Equal(got, []string{"metadata.labels", "spec.groups", "spec.clusterRoles", "spec.disabled", "spec.tokenGeneration"}) {
		t.Errorf("the answer names %q", got)
	}
	_, err = resource.Delete(t.Context(), w.Users, resource.DeleteInput{Caller: ana, Name: "ana"})
	w.expect("deleting oneself", err, 403)
}

// The last admin stays, unless an admin key of an owner without an object remains. Source: ADR-0029.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.expect("an admin", w.user("ana", model.UserSpec{ClusterRoles: roles}), 200)
	w.expect("no admin", w.user("ben", model.UserSpec{}), 200)
	for _, patch := range []string{`{"spec":{"disabled":true}}`, `{"spec":{"clusterRoles":null}}`} {
		w.expect("the last admin: "+patch, w.patch(admin, "ana", patch), 409)
	}
	w.expect("deleting the last admin", w.delete("ana"), 409)
	w.expect("another user", w.patch(admin, "ben", `{"spec":{"disabled":true}}`), 200)
	w.key("root", "root", identity.Admins)
	w.expect("with an admin key", w.patch(admin, "ana", `{"spec":{"disabled":true}}`), 200)
	w.expect("the owner of the last admin key", w.user("root", model.UserSpec{}), 409)
	w.expect("the owner of the last admin key as an admin", w.user("root", model.UserSpec{ClusterRoles: roles}), 200)
	_, err := resource.Create(t.Context(), w.Teams, resource.CreateInput[*model.Team]{
		Caller: admin, Object: &model.Team{ObjectMeta: metav1.ObjectMeta{Name: "ops"}, Spec: model.TeamSpec{Users: []string{"zoe"}, ClusterRoles: roles}},
	})
	w.expect("a team of admins", err, 200)
	w.expect("without its member", w.delete("root"), 409)
	w.expect("its member", w.user("zoe", model.UserSpec{}), 200)
	w.expect("with its member", w.delete("root"), 200)
	_, err = resource.Delete(t.Context(), w.Teams, resource.DeleteInput{Caller: admin, Name: "ops"})
	w.expect("deleting the team of the last admin", err, 409)
	_, err = resource.Patch(t.Context(), w.Teams, resource.PatchInput{Caller: admin, Name: "ops", Type: resource.MergePatch, Patch: []byte(`{"spec":{"users":[]}}`)})
	w.expect("taking the last admin out of the team", err, 409)
}

// Deleting all users or all teams stops at the last admin. Source: ADR-0029.
func TestLastAdminOfACollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.expect("an admin", w.user("ana", model.UserSpec{ClusterRoles: roles}), 200)
	w.expect("no admin", w.user("ben", model.UserSpec{}), 200)
	all := resource.DeleteInput{Caller: admin, Selection: &resource.ListInput{Caller: admin}}
	_, err := resource.Delete(t.Context(), w.Users, all)
	w.expect("all users", err, 409)
	if _, err := w.Users.Store.Get(t.Context(), "ana"); err != nil {
		t.Errorf("the last admin is gone: %v", err)
	}
	_, err = resource.Create(t.Context(), w.Teams, resource.CreateInput[*model.Team]{
		Caller: admin, Object: &model.Team{ObjectMeta: metav1.ObjectMeta{Name: "ops"}, Spec: model.TeamSpec{Users: []string{"ana"}, ClusterRoles: roles}},
	})
	w.expect("a team of admins", err, 200)
	w.expect("an admin by the team alone", w.patch(admin, "ana", `{"spec":{"clusterRoles":null}}`), 200)
	_, err = resource.Delete(t.Context(), w.Teams, all)
	w.expect("all teams", err, 409)
	if _, err := w.Teams.Store.Get(t.Context(), "ops"); err != nil {
		t.Errorf("the team of the last admin is gone: %v", err)
	}
}

// A deleted user stays until their keys are gone, whatever clients do to the finalizers. The keys of others stay.
// Source: ADR-0029.
func TestDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.expect("ana", w.user("ana", model.UserSpec{}), 200)
	// These are more keys than one request deletes.
	for i := range 120 {
		w.key("ana-"+string(rune('a'+i/26))+string(rune('a'+i%26)), "ana")
	}
	w.key("ben", "ben")
	w.expect("delete", w.delete("ana"), 200)
	w.expect("removing the finalizer", w.patch(admin, "ana", `{"metadata":{"finalizers":null}}`), 200)
	if _, err := w.Users.Store.Get(t.Context(), "ana"); err != nil {
		t.Errorf("the user is gone before their keys: %v", err)
	}
	if _, err := w.Graph.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := w.AccessKeys.Store.List(t.Context(), store.Query{})
	if err != nil || len(page.Records) != 1 || page.Records[0].Name != "ben" {
		t.Errorf("%d keys are left, %v", len(page.Records), err)
	}
	if _, err := w.Users.Store.Get(t.Context(), "ana"); code(err) == 200 {
		t.Error("the user is still there")
	}
}
