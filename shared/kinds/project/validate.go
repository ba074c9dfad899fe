package project

import (
	"fmt"
	"slices"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// maxMembers bounds the members of a project. Source: ADR-0037.
const maxMembers = 1000

var (
	specPath = field.NewPath("spec")

	kinds = []string{model.ProjectMemberUser, model.ProjectMemberTeam}
	roles = []string{model.ProjectRoleAdmin, model.ProjectRoleUse, model.ProjectRoleView}
)

// Validate returns everything that is wrong with a project. Old is nil for a new project.
func (r *rules) Validate(project, old *model.Project) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("metadata")
	if old == nil {
		for _, why := range utilvalidation.IsDNS1123Label(project.Name) {
			problems = append(problems, field.Invalid(path.Child("name"), project.Name, why))
		}
		if namespace := r.Namespace(project.Name); len(problems) == 0 && len(utilvalidation.IsDNS1123Label(namespace)) > 0 {
			problems = append(problems, field.Invalid(path.Child("name"), project.Name, fmt.Sprintf(
				"the namespace of the project would be %q, which must be a DNS label of at most %d characters", namespace, utilvalidation.DNS1123LabelMaxLength)))
		}
	}
	if len(project.OwnerReferences) > 0 {
		problems = append(problems, field.Forbidden(path.Child("ownerReferences"), "a project belongs to no other object: use spec.owner"))
	}
	problems = append(problems, resource.ValidateTexts(project.Spec.DisplayName, project.Spec.Description, specPath)...)
	problems = append(problems, validateOwner(project.Spec.Owner)...)
	return append(problems, validateMembers(project.Spec.Members)...)
}

func validateOwner(owner *model.ProjectOwner) field.ErrorList {
	if owner == nil {
		return nil
	}
	path := specPath.Child("owner")
	switch {
	case owner.User == "" && owner.Team == "":
		return field.ErrorList{field.Required(path, "set user or team, or leave the owner out")}
	case owner.User != "" && owner.Team != "":
		return field.ErrorList{field.Invalid(path.Child("team"), owner.Team, "a project has one owner: spec.owner.user is also set")}
	case owner.User != "":
		return validateName(identity.User, owner.User, path.Child("user"))
	default:
		return validateName(identity.Team, owner.Team, path.Child("team"))
	}
}

// validateName checks the name of a user or a team, which need not exist.
func validateName(kind identity.OwnerKind, name string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, why := range utilvalidation.IsDNS1123Subdomain(name) {
		problems = append(problems, field.Invalid(path, name, fmt.Sprintf("must be the name of a %s: %s", kind, why)))
	}
	return problems
}

func validateMembers(members []model.ProjectMember) field.ErrorList {
	path := specPath.Child("members")
	if len(members) > maxMembers {
		return field.ErrorList{field.TooMany(path, len(members), maxMembers)}
	}
	var problems field.ErrorList
	seen := map[model.ProjectMember]bool{}
	for i, member := range members {
		at := path.Index(i)
		kind := identity.User
		if member.Kind == model.ProjectMemberTeam {
			kind = identity.Team
		}
		problems = append(problems, oneOf(member.Kind, kinds, at.Child("kind"))...)
		problems = append(problems, oneOf(member.Role, roles, at.Child("role"))...)
		problems = append(problems, validateName(kind, member.Name, at.Child("name"))...)
		who := model.ProjectMember{Kind: member.Kind, Name: member.Name}
		if seen[who] {
			problems = append(problems, field.Duplicate(at.Child("name"), member.Name))
		}
		seen[who] = true
	}
	return problems
}

func oneOf(value string, values []string, path *field.Path) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

func (r *rules) Warn(*model.Project) []string { return nil }
