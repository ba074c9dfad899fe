package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialRevocation revokes credentials that the request contains, for instance credentials that were found in a
// repository or a log. It is cluster-scoped and created at credentialrevocations, without a credential. The server does not
// store it. The response does not say whether a text was a credential. Source: ADR-0022.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CredentialRevocation struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has the credentials to revoke. Source: ADR-0022.
	Spec CredentialRevocationSpec `json:"spec"`
}

// CredentialRevocationSpec has the credentials to revoke. Source: ADR-0022.
type CredentialRevocationSpec struct {
	// Credentials are 1 to 10 texts: access keys and direct cluster endpoint tokens. Other texts are ignored.
	// Responses do not contain this field. Source: ADR-0022.
	// +listType=atomic
	Credentials []string `json:"credentials,omitempty" secret:"true"`
}
