package model

// Scope narrows what a bearer credential may do. It never widens it: the result is what the owner may
// do now, intersected with the scope. An absent scope does not narrow; a present but empty one permits
// nothing beyond asking who one is. The entries are alternatives: a request is in scope when any of
// them permits it. Source: Spec 2.3; the empty scope and the table of permissions: docs/scopes.md.
//
// +structType=atomic
type Scope struct {
	// Roles are managed permissions applied to the key. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Roles []ScopeRole `json:"roles,omitempty"`
	// Projects are the projects the key may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Projects []ScopeProject `json:"projects,omitempty"`
	// Spaces are the spaces the key may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Spaces []ScopeSpace `json:"spaces,omitempty"`
	// VirtualClusters are the virtual clusters the key may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []ScopeVirtualCluster `json:"virtualClusters,omitempty"`
	// Clusters are the connected clusters the key may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Clusters []ScopeCluster `json:"clusters,omitempty"`
	// Rules permit requests by verb, resource and path.
	// Deprecated: use projects, spaces and virtualClusters instead. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Rules []ScopeRule `json:"rules,omitempty"`
	// AllowPlatformCLI lets the read-only management requests of the command line work.
	// Deprecated: use roles with a role named platformCLI instead. Source: Spec 2.3.
	// +optional
	AllowPlatformCLI bool `json:"allowPlatformCli,omitempty"`
}

// ScopeRole applies one managed role, within projects and virtual clusters when these are named.
// Source: Spec 2.3.
type ScopeRole struct {
	// Role is the role's name: platformCLI, vcluster, agent, network-peer, workspace, metrics-writer
	// or metrics-reader. Any other is Invalid. Source: Spec 2.3; the names: ADR-0005.
	Role string `json:"role"`
	// Projects are the projects the role applies to. Empty means every project. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Projects []string `json:"projects,omitempty"`
	// VirtualClusters are the virtual clusters the role applies to. Empty means every virtual cluster.
	// Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []string `json:"virtualClusters,omitempty"`
}

// ScopeProject permits what is inside one project. Source: Spec 2.3.
type ScopeProject struct {
	// Project is the project's name; `*` selects all. Source: Spec 2.3.
	Project string `json:"project"`
}

// ScopeSpace permits one space. Source: Spec 2.3.
type ScopeSpace struct {
	// Project is the name of the space's project. Source: Spec 2.3.
	Project string `json:"project"`
	// Space is the space's name; `*` selects all of the project. Source: Spec 2.3.
	Space string `json:"space"`
}

// ScopeVirtualCluster permits one virtual cluster. Source: Spec 2.3.
type ScopeVirtualCluster struct {
	// Project is the name of the virtual cluster's project. Source: Spec 2.3.
	Project string `json:"project"`
	// VirtualCluster is the virtual cluster's name; `*` selects all of the project. Source: Spec 2.3.
	VirtualCluster string `json:"virtualCluster"`
}

// ScopeCluster permits one connected cluster. Source: Spec 2.3.
type ScopeCluster struct {
	// Cluster is the connected cluster's name; `*` selects all. Source: Spec 2.3.
	Cluster string `json:"cluster"`
}

// ScopeRule permits requests that match all of its restrictions.
// Deprecated: use projects, spaces and virtualClusters of Scope instead. Source: Spec 2.3.
type ScopeRule struct {
	// Verbs are the request verbs. Empty means every verb. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Verbs []string `json:"verbs,omitempty"`
	// Resources are the kinds of objects. Empty means all kinds in all API groups. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Resources []ScopeGroupResources `json:"resources,omitempty"`
	// Namespaces restrict the rule to namespaces. The empty string matches non-namespaced resources; an
	// empty list means every namespace. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// NonResourceURLs are URL paths that are no resources. `*` is allowed only as the full final path
	// step. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// RequestTargets are the kinds of endpoint a request is for: Management, Cluster, ProjectSpace or
	// ProjectVirtualCluster. An empty list means every request. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	RequestTargets []string `json:"requestTargets,omitempty"`
	// Cluster restricts the rule to requests for this connected cluster; requests that are not for a
	// cluster are then not permitted. Empty means no restriction. Source: Spec 2.3.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// VirtualClusters restrict the rule to requests for these virtual clusters. An empty list means no
	// restriction. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []ScopeRuleVirtualCluster `json:"virtualClusters,omitempty"`
}

// ScopeGroupResources names resources of one API group. Source: Spec 2.3.
type ScopeGroupResources struct {
	// Group is the API group; the empty string is the core group. Source: Spec 2.3.
	// +optional
	Group string `json:"group,omitempty"`
	// Resources are plural names such as `pods` and `pods/log`, `*` for all, `pods/*` for all
	// subresources of pods, `*/scale` for that subresource of all. With wildcards the entries must not
	// overlap. Empty means all resources and subresources of the group. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// ResourceNames are the names of single objects; needs resources. Empty means every object.
	// Source: Spec 2.3.
	// +optional
	// +listType=atomic
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// ScopeRuleVirtualCluster selects virtual clusters in a rule. Source: Spec 2.3.
type ScopeRuleVirtualCluster struct {
	// Name is the virtual cluster's name; empty means all. Source: Spec 2.3.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the virtual cluster's namespace; empty means all. Source: Spec 2.3.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
