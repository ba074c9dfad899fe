// Package lastadmin keeps the last admin: it refuses a write of a user or of a team after which the platform would have no admin.
// Source: ADR-0029.
package lastadmin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/membership"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

const (
	// lockName is the name of the only object of LockResource. A process that holds the lock longer than lockFor has crashed: a
	// request takes less time.
	lockName = "lastadmin"
	lockFor  = time.Minute
	// maxTries is how often a request tries to take the lock. pause is the longest time between two tries.
	maxTries = 50
	pause    = 40 * time.Millisecond
	// maxKeys bounds the keys that are read to find the key of an admin without an object.
	maxKeys = 10_000
)

// LockResource is the resource of the lock in the state. The lock serializes the writes that take the rights of an admin away.
const LockResource = "adminlock"

// Guard keeps the last admin. It is safe for concurrent use. Source: ADR-0029.
type Guard struct {
	users, teams, locks store.Store
	keys                *accesskey.Registry
	people              *directory.Directory
	limits              func() accesskey.Limits
	now                 func() time.Time
}

// Open returns the guard of an environment.
//
//go:noinline
func Open(env *platform.Environment) *Guard {
	return platform.Single(env, func(env *platform.Environment) *Guard {
		return &Guard{
			users: env.Stores(directory.Users), teams: env.Stores(directory.Teams), locks: env.Stores(LockResource),
			keys: accesskey.Open(env), people: directory.Open(env), limits: accesskey.OpenLimits(env), now: env.Now,
		}
	})
}

// HasAdmin reports whether the platform has an admin: an enabled user who is an admin, or an admin key that works, has no scope
// and does not end by itself.
func (g *Guard) HasAdmin(ctx context.Context) (bool, error) {
	return g.leavesAdmin(ctx, change{}, identity.Owner{})
}

// change is the write of a user or of a team. Nil is an absent object.
type change struct {
	user, oldUser *model.User
	team, oldTeam *model.Team
}

// CheckUser refuses the write of a user after which the platform would have no admin; see resource.Invariant.
func (g *Guard) CheckUser(ctx context.Context, user, old *model.User) (release func(), err error) {
	switch {
	case old == nil:
		return g.create(ctx, identity.Owner{Kind: identity.User, Name: user.Name}, change{user: user})
	case !enabledUser(old), user != nil && enabledUser(user) && sameRights(user, old):
		return func() {}, nil
	}
	return g.check(ctx, change{user: user, oldUser: old}, identity.Owner{Kind: identity.User, Name: old.Name})
}

// CheckTeam refuses the write of a team after which the platform would have no admin; see resource.Invariant.
func (g *Guard) CheckTeam(ctx context.Context, team, old *model.Team) (release func(), err error) {
	switch {
	case old == nil:
		return g.create(ctx, identity.Owner{Kind: identity.Team, Name: team.Name}, change{team: team})
	case !adminTeam(old), team != nil && adminTeam(team) && slices.Equal(team.Spec.Users, old.Spec.Users) && slices.Equal(team.Spec.Groups, old.Spec.Groups):
		return func() {}, nil
	}
	return g.check(ctx, change{team: team, oldTeam: old}, identity.Owner{Kind: identity.Team, Name: old.Name})
}

// create checks the creation of the object of an owner who had none. From then on, the owner's keys have the rights of the
// object.
func (g *Guard) create(ctx context.Context, owner identity.Owner, write change) (release func(), err error) {
	admin, err := g.adminKey(ctx, store.Query{Owners: []string{owner.String()}}, false, nil)
	if err != nil || !admin {
		return func() {}, err
	}
	return g.check(ctx, write, owner)
}

func enabledUser(user *model.User) bool { return !user.Spec.Disabled && user.DeletionTimestamp == nil }

func adminTeam(team *model.Team) bool {
	return !team.Spec.Disabled && team.DeletionTimestamp == nil && directory.Admins(team.Spec.ClusterRoles)
}

// sameRights reports whether two forms of a user have the same roles and groups.
func sameRights(user, old *model.User) bool {
	return apiequality.Semantic.DeepEqual(user.Spec.ClusterRoles, old.Spec.ClusterRoles) &&
		apiequality.Semantic.DeepEqual(user.Spec.Groups, old.Spec.Groups) && apiequality.Semantic.DeepEqual(user.Spec.SSOGroups, old.Spec.SSOGroups)
}

// check takes the lock and refuses a write that takes the last admin away. Owner is the owner whose object is written.
func (g *Guard) check(ctx context.Context, write change, owner identity.Owner) (release func(), err error) {
	release, err = g.lock(ctx)
	if err != nil {
		return nil, err
	}
	left, err := g.leavesAdmin(ctx, write, owner)
	if err == nil && !left {
		err = refusal(owner)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// ErrLastAdmin means that the platform would have no admin after the write.
var ErrLastAdmin = errors.New("the write takes the last admin away")

// refusal is the answer to a write that takes the last admin away.
func refusal(owner identity.Owner) error {
	target := schema.GroupResource{Group: model.GroupName, Resource: string(owner.Kind) + "s"}
	return apierror.Conflict(target, owner.Name, fmt.Sprintf(
		"the platform would have no admin afterwards; give another enabled user the cluster role %q first", model.ClusterRoleAdmin),
	).Because(ErrLastAdmin)
}

// leavesAdmin reports whether a write leaves an admin, or takes none away.
func (g *Guard) leavesAdmin(ctx context.Context, write change, owner identity.Owner) (bool, error) {
	before, after, err := g.adminTeams(ctx, write)
	if err != nil {
		return false, err
	}
	had := write.oldUser == nil && write.oldTeam == nil
	seen := false
	for record, err := range store.Each(ctx, g.users, store.Query{}) {
		if err != nil {
			return false, err
		}
		was, err := decode[model.User](record)
		if err != nil {
			return false, err
		}
		is := was
		if write.user != nil && was.Name == write.user.Name {
			is, seen = write.user, true
		} else if write.oldUser != nil && was.Name == write.oldUser.Name {
			is = nil
		}
		if is != nil && admin(is, after) {
			return true, nil
		}
		had = had || admin(was, before)
	}
	if !had || write.user != nil && !seen && admin(write.user, after) {
		return true, nil
	}
	return g.adminKey(ctx, store.Query{}, true, func(other identity.Owner) (bool, error) {
		if other == owner {
			return true, nil
		}
		return g.needsObject(ctx, other)
	})
}

// admin reports whether a user is an enabled admin, by their own roles or by a team that makes its members admins.
func admin(user *model.User, teams []*model.Team) bool {
	return enabledUser(user) && (directory.Admins(user.Spec.ClusterRoles) ||
		slices.ContainsFunc(teams, func(team *model.Team) bool { return membership.Has(team, user) }))
}

// adminTeams returns the teams that make their members admins, before and after a write.
func (g *Guard) adminTeams(ctx context.Context, write change) (before, after []*model.Team, err error) {
	for record, err := range store.Each(ctx, g.teams, store.Query{}) {
		if err != nil {
			return nil, nil, err
		}
		team, err := decode[model.Team](record)
		if err != nil {
			return nil, nil, err
		}
		if !adminTeam(team) {
			continue
		}
		before = append(before, team)
		if write.oldTeam == nil || write.oldTeam.Name != team.Name {
			after = append(after, team)
		}
	}
	if write.team != nil && adminTeam(write.team) {
		after = append(after, write.team)
	}
	return before, after, nil
}

// adminKey reports whether one of the selected keys works now, has no scope and has the group of admins. If lasting is true, keys
// that end by themselves do not count: when such a key ends, the platform may have no admin. Keys of an owner for whom managed
// returns true do not count; a nil managed counts the keys of all owners. adminKey looks at a bounded number of keys.
func (g *Guard) adminKey(ctx context.Context, query store.Query, lasting bool, managed func(identity.Owner) (bool, error)) (bool, error) {
	looked := 0
	for record, err := range store.Each(ctx, g.keys.Store, query) {
		if err != nil {
			return false, err
		}
		if looked++; looked > maxKeys {
			return false, nil
		}
		key, err := g.keys.Parse(record)
		if err != nil || lasting && accesskey.Ends(key, g.limits()) || key.Spec.Scope != nil || !slices.Contains(key.Spec.Groups, identity.Admins) {
			continue
		}
		if _, err := accesskey.Usable(key, record.Activity, g.limits(), g.now()); err != nil {
			continue
		}
		if managed == nil {
			return true, nil
		}
		if has, err := managed(accesskey.OwnerOf(&key.Spec)); err != nil || !has {
			return err == nil, err
		}
	}
	return false, nil
}

// needsObject reports whether an owner has an object, or must have one.
func (g *Guard) needsObject(ctx context.Context, owner identity.Owner) (bool, error) {
	in := map[identity.OwnerKind]store.Store{identity.User: g.users, identity.Team: g.teams}[owner.Kind]
	if in == nil {
		return false, nil
	}
	// Where every owner needs an object, a key without one does not work.
	if strict, err := g.people.Strict(ctx); strict || err != nil {
		return strict, err
	}
	_, err := in.Get(ctx, owner.Name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// lock waits for the lock and returns the function that releases it. A dry run needs no lock: it writes nothing.
func (g *Guard) lock(ctx context.Context) (release func(), err error) {
	if errors.Is(store.MayWrite(ctx), store.ErrReadOnly) {
		return func() {}, nil
	}
	for range maxTries {
		taken, err := g.locks.Create(ctx, store.Record{Name: lockName, Created: g.now(), Object: []byte("{}")})
		if err == nil {
			return func() { g.unlock(context.WithoutCancel(ctx), taken) }, nil
		}
		if !errors.Is(err, store.ErrExists) {
			return nil, err
		}
		holder, err := g.locks.Get(ctx, lockName)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case g.now().Sub(holder.Created) > lockFor:
			g.unlock(ctx, holder.Revision)
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rand.N(pause)): //nolint:gosec // a pause is no secret
		}
	}
	return nil, apierror.InProgress("others are changing who is an admin of the platform; try again")
}

// unlock releases the lock, and ignores errors: the lock expires by itself. It trims the events of the lock, which no process
// watches.
func (g *Guard) unlock(ctx context.Context, revision int64) {
	if _, err := g.locks.Delete(ctx, lockName, revision); err == nil {
		_ = g.locks.Trim(ctx, g.now())
	}
}
