// Package scope is the meaning of model.Scope: Validate says whether a scope is well formed, Allows
// whether it permits a request, Exceeds whether one scope is within another. Source: Spec 2.3;
// ADR-0005. The same rules in words for users are docs/scopes.md, whose tables and examples are
// checked against this package by its tests.
//
// The rules are pure functions: no state, clock, network or logging, and no panic on any input. A
// scope only narrows; whether the owner of the credential may make the request at all is decided
// elsewhere, and both must agree. A request is refused when no entry clearly permits it.
package scope

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// The kinds of endpoint that a request is for, as Request.Target and rules[].requestTargets name
// them. Source: Spec 2.3; the names: ADR-0005.
const (
	// TargetManagement is this API.
	TargetManagement = "Management"
	// TargetCluster is the API of a connected cluster.
	TargetCluster = "Cluster"
	// TargetProjectSpace is the API of a connected cluster as seen from one space.
	TargetProjectSpace = "ProjectSpace"
	// TargetProjectVirtualCluster is the API of a virtual cluster.
	TargetProjectVirtualCluster = "ProjectVirtualCluster"
)

// targets are the values of rules[].requestTargets. The value VirtualCluster of older platforms is
// not among them: which requests it meant is not specified, and a scope is not guessed at.
// Source: ADR-0005.
var targets = []string{TargetManagement, TargetCluster, TargetProjectSpace, TargetProjectVirtualCluster}

// instances is the plural name of the virtual clusters of this API.
const instances = "virtualclusterinstances"

// Request is the part of an API request that scopes judge. It is either for a resource (Resource is set)
// or for a plain URL path (Path is set). No scope permits a Request that is for neither or both, has no
// verb, has an unknown target, or lacks the field that its target needs. The
// values are compared literally: `*` in a Request is the name `*`. Source: Spec 2.3; ADR-0005.
type Request struct {
	// Verb is the Kubernetes verb in lower case: get, list, watch, create, update, patch, delete,
	// deletecollection, or a special one. For a Path it is the HTTP method in lower case.
	Verb string
	// Group is the API group of the resource; empty is the core group.
	Group string
	// Resource is the plural name of the resource, without subresource. Empty for a Path.
	Resource string
	// Subresource is what follows the name, such as kubeconfig. Empty: the object itself.
	Subresource string
	// Namespace is the namespace of the URL. Empty for resources without namespaces, for requests over
	// all namespaces, and for a Path.
	Namespace string
	// Name is the name of the object. Empty for create, list, watch and deletecollection, save that a
	// list, watch or deletecollection whose field selector is exactly metadata.name=x has the name x.
	Name string
	// Path is the decoded URL path of a request that is for no resource, relative to the root of the
	// target: `/version`, not `/kubernetes/management/version`. It begins with `/` and has no empty, `.`
	// or `..` step. Empty for a resource.
	Path string
	// Project is the project to which the request belongs. On this API it is the project of Namespace; empty
	// if the namespace belongs to no project.
	Project string
	// VirtualCluster is the virtual cluster whose API gets the request. Needed when Target is
	// ProjectVirtualCluster and ignored otherwise: on this API the virtual cluster is the name of a
	// virtualclusterinstance.
	VirtualCluster string
	// Space is the space that gets the request. Needed when Target is ProjectSpace and ignored otherwise.
	Space string
	// Cluster is the connected cluster that gets the request. Needed when Target is Cluster and ignored
	// otherwise.
	Cluster string
	// Target is the kind of endpoint: one of the Target constants, TargetManagement for this API.
	Target string
}

// Refusal is the sentence that tells a caller that the scope of the credential does not permit r. It
// names the request and reveals nothing about the scope. Source: ADR-0005.
func Refusal(r Request) string {
	if r.Path != "" {
		return fmt.Sprintf("the scope of this credential does not permit %q on the path %q", r.Verb, r.Path)
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	text := fmt.Sprintf("the scope of this credential does not permit %q on %q", r.Verb, resource)
	if r.Name != "" {
		text += fmt.Sprintf(", name %q", r.Name)
	}
	if r.Namespace != "" {
		text += fmt.Sprintf(", namespace %q", r.Namespace)
	}
	return text
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

// inProject tells whether r is for something inside r.Project. A request over all namespaces is not.
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

// virtualCluster returns the name and the namespace of the virtual cluster that r is for, ok being
// false when it is for none. The name is empty when r is for virtual clusters in general, such as a
// list. The namespace is that of the virtualclusterinstance; empty when it is not known or r is for
// all.
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

// cleanPath tells whether p is an absolute path without empty, `.` or `..` steps. One slash at the
// end is fine.
func cleanPath(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	c := path.Clean(p)
	return p == c || p == c+"/"
}

// all is the name that selects every project, space, virtual cluster or cluster.
const all = "*"

// selects tells whether the name of a scope entry selects name.
func selects(entry, name string) bool { return entry == all || entry == name && name != "" }

// covers tells whether the name of a scope entry selects whatever the name other of another does.
func covers(entry, other string) bool { return entry == all || entry == other }

// unrestricted tells whether a list of names of a role selects everything.
func unrestricted(names []string) bool { return len(names) == 0 || slices.Contains(names, all) }
