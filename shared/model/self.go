package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Self answers who a credential acts as and what narrows it. It is cluster-scoped and created at selves. The
// server does not store it. Source: ADR-0005.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Self struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec selects the credential to describe. If empty, the credential of the request is described.
	// Source: ADR-0005.
	// +optional
	Spec SelfSpec `json:"spec"`
	// Status is the answer. It is ignored in requests. Source: ADR-0005.
	// +optional
	Status SelfStatus `json:"status"`
}

// SelfSpec selects the credential to describe. Source: ADR-0005.
type SelfSpec struct {
	// AccessKey is the bearer token of the access key to describe. If absent, the credential of the request is
	// described. Responses do not contain this field. Source: ADR-0005.
	// +optional
	AccessKey string `json:"accessKey,omitempty" secret:"true"`
}

// SelfStatus says who a credential acts as and what narrows it. Source: ADR-0005.
type SelfStatus struct {
	// User is the user that the credential acts as. Absent if the credential acts as a team or a subject.
	// Source: ADR-0005.
	// +optional
	User *SelfUser `json:"user,omitempty"`
	// Team is the team that the credential acts as. Absent if the credential acts as a user or a subject.
	// Source: ADR-0005.
	// +optional
	Team *SelfTeam `json:"team,omitempty"`
	// Subject is the generic subject that the credential acts as. Absent if the credential acts as a user or a
	// team. Source: ADR-0005.
	// +optional
	Subject string `json:"subject,omitempty"`
	// UID is the unique identifier of the user, team or subject, as in a TokenReview. Absent if there is no such
	// identifier. Source: ADR-0005.
	// +optional
	UID string `json:"uid,omitempty"`
	// Groups are all groups that apply to requests made with the credential. Source: ADR-0005.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// AccessKey is the name of the access key object; it is never the bearer token. Absent if the credential is
	// not an access key. Source: ADR-0005.
	// +optional
	AccessKey string `json:"accessKey,omitempty"`
	// AccessKeyType is the spec.type of the access key. Source: ADR-0005.
	// +optional
	AccessKeyType string `json:"accessKeyType,omitempty"`
	// AccessKeyExpirationTimestamp is the time at which the access key stops working. If the lifetime counts from the last
	// activity, using the key postpones it. Absent if the key does not expire. Source: ADR-0030.
	// +optional
	AccessKeyExpirationTimestamp *metav1.Time `json:"accessKeyExpirationTimestamp,omitempty"`
	// AccessKeyScope is the scope of the credential. Absent if the credential is not narrowed. Source: ADR-0005.
	// +optional
	AccessKeyScope *Scope `json:"accessKeyScope,omitempty"`
	// ProjectNamespacePrefix is the prefix of project namespaces. It is `p-` unless the configuration says
	// otherwise. Source: Spec 2.7, 8; ADR-0005.
	// +optional
	ProjectNamespacePrefix string `json:"projectNamespacePrefix,omitempty"`
}

// SelfUser is the user that a credential acts as. Source: ADR-0005.
type SelfUser struct {
	// Name is the name of the user in access keys, owners and access lists. Source: ADR-0005.
	Name string `json:"name"`
	// DisplayName is the name of the user in the UI. Absent if the user has none, or has no object. Source: ADR-0005.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Username is the user name at the identity provider. Absent if it is not known. Source: ADR-0005.
	// +optional
	Username string `json:"username,omitempty"`
	// Email is the email address from the identity provider. Absent if it is not known. Source: ADR-0005.
	// +optional
	Email string `json:"email,omitempty"`
}

// SelfTeam is the team that a credential acts as. Source: ADR-0005.
type SelfTeam struct {
	// Name is the name of the team in access keys, owners and access lists. Source: ADR-0005.
	Name string `json:"name"`
}
