package model

// Scope narrows what a bearer credential may do and never widens it: a request is allowed only if the owner of the
// credential may make it and the scope permits it. The entries are alternatives: a request is in scope if any of them
// permits it. An absent scope does not narrow anything. A scope that is present but empty permits what every scope permits:
// requests about the API and about the caller, and the creation of keys and tokens whose scope is at least as narrow.
// Source: Spec 2.3; the empty scope and the table of permissions: docs/scopes.md.
//
// +structType=atomic
type Scope struct {
	// Roles are managed roles whose permissions apply to the credential. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Roles []ScopeRole `json:"roles,omitempty"`
	// Projects are the projects that the credential may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Projects []ScopeProject `json:"projects,omitempty"`
	// Spaces are the spaces that the credential may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Spaces []ScopeSpace `json:"spaces,omitempty"`
	// VirtualClusters are the virtual clusters that the credential may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []ScopeVirtualCluster `json:"virtualClusters,omitempty"`
	// Clusters are the connected clusters that the credential may access. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Clusters []ScopeCluster `json:"clusters,omitempty"`
	// Rules permit requests by verb, resource and path.
	// Deprecated: use projects, spaces and virtualClusters instead. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Rules []ScopeRule `json:"rules,omitempty"`
	// AllowPlatformCLI permits the read-only management requests that the command line needs.
	// Deprecated: use roles with a role named platformCLI instead. Source: Spec 2.3.
	// +optional
	AllowPlatformCLI bool `json:"allowPlatformCli,omitempty"`
	// ReadOnly permits only get, list and watch, of the requests that the entries permit. Such a credential cannot create
	// keys or tokens. Source: ADR-0047.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ScopeRole applies one managed role. If projects or virtual clusters are named, the role applies only
// within them. Source: Spec 2.3.
type ScopeRole struct {
	// Role is the name of the role: platformCLI, vcluster, agent, network-peer, workspace, metrics-writer or
	// metrics-reader. Other names are refused. Source: Spec 2.3; the names: ADR-0005.
	Role string `json:"role"`
	// Projects are the projects that the role applies to. Empty means every project. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Projects []string `json:"projects,omitempty"`
	// VirtualClusters are the virtual clusters that the role applies to. Empty means every virtual cluster.
	// Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []string `json:"virtualClusters,omitempty"`
}

// ScopeProject permits access to everything in one project. Source: Spec 2.3.
type ScopeProject struct {
	// Project is the name of the project; `*` selects all projects. Source: Spec 2.3.
	Project string `json:"project"`
}

// ScopeSpace permits access to one space. Source: Spec 2.3.
type ScopeSpace struct {
	// Project is the name of the project that the space belongs to. Source: Spec 2.3.
	Project string `json:"project"`
	// Space is the name of the space; `*` selects all spaces of the project. Source: Spec 2.3.
	Space string `json:"space"`
}

// ScopeVirtualCluster permits access to one virtual cluster. Source: Spec 2.3.
type ScopeVirtualCluster struct {
	// Project is the name of the project that the virtual cluster belongs to. Source: Spec 2.3.
	Project string `json:"project"`
	// VirtualCluster is the name of the virtual cluster; `*` selects all virtual clusters of the project.
	// Source: Spec 2.3.
	VirtualCluster string `json:"virtualCluster"`
}

// ScopeCluster permits access to one connected cluster. Source: Spec 2.3.
type ScopeCluster struct {
	// Cluster is the name of the connected cluster; `*` selects all of them. Source: Spec 2.3.
	Cluster string `json:"cluster"`
}

// ScopeRule permits requests that match all of its restrictions.
// Deprecated: use projects, spaces and virtualClusters of the scope instead. Source: Spec 2.3.
type ScopeRule struct {
	// Verbs are the verbs of the permitted requests. Empty means every verb. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Verbs []string `json:"verbs,omitempty"`
	// Resources are the resources of the permitted requests. Empty means all resources in all API groups.
	// Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Resources []ScopeGroupResources `json:"resources,omitempty"`
	// Namespaces restrict the rule to these namespaces. The empty string matches resources without a namespace.
	// An empty list means every namespace. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// NonResourceURLs are the paths of permitted requests that are not for resources. `*` is allowed only as the
	// entire last segment of a path. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// RequestTargets restrict the rule to requests for these endpoints: Management, Cluster, ProjectSpace or
	// ProjectVirtualCluster. An empty list means every request. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	RequestTargets []string `json:"requestTargets,omitempty"`
	// Cluster restricts the rule to requests for this connected cluster. If it is set, the rule does not permit
	// requests that are not for a cluster. Empty means no restriction. Source: Spec 2.3.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// VirtualClusters restrict the rule to requests for these virtual clusters. An empty list means no
	// restriction. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	VirtualClusters []ScopeRuleVirtualCluster `json:"virtualClusters,omitempty"`
}

// ScopeGroupResources selects resources of one API group. Source: Spec 2.3.
type ScopeGroupResources struct {
	// Group is the name of the API group. The empty string is the core group. Source: Spec 2.3.
	// +optional
	Group string `json:"group,omitempty"`
	// Resources are plural names of resources, such as `pods` and `pods/log`. `*` selects all resources, `pods/*` selects
	// all subresources of pods, and `*/scale` selects the subresource scale of all resources. If there are wildcards, the
	// entries must not overlap. Empty means all resources and subresources of the group. Source: Spec 2.3.
	// +optional
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// ResourceNames are the names of single objects. They require resources to be set. Empty means every object.
	// Source: Spec 2.3.
	// +optional
	// +listType=atomic
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// ScopeRuleVirtualCluster selects virtual clusters in a rule. Source: Spec 2.3.
type ScopeRuleVirtualCluster struct {
	// Name is the name of the virtual cluster. Empty means all virtual clusters. Source: Spec 2.3.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the namespace of the virtual cluster. Empty means all namespaces. Source: Spec 2.3.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
