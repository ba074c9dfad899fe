package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// ClusterRoleAuditor is the cluster role that lets a user, or the members of a team, read what admins read, without
// secrets. Source: ADR-0047.
const ClusterRoleAuditor = "platform-auditor"

// ClusterRoleAdmin is the cluster role that makes a user, or the members of a team, admins of the platform.
// Source: ADR-0029.
const ClusterRoleAdmin = "platform-admin"

// User is a person who uses the platform. The access keys of a user have the rights that the user has at the moment of each
// request. It is cluster-scoped and served at users. Source: ADR-0029.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type User struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says who the user is and what the user may do. Source: ADR-0029.
	// +optional
	Spec UserSpec `json:"spec"`
	// Status is what the server observes. It is ignored in requests. Source: ADR-0029.
	// +optional
	Status UserStatus `json:"status"`
}

// UserList is one page of users. Source: Spec 2.1; ADR-0029.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the users in the order of their names.
	// +listType=atomic
	Items []User `json:"items"`
}

// UserSpec says who a user is and what the user may do. Users can change their own displayName and icon; only admins can
// change the other fields. Source: ADR-0029.
type UserSpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: ADR-0029.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Username is the login name shown in the UI, at most 256 bytes. Defaults to metadata.name, which is the name that
	// users enter to sign in with a password. Source: ADR-0029.
	// +optional
	Username string `json:"username,omitempty"`
	// Email is the email address of the user. It is shown and never identifies the user. Source: ADR-0029.
	// +optional
	Email string `json:"email,omitempty"`
	// Icon is the address of a picture of the user, https or data, at most 4096 bytes. Source: ADR-0029.
	// +optional
	Icon string `json:"icon,omitempty"`
	// Connector is the ID of the connector at which the user signs in. Absent if the user does not sign in with a provider.
	// Source: ADR-0029.
	// +optional
	Connector string `json:"connector,omitempty"`
	// Subject is the ID of the user at the connector. Connector and subject together belong to one user. Source: ADR-0029.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Groups are the groups that the platform gives the user, at most 256. Groups that begin with `platform:` or `system:` are
	// refused. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// SSOGroups are the groups of the user at the connector. A sign-in replaces them. Source: ADR-0029.
	// +optional
	// +listType=atomic
	SSOGroups []string `json:"ssoGroups,omitempty"`
	// ExtraClaims are further claims from the connector. A sign-in replaces them. Source: ADR-0029.
	// +optional
	ExtraClaims map[string]string `json:"extraClaims,omitempty"`
	// ClusterRoles are the roles of the user on the whole platform. Source: ADR-0029.
	// +optional
	// +listType=atomic
	ClusterRoles []ClusterRole `json:"clusterRoles,omitempty"`
	// Disabled stops all credentials of the user at the next request. They work again when disabled is false. Source:
	// ADR-0029.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// TokenGeneration revokes credentials by number: credentials that were made while the number was lower are refused. It
	// can only grow. Source: ADR-0029.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// ClusterRole names a role on the whole platform. Source: ADR-0029.
type ClusterRole struct {
	// Name is the name of the role: platform-admin or platform-auditor. Source: ADR-0029, ADR-0047.
	Name string `json:"name"`
}

// UserStatus is what the server observes of a user. Source: ADR-0029.
type UserStatus struct {
	// Teams are the names of the enabled teams that the user belongs to, in their order. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
	// HasPassword is true if the user can sign in with a password. Source: ADR-0032.
	// +optional
	HasPassword bool `json:"hasPassword,omitempty"`
	Origin      `json:",inline"`
}

// UserPassword sets the password of a user. It is the request and the response of users/{name}/password. The response
// contains no password. All credentials that the user has are refused from then on. Source: ADR-0032.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type UserPassword struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata, with the name of the user. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec contains the passwords. It is empty in the response. Source: ADR-0032.
	// +optional
	Spec UserPasswordSpec `json:"spec"`
	// Status is the result. It is ignored in requests. Source: ADR-0032.
	// +optional
	Status UserPasswordStatus `json:"status"`
}

// UserPasswordSpec contains the new and the current password of a user. Source: ADR-0032.
type UserPasswordSpec struct {
	// Current is the current password of the user, a secret. Users need it to change their own password. Admins do not need it.
	// Source: ADR-0032.
	// +optional
	Current secret.String `json:"current,omitempty"`
	// Password is the new password, a secret: at least 12 characters, at most 1024 bytes, and not easy to guess. Source: ADR-0032.
	// +optional
	Password secret.String `json:"password,omitempty"`
}

// UserPasswordStatus is the result of setting a password. Source: ADR-0032.
type UserPasswordStatus struct {
	// TokenGeneration is the spec.tokenGeneration of the user from now on. Credentials that were made before are refused.
	// Source: ADR-0032.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// UserSignOut ends every credential that a user has. It is the request and the response of users/{name}/signout. The request is
// empty. Source: ADR-0029.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type UserSignOut struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata, with the name of the user. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Status is the result of the sign-out. Source: ADR-0029.
	// +optional
	Status UserSignOutStatus `json:"status"`
}

// UserSignOutStatus is the result of a sign-out. Source: ADR-0029.
type UserSignOutStatus struct {
	// TokenGeneration is the spec.tokenGeneration of the user from now on. Credentials that were made before are refused.
	// Source: ADR-0029.
	// +optional
	TokenGeneration int64 `json:"tokenGeneration,omitempty"`
}

// Team is a group of users. The members of a team see and change what belongs to the team. It is cluster-scoped and served at
// teams. Source: ADR-0029.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Team struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says who belongs to the team and what its members may do. Source: ADR-0029.
	// +optional
	Spec TeamSpec `json:"spec"`
	// Status is empty. It is ignored in requests. Source: ADR-0029.
	// +optional
	Status TeamStatus `json:"status"`
}

// TeamList is one page of teams. Source: Spec 2.1; ADR-0029.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TeamList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the teams in the order of their names.
	// +listType=atomic
	Items []Team `json:"items"`
}

// TeamSpec says who belongs to a team and what its members may do. Only admins write it. Source: ADR-0029.
type TeamSpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: ADR-0029.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Users are the names of users who belong to the team, at most 4096. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// Groups are groups whose members belong to the team, at most 256. A user is a member if the groups or ssoGroups of the
	// user contain one of these groups. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// ClusterRoles are the roles of the members on the whole platform. Source: ADR-0029.
	// +optional
	// +listType=atomic
	ClusterRoles []ClusterRole `json:"clusterRoles,omitempty"`
	// Disabled ends the membership of all members and stops the credentials of the team itself, at the next request.
	// Source: ADR-0029.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// TeamStatus is what the server observes of a team. Source: ADR-0029.
type TeamStatus struct {
	Origin `json:",inline"`
}
