package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The roles of the members of a project. Source: ADR-0037.
const (
	// ProjectRoleAdmin lets members change the project and do everything with its virtual clusters.
	ProjectRoleAdmin = "admin"
	// ProjectRoleUse lets members see the virtual clusters of the project and render kubeconfigs.
	ProjectRoleUse = "use"
	// ProjectRoleView lets members see the virtual clusters of the project.
	ProjectRoleView = "view"
)

// The kinds of the members of a project. Source: ADR-0037.
const (
	// ProjectMemberUser is a user.
	ProjectMemberUser = "User"
	// ProjectMemberTeam is a team.
	ProjectMemberTeam = "Team"
)

// Project says who may do what with the virtual clusters in one namespace. It is cluster-scoped and served at projects.
// Members see their projects. Only admins of the platform create projects. Source: ADR-0037.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. The namespace of the virtual clusters is this name after the
	// projectNamespacePrefix of the configuration. Source: Spec 2.2, 2.7.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says who belongs to the project. Source: ADR-0037.
	// +optional
	Spec ProjectSpec `json:"spec"`
	// Status is what the server observes. It is ignored in requests. Source: ADR-0037.
	// +optional
	Status ProjectStatus `json:"status"`
}

// ProjectList is one page of projects. Source: Spec 2.1; ADR-0037.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the projects in the order of their names.
	// +listType=atomic
	Items []Project `json:"items"`
}

// ProjectSpec says who belongs to a project. Source: ADR-0037.
type ProjectSpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: ADR-0037.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text, at most 4096 bytes. Source: ADR-0037.
	// +optional
	Description string `json:"description,omitempty"`
	// Owner is the user or team that always has the role admin. If absent, only members have roles. Source: ADR-0037.
	// +optional
	Owner *ProjectOwner `json:"owner,omitempty"`
	// Members are the users and teams of the project, at most 1000. Each of them can be listed once. Source: ADR-0037.
	// +optional
	// +listType=atomic
	Members []ProjectMember `json:"members,omitempty"`
}

// ProjectOwner is the user or the team that owns a project. Source: ADR-0037.
type ProjectOwner struct {
	// User is the name of the user. Exactly one of user and team must be set. Source: ADR-0037.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the team. Source: ADR-0037.
	// +optional
	Team string `json:"team,omitempty"`
}

// ProjectMember is a user or a team with a role in a project. Source: ADR-0037.
type ProjectMember struct {
	// Kind is User or Team. Source: ADR-0037.
	Kind string `json:"kind"`
	// Name is the name of the user or team. Source: ADR-0037.
	Name string `json:"name"`
	// Role is admin, use or view. With admin, a member changes the project and creates, changes and deletes its virtual
	// clusters. With use, a member sees the virtual clusters and renders kubeconfigs. With view, a member sees the virtual
	// clusters. Source: ADR-0037.
	Role string `json:"role"`
}

// ProjectStatus is what the server observes of a project. Source: ADR-0037.
type ProjectStatus struct {
	// Namespace is the namespace of the virtual clusters. Source: Spec 2.7; ADR-0037.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Origin    `json:",inline"`
}
