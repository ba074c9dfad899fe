package directory

import (
	"maps"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// project has the fields of a project that decide about rights, as in model.Project.
type project struct {
	Spec struct {
		Owner   *model.ProjectOwner   `json:"owner"`
		Members []model.ProjectMember `json:"members"`
	} `json:"spec"`
}

// projects have the roles that all projects give at a revision: by the user or team, in the form of
// identity.Owner.String, and by the project. They are never changed.
type projects struct {
	of map[string]map[string]string
}

func newProjects(byName map[string]*project) *projects {
	p := &projects{of: map[string]map[string]string{}}
	for name, project := range byName {
		for owner, role := range RolesIn(project.Spec.Owner, project.Spec.Members) {
			if p.of[owner] == nil {
				p.of[owner] = map[string]string{}
			}
			p.of[owner][name] = role
		}
	}
	return p
}

// members returns the users and teams with a role in a project.
func (p *projects) members(project string) []identity.Owner {
	var owners []identity.Owner
	for owner, roles := range p.of {
		if roles[project] != "" {
			kind, name, _ := strings.Cut(owner, ":")
			owners = append(owners, identity.Owner{Kind: identity.OwnerKind(kind), Name: name})
		}
	}
	return owners
}

// RolesIn returns the roles in a project with an owner and members, by the user or team in the form of identity.Owner.String. Source: ADR-0037.
func RolesIn(owner *model.ProjectOwner, members []model.ProjectMember) map[string]string {
	roles := make(map[string]string, 1+len(members))
	for _, member := range members {
		of := Member(member).String()
		roles[of] = widerRole(roles[of], member.Role)
	}
	if owner != nil {
		roles[identity.OwnerOf(owner.User, owner.Team, "").String()] = model.ProjectRoleAdmin
	}
	return roles
}

// Member returns the user or the team of a project's member.
func Member(member model.ProjectMember) identity.Owner {
	if member.Kind == model.ProjectMemberTeam {
		return identity.Owner{Kind: identity.Team, Name: member.Name}
	}
	return identity.Owner{Kind: identity.User, Name: member.Name}
}

// order are the roles from the narrowest to the widest.
var order = []string{"", model.ProjectRoleView, model.ProjectRoleUse, model.ProjectRoleAdmin}

// widerRole returns the wider one of two roles.
func widerRole(a, b string) string {
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// Widest returns the widest role of some owners; empty if no owner has a role.
func Widest(roles map[string]string, owners []string) string {
	widest := ""
	for _, owner := range owners {
		widest = widerRole(widest, roles[owner])
	}
	return widest
}

// Roles returns the roles of a caller in projects, by the name of the project. The projects are as they were when the
// process authenticated its last request. Admins of the platform have no roles here. The map is shared. Source:
// ADR-0037.
func (d *Directory) Roles(caller identity.Caller) map[string]string {
	now := d.projects.latest()
	if now == nil || len(now.of) == 0 || caller.Admin() {
		return nil
	}
	var roles map[string]string
	shared := false
	for _, owner := range caller.Owners() {
		switch more := now.of[owner]; {
		case more == nil:
		case roles == nil:
			roles, shared = more, true
		default:
			if shared {
				roles, shared = maps.Clone(roles), false
			}
			for project, role := range more {
				roles[project] = widerRole(roles[project], role)
			}
		}
	}
	return roles
}
