package provisioning

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/oauth"
)

// maxTeams is how many teams a sign-in makes. The next sign-in makes more. Source: ADR-0031.
const maxTeams = 50

// CreateTeams creates a team for each group of a person that no team lists, unless the configuration disables it. The team lists its group,
// so that the provider decides its members. It returns the errors of the store and of the teams; teams that were created before
// an error stay.
func (p *Provisioner) CreateTeams(ctx context.Context, config *model.ConfigAuth, groups []string) error {
	recorder := annotations.RecorderOf(ctx)
	if config.DisableTeamCreation || len(groups) == 0 {
		return nil
	}
	missing, err := p.directory.GroupsWithoutTeam(ctx, groups)
	if err != nil || len(missing) == 0 {
		return err
	}
	var created []string
	remaining := max(0, len(missing)-maxTeams)
	defer func() { recorder.SetCreatedTeams(created, remaining) }()
	var owners []identity.Owner
	for _, group := range missing[:len(missing)-remaining] {
		owners = append(owners, teamCandidates(group)...)
	}
	referenced, err := p.teams.GrantedOwners(ctx, owners...)
	if err != nil {
		return err
	}
	for _, group := range missing[:len(missing)-remaining] {
		name, exists, err := p.createTeam(ctx, group, referenced)
		switch {
		case err != nil:
			return err
		case name != "":
			created = append(created, name)
		case !exists:
			remaining++
		}
	}
	return nil
}

// teamCandidates returns the possible teams of a group, best first.
func teamCandidates(group string) []identity.Owner {
	var owners []identity.Owner
	for _, name := range CandidateNames(group, "team", digest.Sum("group", group)) {
		owners = append(owners, identity.Owner{Kind: identity.Team, Name: name})
	}
	return owners
}

// createTeam creates the team of a group, unless another login has just created it. Where the name of the group is taken or reserved, the
// team has a suffix that is computed from the group: all logins try the same names, and the state gives each name once. Name is empty if no
// team was created, because one exists or because no name is free.
func (p *Provisioner) createTeam(ctx context.Context, group string, referenced map[identity.Owner]bool) (name string, exists bool, err error) {
	for _, owner := range teamCandidates(group) {
		nameFree, err := p.isNameFree(ctx, owner, referenced)
		if err != nil {
			return "", false, err
		}
		if nameFree {
			_, err = resource.Create(ctx, p.teams, resource.CreateInput[*model.Team]{Caller: provisioningCaller, Manager: oauth.ClientID, Object: &model.Team{
				ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Spec: model.TeamSpec{DisplayName: group, Groups: []string{group}},
			}})
			if err == nil {
				return owner.Name, true, nil
			}
			if !apierrors.IsAlreadyExists(err) {
				return "", false, err
			}
		}
		missing, err := p.directory.GroupsWithoutTeam(ctx, []string{group})
		if err != nil || len(missing) == 0 {
			return "", err == nil, err
		}
	}
	return "", false, nil
}

// difference returns the names that are not among others.
func difference(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
