package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DirectClusterEndpointToken is a short-lived signed token with which a client reaches a connected cluster directly,
// without passing through the platform. It is cluster-scoped and served at directclusterendpointtokens. Creating one issues
// the token. Afterwards the record of the token can be listed, read and deleted; deleting the record revokes the token.
// Source: Spec 2.4, 5; the record: ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type DirectClusterEndpointToken struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty in a request. Source: Spec 2.2, 2.4.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says how long the token lives and what it may do. It may be empty. Source: Spec 2.4.
	// +optional
	Spec DirectClusterEndpointTokenSpec `json:"spec"`
	// Status contains the token and its record. It is ignored in requests. Source: Spec 2.4.
	// +optional
	Status DirectClusterEndpointTokenStatus `json:"status"`
}

// DirectClusterEndpointTokenList is one page of the records of issued tokens. Source: Spec 2.1, 2.4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type DirectClusterEndpointTokenList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the records in the order of their names. They do not contain status.token.
	// +listType=atomic
	Items []DirectClusterEndpointToken `json:"items"`
}

// DirectClusterEndpointTokenSpec says how long a token lives and what it may do. Source: Spec 2.4.
type DirectClusterEndpointTokenSpec struct {
	// TTLSeconds is the requested lifetime of the token in seconds. 0 or absent means one hour. The token never
	// outlives the credential that requested it, nor the longest lifetime that the platform allows;
	// status.expirationTimestamp is the resulting time. Negative values are refused. Source: Spec 2.4, 5; the
	// default: ADR-0003; the longest: ADR-0011.
	// +optional
	TTLSeconds int64 `json:"ttl,omitempty"`
	// Scope narrows what the token may do. If absent, the token may do everything that the caller may do.
	// Source: Spec 2.3, 2.4.
	// +optional
	Scope *Scope `json:"scope,omitempty"`
}

// DirectClusterEndpointTokenStatus contains an issued token and its record. Source: Spec 2.4.
type DirectClusterEndpointTokenStatus struct {
	// Token is the issued token, a signed JWT. Only the response to a create contains it. Source: Spec 2.4.
	// +optional
	Token string `json:"token,omitempty" secret:"true"`
	// ExpirationTimestamp is the time at which the token stops working. Source: ADR-0003.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// User is the name of the user that the token acts as. Exactly one of user, team and subject is set.
	// Source: ADR-0003.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the team that the token acts as. Source: ADR-0003.
	// +optional
	Team string `json:"team,omitempty"`
	// Subject is the generic subject that the token acts as. Source: ADR-0003.
	// +optional
	Subject string `json:"subject,omitempty"`
	// AccessKey is the name of the access key that requested the token. The token works only as long as this key
	// works. Source: ADR-0003.
	// +optional
	AccessKey string `json:"accessKey,omitempty"`
	// AccessKeyUID is the UID of the access key that requested the token. A new key with the same name has
	// another UID. Source: ADR-0011.
	// +optional
	AccessKeyUID string `json:"accessKeyUID,omitempty"`
	// Groups are the groups that the token was issued with. A review of the token returns only the groups that the access
	// key still gives. The token is revoked when the key no longer gives one of the groups. Absent in records that an older
	// version of the platform made. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// UserAgent is the User-Agent header of the request for the token, cut to 256 bytes. Source: ADR-0011.
	// +optional
	UserAgent string `json:"userAgent,omitempty"`
	// CreatedBy is the access key that requested the token, the same as accessKey and accessKeyUID. Absent in records that
	// an older version of the platform made. Source: ADR-0021.
	// +optional
	CreatedBy *AccessKeyReference `json:"createdBy,omitempty"`
	// Lineage lists the access keys that led to the token. The first is createdBy; each further key created the key before
	// it. Source: ADR-0021.
	// +optional
	// +listType=atomic
	Lineage []AccessKeyAncestor `json:"lineage,omitempty"`
}
