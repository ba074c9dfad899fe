package directory

import (
	"slices"

	"management.platform.sh/shared/model/identity"
)

// teams are all teams at a revision. They are never changed.
type teams struct {
	byName map[string]*person
	// ofUser and ofGroup have the names of enabled teams that list a user or a group.
	ofUser, ofGroup map[string][]string
}

func newTeams(byName map[string]*person) *teams {
	t := &teams{byName: byName, ofUser: map[string][]string{}, ofGroup: map[string][]string{}}
	for name, team := range byName {
		if team.refusal() != nil {
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

// teamsOf returns the names of the teams of a user who has these groups, with possible repetitions.
func (t *teams) teamsOf(name string, groups []string) []string {
	member := slices.Clone(t.ofUser[name])
	for _, group := range groups {
		member = append(member, t.ofGroup[group]...)
	}
	return member
}

// stateOf returns the state of a team as an owner.
func (t *teams) stateOf(name string) (State, error) {
	team, exists := t.byName[name]
	if !exists {
		return State{}, nil
	}
	if err := team.refusal(); err != nil {
		return State{}, err
	}
	groups := append(roleGroups(team.Spec.ClusterRoles), identity.TeamPrefix+name)
	slices.Sort(groups)
	return State{Managed: true, UID: team.Metadata.UID, DisplayName: team.Spec.DisplayName, Groups: groups}, nil
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
	// Only the platform gives the reserved groups: by name, by teams and by roles.
	groups := identity.WithoutReserved(own)
	groups = append(groups, identity.UserPrefix+name)
	groups = append(groups, roleGroups(user.Spec.ClusterRoles)...)
	for _, team := range t.teamsOf(name, own) {
		groups = append(append(groups, identity.TeamPrefix+team), roleGroups(t.byName[team].Spec.ClusterRoles)...)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}
