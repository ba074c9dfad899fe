package model

import (
	"management.platform.sh/shared/model/secret"
)

// ConfigAuth configures how users sign in. Source: Spec 2.7, 5.4.
type ConfigAuth struct {
	// The identity providers, at most one of each kind. Additional ones are connectors. Source: Spec 2.7.
	IdentityProviders `json:",inline"`
	// Password configures the sign-in with a user name and a password. Source: Spec 2.7.
	// +optional
	Password *PasswordAuth `json:"password,omitempty"`
	// Connectors are additional identity providers. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Connectors []AuthConnector `json:"connectors,omitempty"`
	// DisableTeamCreation stops the platform from creating teams for new groups at login. Defaults to false.
	// Source: Spec 2.7.
	// +optional
	DisableTeamCreation bool `json:"disableTeamCreation,omitempty"`
	// DisableUserCreation stops the platform from creating a user object at the first sign-in. Defaults to
	// false. Source: Spec 2.7.
	// +optional
	DisableUserCreation bool `json:"disableUserCreation,omitempty"`
	// AccessKeyMaxTTLSeconds is the maximum lifetime of access keys, in seconds. 0 or absent means that there is
	// no maximum. Source: Spec 2.7, 8.
	// +optional
	AccessKeyMaxTTLSeconds int64 `json:"accessKeyMaxTTLSeconds,omitempty"`
	// LoginAccessKeyTTLSeconds is the time that the access key of a login is kept, in seconds. If absent, it is
	// 20 days. 0 means that it is kept forever. Source: Spec 2.7, 8.
	// +optional
	LoginAccessKeyTTLSeconds *int64 `json:"loginAccessKeyTTLSeconds,omitempty"`
	// CustomHTTPHeaders are extra headers in the responses of the authentication endpoints, by name: standard
	// headers that make browsers stricter, and `X-` headers. Source: Spec 2.7; ADR-0047.
	// +optional
	CustomHTTPHeaders map[string]string `json:"customHttpHeaders,omitempty"`
	// GroupsFilters are regular expressions in RE2 syntax. Only groups that match one of them are saved with the
	// user. Empty means that all groups are saved. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	GroupsFilters []string `json:"groupsFilters,omitempty"`
}

// IdentityProviders are the identity providers, at most one of each kind. Source: Spec 2.7.
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

// AuthConnector is an additional identity provider. Exactly one of the provider fields must be set.
// Source: Spec 2.7.
type AuthConnector struct {
	// ID identifies the connector and is part of its URL: letters, digits and `. _ ~ -`. Required and unique.
	// Source: Spec 2.7.
	// +optional
	ID string `json:"id,omitempty"`
	// DisplayName is the name shown in the UI. Source: Spec 2.7.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// The provider of the connector. Source: Spec 2.7.
	IdentityProviders `json:",inline"`
}

// PasswordAuth configures the sign-in with a user name and a password. Source: Spec 2.7.
type PasswordAuth struct {
	// Disabled turns off the sign-in with a password. Defaults to false. Source: Spec 2.7, 5.4.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// OIDCProvider is an OpenID Connect provider. Source: Spec 2.7.
type OIDCProvider struct {
	// IssuerURL is the https URL of the token issuer, which must support OIDC discovery. Source: Spec 2.7.
	// +optional
	IssuerURL string `json:"issuerUrl,omitempty" sentTo:"caFile,insecureCa" reach:"issuer"`
	// ClientID is the ID of the client that tokens must be issued for. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret with which the client obtains tokens. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"issuerUrl,caFile,insecureCa"`
	// RedirectURI is the callback URL of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// PostLogoutRedirectURI is the URL to which users are sent after logout. Source: Spec 2.7.
	// +optional
	PostLogoutRedirectURI string `json:"postLogoutRedirectURI,omitempty"`
	// CAFile is the path of a root certificate in PEM format. Empty means the root certificates of the system.
	// Source: Spec 2.7.
	// +optional
	CAFile string `json:"caFile,omitempty" reach:"file"`
	// InsecureCA disables the verification of the certificate. Defaults to false. Source: Spec 2.7.
	// +optional
	InsecureCA bool `json:"insecureCa,omitempty"`
	// PreferredUsername is the key that contains the claim with the preferred user name. Source: Spec 2.7.
	// +optional
	PreferredUsername string `json:"preferredUsername,omitempty"`
	// PlatformUsernameClaim is the claim that is used as the user name. Source: Spec 2.7.
	// +optional
	PlatformUsernameClaim string `json:"platformUsernameClaim,omitempty"`
	// UsernameClaim is the claim that is used as the user ID. Source: Spec 2.7.
	// +optional
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// EmailClaim is the claim that is used as the email address. Source: Spec 2.7.
	// +optional
	EmailClaim string `json:"emailClaim,omitempty"`
	// AllowedExtraClaims are the extra claims to keep. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	AllowedExtraClaims []string `json:"allowedExtraClaims,omitempty"`
	// UsernamePrefix is the prefix of mapped user names. Source: Spec 2.7.
	// +optional
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim that is used as the groups: a string or a list of strings. Source: Spec 2.7.
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// Groups restrict sign-in to users that belong to at least one of them. Empty means that all users can sign
	// in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Scopes are the requested scopes. Empty means `email` and `profile`. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty"`
	// GetUserInfo reads the data of the user from the UserInfo endpoint. Defaults to false. Source: Spec 2.7.
	// +optional
	GetUserInfo bool `json:"getUserInfo,omitempty"`
	// GroupsPrefix is the prefix of mapped group names. Source: Spec 2.7.
	// +optional
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// Type is the type of the provider. It is used for display only. Source: Spec 2.7.
	// +optional
	Type string `json:"type,omitempty"`
	// Resource is the value of the `resource` parameter that is sent to the token endpoint of the provider.
	// Source: Spec 2.7.
	// +optional
	Resource string `json:"resource,omitempty"`
}

// GitForge1Provider is the first code-hosting provider. Source: Spec 2.7.
type GitForge1Provider struct {
	// ClientID is the ID by which the provider knows the platform. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"hostName,rootCA"`
	// RedirectURI is the callback URL of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Orgs restrict sign-in to users that belong to at least one of these organizations. Group claims have the
	// form `<org>:<team>`. Empty means that all users can sign in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Orgs []GitForge1Org `json:"orgs,omitempty"`
	// HostName is the host of the enterprise-hosted variant. Empty means the public host. Source: Spec 2.7.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// RootCA is the root certificate of the enterprise-hosted variant. It requires hostName. Empty means the
	// root certificates of the system. Source: Spec 2.7.
	// +optional
	RootCA string `json:"rootCA,omitempty"`
}

// GitForge1Org is an organization of the first code-hosting provider. Source: Spec 2.7.
type GitForge1Org struct {
	// Name is the name of the organization. Required. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// Teams restrict sign-in to members of these teams. Empty means that every member of the organization can
	// sign in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
}

// GitForge2Provider is the second code-hosting provider. Source: Spec 2.7.
type GitForge2Provider struct {
	// ClientID is the ID by which the provider knows the platform. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"baseURL"`
	// RedirectURI is the callback URL of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// BaseURL is the address of the provider. Empty means the public hosted address. Source: Spec 2.7.
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// Groups restrict sign-in to users that belong to at least one of them, and only these groups are kept.
	// Empty means that all users can sign in and all their groups are kept. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
}

// IDP1Provider is the first general identity provider. Source: Spec 2.7.
type IDP1Provider struct {
	// ClientID is the ID by which the provider knows the platform. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"-"`
	// RedirectURI is the callback URL of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Scopes are the requested scopes. Empty means `profile` and `email`. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty"`
	// HostedDomains restrict sign-in to users of these domains. Empty means that users of all domains can sign
	// in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	HostedDomains []string `json:"hostedDomains,omitempty"`
	// Groups restrict sign-in to users that belong to at least one of them. Empty means that all users can sign
	// in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// ServiceAccountFilePath is the path of the file of a service account that reads groups from a directory.
	// Empty means that groups are not read. Source: Spec 2.7.
	// +optional
	ServiceAccountFilePath string `json:"serviceAccountFilePath,omitempty" reach:"file"`
	// AdminEmail is the email address of the super user that the service account impersonates. Required with
	// serviceAccountFilePath. Source: Spec 2.7.
	// +optional
	AdminEmail string `json:"adminEmail,omitempty"`
}

// IDP2Provider is the second general identity provider. Source: Spec 2.7.
type IDP2Provider struct {
	// ClientID is the ID by which the provider knows the platform. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"tenant"`
	// RedirectURI is the callback URL of the platform. Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// Tenant is `common`, `consumers`, `organizations`, or the ID or name of a tenant. Defaults to `common`.
	// Source: Spec 2.7.
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// Groups restrict sign-in to users that belong to them. Empty means that all users can sign in. Source: Spec
	// 2.7.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// OnlySecurityGroups restricts the groups of a user to security groups. Defaults to false, which includes
	// all kinds of groups. Source: Spec 2.7.
	// +optional
	OnlySecurityGroups bool `json:"onlySecurityGroups,omitempty"`
	// UseGroupsAsWhitelist restricts the group claims to the groups in groups. Defaults to false. Source: Spec
	// 2.7.
	// +optional
	UseGroupsAsWhitelist bool `json:"useGroupsAsWhitelist,omitempty"`
}

// SAMLProvider is a SAML identity provider. Source: Spec 2.7.
type SAMLProvider struct {
	// RedirectURI is the callback URL of the platform. It must be equal to the Destination of the response.
	// Source: Spec 2.7, 5.4.
	// +optional
	RedirectURI string `json:"redirectURI,omitempty"`
	// SSOURL is the URL at which users sign in. Source: Spec 2.7.
	// +optional
	SSOURL string `json:"ssoURL,omitempty"`
	// CAData is the certificate that verifies responses, encoded in base64. Exactly one of caData, ca and
	// insecureSkipSignatureValidation must be set. Source: Spec 2.7.
	// +optional
	CAData string `json:"caData,omitempty"`
	// CA is the location of the certificate that verifies responses. Source: Spec 2.7.
	// +optional
	CA string `json:"ca,omitempty" reach:"file"`
	// InsecureSkipSignatureValidation accepts responses without a valid signature. Defaults to false.
	// Source: Spec 2.7.
	// +optional
	InsecureSkipSignatureValidation bool `json:"insecureSkipSignatureValidation,omitempty"`
	// UsernameAttr is the name of the assertion attribute that contains the user name. Source: Spec 2.7.
	// +optional
	UsernameAttr string `json:"usernameAttr,omitempty"`
	// EmailAttr is the name of the assertion attribute that contains the email address. Source: Spec 2.7.
	// +optional
	EmailAttr string `json:"emailAttr,omitempty"`
	// GroupsAttr is the name of the assertion attribute that contains the groups. Source: Spec 2.7.
	// +optional
	GroupsAttr string `json:"groupsAttr,omitempty"`
	// EntityIssuer is sent as the Issuer of the request. It overrides redirectURI as the required audience.
	// Source: Spec 2.7.
	// +optional
	EntityIssuer string `json:"entityIssuer,omitempty"`
	// SSOIssuer is the issuer that responses must have. Empty means that any issuer is accepted. Source: Spec
	// 2.7.
	// +optional
	SSOIssuer string `json:"ssoIssuer,omitempty"`
	// GroupsDelim is the delimiter that separates groups that arrive in one string. Empty means that groups
	// arrive as a list. Source: Spec 2.7.
	// +optional
	GroupsDelim string `json:"groupsDelim,omitempty"`
	// AllowedGroups restrict sign-in to users that belong to at least one of them. Empty means that all users
	// can sign in. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	AllowedGroups []string `json:"allowedGroups,omitempty"`
	// FilterGroups forwards only the groups in allowedGroups. Defaults to false. Source: Spec 2.7.
	// +optional
	FilterGroups bool `json:"filterGroups,omitempty"`
	// NameIDPolicyFormat is the requested NameID format, which becomes the `sub` claim. The last part alone is
	// accepted, such as `emailAddress`. Defaults to `urn:oasis:names:tc:SAML:2.0:nameid-format:persistent`.
	// Source: Spec 2.7.
	// +optional
	NameIDPolicyFormat string `json:"nameIDPolicyFormat,omitempty"`
}

// ClusterManagerProvider is a cluster manager whose users can sign in. Source: Spec 2.7; its fields:
// ADR-0003.
type ClusterManagerProvider struct {
	// Host is the host of the cluster manager, without a scheme. Source: ADR-0003.
	// +optional
	Host string `json:"host,omitempty"`
	// BearerToken is the token with which the platform reads the users of the cluster manager, a secret.
	// Source: ADR-0003.
	// +optional
	BearerToken secret.String `json:"bearerToken,omitempty" sentTo:"host,insecure"`
	// Insecure disables the verification of the TLS certificate. Defaults to false. Source: ADR-0003.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// ConfigOIDCServer has no effect: the platform is not an OIDC server for other programs.
// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
type ConfigOIDCServer struct {
	// Enabled turns on the OIDC server. Defaults to false. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// WildcardRedirect allows `*` in the redirectURIs of clients. Defaults to false. Source: Spec 2.7.
	// +optional
	WildcardRedirect bool `json:"wildcardRedirect,omitempty"`
	// Clients are the programs that may request tokens. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clients []OIDCServerClient `json:"clients,omitempty"`
}

// OIDCServerClient is a program that may request tokens from the platform. Source: Spec 2.7.
type OIDCServerClient struct {
	// Name is the displayed name of the client. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// ClientID is the ID of the client. It must be unique in the list. Source: Spec 2.7.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret is the secret of the client. Source: Spec 2.7.
	// +optional
	ClientSecret secret.String `json:"clientSecret,omitempty" sentTo:"-"`
	// RedirectURIs are the URLs to which users may be redirected. They must be absolute and without a fragment.
	// Source: Spec 2.7.
	// +optional
	// +listType=atomic
	RedirectURIs []string `json:"redirectURIs,omitempty"`
}
