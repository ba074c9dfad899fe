package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnedAccessKey is a bearer credential for the API and the command line in non-interactive settings, such
// as a CI/CD pipeline. It is cluster-scoped and served at ownedaccesskeys. Source: Spec 2.5, 5.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OwnedAccessKey struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says who the key acts for, how long it lives and what it may do. Source: Spec 2.5.
	// +optional
	Spec OwnedAccessKeySpec `json:"spec"`
	// Status is what the server observes. It is ignored in requests. Source: Spec 2.5.
	// +optional
	Status OwnedAccessKeyStatus `json:"status"`
}

// OwnedAccessKeyList is one page of access keys. Source: Spec 2.1, 2.5.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OwnedAccessKeyList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the access keys in the order of their names. They do not contain spec.key.
	// +listType=atomic
	Items []OwnedAccessKey `json:"items"`
}

// OwnedAccessKeySpec says who an access key acts for, how long it lives and what it may do. Source: Spec
// 2.5.
type OwnedAccessKeySpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: Spec 2.5.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text, at most 4096 bytes. Source: Spec 2.5.
	// +optional
	Description string `json:"description,omitempty"`
	// User is the name of the user that the key acts as. At most one of user, team and subject can be set; if
	// all three are empty, the key acts as the caller that creates it. Callers other than admins can only name
	// themselves. Source: Spec 2.5; the default: ADR-0005.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the team that the key acts as. Callers other than admins can only name a team that
	// they belong to. Source: Spec 2.5.
	// +optional
	Team string `json:"team,omitempty"`
	// Subject is a generic subject that the key acts as, instead of a user or a team. Source: Spec 2.5.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Groups are extra groups that apply to requests made with the key, at most 256. Callers other than admins
	// can only name groups that they belong to. Groups that begin with `system:` are refused. Source: Spec 2.5;
	// the restriction: ADR-0005.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Key is the bearer token in clear text. Only the response to a create contains it, because the server
	// stores nothing but its digest. A client may choose the key: 32 to 256 printable ASCII characters without
	// blanks. If absent, the server generates it. It cannot be changed. Source: Spec 2.5; ADR-0005.
	// +optional
	Key string `json:"key,omitempty" secret:"true"`
	// Disabled stops the key from authenticating requests while the object still exists. Defaults to false.
	// Source: Spec 2.5, 3.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// TTLSeconds is the lifetime of the key in seconds, counted from metadata.creationTimestamp, or from the
	// last activity if ttlAfterLastActivity is true. 0 or absent means that the key has no lifetime of its own.
	// The platform's cap, accessKeyMaxTTLSeconds in status.auth of the Config, applies in either case. Negative
	// values are refused. Source: Spec 2.5, 5.2; the cap at use time: ADR-0005.
	// +optional
	TTLSeconds int64 `json:"ttl,omitempty"`
	// TTLAfterLastActivity counts ttl from the last activity instead of from the creation timestamp. It has no
	// effect without ttl. Defaults to false. Source: Spec 2.5.
	// +optional
	TTLAfterLastActivity bool `json:"ttlAfterLastActivity,omitempty"`
	// Scope narrows what the key may do. If absent, the key may do everything that its owner may do.
	// Source: Spec 2.3, 2.5.
	// +optional
	Scope *Scope `json:"scope,omitempty"`
	// Type distinguishes keys that users manage from keys that the platform manages. Clients can set User (the default) or
	// Other; only the server sets Login, Reset, OIDCRefreshToken, NetworkPeer, Workspace and Kubeconfig. Source: Spec 2.5;
	// the values: ADR-0005.
	// +optional
	Type string `json:"type,omitempty"`
	// Identity is the login data from single sign-on. Absent if the key was not created by a login. Source: Spec
	// 2.5.
	// +optional
	Identity *AccessKeyIdentity `json:"identity,omitempty"`
	// IdentityRefresh is the time at which the identity was last refreshed. Source: Spec 2.5.
	// +optional
	IdentityRefresh *metav1.Time `json:"identityRefresh,omitempty"`
	// OIDCProvider describes the OIDC client that the key was issued to. It is set if the key is a refresh
	// token. Source: Spec 2.5.
	// +optional
	OIDCProvider *AccessKeyOIDCProvider `json:"oidcProvider,omitempty"`
	// Parent shares OIDC token data among several keys.
	// Deprecated: kept for old objects. Source: Spec 2.5, 9.
	// +optional
	Parent string `json:"parent,omitempty"`
	// OIDCLogin is the login data of old objects.
	// Deprecated: use identity instead. Source: Spec 2.5, 9.
	// +optional
	OIDCLogin *AccessKeyOIDCLogin `json:"oidcLogin,omitempty"`
}

// OwnedAccessKeyStatus is what the server observes of an access key. Source: Spec 2.5.
type OwnedAccessKeyStatus struct {
	// LastActivity is the last time at which the key accessed the API, with a precision of one minute. Absent if
	// the key has never been used. Source: Spec 2.5; the precision: ADR-0005.
	// +optional
	LastActivity *metav1.Time `json:"lastActivity,omitempty"`
	// ExpirationTimestamp is the time at which the key stops working, computed from ttl, the last activity, the
	// platform's current cap and the ends of the keys in lineage that bound it. Absent if the key does not expire.
	// Source: ADR-0005, ADR-0021.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// CreatedBy is the access key that created this key. The server sets it. Absent if the platform itself created the key,
	// or an older version of the platform did not record it. Source: ADR-0021.
	// +optional
	CreatedBy *AccessKeyReference `json:"createdBy,omitempty"`
	// Lineage lists the access keys that led to this key. The first is createdBy; each further key created the key before
	// it. Keys that were already deleted when this key was created are left out. The server sets it. Source: ADR-0021.
	// +optional
	// +listType=atomic
	Lineage []AccessKeyAncestor `json:"lineage,omitempty"`
	// Owner identifies the object of the user or team that the key acts as, at the time the key was made. Absent if there
	// was no such object. The server sets it. Source: ADR-0029.
	// +optional
	Owner *AccessKeyOwner `json:"owner,omitempty"`
	// Granted are the groups in spec.groups that an admin gave to the key and that the owner of the key did not have. The
	// server sets it. Source: ADR-0029.
	// +optional
	// +listType=atomic
	Granted []string `json:"granted,omitempty"`
	// TrustRule is the trust rule that made the key for the token of a job. The key works only as long as the rule exists, is enabled
	// and names the same owner. The server sets it. Absent for other keys. Source: ADR-0036.
	// +optional
	TrustRule *TrustRuleReference `json:"trustRule,omitempty"`
	// DisabledByAdmin is true if an admin disabled the key: only an admin can enable it. Source: ADR-0022.
	// +optional
	DisabledByAdmin bool `json:"disabledByAdmin,omitempty"`
}

// AccessKeyOwner is the user or the team that owns a credential. Source: ADR-0029.
type AccessKeyOwner struct {
	// UID is the UID of the user or team. A new user or team with the same name has another UID. Source: ADR-0029.
	UID string `json:"uid"`
	// Generation is spec.tokenGeneration of the user when the credential was made. The credential is refused while this
	// number is lower than spec.tokenGeneration of the user. Source: ADR-0029.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// AccessKeyReference names an access key. Source: ADR-0021.
type AccessKeyReference struct {
	// Name is the name of the access key. Source: ADR-0021.
	Name string `json:"name"`
	// UID is the UID of the access key. A new key with the same name has another UID. Source: ADR-0021.
	UID string `json:"uid"`
	// Owner is the owner of the access key, such as user:ana. For a key of a team, it is the member who made the key. In
	// the status of an access key, it is set only if a member made the key for their team. Source: ADR-0047.
	// +optional
	Owner string `json:"owner,omitempty"`
}

// AccessKeyAncestor is an access key in the lineage of a credential. Source: ADR-0021.
type AccessKeyAncestor struct {
	// Name is the name of the access key. Source: ADR-0021.
	Name string `json:"name"`
	// UID is the UID of the access key. A new key with the same name has another UID. Source: ADR-0021.
	UID string `json:"uid"`
	// Bounds is true if the credential works only as long as this access key works: it had a scope or an end when it
	// created the next key. Source: ADR-0021.
	// +optional
	Bounds bool `json:"bounds,omitempty"`
}

// AccessKeyIdentity is what an identity provider stated about a user at login. Source: Spec 2.5.
type AccessKeyIdentity struct {
	// UserID is the subject of the user at the identity provider. Source: Spec 2.5.
	// +optional
	UserID string `json:"userId,omitempty"`
	// Username is the user name at the identity provider. Source: Spec 2.5.
	// +optional
	Username string `json:"username,omitempty"`
	// PreferredUsername is the user name that the user prefers. Source: Spec 2.5.
	// +optional
	PreferredUsername string `json:"preferredUsername,omitempty"`
	// Email is the email address of the user. Source: Spec 2.5.
	// +optional
	Email string `json:"email,omitempty"`
	// EmailVerified is true if the provider has verified the email address. Source: Spec 2.5.
	// +optional
	EmailVerified bool `json:"emailVerified,omitempty"`
	// ExtraClaims are further claims from the provider. Only claims that the authentication settings allow are
	// kept. Source: Spec 2.5.
	// +optional
	ExtraClaims map[string]string `json:"extraClaims,omitempty"`
	// Groups are the groups of the user at the identity provider. Source: Spec 2.5.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Connector is the name of the connector that created the key. Source: Spec 2.5.
	// +optional
	Connector string `json:"connector,omitempty"`
	// ConnectorData is the state that the connector keeps for later requests. It is never shared with end users
	// or clients: responses do not contain it, and requests that set it are refused. Source: Spec 2.5.
	// +optional
	ConnectorData string `json:"connectorData,omitempty" secret:"true"`
}

// AccessKeyOIDCProvider describes the OIDC client that a refresh token was issued to. Source: Spec 2.5.
type AccessKeyOIDCProvider struct {
	// ClientID is the ID of the OIDC client. Source: Spec 2.5.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// Nonce is the nonce of the authentication request. Source: Spec 2.5.
	// +optional
	Nonce string `json:"nonce,omitempty"`
	// RedirectURI is the address to which the client asked the response to be sent. Source: Spec 2.5.
	// +optional
	RedirectURI string `json:"redirectUri,omitempty"`
	// Scopes are the requested OIDC scopes, in one string. Source: Spec 2.5.
	// +optional
	Scopes string `json:"scopes,omitempty"`
}

// AccessKeyOIDCLogin is the login data of old objects. Its tokens are secrets: responses do not contain
// them.
// Deprecated: use AccessKeyIdentity instead. Source: Spec 2.5, 9.
type AccessKeyOIDCLogin struct {
	// IDToken is the identity token of the provider. Requests that set it are refused. Source: Spec 2.5.
	// +optional
	IDToken string `json:"idToken,omitempty" secret:"true"`
	// AccessToken is the access token of the provider. Requests that set it are refused. Source: Spec 2.5.
	// +optional
	AccessToken string `json:"accessToken,omitempty" secret:"true"`
	// RefreshToken is the refresh token of the provider. Requests that set it are refused. Source: Spec 2.5.
	// +optional
	RefreshToken string `json:"refreshToken,omitempty" secret:"true"`
	// LastRefresh is the time at which the tokens were last refreshed. Source: Spec 2.5.
	// +optional
	LastRefresh *metav1.Time `json:"lastRefresh,omitempty"`
}
