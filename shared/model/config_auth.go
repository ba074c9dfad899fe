package model

import (
	"management.platform.sh/shared/model/secret"
)

// ConfigAuth is how users sign in. Source: Spec 2.7, 5.4.
type ConfigAuth struct {
	// The blocks of the identity providers, each at most once; further ones are connectors.
	// Source: Spec 2.7.
	IdentityProviders `json:",inline"`
	// Password is the sign-in with user name and password. Source: Spec 2.7.
	// +optional
	Password *PasswordAuth `json:"password,omitempty"`
	// Connectors are additional identity providers. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Connectors []AuthConnector `json:"connectors,omitempty"`
	// DisableTeamCreation makes no teams for new groups at login. Source: Spec 2.7.
	// +optional
	DisableTeamCreation bool `json:"disableTeamCreation,omitempty"`
	// DisableUserCreation makes no user object at the first sign-in. Source: Spec 2.7.
	// +optional
	DisableUserCreation bool `json:"disableUserCreation,omitempty"`
	// AccessKeyMaxTTLSeconds is the longest lifetime of an access key, in seconds. 0 or absent means that
	// there is none. Source: Spec 2.7, 8.
	// +optional
	AccessKeyMaxTTLSeconds int64 `json:"accessKeyMaxTTLSeconds,omitempty"`
	// LoginAccessKeyTTLSeconds is how long a login access key is kept, in seconds. Absent means 20 days;
	// 0 means for ever. Source: Spec 2.7, 8.
	// +optional
	LoginAccessKeyTTLSeconds *int64 `json:"loginAccessKeyTTLSeconds,omitempty"`
	// CustomHTTPHeaders are extra headers of the authentication endpoints. Source: Spec 2.7.
	// +optional
	CustomHTTPHeaders map[string]string `json:"customHttpHeaders,omitempty"`
	// GroupsFilters are regular expressions; only groups that match one of them are saved with the user.
	// Empty means all groups. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	GroupsFilters []string `json:"groupsFilters,omitempty"`
}

// IdentityProviders are blocks of identity providers, each at most once. Source: Spec 2.7.
type IdentityProviders struct {
	// OIDC is an OpenID Connect provider. Source: Spec 2.7.
	// +optional
	OIDC *OIDCProvider `json:"oidc,omitempty"`
	// GitForge1 is the first code-hosting provider. Source: Spec 2.7.
	// +optional
	GitForge1 *GitForge1Provider `json:"gitforge1,omitempty"`
	// GitForge2 is the second code-hosting provider. Source: Spec 2.7.
	// +optional
	GitForge2 *GitForge2Provider `json:"gitforge2,omitempty"`
	// IDP1 is the first general identity provider. Source: Spec 2.7.
	// +optional
	IDP1 *IDP1Provider `json:"idp1,omitempty"`
	// IDP2 is the second general identity provider. Source: Spec 2.7.
	// +optional
	IDP2 *IDP2Provider `json:"idp2,omitempty"`
	// SAML is a SAML identity provider. Source: Spec 2.7.
	// +optional
	SAML *SAMLProvider `json:"saml,omitempty"`
	// ClusterManager is a cluster manager whose users can sign in. Source: Spec 2.7.
	// +optional
	ClusterManager *ClusterManagerProvider `json:"clustermanager,omitempty"`
}

// AuthConnector is an additional identity provider: one of the blocks, with an id. Source: Spec 2.7.
type AuthConnector struct {
	// ID is shown in the URL. Source: Spec 2.7.
	// +optional
	ID string `json:"id,omitempty"`
	// DisplayName is the name shown in the UI. Source: Spec 2.7.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// The block of the connector's provider. Source: Spec 2.7.
	IdentityProviders `json:",inline"`
}

// PasswordAuth is the sign-in with user name and password. Source: Spec 2.7.
type PasswordAuth struct {
	// Disabled switches it off. Source: Spec 2.7, 5.4.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// OIDCProvider is an OpenID Connect provider. Source: Spec 2.7.
type OIDCProvider struct {
	// IssuerURL is the URL of the token issuer, which must support OIDC discovery. Source: Spec 2.7.
	// +optional
	IssuerURL string `json:"issuerUrl,omitempty"`
	// ClientID is the client that the token must be issued for. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret that obtains tokens. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURI is the callback of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// PostLogoutRedirectURI is where users are sent after logout. Source: Spec 2.7.
	// +optional
	PostLogoutRedirectURI string `json:"postLogoutRedirectURI,omitempty"`
	// CAFile is the path of a PEM root certificate. Empty means the roots of the system.
	// Source: Spec 2.7.
	// +optional
	CAFile string `json:"caFile,omitempty"`
	// InsecureCA skips the validation of the certificate. Source: Spec 2.7.
	// +optional
	InsecureCA bool `json:"insecureCa,omitempty"`
	// PreferredUsername is the key that holds the preferred user name claim. Source: Spec 2.7.
	// +optional
	PreferredUsername string `json:"preferredUsername,omitempty"`
	// PlatformUsernameClaim is the claim used as the user name. Source: Spec 2.7.
	// +optional
	PlatformUsernameClaim string `json:"platformUsernameClaim,omitempty"`
	// UsernameClaim is the claim used as the user id. Source: Spec 2.7.
	// +optional
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// EmailClaim is the claim used as the email. Source: Spec 2.7.
	// +optional
	EmailClaim string `json:"emailClaim,omitempty"`
	// AllowedExtraClaims are the extra claims to keep. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	AllowedExtraClaims []string `json:"allowedExtraClaims,omitempty"`
	// UsernamePrefix is the prefix of mapped user names. Source: Spec 2.7.
	// +optional
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim that fills the groups, a string or a list of strings. Source: Spec 2.7.
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// Groups admit only users who are in at least one of them. Empty: all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Scopes are the scopes sent. Empty means `email` and `profile`. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty"`
	// GetUserInfo fills the user info from the UserInfo endpoint. Source: Spec 2.7.
	// +optional
	GetUserInfo bool `json:"getUserInfo,omitempty"`
	// GroupsPrefix is the prefix of mapped group names. Source: Spec 2.7.
	// +optional
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// Type is for display only. Source: Spec 2.7.
	// +optional
	Type string `json:"type,omitempty"`
	// Resource is the value of the `resource` parameter for the token endpoint of the provider.
	// Source: Spec 2.7.
	// +optional
	Resource string `json:"resource,omitempty"`
}

// GitForge1Provider is the first code-hosting provider. Source: Spec 2.7.
type GitForge1Provider struct {
	// ClientID is the client that the provider knows the platform as. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of that client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURI is the callback of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Orgs admit only users who belong to at least one of them; group claims are `<org>:<team>`.
	// Empty: all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Orgs []GitForge1Org `json:"orgs,omitempty"`
	// HostName is the host of the enterprise-hosted variant. Empty: the public one. Source: Spec 2.7.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// RootCA is the root certificate of the enterprise-hosted variant. Empty means the roots of the
	// system. Source: Spec 2.7.
	// +optional
	RootCA string `json:"rootCA,omitempty"`
}

// GitForge1Org is an organization of the first code-hosting provider. Source: Spec 2.7.
type GitForge1Org struct {
	// Name is the name of the organization. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// Teams admit only members of these teams. Absent: every member. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
}

// GitForge2Provider is the second code-hosting provider. Source: Spec 2.7.
type GitForge2Provider struct {
	// ClientID is the client that the provider knows the platform as. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of that client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURI is the callback of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// BaseURL is the address of the provider. Empty means its public hosted address. Source: Spec 2.7.
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// Groups admit only users who are in at least one of them, and only these groups are kept. Empty:
	// all users and all their groups. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
}

// IDP1Provider is the first general identity provider. Source: Spec 2.7.
type IDP1Provider struct {
	// ClientID is the client that the provider knows the platform as. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of that client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURI is the callback of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Scopes are the scopes sent. Empty means `profile` and `email`. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty"`
	// HostedDomains admit only users of these domains. Empty: of all. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	HostedDomains []string `json:"hostedDomains,omitempty"`
	// Groups admit only users of these groups. Empty: all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// ServiceAccountFilePath is the path of a service account file with which groups are read from a
	// directory. Empty: groups are not read. Source: Spec 2.7.
	// +optional
	ServiceAccountFilePath string `json:"serviceAccountFilePath,omitempty"`
	// AdminEmail is the super user that the service account impersonates. Required with
	// serviceAccountFilePath. Source: Spec 2.7.
	// +optional
	AdminEmail string `json:"adminEmail,omitempty"`
}

// IDP2Provider is the second general identity provider. Source: Spec 2.7.
type IDP2Provider struct {
	// ClientID is the client that the provider knows the platform as. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of that client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURI is the callback of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Tenant is `common` (default), `consumers`, `organizations`, or the id or name of a tenant.
	// Source: Spec 2.7.
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// Groups admit only users who are in them. Empty: all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// OnlySecurityGroups restricts the list to security groups. Source: Spec 2.7.
	// +optional
	OnlySecurityGroups bool `json:"onlySecurityGroups,omitempty"`
	// UseGroupsAsWhitelist restricts the group claims to groups. Source: Spec 2.7.
	// +optional
	UseGroupsAsWhitelist bool `json:"useGroupsAsWhitelist,omitempty"`
}

// SAMLProvider is a SAML identity provider. Source: Spec 2.7.
type SAMLProvider struct {
	// RedirectURI is the callback of the platform; it must match the Destination of the response exactly.
	// Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// SSOURL is where users sign in. Source: Spec 2.7.
	// +optional
	SSOURL string `json:"ssoURL,omitempty"`
	// CAData is the certificate that verifies responses, in base64. One of caData, ca and
	// insecureSkipSignatureValidation must be set. Source: Spec 2.7.
	// +optional
	CAData string `json:"caData,omitempty"`
	// CA is where that certificate is. Source: Spec 2.7.
	// +optional
	CA string `json:"ca,omitempty"`
	// InsecureSkipSignatureValidation accepts responses without a valid signature. Source: Spec 2.7.
	// +optional
	InsecureSkipSignatureValidation bool `json:"insecureSkipSignatureValidation,omitempty"`
	// UsernameAttr is the assertion attribute that holds the user name. Source: Spec 2.7.
	// +optional
	UsernameAttr string `json:"usernameAttr,omitempty"`
	// EmailAttr is the assertion attribute that holds the email. Source: Spec 2.7.
	// +optional
	EmailAttr string `json:"emailAttr,omitempty"`
	// GroupsAttr is the assertion attribute that holds the groups. Source: Spec 2.7.
	// +optional
	GroupsAttr string `json:"groupsAttr,omitempty"`
	// EntityIssuer is sent as Issuer in the request and overrides redirectURI as the required audience.
	// Source: Spec 2.7.
	// +optional
	EntityIssuer string `json:"entityIssuer,omitempty"`
	// SSOIssuer is the issuer expected in responses. Empty: any. Source: Spec 2.7.
	// +optional
	SSOIssuer string `json:"ssoIssuer,omitempty"`
	// GroupsDelim splits the groups where they arrive as one string. Empty: they arrive as a list.
	// Source: Spec 2.7.
	// +optional
	GroupsDelim string `json:"groupsDelim,omitempty"`
	// AllowedGroups admit only users who are in at least one of them. Empty: all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	AllowedGroups []string `json:"allowedGroups,omitempty"`
	// FilterGroups forwards only the allowed groups. Source: Spec 2.7.
	// +optional
	FilterGroups bool `json:"filterGroups,omitempty"`
	// NameIDPolicyFormat is the requested NameID format, which becomes the `sub` claim. The last part
	// alone is accepted, such as `emailAddress`. Empty means
	// `urn:oasis:names:tc:SAML:2.0:nameid-format:persistent`. Source: Spec 2.7.
	// +optional
	NameIDPolicyFormat string `json:"nameIDPolicyFormat,omitempty"`
}

// ClusterManagerProvider is a cluster manager whose users can sign in. Source: Spec 2.7; its fields:
// ADR-0003.
type ClusterManagerProvider struct {
	// Host is the host of the cluster manager, without scheme. Source: ADR-0003.
	// +optional
	Host string `json:"host,omitempty"`
	// BearerToken is the token with which the platform reads its users, a secret. Source: ADR-0003.
	// +optional
	BearerToken secret.String `json:"bearerToken,omitempty"`
	// Insecure switches the verification of the TLS certificate off. Source: ADR-0003.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// ConfigOIDCServer is the platform as an OIDC server.
// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
type ConfigOIDCServer struct {
	// Enabled switches the OIDC server on. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// WildcardRedirect permits `*` in the redirectURIs of clients. Source: Spec 2.7.
	// +optional
	WildcardRedirect bool `json:"wildcardRedirect,omitempty"`
	// Clients are the programs that may ask for tokens. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clients []OIDCServerClient `json:"clients,omitempty"`
}

// OIDCServerClient is a program that may ask the platform for tokens. Source: Spec 2.7.
type OIDCServerClient struct {
	// Name is the shown name of the client. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// ClientID is the id of the client. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty"`
	// RedirectURIs are where users may be sent back to. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	RedirectURIs []string `json:"redirectURIs,omitempty"`
}
