package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DirectClusterEndpointToken is a short-lived signed token that reaches a connected cluster directly,
// without passing through the platform. It is cluster scoped and served at directclusterendpointtokens.
// Creating one issues the token; what can be listed, read and deleted afterwards is its record, and
// deleting the record revokes the token. Source: Spec 2.4, 5; the record: ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type DirectClusterEndpointToken struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty in a request. Source: Spec 2.2, 2.4.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is how long the token lives and what it may do. It may be empty. Source: Spec 2.4.
	// +optional
	Spec DirectClusterEndpointTokenSpec `json:"spec"`
	// Status is the token and its record; what clients send here is ignored. Source: Spec 2.4.
	// +optional
	Status DirectClusterEndpointTokenStatus `json:"status"`
}

// DirectClusterEndpointTokenList is a page of the records of issued tokens. Source: Spec 2.1, 2.4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type DirectClusterEndpointTokenList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the records, in order of their names, without status.token.
	// +listType=atomic
	Items []DirectClusterEndpointToken `json:"items"`
}

// DirectClusterEndpointTokenSpec is how long a token lives and what it may do. Source: Spec 2.4.
type DirectClusterEndpointTokenSpec struct {
	// TTLSeconds is the lifetime of the token, in whole seconds. 0 or absent means the default of one
	// hour. The token never outlives the credential that asked for it, nor the platform's longest lifetime;
	// status.expirationTimestamp says what it came to. Negative is Invalid.
	// Source: Spec 2.4, 5; the default: ADR-0003; the longest: ADR-0011.
	// +optional
	TTLSeconds int64 `json:"ttl,omitempty"`
	// Scope narrows what the token may do. Absent: all that the caller may do. Source: Spec 2.3, 2.4.
	// +optional
	Scope *Scope `json:"scope,omitempty"`
}

// DirectClusterEndpointTokenStatus is an issued token and its record. Source: Spec 2.4.
type DirectClusterEndpointTokenStatus struct {
	// Token is the issued token, a signed JWT. It is in the answer to a create and in no other answer.
	// Source: Spec 2.4.
	// +optional
	Token string `json:"token,omitempty" secret:"true"`
	// ExpirationTimestamp is when the token stops to authenticate. Source: ADR-0003.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// User is the user that the token acts as. One of user, team and subject is set.
	// Source: ADR-0003.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the team that the token acts as. Source: ADR-0003.
	// +optional
	Team string `json:"team,omitempty"`
	// Subject is the generic subject that the token acts as. Source: ADR-0003.
	// +optional
	Subject string `json:"subject,omitempty"`
	// AccessKey is the name of the access key that asked for the token; when it is refused, so is the
	// token. Source: ADR-0003.
	// +optional
	AccessKey string `json:"accessKey,omitempty"`
	// AccessKeyUID is that key's uid: another key of the same name is another key. Source: ADR-0011.
	// +optional
	AccessKeyUID string `json:"accessKeyUID,omitempty"`
	// UserAgent is what the client that asked for the token called itself, cut to 256 bytes.
	// Source: ADR-0011.
	// +optional
	UserAgent string `json:"userAgent,omitempty"`
}
