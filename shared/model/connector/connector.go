// Package connector lists the connectors of a platform configuration: the identity providers, of every kind, at which
// people can sign in. It describes each kind to the sign-in and to the checks of the configuration, and speaks no protocol.
// Source: Spec 2.7, 5.4; ADR-0035.
package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// The kinds of connectors: the names of their blocks in the configuration. A block of auth has its kind as ID.
const (
	OIDC = "oidc"
	// GitForge1 is GitHub, or a GitHub Enterprise Server.
	GitForge1 = "gitforge1"
	// GitForge2 is GitLab.
	GitForge2 = "gitforge2"
	// IDP1 is Google.
	IDP1 = "idp1"
	// IDP2 is Microsoft Entra ID.
	IDP2 = "idp2"
	SAML = "saml"
	// ClusterManager is a cluster manager, whose users have API tokens.
	ClusterManager = "clustermanager"
)

// reserved are the paths below /auth/ that belong to the platform.
var reserved = []string{"authorize", "confirm", "device", "info", "logout", "password", "resume", "revoke", "token"}

// Connector is a connector of the configuration.
type Connector struct {
	// ID is part of the connector's URLs. Kind is the kind of its block.
	ID, Kind string
	// DisplayName and Type are shown to people.
	DisplayName, Type string
	// Settings contain the block of Kind, and no other block.
	Settings model.IdentityProviders
	// RedirectURI is the callback URL, to which browsers come back from the provider.
	RedirectURI string
	// RequiredGroups restrict the sign-in to people in at least one of these groups, by the provider's names. Empty: no
	// restriction.
	RequiredGroups []string
	// GroupsPrefix and UsernamePrefix are put before the names of groups and users from the provider.
	GroupsPrefix, UsernamePrefix string
	// ExtraClaims are the names of the claims that are stored with the user.
	ExtraClaims []string
	// PostBinding is true if browsers deliver the provider's response only by a POST from the provider's site.
	PostBinding bool
	// AcceptsToken is true if people enter a token of the connector on a page of the platform. Browsers are never sent to the
	// connector.
	AcceptsToken bool
	// Unverified is true if the responses of the provider are not verified: any person can sign in as any user.
	Unverified bool
	// Path is the path of the block in the configuration, below auth.
	Path string

	secret       secret.String
	missingField string
	idTaken      bool
	// wrongField is the field that makes the block unusable, and reason says what the field must be.
	wrongField, reason string
}

// All returns all connectors of a configuration in their order, including unusable ones. Nil: there are none.
func All(config *model.ConfigStatus) []Connector {
	auth := config.Auth
	if auth == nil {
		return nil
	}
	connectors := blocks(&auth.IdentityProviders, "")
	for i := range connectors {
		connectors[i].ID = connectors[i].Kind
	}
	own := len(connectors)
	for i := range auth.Connectors {
		given := &auth.Connectors[i]
		for _, one := range blocks(&given.IdentityProviders, fmt.Sprintf("connectors[%d].", i)) {
			one.ID, one.DisplayName = given.ID, given.DisplayName
			one.idTaken = slices.Contains(reserved, one.ID) || slices.ContainsFunc(connectors[:own], func(c Connector) bool { return c.ID == one.ID })
			connectors = append(connectors, one)
		}
	}
	for i := range connectors {
		if connectors[i].DisplayName == "" {
			connectors[i].DisplayName = connectors[i].ID
		}
		if connectors[i].AcceptsToken && config.PlatformHost != "" {
			connectors[i].RedirectURI = "https://" + config.PlatformHost + connectors[i].callback()
		}
	}
	return connectors
}

// blocks returns the connectors of the blocks that are set.
func blocks(providers *model.IdentityProviders, path string) []Connector {
	var connectors []Connector
	add := func(kind string, one Connector) {
		one.Kind, one.Path = kind, path+kind
		connectors = append(connectors, one)
	}
	if p := providers.OIDC; p != nil {
		connector := Connector{
			Settings: model.IdentityProviders{OIDC: p}, Type: p.Type, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups,
			GroupsPrefix: p.GroupsPrefix, UsernamePrefix: p.UsernamePrefix, ExtraClaims: p.AllowedExtraClaims, secret: p.ClientSecret,
			missingField: missing("issuerUrl", p.IssuerURL, "clientId", p.ClientID),
		}
		if p.GroupsClaim == "" && len(p.Groups) > 0 {
			connector.wrongField, connector.reason = "groupsClaim", whyGroups
		}
		add(OIDC, connector)
	}
	if p := providers.GitForge1; p != nil {
		add(GitForge1, Connector{
			Settings: model.IdentityProviders{GitForge1: p}, RedirectURI: p.RedirectURI, secret: p.ClientSecret,
			missingField: missing("clientId", p.ClientID),
		})
	}
	if p := providers.GitForge2; p != nil {
		add(GitForge2, Connector{
			Settings: model.IdentityProviders{GitForge2: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missingField: missing("clientId", p.ClientID),
		})
	}
	if p := providers.IDP1; p != nil {
		connector := Connector{
			Settings: model.IdentityProviders{IDP1: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missingField: missing("clientId", p.ClientID),
		}
		if connector.missingField == "" && len(p.Groups) > 0 {
			// Only the directory knows the groups. Without it, no person has a required group.
			connector.missingField = missing("serviceAccountFilePath", p.ServiceAccountFilePath, "adminEmail", p.AdminEmail)
		}
		add(IDP1, connector)
	}
	if p := providers.IDP2; p != nil {
		connector := Connector{
			Settings: model.IdentityProviders{IDP2: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missingField: missing("clientId", p.ClientID),
		}
		if !SingleTenant(p.Tenant) && len(p.Groups) > 0 {
			connector.wrongField, connector.reason = "tenant", "must be one tenant if groups is set, because groups belong to a tenant"
		}
		add(IDP2, connector)
	}
	if p := providers.SAML; p != nil {
		connector := Connector{
			Settings: model.IdentityProviders{SAML: p}, Type: SAML, RedirectURI: p.RedirectURI, RequiredGroups: p.AllowedGroups, PostBinding: true,
			Unverified:   p.InsecureSkipSignatureValidation,
			missingField: missing("ssoURL", p.SSOURL),
		}
		if p.GroupsAttr == "" && len(p.AllowedGroups) > 0 {
			connector.wrongField, connector.reason = "groupsAttr", whyGroups
		}
		add(SAML, connector)
	}
	if p := providers.ClusterManager; p != nil {
		add(ClusterManager, Connector{
			Settings: model.IdentityProviders{ClusterManager: p}, Type: ClusterManager, AcceptsToken: true, secret: p.BearerToken,
			missingField: missing("host", p.Host),
		})
	}
	return connectors
}

// whyGroups says why the setting that names the claim or attribute with the groups must be set.
const whyGroups = "must be set, because groups are required"

// SingleTenant reports whether a tenant of idp2 is a single organization, and not a word for many organizations.
func SingleTenant(tenant string) bool {
	return !slices.Contains([]string{"", "common", "consumers", "organizations"}, strings.ToLower(tenant))
}

// missing returns the first name whose value is empty, or the empty string if all names have values.
func missing(pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return pairs[i]
		}
	}
	return ""
}

// Platform returns the address of the platform: the part of redirectURI before /auth/ID/callback, without a slash at its
// end.
//
// If the connector is unusable, field is the path of the wrong setting below auth, and why says what the setting must be.
// Both are empty otherwise. Source: ADR-0031.
func (c Connector) Platform() (address, field, why string) {
	path := c.callback()
	address, below := strings.CutSuffix(c.RedirectURI, path)
	switch {
	case c.idTaken:
		return "", strings.TrimSuffix(c.Path, c.Kind) + "id", fmt.Sprintf("%q is the ID of another connector, or a page of the platform", c.ID)
	case c.missingField != "":
		return "", c.Path + "." + c.missingField, "must be set"
	case c.wrongField != "":
		return "", c.Path + "." + c.wrongField, c.reason
	case c.AcceptsToken && c.RedirectURI == "":
		return "", c.Path, "needs status.platformHost"
	case !below || !strings.HasPrefix(address, "https://"):
		return "", c.Path + ".redirectURI", "must be an https URL that ends in " + path
	default:
		return address, "", ""
	}
}

// callback returns the path of the callback URL.
func (c Connector) callback() string { return "/auth/" + c.ID + "/callback" }

// Usable reports whether people can sign in at the connector, as far as the configuration says.
func (c Connector) Usable() bool {
	_, wrong, _ := c.Platform()
	return wrong == ""
}

// Issuer returns the issuer identifier of the platform in its responses to programs: the address of the platform.
func (c Connector) Issuer() string {
	address, _, _ := c.Platform()
	return address
}

// LoginURL returns the URL at which a sign-in begins.
func (c Connector) LoginURL() string { return c.Issuer() + "/auth/" + c.ID + "/login" }

// LogoutURL returns the URL at which a person ends their session at the connector.
func (c Connector) LogoutURL() string { return c.Issuer() + "/auth/" + c.ID + "/logout" }

// TokenURL returns the URL of the token endpoint, at which a program gets its key.
func (c Connector) TokenURL() string { return c.Issuer() + "/auth/token" }

// Fingerprint returns a digest that changes with each change of the settings.
func (c Connector) Fingerprint() string {
	// Encoding cannot fail, because every field of a block can be encoded. The secret is encoded as a mark, so the secret
	// itself is digested as well.
	settings, _ := json.Marshal(c.Settings)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.ID, c.Kind, settings, c.secret.Reveal()))
	return hex.EncodeToString(sum[:])
}
