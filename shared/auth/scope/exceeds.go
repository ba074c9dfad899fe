package scope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// Exceeds returns a Forbidden error for each entry of child that parent does not cover, at the entry's path below path. If
// there is none, parent permits every request that child permits. A nil parent covers everything. A nil child of another
// parent is one error, at path.
//
// Exceeds is sound, but not complete: it never accepts a wider child, and it refuses some that are not wider. One entry of
// parent of the same kind must cover the entry; for a space or a virtual cluster, its project may do so. Exceeds does not
// recognize a project that a rule covers, or a role that two entries cover with half of its projects each. Roles that
// permit nothing on this API count too, because other parts of the platform use them.
//
// The scopes must be ones that Validate accepts. The time grows with the product of their sizes, which Validate bounds.
// Source: Spec 2.3; ADR-0005.
func Exceeds(child, parent *model.Scope, path *field.Path) field.ErrorList {
	if parent == nil {
		return nil
	}
	if child == nil {
		return field.ErrorList{field.Forbidden(path, "this key is scoped; its children must name a scope within it")}
	}
	var errs field.ErrorList
	refuse := func(at *field.Path, format string, args ...any) {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(format, args...)+" is outside of the scope of this key"))
	}
	if parent.ReadOnly && !child.ReadOnly {
		refuse(path.Child("readOnly"), "writing")
	}
	parentRoles := roleEntries(parent)
	for i, c := range child.Roles {
		if !roleWithin(c, parentRoles) {
			refuse(path.Child("roles").Index(i), "role %s", describeRole(c))
		}
	}
	for i, c := range child.Projects {
		if !projectWithin(c.Project, parent) {
			refuse(path.Child("projects").Index(i), "project %q", c.Project)
		}
	}
	for i, c := range child.Spaces {
		if !projectWithin(c.Project, parent) && !slices.ContainsFunc(parent.Spaces, func(p model.ScopeSpace) bool {
			return covers(p.Project, c.Project) && covers(p.Space, c.Space)
		}) {
			refuse(path.Child("spaces").Index(i), "space %q of project %q", c.Space, c.Project)
		}
	}
	for i, c := range child.VirtualClusters {
		if !projectWithin(c.Project, parent) && !slices.ContainsFunc(parent.VirtualClusters, func(p model.ScopeVirtualCluster) bool {
			return covers(p.Project, c.Project) && covers(p.VirtualCluster, c.VirtualCluster)
		}) {
			refuse(path.Child("virtualClusters").Index(i), "virtual cluster %q of project %q", c.VirtualCluster, c.Project)
		}
	}
	for i, c := range child.Clusters {
		if !slices.ContainsFunc(parent.Clusters, func(p model.ScopeCluster) bool { return covers(p.Cluster, c.Cluster) }) {
			refuse(path.Child("clusters").Index(i), "cluster %q", c.Cluster)
		}
	}
	for i, c := range child.Rules {
		if !slices.ContainsFunc(parent.Rules, func(p model.ScopeRule) bool { return ruleWithin(c, p) }) {
			refuse(path.Child("rules").Index(i), "this rule")
		}
	}
	if child.AllowPlatformCLI && !roleWithin(model.ScopeRole{Role: RolePlatformCLI}, parentRoles) {
		refuse(path.Child("allowPlatformCli"), "role %q", RolePlatformCLI)
	}
	return errs
}

// Narrowest returns the scopes that no other scope of the list covers, as far as Exceeds can tell. Together they permit
// the requests that all scopes permit. Of scopes that cover each other, only the first is returned. Source: ADR-0021.
func Narrowest(scopes []*model.Scope) []*model.Scope {
	covers := func(outer, inner *model.Scope) bool { return len(Exceeds(inner, outer, field.NewPath("scope"))) == 0 }
	var narrowest []*model.Scope
	for _, each := range scopes {
		if slices.ContainsFunc(narrowest, func(narrow *model.Scope) bool { return covers(each, narrow) }) {
			continue
		}
		narrowest = append(slices.DeleteFunc(narrowest, func(wide *model.Scope) bool { return covers(wide, each) }), each)
	}
	return narrowest
}

func describeRole(e model.ScopeRole) string {
	text := fmt.Sprintf("%q", e.Role)
	if len(e.Projects) > 0 {
		text += fmt.Sprintf(" for projects %q", e.Projects)
	}
	if len(e.VirtualClusters) > 0 {
		text += fmt.Sprintf(" for virtual clusters %q", e.VirtualClusters)
	}
	return text
}

// roleWithin reports whether one of the parent's entries is, or implies, the child's role and has no narrower limits.
func roleWithin(child model.ScopeRole, parent []model.ScopeRole) bool {
	return slices.ContainsFunc(parent, func(p model.ScopeRole) bool {
		return gives(p.Role, child.Role) &&
			namesWithin(child.Projects, p.Projects) &&
			namesWithin(child.VirtualClusters, p.VirtualClusters)
	})
}

// namesWithin reports whether the names in a role of the parent cover the names in a role of the child. Empty and `*`
// mean everything.
func namesWithin(child, parent []string) bool {
	if unrestricted(parent) {
		return true
	}
	return !unrestricted(child) && subset(child, parent)
}

func projectWithin(project string, parent *model.Scope) bool {
	return slices.ContainsFunc(parent.Projects, func(p model.ScopeProject) bool { return covers(p.Project, project) })
}

// ruleWithin reports whether child is at least as narrow as parent in each restriction.
func ruleWithin(child, parent model.ScopeRule) bool {
	if !listWithin(child.Verbs, parent.Verbs, equal) ||
		!listWithin(child.RequestTargets, parent.RequestTargets, equal) ||
		parent.Cluster != "" && parent.Cluster != child.Cluster ||
		!listWithin(child.VirtualClusters, parent.VirtualClusters, ruleVirtualClusterCovers) {
		return false
	}
	if forPaths(child) &&
		(!forPaths(parent) || !listWithin(child.NonResourceURLs, parent.NonResourceURLs, pathCovers)) {
		return false
	}
	return !forResources(child) || forResources(parent) &&
		listWithin(child.Namespaces, parent.Namespaces, equal) &&
		listWithin(child.Resources, parent.Resources, groupCovers)
}

// listWithin reports whether each entry of child is covered by an entry of parent. An empty list of a rule means
// everything.
func listWithin[T any](child, parent []T, covers func(parent, child T) bool) bool {
	if len(parent) == 0 {
		return true
	}
	if len(child) == 0 {
		return false
	}
	for _, c := range child {
		if !slices.ContainsFunc(parent, func(p T) bool { return covers(p, c) }) {
			return false
		}
	}
	return true
}

func equal(parent, child string) bool { return parent == child }

func subset(child, parent []string) bool {
	for _, c := range child {
		if !slices.Contains(parent, c) {
			return false
		}
	}
	return true
}

func ruleVirtualClusterCovers(parent, child model.ScopeRuleVirtualCluster) bool {
	return (parent.Name == "" || parent.Name == child.Name) &&
		(parent.Namespace == "" || parent.Namespace == child.Namespace)
}

func groupCovers(parent, child model.ScopeGroupResources) bool {
	return parent.Group == child.Group &&
		listWithin(child.Resources, parent.Resources, resourceCovers) &&
		listWithin(child.ResourceNames, parent.ResourceNames, equal)
}

// resourceCovers reports whether the pattern parent matches everything that the pattern child matches.
func resourceCovers(parent, child string) bool {
	if parent == selectAll || parent == child {
		return true
	}
	if child == selectAll {
		return false
	}
	parentLeft, parentRight, parentSub := strings.Cut(parent, "/")
	childLeft, childRight, childSub := strings.Cut(child, "/")
	if !parentSub || !childSub || parent == "*/*" {
		return false
	}
	return parentLeft == selectAll && parentRight == childRight || parentRight == selectAll && parentLeft == childLeft
}

// pathCovers reports whether the pattern parent matches every path that the pattern child matches.
func pathCovers(parent, child string) bool {
	if parent == child {
		return true
	}
	prefix, ok := pathPrefix(parent)
	if !ok {
		return false
	}
	if childPrefix, ok := pathPrefix(child); ok {
		return strings.HasPrefix(childPrefix, prefix)
	}
	return strings.HasPrefix(child, prefix)
}
