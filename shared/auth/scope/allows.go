package scope

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
)

// Allows reports whether the scope s permits the request r. A nil scope permits everything. An empty scope permits what
// every scope permits: to ask about the API and the caller, and to create keys and tokens, whose scope Exceeds checks. The
// entries of s are alternatives. The scope must be one that Validate accepts; an entry that Validate refuses permits
// nothing. Source: Spec 2.3, 5.2; the permissions: ADR-0005.
func Allows(s *model.Scope, r Request) bool {
	_, allowed := Permits(s, r)
	return allowed
}

// Permits is Allows and also returns the path in the scope of the first entry that permits the request, such as
// projects[0]. The path is empty if there is no scope, and for requests that every scope permits. Source: ADR-0023.
func Permits(s *model.Scope, r Request) (entry string, allowed bool) {
	if s == nil {
		return "", true
	}
	if !r.wellFormed() {
		return "", false
	}
	if r.Namespace == "" && slices.ContainsFunc(selfRequests, func(p permission) bool { return p.permits(r) }) {
		return "", true
	}
	if s.ReadOnly && !slices.Contains(readVerbs, r.Verb) {
		return "", false
	}
	if r.Namespace == "" && credentialRequests.permits(r) {
		return "", true
	}
	if s.AllowPlatformCLI && roleAllows(model.ScopeRole{Role: RolePlatformCLI}, r) {
		return "allowPlatformCli", true
	}
	entryPath := func(list string, i int) (string, bool) { return list + "[" + strconv.Itoa(i) + "]", true }
	if i := slices.IndexFunc(s.Roles, func(e model.ScopeRole) bool { return roleAllows(e, r) }); i >= 0 {
		return entryPath("roles", i)
	}
	if i := slices.IndexFunc(s.Projects, func(e model.ScopeProject) bool { return projectAllows(e, r) }); i >= 0 {
		return entryPath("projects", i)
	}
	if i := slices.IndexFunc(s.Spaces, func(e model.ScopeSpace) bool { return spaceAllows(e, r) }); i >= 0 {
		return entryPath("spaces", i)
	}
	if i := slices.IndexFunc(s.VirtualClusters, func(e model.ScopeVirtualCluster) bool { return virtualClusterAllows(e, r) }); i >= 0 {
		return entryPath("virtualClusters", i)
	}
	if i := slices.IndexFunc(s.Clusters, func(e model.ScopeCluster) bool { return clusterAllows(e, r) }); i >= 0 {
		return entryPath("clusters", i)
	}
	if i := slices.IndexFunc(s.Rules, func(e model.ScopeRule) bool { return ruleAllows(e, r) }); i >= 0 {
		return entryPath("rules", i)
	}
	return "", false
}

// roleAllows applies a role. A role that is limited to projects or virtual clusters permits requests inside them.
// Outside, it permits only the resources that it lists as unconfined.
func roleAllows(e model.ScopeRole, r Request) bool {
	role, ok := lookupRole(e.Role)
	if !ok || !role.permits(r) {
		return false
	}
	anyProject, anyVirtualCluster := unrestricted(e.Projects), unrestricted(e.VirtualClusters)
	if anyProject && anyVirtualCluster {
		return true
	}
	if r.Namespace == "" {
		return slices.Contains(role.unconfined, schema.GroupResource{Group: r.Group, Resource: r.Resource})
	}
	if !r.inProject() {
		return false
	}
	if !anyProject && !slices.Contains(e.Projects, r.Project) {
		return false
	}
	if anyVirtualCluster {
		return true
	}
	name, _, ok := r.virtualCluster()
	return ok && name != "" && slices.Contains(e.VirtualClusters, name)
}

// projectAllows permits everything inside the project.
func projectAllows(e model.ScopeProject, r Request) bool {
	return r.inProject() && selects(e.Project, r.Project)
}

// spaceAllows permits every request to the API of the space.
func spaceAllows(e model.ScopeSpace, r Request) bool {
	return r.Target == TargetProjectSpace && selects(e.Project, r.Project) && selects(e.Space, r.Space)
}

// virtualClusterAllows permits every request to the API of the virtual cluster, and every verb on its
// virtualclusterinstance and the subresources of the instance. Only an entry for all virtual clusters of the project
// permits a request without a name, such as a list.
func virtualClusterAllows(e model.ScopeVirtualCluster, r Request) bool {
	name, _, ok := r.virtualCluster()
	return ok && r.inProject() && selects(e.Project, r.Project) && selects(e.VirtualCluster, name)
}

// clusterAllows permits every request to the API of the connected cluster.
func clusterAllows(e model.ScopeCluster, r Request) bool {
	return r.Target == TargetCluster && selects(e.Cluster, r.Cluster)
}

// ruleAllows permits the requests that meet all restrictions of the rule. No restriction depends on another one; ruleWithin
// relies on that.
func ruleAllows(e model.ScopeRule, r Request) bool {
	if len(e.Verbs) > 0 && !slices.Contains(e.Verbs, r.Verb) {
		return false
	}
	if len(e.RequestTargets) > 0 && !slices.Contains(e.RequestTargets, r.Target) {
		return false
	}
	if e.Cluster != "" && (r.Target != TargetCluster || e.Cluster != r.Cluster) {
		return false
	}
	if len(e.VirtualClusters) > 0 && !ruleSelectsVirtualCluster(e.VirtualClusters, r) {
		return false
	}
	if r.Path != "" {
		if !forPaths(e) {
			return false
		}
		return len(e.NonResourceURLs) == 0 ||
			slices.ContainsFunc(e.NonResourceURLs, func(p string) bool { return pathMatches(p, r.Path) })
	}
	if !forResources(e) {
		return false
	}
	if len(e.Namespaces) > 0 && (!slices.Contains(e.Namespaces, r.Namespace) || r.everyNamespace()) {
		return false
	}
	return len(e.Resources) == 0 ||
		slices.ContainsFunc(e.Resources, func(g model.ScopeGroupResources) bool { return groupSelects(g, r) })
}

// forPaths reports whether the rule can permit paths: it names some, or it names neither paths nor resources nor
// namespaces.
func forPaths(e model.ScopeRule) bool {
	return len(e.NonResourceURLs) > 0 || len(e.Resources) == 0 && len(e.Namespaces) == 0
}

// forResources reports whether the rule can permit resources: it names resources or namespaces, or it names no paths.
func forResources(e model.ScopeRule) bool {
	return len(e.Resources) > 0 || len(e.Namespaces) > 0 || len(e.NonResourceURLs) == 0
}

func ruleSelectsVirtualCluster(entries []model.ScopeRuleVirtualCluster, r Request) bool {
	name, namespace, ok := r.virtualCluster()
	return ok && slices.ContainsFunc(entries, func(e model.ScopeRuleVirtualCluster) bool {
		return (e.Name == "" || e.Name == name) && (e.Namespace == "" || e.Namespace == namespace)
	})
}

func groupSelects(g model.ScopeGroupResources, r Request) bool {
	if g.Group != r.Group {
		return false
	}
	if len(g.Resources) > 0 &&
		!slices.ContainsFunc(g.Resources, func(p string) bool { return resourceMatches(p, r.Resource, r.Subresource) }) {
		return false
	}
	return len(g.ResourceNames) == 0 || r.Name != "" && slices.Contains(g.ResourceNames, r.Name)
}

// resourceMatches reports whether a pattern of resources[].resources matches. `*` matches everything, `pods` matches objects
// but not their subresources, and `pods/*` matches subresources but not the objects.
func resourceMatches(pattern, resource, subresource string) bool {
	if pattern == selectAll {
		return true
	}
	left, right, hasSub := strings.Cut(pattern, "/")
	if !hasSub {
		return left == resource && subresource == ""
	}
	if subresource == "" {
		return false
	}
	switch {
	case left == selectAll && right == selectAll:
		return false
	case left == selectAll:
		return right == subresource
	case right == selectAll:
		return left == resource
	default:
		return left == resource && right == subresource
	}
}
