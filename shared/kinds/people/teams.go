package people

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// snapshots has all teams at the revision that the process has seen last.
type snapshots struct {
	current atomic.Pointer[teams]
	// mu is held while a newer one is read.
	mu sync.Mutex
}

// teams are all teams at a revision. They are never changed.
type teams struct {
	revision int64
	byName   map[string]*person
	// ofUser and ofGroup have the names of enabled teams that list a user or a group.
	ofUser, ofGroup map[string][]string
}

func newTeams(revision int64, byName map[string]*person) *teams {
	t := &teams{revision: revision, byName: byName, ofUser: map[string][]string{}, ofGroup: map[string][]string{}}
	for name, team := range byName {
		if team.refused() != nil {
			continue
		}
		for _, user := range team.Spec.Users {
			t.ofUser[user] = append(t.ofUser[user], name)
		}
		for _, group := range team.Spec.Groups {
			t.ofGroup[group] = append(t.ofGroup[group], name)
		}
	}
	return t
}

// of returns the names of the teams of a user who has these groups, some of them perhaps twice.
func (t *teams) of(name string, groups []string) []string {
	member := slices.Clone(t.ofUser[name])
	for _, group := range groups {
		member = append(member, t.ofGroup[group]...)
	}
	return member
}

// stateOf returns what a team may do as an owner.
func (t *teams) stateOf(name string) (State, error) {
	team, exists := t.byName[name]
	if !exists {
		return State{}, nil
	}
	if err := team.refused(); err != nil {
		return State{}, err
	}
	groups := []string{identity.TeamPrefix + name}
	if Admins(team.Spec.ClusterRoles) {
		groups = []string{identity.Admins, identity.TeamPrefix + name}
	}
	return State{Managed: true, UID: team.Metadata.UID, Groups: groups}, nil
}

// groupsOf returns the groups of a user, sorted. The slice is shared.
func (t *teams) groupsOf(name string, user *person) []string {
	known := user.groups.Load()
	if known == nil || known.teams != t {
		known = &groupsAt{t, t.computeGroups(name, user)}
		user.groups.Store(known)
	}
	return known.groups
}

func (t *teams) computeGroups(name string, user *person) []string {
	own := append(slices.Clone(user.Spec.Groups), user.Spec.SSOGroups...)
	// The platform alone gives its own groups: by the name, by teams and by roles.
	groups := identity.WithoutReserved(own)
	groups = append(groups, identity.UserPrefix+name)
	admin := Admins(user.Spec.ClusterRoles)
	for _, team := range t.of(name, own) {
		groups = append(groups, identity.TeamPrefix+team)
		admin = admin || Admins(t.byName[team].Spec.ClusterRoles)
	}
	if admin {
		groups = append(groups, identity.Admins)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// at returns the teams at a revision or a later one; revision 0 stands for any. One request reads what is new, and the others wait
// for it.
func (d *Directory) at(ctx context.Context, revision int64) (*teams, error) {
	switch now := d.snapshot.current.Load(); {
	case now == nil || now.revision < revision:
	case now.revision == revision || revision == 0:
		return now, nil
	default:
		// The request is older than the last write, or the state has lost that write. Source: ADR-0041.
		if _, err := d.teams.Events(ctx, now.revision, 1, 0); !errors.Is(err, store.ErrGone) {
			return now, err
		}
		d.snapshot.current.CompareAndSwap(now, nil)
	}
	if revision == store.Beginning {
		// There has never been a team.
		d.snapshot.current.CompareAndSwap(nil, newTeams(revision, nil))
		return d.snapshot.current.Load(), nil
	}
	d.snapshot.mu.Lock()
	defer d.snapshot.mu.Unlock()
	now := d.snapshot.current.Load()
	if now != nil && now.revision >= revision {
		return now, nil
	}
	next, err := d.read(ctx, now, revision)
	if err != nil {
		return nil, fmt.Errorf("reading the teams: %w", err)
	}
	d.snapshot.current.Store(next)
	return next, nil
}

// read returns the teams after those that the process has; nil if it has none.
func (d *Directory) read(ctx context.Context, now *teams, revision int64) (*teams, error) {
	if now != nil {
		next, err := d.follow(ctx, now, revision)
		if !errors.Is(err, store.ErrGone) {
			return next, err
		}
	}
	byName, query, first := map[string]*person{}, store.Query{}, int64(0)
	for {
		page, err := d.teams.List(ctx, query)
		if err != nil {
			return nil, err
		}
		if first == 0 {
			first = page.Revision
		}
		for _, record := range page.Records {
			query.After = record.Name
			if byName[record.Name], err = decode(record); err != nil {
				return nil, err
			}
		}
		if page.Remaining > 0 && len(page.Records) > 0 {
			continue
		}
		listed := newTeams(first, byName)
		if page.Revision == first {
			return listed, nil
		}
		// Teams were written between the pages.
		return d.follow(ctx, listed, page.Revision)
	}
}

// follow returns the teams with the changes up to a revision at least.
func (d *Directory) follow(ctx context.Context, now *teams, revision int64) (*teams, error) {
	byName, at := maps.Clone(now.byName), now.revision
	if byName == nil {
		byName = map[string]*person{}
	}
	for at < revision {
		events, err := d.teams.Events(ctx, at, limits.PageObjects, 0)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("no event after revision %d, but revision %d: %w", at, revision, store.ErrGone)
		}
		for _, event := range events {
			at = event.Revision
			if event.Type == store.Deleted {
				delete(byName, event.Record.Name)
				continue
			}
			team, err := decode(event.Record)
			if err != nil {
				return nil, err
			}
			byName[event.Record.Name] = team
		}
	}
	return newTeams(at, byName), nil
}
