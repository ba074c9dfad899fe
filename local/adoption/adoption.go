// Package adoption creates the users and teams that access keys name as their owners, on a platform that had keys
// before it had users. The rights of a key stay the same: no key gains a right, and the plan lists each key that would
// lose one. The package reads and writes the state as it is, so that the next run completes a run that was interrupted.
// Source: ADR-0033.
package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// maxRounds bounds how often a run starts again because other callers have written.
const maxRounds = 16

// operator is the caller that creates users and teams.
var operator = identity.New(identity.Owner{Kind: identity.Subject, Name: "adoption"}, []string{identity.Admins})

// Plan lists the changes of an adoption. The zero value changes nothing. Its parts are in the order of names.
type Plan struct {
	Users []User
	Teams []Team
	Keys  []Key
	// Blocked are owners that cannot be users or teams.
	Blocked []Blocked
}

// User is a user to make.
type User struct {
	Name string
	// Groups are the groups of the user's keys that work.
	Groups []string
	// Admin reports whether one of these keys has the rights of admins. Through are the teams that also give these
	// rights to the user.
	Admin   bool
	Through []string
	Keys    int
}

// Team is a team to make or to change.
type Team struct {
	Name string
	// New reports whether the team does not exist yet.
	New   bool
	Users []string
}

// Key is a key to change.
type Key struct {
	Name string
	// Narrowed is the only group that a key without groups keeps, so that it gains none. Empty: the groups stay.
	Narrowed string
	// Granted are groups of a team's key that the team does not have. The key keeps them.
	Granted []string
	// Lost are groups that the key loses, because no user and no team can have them.
	Lost []string
}

// Blocked is an owner that cannot have an object.
type Blocked struct {
	Owner identity.Owner
	Why   string
	Keys  int
}

// Empty reports whether the plan changes nothing.
func (p *Plan) Empty() bool {
	changes := slices.ContainsFunc(p.Keys, func(key Key) bool { return key.Narrowed != "" || len(key.Granted) > 0 })
	return len(p.Users)+len(p.Teams) == 0 && !changes
}

// Losses returns the keys that lose groups.
func (p *Plan) Losses() []Key {
	return slices.DeleteFunc(slices.Clone(p.Keys), func(key Key) bool { return len(key.Lost) == 0 })
}

// Adopter creates users and teams in the state of an environment.
type Adopter struct {
	env    *platform.Environment
	stored *kinds.Stored
	people *directory.Directory
}

// Open returns the adopter of an environment.
func Open(env *platform.Environment) *Adopter {
	return &Adopter{env: env, stored: kinds.Open(env), people: directory.Open(env)}
}

// owned has the rights that the keys of an owner without an object give.
type owned struct {
	keys []*model.OwnedAccessKey
	// groups are the groups that the object of the owner gets, besides teams and roles.
	groups, teams []string
	admin         bool
}

// Plan returns the changes that are due. It returns the store's errors, and an error for a record that cannot be read.
func (a *Adopter) Plan(ctx context.Context) (*Plan, error) {
	users, teams := map[string]bool{}, map[string]*model.Team{}
	for record, err := range store.Each(ctx, a.stored.Users.Store, store.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("listing users: %w", err)
		}
		users[record.Name] = true
	}
	for record, err := range store.Each(ctx, a.stored.Teams.Store, store.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("listing teams: %w", err)
		}
		team, err := a.stored.Teams.Parse(record)
		if err != nil {
			return nil, err
		}
		teams[record.Name] = team
	}
	owners := map[identity.Owner]*owned{}
	limits := accesskey.OpenLimits(a.env)
	for record, err := range store.Each(ctx, a.stored.AccessKeys.Store, store.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("listing access keys: %w", err)
		}
		key, err := a.stored.AccessKeys.Parse(record)
		if err != nil {
			return nil, err
		}
		owner := accesskey.OwnerOf(&key.Spec)
		if owner.Kind == identity.Subject || owner.Kind == identity.User && users[owner.Name] || owner.Kind == identity.Team && teams[owner.Name] != nil {
			continue
		}
		if _, err := accesskey.Usable(key, record.Activity, limits(), a.env.Now()); errors.Is(err, accesskey.ErrExpired) {
			// The key has expired, and the schedule removes it.
			continue
		}
		if owners[owner] == nil {
			owners[owner] = &owned{}
		}
		owners[owner].keys = append(owners[owner].keys, key)
	}
	return plan(owners, teams), nil
}

// plan returns the changes that are due for owners without an object.
func plan(owners map[identity.Owner]*owned, teams map[string]*model.Team) *Plan {
	p := &Plan{}
	ordered := slices.SortedFunc(maps.Keys(owners), func(a, b identity.Owner) int {
		return cmp.Or(strings.Compare(string(b.Kind), string(a.Kind)), strings.Compare(a.Name, b.Name))
	})
	changed := map[string]*Team{}
	member := func(team string) *Team {
		if changed[team] == nil {
			changed[team] = &Team{Name: team, New: teams[team] == nil}
		}
		return changed[team]
	}
	var added []identity.Owner
	for _, owner := range ordered {
		ownerRights := owners[owner]
		if why := blockReason(owner); why != "" {
			p.Blocked = append(p.Blocked, Blocked{Owner: owner, Why: why, Keys: len(ownerRights.keys)})
			continue
		}
		added = append(added, owner)
		if owner.Kind == identity.Team {
			member(owner.Name)
			continue
		}
		for _, key := range ownerRights.keys {
			// The rights of a disabled key are not given to its owner.
			if !key.Spec.Disabled {
				ownerRights.take(owner, key)
			}
		}
		for _, team := range ownerRights.teams {
			if found := teams[team]; found == nil || !slices.Contains(found.Spec.Users, owner.Name) {
				entry := member(team)
				entry.Users = append(entry.Users, owner.Name)
			}
		}
	}
	for _, owner := range added {
		ownerRights := owners[owner]
		if owner.Kind == identity.Team {
			for _, key := range ownerRights.keys {
				p.add(keepForTeam(owner, key))
			}
			continue
		}
		user := User{Name: owner.Name, Groups: sortedUnique(ownerRights.groups), Admin: ownerRights.admin, Keys: len(ownerRights.keys)}
		gives := append(slices.Clone(ownerRights.groups), teamGroups(ownerRights.teams)...)
		for _, team := range teams {
			listed := slices.Contains(ownerRights.teams, team.Name) || slices.Contains(team.Spec.Users, owner.Name) ||
				slices.ContainsFunc(team.Spec.Groups, func(group string) bool { return slices.Contains(ownerRights.groups, group) })
			if !listed {
				continue
			}
			gives = append(gives, identity.TeamPrefix+team.Name)
			if directory.Admins(team.Spec.ClusterRoles) {
				user.Through = append(user.Through, team.Name)
			}
		}
		if ownerRights.admin || len(user.Through) > 0 {
			gives = append(gives, identity.Admins)
		}
		user.Through = sortedUnique(user.Through)
		for _, key := range ownerRights.keys {
			p.add(keepForUser(owner, key, gives))
		}
		p.Users = append(p.Users, user)
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		team := changed[name]
		team.Users = sortedUnique(team.Users)
		p.Teams = append(p.Teams, *team)
	}
	slices.SortFunc(p.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return p
}

func (p *Plan) add(key Key) {
	if key.Narrowed != "" || len(key.Granted)+len(key.Lost) > 0 {
		p.Keys = append(p.Keys, key)
	}
}

// take adds the rights of a key to its owner.
func (o *owned) take(owner identity.Owner, key *model.OwnedAccessKey) {
	for _, group := range key.Spec.Groups {
		team, ofTeam := strings.CutPrefix(group, identity.TeamPrefix)
		switch {
		case group == identity.Admins:
			o.admin = true
		case ofTeam && blockReason(identity.Owner{Kind: identity.Team, Name: team}) == "":
			if !slices.Contains(o.teams, team) {
				o.teams = append(o.teams, team)
			}
		case canHaveGroup(owner, group) && !strings.HasPrefix(group, identity.PlatformPrefix) && !slices.Contains(o.groups, group):
			o.groups = append(o.groups, group)
		}
	}
}

// canHaveGroup reports whether a user can have a group, or has it in any case.
func canHaveGroup(owner identity.Owner, group string) bool {
	team, ofTeam := strings.CutPrefix(group, identity.TeamPrefix)
	switch {
	case group == identity.Admins, group == identity.UserPrefix+owner.Name, group == identity.Authenticated:
		return true
	case ofTeam:
		return blockReason(identity.Owner{Kind: identity.Team, Name: team}) == ""
	default:
		return !strings.HasPrefix(group, identity.PlatformPrefix) && !strings.HasPrefix(group, identity.KubernetesPrefix)
	}
}

// keepForUser returns the change that keeps the rights of a user's key. Gives are the groups that the user then has.
func keepForUser(owner identity.Owner, key *model.OwnedAccessKey, gives []string) Key {
	change := Key{Name: key.Name}
	ownGroup := identity.UserPrefix + owner.Name
	if len(key.Spec.Groups) == 0 && len(gives) > 0 {
		change.Narrowed = ownGroup
	}
	for _, group := range key.Spec.Groups {
		switch {
		case !canHaveGroup(owner, group):
			change.Lost = append(change.Lost, group)
		case group == ownGroup, group == identity.Authenticated, slices.Contains(gives, group):
		case strings.HasPrefix(group, identity.PlatformPrefix):
			// The key is disabled, so the user did not get its groups.
			change.Lost = append(change.Lost, group)
		case !slices.Contains(key.Status.Granted, group):
			change.Granted = append(change.Granted, group)
		}
	}
	return change
}

// keepForTeam returns the change that keeps the rights of a team's key. A team has no groups of its own except the
// group of its name.
func keepForTeam(owner identity.Owner, key *model.OwnedAccessKey) Key {
	change := Key{Name: key.Name}
	for _, group := range key.Spec.Groups {
		switch {
		case group == identity.TeamPrefix+owner.Name, group == identity.Authenticated, slices.Contains(key.Status.Granted, group):
		case strings.HasPrefix(group, identity.PlatformPrefix), strings.HasPrefix(group, identity.KubernetesPrefix):
			change.Lost = append(change.Lost, group)
		default:
			change.Granted = append(change.Granted, group)
		}
	}
	return change
}

// blockReason returns why an owner cannot have an object. Empty: it can.
func blockReason(owner identity.Owner) string {
	if prefix := owner.Reserved(); prefix != "" {
		return identity.ReservedText(prefix)
	}
	if problems := validation.IsDNS1123Subdomain(owner.Name); len(problems) > 0 {
		return problems[0]
	}
	return ""
}

func teamGroups(teams []string) []string {
	groups := make([]string, len(teams))
	for i, team := range teams {
		groups[i] = identity.TeamPrefix + team
	}
	return groups
}

func sortedUnique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// ErrBusy means that other callers write too much for the adoption to finish.
var ErrBusy = errors.New("others keep writing access keys, users and teams: try again")

// Apply makes the changes of Plan, and repeats that for objects that other callers have added, until nothing is left.
// It returns the first plan. It calls check with each plan before it writes any of its changes. It changes keys first,
// then teams, then users: until the object of an owner exists, a key has the groups in its spec, so that no key gains
// or loses a right in between.
//
// Errors: the error of check; ErrBusy; an error that names the object that could not be written. Earlier writes stay,
// and the next run continues. Source: ADR-0033.
func (a *Adopter) Apply(ctx context.Context, check func(*Plan) error) (*Plan, error) {
	var first *Plan
	for range maxRounds {
		next, err := a.Plan(ctx)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = next
		}
		if err := check(next); err != nil || next.Empty() {
			return first, err
		}
		if err := a.write(ctx, next); err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return first, err
		}
	}
	return first, ErrBusy
}

func (a *Adopter) write(ctx context.Context, p *Plan) error {
	granted := map[string][]string{}
	for _, key := range p.Keys {
		granted[key.Name] = key.Granted
	}
	keys := accesskey.ForAdoption(a.stored.AccessKeys, granted)
	for _, key := range p.Keys {
		if key.Narrowed == "" && len(key.Granted) == 0 {
			continue
		}
		patch := []byte(`{}`)
		if key.Narrowed != "" {
			patch = fmt.Appendf(nil, `{"spec":{"groups":[%q]}}`, key.Narrowed)
		}
		if _, err := resource.Patch(ctx, keys, resource.PatchInput{
			Caller: operator, Name: key.Name, Type: resource.MergePatch, Patch: patch, Manager: manager,
		}); err != nil {
			return fmt.Errorf("preparing the access key %q: %w", key.Name, err)
		}
	}
	for _, team := range p.Teams {
		if err := a.writeTeam(ctx, team); err != nil {
			return fmt.Errorf("writing the team %q: %w", team.Name, err)
		}
	}
	for _, user := range p.Users {
		object := &model.User{ObjectMeta: metav1.ObjectMeta{Name: user.Name}, Spec: model.UserSpec{Groups: user.Groups}}
		if user.Admin {
			object.Spec.ClusterRoles = []model.ClusterRole{{Name: model.ClusterRoleAdmin}}
		}
		if _, err := resource.Create(ctx, a.stored.Users, resource.CreateInput[*model.User]{Caller: operator, Object: object, Manager: manager}); err != nil {
			return fmt.Errorf("making the user %q: %w", user.Name, err)
		}
	}
	return nil
}

// manager owns the fields that an adoption writes.
const manager = "platform"

func (a *Adopter) writeTeam(ctx context.Context, team Team) error {
	if team.New {
		_, err := resource.Create(ctx, a.stored.Teams, resource.CreateInput[*model.Team]{
			Caller: operator, Object: &model.Team{ObjectMeta: metav1.ObjectMeta{Name: team.Name}, Spec: model.TeamSpec{Users: team.Users}}, Manager: manager,
		})
		return err
	}
	current, err := resource.Get(ctx, a.stored.Teams, resource.GetInput{Caller: operator, Name: team.Name})
	if err != nil {
		return err
	}
	// The resourceVersion of the object that was read makes the write conditional.
	current = current.DeepCopy()
	for _, user := range team.Users {
		if !slices.Contains(current.Spec.Users, user) {
			current.Spec.Users = append(current.Spec.Users, user)
		}
	}
	_, err = resource.Update(ctx, a.stored.Teams, resource.UpdateInput[*model.Team]{Caller: operator, Name: team.Name, Object: current, Manager: manager})
	return err
}

// Demand makes the platform refuse credentials of owners without an object, permanently, and adopts the owners that
// were named in the meantime. It returns the errors of Apply.
func (a *Adopter) Demand(ctx context.Context, check func(*Plan) error) error {
	if err := a.people.RequireObjects(ctx, a.env.Now()); err != nil {
		return err
	}
	_, err := a.Apply(ctx, check)
	return err
}
