// Package society_test compares the rights of people on the platform with a small model: users and teams are made, changed, disabled, signed
// out and deleted at random, while their access keys and tokens are made, narrowed, disabled and deleted, at two processes. After each step,
// every key is accepted or refused as the model says, with exactly its groups, and its caller sees exactly the users, teams and keys of the
// model. Source: ADR-0029.
package society_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// root is an admin without a key. keeper is a user who is always an admin, so that the rule about the last admin never applies.
var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

const keeper = "keeper"

var (
	users  = []string{"ana", "ben", "carl"}
	teams  = []string{"ops", "web"}
	groups = []string{"blue", "red"}
)

// person is a user or a team of the model.
type person struct {
	// version distinguishes objects of the same name; 0 means that there is no object.
	version    int
	disabled   bool
	admin      bool
	generation int
	// groups are the groups of a user, or the groups that a team lists. users are the users that a team lists.
	groups, users []string
}

// key is an access key of the model.
type key struct {
	name, bearer string
	owner        identity.Owner
	groups       []string
	granted      []string
	disabled     bool
	// noted is true if the key was made for an object of its owner, with this version and generation.
	noted               bool
	version, generation int
}

// issuedToken is a token of the model.
type issuedToken struct {
	key     *key
	text    string
	groups  []string
	revoked bool
}

// society is the model, with two processes of the platform that share their state.
type society struct {
	t         *testing.T
	processes [2]*platform.Environment
	people    map[identity.Owner]*person
	keys      []*key
	tokens    []*issuedToken
	keyCount  int
	server    *miniredis.Miniredis
	clients   []*redisstore.Client
}

// close ends the state: thousands of sequences would use up the connections of a process.
func (s *society) close() {
	for _, client := range s.clients {
		_ = client.Close()
	}
	s.server.Close()
}

func newSociety(t *testing.T) *society {
	t.Helper()
	s := &society{t: t, people: map[identity.Owner]*person{}}
	server, err := miniredis.Run()
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	for i := range s.processes {
		client, err := redisstore.Open("redis://"+server.Addr(), redisstore.Options{Timeout: redistest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		s.clients = append(s.clients, client)
		s.processes[i] = &platform.Environment{
			Stores: client.Resource, Now: func() time.Time { return now }, Random: rand.Reader,
			Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
			Log:        slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
			Tokens: settings.Tokens{Issuer: "https://platform.example"},
		}
	}
	for _, name := range users {
		s.people[identity.Owner{Kind: identity.User, Name: name}] = &person{}
	}
	for _, name := range teams {
		s.people[identity.Owner{Kind: identity.Team, Name: name}] = &person{}
	}
	_, err = resource.Create(t.Context(), kinds.Users(s.processes[0]), resource.CreateInput[*model.User]{Caller: root, Object: &model.User{
		ObjectMeta: metav1.ObjectMeta{Name: keeper}, Spec: model.UserSpec{ClusterRoles: roles(true)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func roles(admin bool) []model.ClusterRole {
	if admin {
		return []model.ClusterRole{{Name: model.ClusterRoleAdmin}}
	}
	return nil
}

// gives returns the groups that the object of an owner gives. Nil: there is no object.
func (s *society) gives(owner identity.Owner) []string {
	p := s.people[owner]
	if p.version == 0 {
		return nil
	}
	admin := p.admin
	var groups []string
	if owner.Kind == identity.Team {
		groups = []string{identity.TeamPrefix + owner.Name}
	} else {
		groups = append([]string{identity.UserPrefix + owner.Name}, p.groups...)
		for _, name := range teams {
			team := s.people[identity.Owner{Kind: identity.Team, Name: name}]
			if team.version == 0 || team.disabled || !slices.Contains(team.users, owner.Name) &&
				!slices.ContainsFunc(team.groups, func(group string) bool { return slices.Contains(p.groups, group) }) {
				continue
			}
			groups = append(groups, identity.TeamPrefix+name)
			admin = admin || team.admin
		}
	}
	if admin {
		groups = append(groups, identity.Admins)
	}
	return groups
}

// expect returns the groups of the caller with a key, or that the key is refused.
func (s *society) expect(k *key) (want []string, accepted bool) {
	p := s.people[k.owner]
	switch {
	case k.disabled, p.version > 0 && p.disabled:
		return nil, false
	case p.version > 0 && (k.noted && k.version != p.version || p.generation > 0 && (!k.noted || k.generation < p.generation)):
		return nil, false
	}
	gives := s.gives(k.owner)
	switch {
	case p.version == 0:
		want = slices.Clone(k.groups)
	case len(k.groups) == 0:
		want = gives
	default:
		for _, group := range k.groups {
			if slices.Contains(gives, group) || slices.Contains(k.granted, group) {
				want = append(want, group)
			}
		}
	}
	own := identity.UserPrefix
	if k.owner.Kind == identity.Team {
		own = identity.TeamPrefix
	}
	return ordered(append(slices.Clone(want), own+k.owner.Name, identity.Authenticated)), true
}

func ordered(groups []string) []string {
	groups = slices.Clone(groups)
	slices.Sort(groups)
	return slices.Compact(groups)
}

func (s *society) env(rt *rapid.T) *platform.Environment {
	return s.processes[rapid.IntRange(0, 1).Draw(rt, "process")]
}

// drawSome draws some entries of a list, each at most once, in their order.
func drawSome(rt *rapid.T, from []string, label string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(string) bool { return rapid.IntRange(0, 2).Draw(rt, label) > 0 })
}

func (s *society) owner(rt *rapid.T) identity.Owner {
	var all []identity.Owner
	for _, name := range users {
		all = append(all, identity.Owner{Kind: identity.User, Name: name})
	}
	for _, name := range teams {
		all = append(all, identity.Owner{Kind: identity.Team, Name: name})
	}
	return rapid.SampledFrom(all).Draw(rt, "owner")
}

// drawExisting draws an owner with an object.
func (s *society) drawExisting(rt *rapid.T) identity.Owner {
	owner := s.owner(rt)
	if s.people[owner].version == 0 {
		rt.Skip("it does not exist")
	}
	return owner
}

func (s *society) key(rt *rapid.T) *key {
	if len(s.keys) == 0 {
		rt.Skip("there is no key")
	}
	return rapid.SampledFrom(s.keys).Draw(rt, "key")
}

// create makes a user or a team.
func (s *society) create(rt *rapid.T) {
	owner := s.owner(rt)
	p := s.people[owner]
	if p.version > 0 {
		rt.Skip("it exists")
	}
	s.keyCount++
	*p = person{version: s.keyCount, admin: rapid.IntRange(0, 4).Draw(rt, "admin") == 0, groups: drawSome(rt, groups, "groups")}
	meta := metav1.ObjectMeta{Name: owner.Name}
	var err error
	if owner.Kind == identity.User {
		_, err = resource.Create(s.t.Context(), kinds.Users(s.env(rt)), resource.CreateInput[*model.User]{
			Caller: root, Object: &model.User{ObjectMeta: meta, Spec: model.UserSpec{Groups: p.groups, ClusterRoles: roles(p.admin)}},
		})
	} else {
		p.users = drawSome(rt, users, "users")
		_, err = resource.Create(s.t.Context(), kinds.Teams(s.env(rt)), resource.CreateInput[*model.Team]{
			Caller: root, Object: &model.Team{ObjectMeta: meta, Spec: model.TeamSpec{Groups: p.groups, Users: p.users, ClusterRoles: roles(p.admin)}},
		})
	}
	if err != nil {
		rt.Fatalf("creating %v: %v", owner, err)
	}
}

// change changes the spec of a user or a team.
func (s *society) change(rt *rapid.T) {
	owner := s.drawExisting(rt)
	p := s.people[owner]
	stored := kinds.Open(s.env(rt))
	p.groups = drawSome(rt, groups, "groups")
	p.admin = rapid.IntRange(0, 4).Draw(rt, "admin") == 0
	p.disabled = rapid.IntRange(0, 3).Draw(rt, "disabled") == 0
	var err error
	if owner.Kind == identity.User {
		object, getErr := resource.Get(s.t.Context(), stored.Users, resource.GetInput{Caller: root, Name: owner.Name})
		if getErr != nil {
			rt.Fatal(getErr)
		}
		object = object.DeepCopy()
		object.Spec.Groups, object.Spec.ClusterRoles, object.Spec.Disabled = p.groups, roles(p.admin), p.disabled
		_, err = resource.Update(s.t.Context(), stored.Users, resource.UpdateInput[*model.User]{Caller: root, Name: owner.Name, Object: object})
	} else {
		p.users = drawSome(rt, users, "users")
		object, getErr := resource.Get(s.t.Context(), stored.Teams, resource.GetInput{Caller: root, Name: owner.Name})
		if getErr != nil {
			rt.Fatal(getErr)
		}
		object = object.DeepCopy()
		object.Spec.Groups, object.Spec.Users, object.Spec.ClusterRoles, object.Spec.Disabled = p.groups, p.users, roles(p.admin), p.disabled
		_, err = resource.Update(s.t.Context(), stored.Teams, resource.UpdateInput[*model.Team]{Caller: root, Name: owner.Name, Object: object})
	}
	if err != nil {
		rt.Fatalf("changing %v: %v", owner, err)
	}
}

// remove deletes a user or a team, with their keys.
func (s *society) remove(rt *rapid.T) {
	owner := s.drawExisting(rt)
	stored, in := kinds.Open(s.env(rt)), resource.DeleteInput{Caller: root, Name: owner.Name}
	var err error
	if owner.Kind == identity.User {
		_, err = resource.Delete(s.t.Context(), stored.Users, in)
	} else {
		_, err = resource.Delete(s.t.Context(), stored.Teams, in)
	}
	if err != nil {
		rt.Fatalf("deleting %v: %v", owner, err)
	}
	*s.people[owner] = person{}
	s.forget(rt, func(k *key) bool { return k.owner == owner })
}

// forget removes keys and their tokens, which must be gone, from the model.
func (s *society) forget(rt *rapid.T, isGone func(*key) bool) {
	for _, k := range s.keys {
		if isGone(k) {
			if caller, err := s.authenticate(s.processes[0], k); !apierrors.IsUnauthorized(err) {
				rt.Fatalf("the key %s of %v is gone, and authenticates %v, %v", k.name, k.owner, caller.Groups, err)
			}
		}
	}
	s.keys = slices.DeleteFunc(s.keys, isGone)
	for _, one := range s.tokens {
		one.revoked = one.revoked || isGone(one.key)
	}
}

func (s *society) signOut(rt *rapid.T) {
	owner := s.drawExisting(rt)
	if owner.Kind != identity.User {
		rt.Skip("a team does not sign out")
	}
	if _, err := user.SignOutUser(s.t.Context(), kinds.Users(s.env(rt)), resource.SubresourceInput[*model.UserSignOut]{
		Caller: root, Name: owner.Name, Object: &model.UserSignOut{},
	}); err != nil {
		rt.Fatal(err)
	}
	s.people[owner].generation++
}

// issueKey makes a key, as an admin for an owner or as a caller for themselves.
func (s *society) issueKey(rt *rapid.T) {
	if len(s.keys) >= 12 {
		rt.Skip("there are enough")
	}
	s.keyCount++
	env, caller := s.env(rt), root
	newKey := &key{name: fmt.Sprint("key-", s.keyCount), bearer: accesskey.Digest(secret.String(fmt.Sprint("key-", s.keyCount))), owner: s.owner(rt)}
	possible := append(slices.Clone(groups), identity.Admins, identity.TeamPrefix+teams[0])
	if rapid.Bool().Draw(rt, "narrow") {
		newKey.groups = drawSome(rt, possible, "of the key")
	}
	p := s.people[newKey.owner]
	gives := s.gives(newKey.owner)
	allowed, groups := true, newKey.groups
	if len(s.keys) > 0 && rapid.Bool().Draw(rt, "by themselves") {
		maker := s.key(rt)
		newKey.owner = maker.owner
		p, gives = s.people[newKey.owner], s.gives(newKey.owner)
		has, accepted := s.expect(maker)
		if !accepted {
			rt.Skip("the maker is refused")
		}
		var err error
		if caller, err = s.authenticate(env, maker); err != nil {
			rt.Fatal(err)
		}
		if !slices.Contains(has, identity.Admins) && p.version > 0 && len(maker.groups) > 0 && len(newKey.groups) == 0 {
			// A credential made by a key that names groups has no other groups.
			own := identity.UserPrefix + maker.owner.Name
			if maker.owner.Kind == identity.Team {
				own = identity.TeamPrefix + maker.owner.Name
			}
			for _, group := range has {
				if slices.Contains(gives, group) && group != own {
					newKey.groups = append(newKey.groups, group)
				}
			}
			if len(newKey.groups) == 0 {
				newKey.groups = []string{own}
			}
			groups = nil
		}
		allowed = slices.Contains(has, identity.Admins) ||
			!slices.ContainsFunc(newKey.groups, func(group string) bool { return !slices.Contains(has, group) })
	}
	admin := caller.Admin()
	for _, group := range newKey.groups {
		if p.version == 0 || slices.Contains(gives, group) {
			continue
		}
		if !admin || strings.HasPrefix(group, identity.PlatformPrefix) {
			allowed = false
		} else {
			newKey.granted = append(newKey.granted, group)
		}
	}
	allowed = allowed && (p.version == 0 || !p.disabled)
	newKey.noted, newKey.version, newKey.generation = p.version > 0, p.version, p.generation
	spec := model.OwnedAccessKeySpec{Groups: groups, Key: newKey.bearer}
	spec.User, spec.Team, spec.Subject = newKey.owner.Fields()
	_, err := resource.Create(s.t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: newKey.name}, Spec: spec},
	})
	if (err == nil) != allowed || err != nil && !apierrors.IsForbidden(err) {
		rt.Fatalf("a key of %v with the groups %q, made by %v with %q: %v, allowed %v", newKey.owner, newKey.groups, caller.Owner, caller.Groups, err, allowed)
	}
	if allowed {
		s.keys = append(s.keys, newKey)
	}
}

func (s *society) switchKey(rt *rapid.T) {
	k := s.key(rt)
	k.disabled = rapid.Bool().Draw(rt, "disabled")
	if _, err := resource.Patch(s.t.Context(), kinds.AccessKeys(s.env(rt)), resource.PatchInput{
		Caller: root, Name: k.name, Type: resource.MergePatch, Patch: fmt.Appendf(nil, `{"spec":{"disabled":%v}}`, k.disabled),
	}); err != nil {
		rt.Fatal(err)
	}
}

func (s *society) removeKey(rt *rapid.T) {
	k := s.key(rt)
	if _, err := resource.Delete(s.t.Context(), kinds.AccessKeys(s.env(rt)), resource.DeleteInput{Caller: root, Name: k.name}); err != nil {
		rt.Fatal(err)
	}
	s.forget(rt, func(other *key) bool { return other == k })
}

func (s *society) issueToken(rt *rapid.T) {
	k := s.key(rt)
	want, accepted := s.expect(k)
	if !accepted || len(s.tokens) >= 8 {
		rt.Skip("the key is refused, or there are enough")
	}
	env := s.env(rt)
	caller, err := s.authenticate(env, k)
	if err != nil {
		rt.Fatal(err)
	}
	made, err := issuer.Open(env, issuedtoken.Open(env)).Issue(s.t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{}})
	if err != nil {
		rt.Fatal(err)
	}
	s.tokens = append(s.tokens, &issuedToken{key: k, text: made.Object.Status.Token, groups: want})
}

// sweep runs the schedule of tokens, which permanently revokes the tokens that offline verifiers must not accept.
func (s *society) sweep(rt *rapid.T) {
	if _, err := kinds.IssuedTokens(s.env(rt)).Sweep(s.t.Context()); err != nil {
		rt.Fatal(err)
	}
	for _, one := range s.tokens {
		now, accepted := s.expect(one.key)
		lost := slices.ContainsFunc(one.groups, func(group string) bool { return !slices.Contains(now, group) })
		one.revoked = one.revoked || !accepted || lost
	}
}

func (s *society) authenticate(env *platform.Environment, k *key) (identity.Caller, error) {
	return accesskey.OpenAuthenticator(env).Bearer(s.t.Context(), secret.String(k.bearer))
}

// check compares all keys and tokens with the model, in both processes.
func (s *society) check(rt *rapid.T) {
	for i, env := range s.processes {
		for _, k := range s.keys {
			want, accepted := s.expect(k)
			caller, err := s.authenticate(env, k)
			if err != nil && !apierrors.IsUnauthorized(err) {
				rt.Fatalf("process %d: %s: %v", i, k.name, err)
			}
			if got := ordered(identity.WithoutKubernetes(caller.Groups)); (err == nil) != accepted || accepted && !slices.Equal(got, want) {
				rt.Fatalf("process %d: %s of %v: %v with %q, want %v with %q", i, k.name, k.owner, err, got, accepted, want)
			}
			if accepted {
				s.checkSight(rt, env, k, caller, want)
			}
		}
		for _, issued := range s.tokens {
			now, accepted := s.expect(issued.key)
			accepted = accepted && !issued.revoked
			claims, _, err := issuer.Open(env, issuedtoken.Open(env)).Verify(s.t.Context(), secret.String(issued.text), issuer.Open(env, issuedtoken.Open(env)).Audiences())
			if err != nil && token.Refusal(err) == nil {
				rt.Fatalf("process %d: a token of %s: %v", i, issued.key.name, err)
			}
			want := slices.DeleteFunc(slices.Clone(issued.groups), func(group string) bool { return !slices.Contains(now, group) })
			if got := ordered(claims.Groups); (err == nil) != accepted || accepted && !slices.Equal(got, want) {
				rt.Fatalf("process %d: a token of %s: %v with %q, want %v with %q", i, issued.key.name, err, got, accepted, want)
			}
		}
	}
}

// checkSight compares the objects that a caller sees with the model.
func (s *society) checkSight(rt *rapid.T, env *platform.Environment, k *key, caller identity.Caller, has []string) {
	admin := slices.Contains(has, identity.Admins)
	sees := func(owner identity.Owner) bool {
		return owner == k.owner || owner.Kind == identity.Team && slices.Contains(has, identity.TeamPrefix+owner.Name)
	}
	var want []string
	for owner, p := range s.people {
		if p.version > 0 && (admin || sees(owner)) {
			want = append(want, owner.String())
		}
	}
	if admin {
		want = append(want, "user:"+keeper)
	}
	for _, other := range s.keys {
		if admin || sees(other.owner) {
			want = append(want, "key:"+other.name)
		}
	}
	var got []string
	stored := kinds.Open(env)
	in := resource.ListInput{Caller: caller}
	list := func(found runtime.Object, err error) runtime.Object {
		if err != nil {
			rt.Fatal(err)
		}
		return found
	}
	for _, each := range list(resource.List(s.t.Context(), stored.Users, in)).(*model.UserList).Items {
		got = append(got, "user:"+each.Name)
	}
	for _, each := range list(resource.List(s.t.Context(), stored.Teams, in)).(*model.TeamList).Items {
		got = append(got, "team:"+each.Name)
	}
	for _, each := range list(resource.List(s.t.Context(), stored.AccessKeys, in)).(*model.OwnedAccessKeyList).Items {
		got = append(got, "key:"+each.Name)
	}
	if got, want = ordered(got), ordered(want); !slices.Equal(got, want) {
		rt.Fatalf("%s of %v with %q sees %q, want %q", k.name, k.owner, has, got, want)
	}
}

func TestSociety(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newSociety(t)
		defer s.close()
		rt.Repeat(map[string]func(*rapid.T){
			"":             s.check,
			"create":       s.create,
			"create more":  s.create,
			"change":       s.change,
			"change again": s.change,
			"delete":       s.remove,
			"sign out":     s.signOut,
			"key":          s.issueKey,
			"more keys":    s.issueKey,
			"switch a key": s.switchKey,
			"delete a key": s.removeKey,
			"token":        s.issueToken,
			"schedule":     s.sweep,
		})
	})
}
