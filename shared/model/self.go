package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Self answers who a credential is and what narrows it. It is cluster scoped, created at selves, and
// not stored. Source: ADR-0005.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Self struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is which credential is asked about. Empty means the one of the request. Source: ADR-0005.
	// +optional
	Spec SelfSpec `json:"spec"`
	// Status is the answer; what clients send here is ignored. Source: ADR-0005.
	// +optional
	Status SelfStatus `json:"status"`
}

// SelfSpec is which credential is asked about. Source: ADR-0005.
type SelfSpec struct {
	// AccessKey is the bearer token of another access key to ask about instead of the one of the
	// request. It is in no answer. Source: ADR-0005.
	// +optional
	AccessKey string `json:"accessKey,omitempty" secret:"true"`
}

// SelfStatus is who a credential is and what narrows it. Source: ADR-0005.
type SelfStatus struct {
	// User is the user that the credential acts as. Absent: a team or a subject. Source: ADR-0005.
	// +optional
	User *SelfUser `json:"user,omitempty"`
	// Team is the team that the credential acts as. Absent: a user or a subject. Source: ADR-0005.
	// +optional
	Team *SelfTeam `json:"team,omitempty"`
	// Subject is the generic subject that the credential acts as. Empty: a user or a team.
	// Source: ADR-0005.
	// +optional
	Subject string `json:"subject,omitempty"`
	// UID is the unique identifier of who the credential acts as, as in authentication reviews. Empty:
	// it has none. Source: ADR-0005.
	// +optional
	UID string `json:"uid,omitempty"`
	// Groups are all groups that apply to requests with the credential. Source: ADR-0005.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// AccessKey is the name of the access key object, never its bearer token. Empty: the credential is no
	// access key. Source: ADR-0005.
	// +optional
	AccessKey string `json:"accessKey,omitempty"`
	// AccessKeyType is spec.type of the access key. Source: ADR-0005.
	// +optional
	AccessKeyType string `json:"accessKeyType,omitempty"`
	// AccessKeyScope is the scope of the credential. Absent: it is not narrowed. Source: ADR-0005.
	// +optional
	AccessKeyScope *Scope `json:"accessKeyScope,omitempty"`
	// ProjectNamespacePrefix is the prefix of project namespaces, `p-` where the configuration says
	// nothing else. Source: Spec 2.7, 8; ADR-0005.
	// +optional
	ProjectNamespacePrefix string `json:"projectNamespacePrefix,omitempty"`
}

// SelfUser is the user that a credential acts as. Source: ADR-0005.
type SelfUser struct {
	// Name is the name that access keys, owners and access lists use. Source: ADR-0005.
	Name string `json:"name"`
	// Username is the user name at the identity provider. Empty: not known. Source: ADR-0005.
	// +optional
	Username string `json:"username,omitempty"`
	// Email is the address from the identity provider. Empty: not known. Source: ADR-0005.
	// +optional
	Email string `json:"email,omitempty"`
}

// SelfTeam is the team that a credential acts as. Source: ADR-0005.
type SelfTeam struct {
	// Name is the name that access keys, owners and access lists use. Source: ADR-0005.
	Name string `json:"name"`
}
