// Package membership decides which users belong to a team, and has the rules that users and teams share: names of groups, roles,
// owners and grants. Source: ADR-0029.
package membership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// The limits on the groups of a user or team: the bytes of a group's name, and the number of groups. Source: ADR-0029.
const (
	maxGroup  = 256
	maxGroups = 256
)

// Has reports whether a user belongs to a team: the team lists the user or one of their groups. Whether the team is enabled does
// not count.
func Has(team *model.Team, user *model.User) bool {
	listed := func(group string) bool { return slices.Contains(team.Spec.Groups, group) }
	return slices.Contains(team.Spec.Users, user.Name) || slices.ContainsFunc(user.Spec.Groups, listed) || slices.ContainsFunc(user.Spec.SSOGroups, listed)
}

// ValidateGroups checks that no name of a group is empty, reserved or repeated.
func ValidateGroups(groups []string, path *field.Path) field.ErrorList {
	if len(groups) > maxGroups {
		return field.ErrorList{field.TooMany(path, len(groups), maxGroups)}
	}
	var problems field.ErrorList
	for i, group := range groups {
		at := path.Index(i)
		switch {
		case group == "":
			problems = append(problems, field.Required(at, "must not be empty"))
			continue
		case slices.Contains(groups[:i], group):
			problems = append(problems, field.Duplicate(at, group))
			continue
		}
		problems = append(problems, resource.ValidateText(group, maxGroup, at)...)
		for _, prefix := range []string{identity.KubernetesPrefix, identity.PlatformPrefix} {
			if strings.HasPrefix(group, prefix) {
				problems = append(problems, field.Invalid(at, group, identity.ReservedText(prefix)+": teams and spec.clusterRoles give them"))
			}
		}
	}
	return problems
}

// ValidateRoles checks that each cluster role is known and listed once.
func ValidateRoles(roles []model.ClusterRole, path *field.Path) field.ErrorList {
	known := []string{model.ClusterRoleAdmin, model.ClusterRoleAuditor}
	for i, role := range roles {
		at := path.Index(i).Child("name")
		switch {
		case !slices.Contains(known, role.Name):
			return field.ErrorList{field.NotSupported(at, role.Name, known)}
		case slices.Contains(roles[:i], role):
			return field.ErrorList{field.Duplicate(at, role.Name)}
		}
	}
	return nil
}

// Grants returns the grants that users and teams share: their roles, and that they are enabled.
func Grants(roles []model.ClusterRole, disabled bool, spec *field.Path) []auth.Grant {
	var grants []auth.Grant
	for _, role := range roles {
		grants = append(grants, auth.PermanentGrant(spec.Child("clusterRoles"), role.Name))
	}
	if !disabled {
		grants = append(grants, auth.PermanentGrant(spec.Child("disabled"), "false").ForExisting())
	}
	return grants
}

// ValidateOwners refuses owner references: users and teams are not deleted with other objects.
func ValidateOwners(count int) field.ErrorList {
	if count == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "ownerReferences"), "users and teams are not deleted with other objects")}
}
