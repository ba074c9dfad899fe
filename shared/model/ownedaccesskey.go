package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnedAccessKey is a bearer credential for the API and the command line in non-interactive settings.
// It is cluster scoped and served at ownedaccesskeys. Source: Spec 2.5, 5.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OwnedAccessKey struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is who the key is for and what it may do. Source: Spec 2.5.
	// +optional
	Spec OwnedAccessKeySpec `json:"spec"`
	// Status is what the server observed; what clients send here is ignored. Source: Spec 2.5.
	// +optional
	Status OwnedAccessKeyStatus `json:"status"`
}

// OwnedAccessKeyList is a page of access keys. Source: Spec 2.1, 2.5.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OwnedAccessKeyList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the keys, in order of their names, without spec.key.
	// +listType=atomic
	Items []OwnedAccessKey `json:"items"`
}

// OwnedAccessKeySpec is who a key is for, how long it lives and what it may do. Source: Spec 2.5.
type OwnedAccessKeySpec struct {
	// DisplayName is the name shown in the UI. Source: Spec 2.5.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text. Source: Spec 2.5.
	// +optional
	Description string `json:"description,omitempty"`
	// User is the user that the key acts as. At most one of user, team and subject; none means the
	// caller who creates the key. Source: Spec 2.5; the default: ADR-0005.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the team that the key acts as. Source: Spec 2.5.
	// +optional
	Team string `json:"team,omitempty"`
	// Subject is a generic subject usable instead of user or team. Source: Spec 2.5.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Groups are extra groups applied when the key is used. They may only name groups that the caller
	// has. Source: Spec 2.5; the restriction: ADR-0005.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Key is the clear bearer token. It is in the answer to a create and in no other answer; the server
	// keeps a digest only. A client may bring its own of 32 to 256 printable characters without blanks;
	// absent, the server makes one. It cannot be changed. Source: Spec 2.5; ADR-0005.
	// +optional
	Key string `json:"key,omitempty" secret:"true"`
	// Disabled refuses the key as a credential while the object still exists. Source: Spec 2.5, 3.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// TTLSeconds is how long the key lives, in whole seconds. It counts from
	// metadata.creationTimestamp, or from the last activity when ttlAfterLastActivity is set. 0 means no
	// lifetime of its own; the platform cap (Config status.auth.accessKeyMaxTTLSeconds) applies either
	// way. Negative is Invalid. Source: Spec 2.5, 5.2; the cap at use time: ADR-0005.
	// +optional
	TTLSeconds int64 `json:"ttl,omitempty"`
	// TTLAfterLastActivity makes ttl count from the last activity instead of the creation timestamp.
	// Without ttl it has no effect. Source: Spec 2.5.
	// +optional
	TTLAfterLastActivity bool `json:"ttlAfterLastActivity,omitempty"`
	// Scope narrows what the key may do. Absent: all that its owner may do. Source: Spec 2.3, 2.5.
	// +optional
	Scope *Scope `json:"scope,omitempty"`
	// Type tells a user managed key from one managed by the platform: User (default) or Other from
	// clients; Login, Reset, OIDCRefreshToken, NetworkPeer and Workspace are set by the server.
	// Source: Spec 2.5; the values: ADR-0005.
	// +optional
	Type string `json:"type,omitempty"`
	// Identity is optional single sign-on login data. Source: Spec 2.5.
	// +optional
	Identity *AccessKeyIdentity `json:"identity,omitempty"`
	// IdentityRefresh is the last time that the identity was refreshed. Source: Spec 2.5.
	// +optional
	IdentityRefresh *metav1.Time `json:"identityRefresh,omitempty"`
	// OIDCProvider is set when the token is a refresh token. Source: Spec 2.5.
	// +optional
	OIDCProvider *AccessKeyOIDCProvider `json:"oidcProvider,omitempty"`
	// Parent shared OIDC token data among several keys.
	// Deprecated: kept for old objects. Source: Spec 2.5, 9.
	// +optional
	Parent string `json:"parent,omitempty"`
	// OIDCLogin is the login data of old objects.
	// Deprecated: use identity. Source: Spec 2.5, 9.
	// +optional
	OIDCLogin *AccessKeyOIDCLogin `json:"oidcLogin,omitempty"`
}

// OwnedAccessKeyStatus is what the server observed of a key. Source: Spec 2.5.
type OwnedAccessKeyStatus struct {
	// LastActivity is the last time that the key accessed the API, exact to a minute. Absent: never.
	// Source: Spec 2.5; the precision: ADR-0005.
	// +optional
	LastActivity *metav1.Time `json:"lastActivity,omitempty"`
	// ExpirationTimestamp is when the key stops to authenticate, from ttl, the last activity and the
	// platform cap of this moment. Absent: never. Source: ADR-0005.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
}

// AccessKeyIdentity is what an identity provider said at a login. Source: Spec 2.5.
type AccessKeyIdentity struct {
	// UserID is the subject at the identity provider. Source: Spec 2.5.
	// +optional
	UserID string `json:"userId,omitempty"`
	// Username is the provider's user name. Source: Spec 2.5.
	// +optional
	Username string `json:"username,omitempty"`
	// PreferredUsername is the name that the user prefers. Source: Spec 2.5.
	// +optional
	PreferredUsername string `json:"preferredUsername,omitempty"`
	// Email is the user's address. Source: Spec 2.5.
	// +optional
	Email string `json:"email,omitempty"`
	// EmailVerified tells whether the provider has verified the address. Source: Spec 2.5.
	// +optional
	EmailVerified bool `json:"emailVerified,omitempty"`
	// ExtraClaims are further claims, only those that the auth config allows. Source: Spec 2.5.
	// +optional
	ExtraClaims map[string]string `json:"extraClaims,omitempty"`
	// Groups are the groups from the identity provider. Source: Spec 2.5.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Connector is the name of the connector that created the key. Source: Spec 2.5.
	// +optional
	Connector string `json:"connector,omitempty"`
	// ConnectorData is connector state for later requests. It is never shared with end users or
	// clients: no answer holds it, and no request may. Source: Spec 2.5.
	// +optional
	ConnectorData []byte `json:"connectorData,omitempty"`
}

// AccessKeyOIDCProvider is the client that a refresh token was issued to. Source: Spec 2.5.
type AccessKeyOIDCProvider struct {
	// ClientID is the OIDC client. Source: Spec 2.5.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// Nonce is the nonce of the authentication request. Source: Spec 2.5.
	// +optional
	Nonce string `json:"nonce,omitempty"`
	// RedirectURI is where the client wanted the answer. Source: Spec 2.5.
	// +optional
	RedirectURI string `json:"redirectUri,omitempty"`
	// Scopes are the requested OIDC scopes, in one string. Source: Spec 2.5.
	// +optional
	Scopes string `json:"scopes,omitempty"`
}

// AccessKeyOIDCLogin is the login data of old objects. Its tokens are secrets: no answer holds them.
// Deprecated: use AccessKeyIdentity. Source: Spec 2.5, 9.
type AccessKeyOIDCLogin struct {
	// IDToken is the provider's identity token. Source: Spec 2.5.
	// +optional
	IDToken string `json:"idToken,omitempty" secret:"true"`
	// AccessToken is the provider's access token. Source: Spec 2.5.
	// +optional
	AccessToken string `json:"accessToken,omitempty" secret:"true"`
	// RefreshToken is the provider's refresh token. Source: Spec 2.5.
	// +optional
	RefreshToken string `json:"refreshToken,omitempty" secret:"true"`
	// LastRefresh is when the tokens were last refreshed. Source: Spec 2.5.
	// +optional
	LastRefresh *metav1.Time `json:"lastRefresh,omitempty"`
}
