// Package project has the rules of projects: the fields of a project, and who sees and changes it. Package instance decides what
// members may do with the virtual clusters of a project, and package directory which roles a caller has. Source: ADR-0037.
package project

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Registry has the projects and their state.
type Registry = resource.Registry[*model.Project]

// Definition is the resource projects. Source: ADR-0037.
var Definition = &resource.Definition[*model.Project]{
	Resource:   model.SchemeGroupVersion.WithResource(directory.Projects),
	Kind:       "Project",
	Singular:   "project",
	ShortNames: []string{"proj"},
	ReadAhead:  true,
	NamePrefix: "project-",
	New:        func() *model.Project { return &model.Project{} },
	NewList: func(meta metav1.ListMeta, items []*model.Project) runtime.Object {
		return &model.ProjectList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns:     columns,
	Cells:       cells,
	NamesPeople: true,
	Origin:      func(project *model.Project) *model.Origin { return &project.Status.Origin },
	Fields: func(project *model.Project) fields.Set {
		set := fields.Set{"spec.owner.user": "", "spec.owner.team": ""}
		if owner := project.Spec.Owner; owner != nil {
			set["spec.owner.user"], set["spec.owner.team"] = owner.User, owner.Team
		}
		return set
	},
}

// Settings are what the rules need besides the project.
type Settings struct {
	// Namespace returns the namespace of a project.
	Namespace func(project string) string
	// Instances opens the store of virtual cluster instances, in which a deletion looks for instances of the project.
	Instances func() store.Store
}

// NewRegistry returns the projects in a store.
func NewRegistry(state store.Store, now func() time.Time, random io.Reader, settings Settings) *Registry {
	own := &rules{settings}
	return &Registry{Definition: Definition, Store: state, Now: now, Random: random, Strategy: resource.Strategy[*model.Project]{
		Rules: own, Visibility: own, Permissions: own, Invariant: own,
	}}
}

// ownerOf returns the owner of a project. The zero value: the project has no owner.
func ownerOf(project *model.Project) identity.Owner {
	if project.Spec.Owner == nil {
		return identity.Owner{}
	}
	return identity.OwnerOf(project.Spec.Owner.User, project.Spec.Owner.Team, "")
}

type rules struct{ Settings }

// role returns the role of a caller in a project. Empty: none. The role comes from the given object, which a watch may have in an
// earlier version.
func role(caller identity.Caller, project *model.Project) string {
	return directory.Widest(directory.RolesIn(project.Spec.Owner, project.Spec.Members), caller.Owners())
}

// Sees implements resource.Visibility: members see their projects.
func (r *rules) Sees(caller identity.Caller, project *model.Project) auth.Decision {
	if caller.Admin() {
		return auth.PermittedAdmin
	}
	if role := role(caller, project); role != "" {
		return auth.PermittedByRole(role, project.Name)
	}
	return auth.Decision{Hidden: true}
}

func (r *rules) SeenBy() string {
	return "their owner, their members and members of " + identity.Admins
}

// Permits implements resource.Permissions: the owner and members with the role admin may write a project.
func (r *rules) Permits(caller identity.Caller, verb, _ string, project *model.Project) auth.Decision {
	switch {
	case caller.Admin():
		return auth.PermittedAdmin
	case role(caller, project) == model.ProjectRoleAdmin:
		return auth.PermittedByRole(model.ProjectRoleAdmin, project.Name)
	}
	return auth.Decision{Reason: fmt.Sprintf("seeing it is not enough to %s it: that needs its owner, the role %q in it, or a member of %s",
		verb, model.ProjectRoleAdmin, identity.Admins)}
}

// Default removes what clients cannot write.
func (r *rules) Default(_ identity.Caller, project, _ *model.Project) {
	project.Status = model.ProjectStatus{}
}

// Grants returns the roles of the owner and of the members in the project.
func (r *rules) Grants(project *model.Project) []auth.Grant {
	var grants []auth.Grant
	if owner := ownerOf(project); owner.Name != "" {
		grants = append(grants, auth.Permits(specPath.Child("owner"), "owner", scopeOf(project, model.ProjectRoleAdmin)).WithRecipient(owner))
	}
	for _, member := range project.Spec.Members {
		grants = append(grants, auth.Permits(specPath.Child("members"), member.Role, scopeOf(project, member.Role)).WithRecipient(directory.Member(member)))
	}
	return grants
}

// scopeOf returns the narrowest scope that covers what a role gives in a project.
func scopeOf(project *model.Project, role string) *model.Scope {
	if role == model.ProjectRoleAdmin {
		return &model.Scope{Projects: []model.ScopeProject{{Project: project.Name}}}
	}
	return &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: project.Name, VirtualCluster: "*"}}}
}

// Authorize refuses nothing: callers who may write a project may write all its fields.
func (r *rules) Authorize(identity.Caller, *model.Project, *model.Project) field.ErrorList {
	return nil
}

// Seal has no secret to remove.
func (r *rules) Seal(*model.Project, store.Record) (resource.Sealed[*model.Project], field.ErrorList) {
	return resource.Sealed[*model.Project]{}, nil
}

// Index returns the owner of a project, so that the name of the owner is not given to another user or team. Projects never
// expire.
func (r *rules) Index(project *model.Project, _ time.Time) (owner string, expires time.Time) {
	if project.Spec.Owner == nil {
		return "", time.Time{}
	}
	return ownerOf(project).String(), time.Time{}
}

// Observe fills in the namespace.
func (r *rules) Observe(project *model.Project, _ store.Record) {
	project.Status.Namespace = r.Namespace(project.Name)
}

// Hold implements resource.Invariant: a project with virtual clusters cannot be deleted. The virtual clusters would be left
// without members, and a later project of the same name would get them.
func (r *rules) Hold(ctx context.Context, project, old *model.Project) (release func(), err error) {
	release = func() {}
	if project != nil || old == nil {
		return release, nil
	}
	namespace := r.Namespace(old.Name)
	page, err := r.Instances().List(ctx, store.Query{Prefix: namespace + "/", Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("looking for virtual clusters of a project: %w", err)
	}
	if len(page.Records) > 0 {
		return nil, apierror.Conflict(Definition.GroupResource(), old.Name,
			fmt.Sprintf("the namespace %q still has virtual cluster instances; delete them first", namespace))
	}
	return release, nil
}
