package scope

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
)

// The names of the managed roles. Source: Spec 2.3 (platformCLI); the others: ADR-0005.
const (
	RolePlatformCLI   = "platformCLI"
	RoleVCluster      = "vcluster"
	RoleAgent         = "agent"
	RoleNetworkPeer   = "network-peer"
	RoleWorkspace     = "workspace"
	RoleMetricsWriter = "metrics-writer"
	RoleMetricsReader = "metrics-reader"
)

const (
	authenticationGroup = "authentication.k8s.io"
	authorizationGroup  = "authorization.k8s.io"
)

// permission is a set of requests to this API: each verb on each resource and on each path. It does
// not reach subresources.
type permission struct {
	verbs []string
	// resources are plural names; `*` is every resource of its group.
	resources []schema.GroupResource
	// paths are as in rules[].nonResourceURLs.
	paths []string
}

func (p permission) permits(r Request) bool {
	if r.Target != TargetManagement || !slices.Contains(p.verbs, r.Verb) {
		return false
	}
	if r.Path != "" {
		return slices.ContainsFunc(p.paths, func(pattern string) bool { return pathMatches(pattern, r.Path) })
	}
	return r.Subresource == "" && slices.ContainsFunc(p.resources, func(gr schema.GroupResource) bool {
		return gr.Group == r.Group && (gr.Resource == all || gr.Resource == r.Resource)
	})
}

// role is one managed role. The role whose permission is empty permits nothing on this API: it means
// something to other parts of the platform, which is why a child still needs it from its parent.
type role struct {
	name string
	permission
	// unconfined are resources without namespace that the role permits even when it is limited to
	// projects or virtual clusters.
	unconfined []schema.GroupResource
	// implies are roles that come with this one.
	implies []string
}

// roles are the managed roles in the order of the specification and the documentation. Source: the
// permissions are ADR-0005.
var roles = []role{
	{
		name: RolePlatformCLI,
		permission: permission{
			verbs:     []string{"get", "list", "watch"},
			resources: []schema.GroupResource{model.Resource(all)},
		},
		unconfined: []schema.GroupResource{
			model.Resource("config"),
			model.Resource("configs"),
			model.Resource("directclusterendpointtokens"),
			model.Resource("ownedaccesskeys"),
		},
	},
	{
		name: RoleVCluster,
		permission: permission{
			verbs:     []string{"get", "list", "watch", "update", "patch"},
			resources: []schema.GroupResource{model.Resource(instances)},
		},
		implies: []string{RoleNetworkPeer},
	},
	{
		name: RoleAgent,
		permission: permission{
			verbs: []string{"create"},
			resources: []schema.GroupResource{
				{Group: authenticationGroup, Resource: "tokenreviews"},
				{Group: authorizationGroup, Resource: "subjectaccessreviews"},
			},
		},
		implies: []string{RoleNetworkPeer},
	},
	{name: RoleNetworkPeer},
	{name: RoleWorkspace},
	{name: RoleMetricsWriter},
	{
		name: RoleMetricsReader,
		permission: permission{
			verbs: []string{"get"},
			paths: []string{"/metrics"},
		},
	},
}

// always are the requests that every credential may make, whatever its scope: to ask what the API is
// and who one is, and to make a credential that Exceeds holds within its own scope.
// Source: Spec 2.3; the list: ADR-0005.
var always = []permission{
	{
		verbs: []string{"get"},
		paths: []string{"/api", "/apis", "/apis/*", "/openapi/*", "/version"},
	},
	{
		verbs: []string{"create"},
		resources: []schema.GroupResource{
			model.Resource("selves"),
			{Group: authenticationGroup, Resource: "selfsubjectreviews"},
			{Group: authorizationGroup, Resource: "selfsubjectaccessreviews"},
			{Group: authorizationGroup, Resource: "selfsubjectrulesreviews"},
		},
	},
	{
		verbs: []string{"create"},
		resources: []schema.GroupResource{
			model.Resource("ownedaccesskeys"),
			model.Resource("directclusterendpointtokens"),
		},
	},
}

// Roles returns the names of the managed roles, in the order of the documentation. The slice is the
// caller's. Source: Spec 2.3; ADR-0005.
func Roles() []string {
	names := make([]string, 0, len(roles))
	for _, r := range roles {
		names = append(names, r.name)
	}
	return names
}

// lookupRole returns the role of that name.
func lookupRole(name string) (role, bool) {
	i := slices.IndexFunc(roles, func(r role) bool { return r.name == name })
	if i < 0 {
		return role{}, false
	}
	return roles[i], true
}

// gives tells whether holding the role called name includes holding the role called other.
func gives(name, other string) bool {
	if name == other {
		return true
	}
	r, ok := lookupRole(name)
	return ok && slices.Contains(r.implies, other)
}

// roleEntries are the roles of s, the deprecated switch being one of them.
func roleEntries(s *model.Scope) []model.ScopeRole {
	if !s.AllowPlatformCLI {
		return s.Roles
	}
	return append(slices.Clone(s.Roles), model.ScopeRole{Role: RolePlatformCLI})
}

// pathMatches tells whether a pattern of nonResourceURLs matches the path of a request. `*` matches
// every path; a final step `*` every path beneath, at any depth; elsewhere `*` is no wildcard.
func pathMatches(pattern, p string) bool {
	if prefix, ok := pathPrefix(pattern); ok {
		return strings.HasPrefix(p, prefix)
	}
	return pattern == p
}

// pathPrefix returns what every path that pattern matches begins with, ok being false when pattern is
// a single path.
func pathPrefix(pattern string) (prefix string, ok bool) {
	if pattern == all {
		return "/", true
	}
	if strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/*") {
		return strings.TrimSuffix(pattern, "*"), true
	}
	return "", false
}
