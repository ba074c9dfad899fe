// Package scope has the rules of model.Scope: Validate checks a scope, Allows decides whether a scope permits a request, and
// Exceeds compares a scope with a wider one. docs/scopes.md explains the same rules to users; tests compare its tables and
// examples with this package. Source: Spec 2.3; ADR-0005.
//
// The rules are pure functions: they use no state, clock, network or log, and no input makes them panic. A scope only
// narrows: package auth decides whether the owner of the credential may make the request at all, and both must permit it.
// A request that no entry clearly permits is refused.
package scope

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// The kinds of endpoints, as Request.Target and rules[].requestTargets name them.
// Source: Spec 2.3; the names: ADR-0005.
const (
	// TargetManagement is this API.
	TargetManagement = "Management"
	// TargetCluster is the API of a connected cluster.
	TargetCluster = "Cluster"
	// TargetProjectSpace is the API of a connected cluster, limited to one space.
	TargetProjectSpace = "ProjectSpace"
	// TargetProjectVirtualCluster is the API of a virtual cluster.
	TargetProjectVirtualCluster = "ProjectVirtualCluster"
)

// targets are the values of rules[].requestTargets. The value VirtualCluster of older platforms is refused, because it is
// not specified which requests it permits. Source: ADR-0005.
var targets = []string{TargetManagement, TargetCluster, TargetProjectSpace, TargetProjectVirtualCluster}

// instances is the plural name of the virtual clusters of this API.
const instances = "virtualclusterinstances"

// Request is the part of an API request that scopes decide on. It is either for a resource (Resource is set) or for a
// URL path that is no resource (Path is set). No scope permits a Request for neither or both, without a verb, with an
// unknown target, or without a field that its target needs. Values are compared literally: `*` in a Request is the name
// `*`. Source: Spec 2.3; ADR-0005.
type Request struct {
	// Verb is the Kubernetes verb in lower case: get, list, watch, create, update, patch, delete, deletecollection, or a
	// special one. For a Path, it is the HTTP method in lower case.
	Verb string
	// Group is the API group of the resource; empty is the core group.
	Group string
	// Resource is the plural name of the resource, without subresource. Empty for a Path.
	Resource string
	// Subresource is the subresource, such as kubeconfig. Empty: the object itself.
	Subresource string
	// Namespace is the namespace in the URL. Empty for resources without namespaces, for requests for all namespaces, and
	// for a Path.
	Namespace string
	// Name is the name of the object. Empty for create, list, watch and deletecollection; however, a list or watch whose
	// field selector requires metadata.name=x has the name x, as in Kubernetes.
	Name string
	// Path is the decoded URL path of a request that is not for a resource, relative to the root of the target: `/version`,
	// not `/kubernetes/management/version`. It begins with `/` and has no empty, `.` or `..` segment. Empty for a resource.
	Path string
	// Project is the project to which the request belongs. On this API, it is the project of Namespace; empty if the
	// namespace belongs to no project.
	Project string
	// VirtualCluster is the virtual cluster whose API receives the request. Required if Target is ProjectVirtualCluster,
	// ignored otherwise: on this API, Name is the virtual cluster.
	VirtualCluster string
	// Space is the space that receives the request. Required if Target is ProjectSpace, ignored otherwise.
	Space string
	// Cluster is the connected cluster that receives the request. Required if Target is Cluster, ignored otherwise.
	Cluster string
	// Target is the kind of endpoint: one of the Target constants, TargetManagement for this API.
	Target string
}

// Refusal returns the message for a request that the scope of the credential does not permit. It names the request and
// the narrowest entry that would permit it, and reveals nothing about the scope. Source: ADR-0005, ADR-0023.
func Refusal(r Request) string { return RefusalOf("the scope of this credential", r) }

// RefusalOf is Refusal for another scope. Whose names the scope, as the subject of a sentence.
func RefusalOf(whose string, r Request) string {
	text := whose
	if r.Path != "" {
		text += fmt.Sprintf(" does not permit %q on the path %q", r.Verb, r.Path)
	} else {
		resource := r.Resource
		if r.Group != "" {
			resource += "." + r.Group
		}
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		text += fmt.Sprintf(" does not permit %q on %q", r.Verb, resource)
		if r.Name != "" {
			text += fmt.Sprintf(", name %q", r.Name)
		}
		if r.Namespace != "" {
			text += fmt.Sprintf(", namespace %q", r.Namespace)
		}
	}
	if _, entry, ok := Needed(r); ok {
		text += "; a scope with " + entry + " permits it"
	}
	return text
}

// Needed returns a scope with one entry that permits a request, and a description of the entry: the narrowest of the
// entries that are not deprecated, otherwise a rule. Ok is false if no scope permits the request. Source: ADR-0023.
func Needed(r Request) (needed *model.Scope, entry string, ok bool) {
	candidates := []struct {
		scope *model.Scope
		entry string
	}{
		{&model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: r.Project, VirtualCluster: cmp.Or(r.VirtualCluster, r.Name)}}},
			fmt.Sprintf("virtualClusters {project: %q, virtualCluster: %q}", r.Project, cmp.Or(r.VirtualCluster, r.Name))},
		{&model.Scope{Spaces: []model.ScopeSpace{{Project: r.Project, Space: r.Space}}},
			fmt.Sprintf("spaces {project: %q, space: %q}", r.Project, r.Space)},
		{&model.Scope{Clusters: []model.ScopeCluster{{Cluster: r.Cluster}}}, fmt.Sprintf("clusters {cluster: %q}", r.Cluster)},
		{&model.Scope{Projects: []model.ScopeProject{{Project: r.Project}}}, fmt.Sprintf("projects {project: %q}", r.Project)},
	}
	for _, role := range roles {
		candidates = append(candidates, struct {
			scope *model.Scope
			entry string
		}{&model.Scope{Roles: []model.ScopeRole{{Role: role.name}}}, fmt.Sprintf("roles {role: %q}", role.name)})
	}
	rule, description := model.ScopeRule{Verbs: []string{r.Verb}}, fmt.Sprintf("the path %q", r.Path)
	if r.Path != "" {
		rule.NonResourceURLs = []string{r.Path}
	} else {
		name := r.Resource
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		rule.Resources = []model.ScopeGroupResources{{Group: r.Group, Resources: []string{name}}}
		description = fmt.Sprintf("%q of the group %q", name, r.Group)
	}
	candidates = append(candidates, struct {
		scope *model.Scope
		entry string
	}{&model.Scope{Rules: []model.ScopeRule{rule}}, fmt.Sprintf("a rule for %q on %s", r.Verb, description)})
	for _, c := range candidates {
		if Allows(c.scope, r) {
			return c.scope, c.entry, true
		}
	}
	return nil, "", false
}

// wellFormed reports whether r is complete and unambiguous.
func (r Request) wellFormed() bool {
	if r.Verb == "" {
		return false
	}
	if r.Path != "" {
		if r.Group != "" || r.Resource != "" || r.Subresource != "" || r.Namespace != "" || r.Name != "" {
			return false
		}
		if !cleanPath(r.Path) {
			return false
		}
	} else if r.Resource == "" || strings.Contains(r.Resource, "/") || strings.Contains(r.Subresource, "/") {
		return false
	}
	switch r.Target {
	case TargetManagement:
		return true
	case TargetCluster:
		return r.Cluster != ""
	case TargetProjectSpace:
		return r.Project != "" && r.Space != ""
	case TargetProjectVirtualCluster:
		return r.Project != "" && r.VirtualCluster != ""
	default:
		return false
	}
}

// inProject reports whether r is for something inside r.Project. A request for all namespaces is not.
func (r Request) inProject() bool {
	switch r.Target {
	case TargetManagement:
		return r.Project != "" && r.Namespace != ""
	case TargetProjectSpace, TargetProjectVirtualCluster:
		return r.Project != ""
	default:
		return false
	}
}

// virtualCluster returns the name and namespace of the virtual cluster that r is for. Ok is false if r is not for
// virtual clusters. The name is empty if r is for several of them, such as a list. The namespace is the namespace of
// the virtualclusterinstance; it is empty if it is not known, or if r is for all namespaces.
func (r Request) virtualCluster() (name, namespace string, ok bool) {
	switch r.Target {
	case TargetManagement:
		return r.Name, r.Namespace, r.Group == model.GroupName && r.Resource == instances
	case TargetProjectVirtualCluster:
		return r.VirtualCluster, "", true
	default:
		return "", "", false
	}
}

// everyNamespace reports whether r is for objects of all namespaces. Its namespace is then empty, as for objects
// without a namespace. On other APIs it is not known which resources have namespaces.
func (r Request) everyNamespace() bool {
	return r.Target == TargetManagement && r.Namespace == "" && r.Group == model.GroupName && r.Resource == instances
}

// cleanPath reports whether p is an absolute path without empty, `.` or `..` segments. It may end with one slash.
func cleanPath(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	c := path.Clean(p)
	return p == c || p == c+"/"
}

// selectAll is the name that selects every project, space, virtual cluster or cluster.
const selectAll = "*"

// selects reports whether a name in a scope entry selects the name of a request, which may be empty.
func selects(entry, name string) bool { return entry == selectAll || entry == name && name != "" }

// covers reports whether a name in a scope entry selects everything that the name other in another entry selects.
func covers(entry, other string) bool { return entry == selectAll || entry == other }

// unrestricted reports whether a list of names in a role selects everything.
func unrestricted(names []string) bool { return len(names) == 0 || slices.Contains(names, selectAll) }
