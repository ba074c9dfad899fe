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

// permission permits requests to this API: each verb on each resource, without its subresources, and on each path.
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
		return gr.Group == r.Group && (gr.Resource == selectAll || gr.Resource == r.Resource)
	})
}

// role is one managed role. A role with an empty permission permits nothing on this API, but other parts of the
// platform use it: a parent must have it to give it to a child, like any other role.
type role struct {
	name string
	permission
	// unconfined are resources without namespaces that the role permits even if it is limited to projects or virtual
	// clusters.
	unconfined []schema.GroupResource
	// implies are roles that come with this one.
	implies []string
}

// roles are the managed roles in the order of the specification and the documentation.
// Source: Spec 2.3; the permissions: ADR-0005.
var roles = []role{
	{
		name: RolePlatformCLI,
		permission: permission{
			verbs:     []string{"get", "list", "watch"},
			resources: []schema.GroupResource{model.Resource(selectAll)},
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

// selfRequests are requests that every scope permits: callers can ask about the API and about themselves, and revoke a
// credential that they have. Source: Spec 2.3; the list: ADR-0005.
var selfRequests = []permission{
	{
		verbs: []string{"get"},
		paths: []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"},
	},
	{
		verbs: []string{"post"},
		paths: []string{"/auth/session"},
	},
	{
		verbs: []string{"create"},
		resources: []schema.GroupResource{
			model.Resource("selves"),
			model.Resource("credentialrevocations"),
			model.Resource("scopepreviews"),
			{Group: authenticationGroup, Resource: "selfsubjectreviews"},
			{Group: authorizationGroup, Resource: "selfsubjectaccessreviews"},
			{Group: authorizationGroup, Resource: "selfsubjectrulesreviews"},
		},
	},
}

// credentialRequests are the requests that every scope without read-only permits: callers can create a credential, whose scope
// Exceeds compares with theirs. Source: Spec 2.3; the list: ADR-0005.
var credentialRequests = permission{
	verbs: []string{"create"},
	resources: []schema.GroupResource{
		model.Resource("ownedaccesskeys"),
		model.Resource("directclusterendpointtokens"),
	},
}

// readVerbs are the verbs that a read-only scope permits.
var readVerbs = []string{"get", "list", "watch"}

// Roles returns the names of the managed roles, in the order of the documentation. The slice is a copy.
// Source: Spec 2.3; ADR-0005.
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

// gives reports whether the role called name is, or implies, the role called other.
func gives(name, other string) bool {
	if name == other {
		return true
	}
	r, ok := lookupRole(name)
	return ok && slices.Contains(r.implies, other)
}

// roleEntries returns the roles of s. The deprecated AllowPlatformCLI is one of them.
func roleEntries(s *model.Scope) []model.ScopeRole {
	if !s.AllowPlatformCLI {
		return s.Roles
	}
	return append(slices.Clone(s.Roles), model.ScopeRole{Role: RolePlatformCLI})
}

// pathMatches reports whether a pattern of nonResourceURLs matches the path of a request. The pattern `*` matches every
// path, and a last segment `*` matches every path below, at any depth. Elsewhere, `*` is not a wildcard.
func pathMatches(pattern, p string) bool {
	if prefix, ok := pathPrefix(pattern); ok {
		return strings.HasPrefix(p, prefix)
	}
	return pattern == p
}

// pathPrefix returns the common prefix of all paths that a pattern matches. Ok is false if the pattern is a single path.
func pathPrefix(pattern string) (prefix string, ok bool) {
	if pattern == selectAll {
		return "/", true
	}
	if strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/*") {
		return strings.TrimSuffix(pattern, "*"), true
	}
	return "", false
}
