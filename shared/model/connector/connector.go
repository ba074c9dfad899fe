// Package connector lists the connectors of a platform configuration: the places at which people can sign in, of every kind. It has
// what the sign-in and the checks of the configuration need of each kind, and speaks no protocol. Source: Spec 2.7, 5.4; ADR-0035.
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
	OIDC      = "oidc"
	GitForge1 = "gitforge1"
	GitForge2 = "gitforge2"
	IDP1      = "idp1"
	IDP2      = "idp2"
	SAML      = "saml"
	// ClusterManager is a cluster manager, whose users have API tokens.
	ClusterManager = "clustermanager"
)

// reserved are the paths below /auth/ that belong to the platform.
var reserved = []string{"authorize", "confirm", "device", "info", "logout", "password", "resume", "revoke", "token"}

// Connector is a connector of the configuration.
type Connector struct {
	// ID is part of its URLs. Kind is the kind of its block.
	ID, Kind string
	// DisplayName and Type are shown to people.
	DisplayName, Type string
	// Settings have the block of Kind, and no other.
	Settings model.IdentityProviders
	// RedirectURI is where browsers come back from it.
	RedirectURI string
	// RequiredGroups restrict the sign-in to people in at least one of them, by the names of the provider. Empty: they do not.
	RequiredGroups []string
	// GroupsPrefix and UsernamePrefix begin the names of groups and users that are taken over.
	GroupsPrefix, UsernamePrefix string
	// ExtraClaims are the claims that are kept with the user.
	ExtraClaims []string
	// Posts tells that browsers post the answer of the provider, from its site, and bring it in no other way.
	Posts bool
	// Token tells that people enter a token of the connector on a page of the platform. They are never sent there.
	Token bool
	// Unverified tells that the answers of the provider are not verified: anybody can sign in as anybody.
	Unverified bool
	// Path is where the configuration has the block, below auth.
	Path string

	secret  secret.String
	missing string
	taken   bool
	// wrong is a field of the block at which nobody can sign in, and why what it must be.
	wrong, why string
}

// All returns the connectors of a configuration, in its order, also those at which nobody can sign in. Nil: there are none.
func All(config *model.ConfigStatus) []Connector {
	auth := config.Auth
	if auth == nil {
		return nil
	}
	found := blocks(&auth.IdentityProviders, "")
	for i := range found {
		found[i].ID = found[i].Kind
	}
	own := len(found)
	for i := range auth.Connectors {
		given := &auth.Connectors[i]
		for _, one := range blocks(&given.IdentityProviders, fmt.Sprintf("connectors[%d].", i)) {
			one.ID, one.DisplayName = given.ID, given.DisplayName
			one.taken = slices.Contains(reserved, one.ID) || slices.ContainsFunc(found[:own], func(c Connector) bool { return c.ID == one.ID })
			found = append(found, one)
		}
	}
	for i := range found {
		if found[i].DisplayName == "" {
			found[i].DisplayName = found[i].ID
		}
		if found[i].Token && config.PlatformHost != "" {
			found[i].RedirectURI = "https://" + config.PlatformHost + found[i].callback()
		}
	}
	return found
}

// blocks returns the connectors of the blocks that are set.
func blocks(given *model.IdentityProviders, path string) []Connector {
	var found []Connector
	add := func(kind string, one Connector) {
		one.Kind, one.Path = kind, path+kind
		found = append(found, one)
	}
	if p := given.OIDC; p != nil {
		one := Connector{
			Settings: model.IdentityProviders{OIDC: p}, Type: p.Type, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups,
			GroupsPrefix: p.GroupsPrefix, UsernamePrefix: p.UsernamePrefix, ExtraClaims: p.AllowedExtraClaims, secret: p.ClientSecret,
			missing: missing("issuerUrl", p.IssuerURL, "clientId", p.ClientID),
		}
		if p.GroupsClaim == "" && len(p.Groups) > 0 {
			one.wrong, one.why = "groupsClaim", whyGroups
		}
		add(OIDC, one)
	}
	if p := given.GitForge1; p != nil {
		add(GitForge1, Connector{
			Settings: model.IdentityProviders{GitForge1: p}, RedirectURI: p.RedirectURI, secret: p.ClientSecret,
			missing: missing("clientId", p.ClientID),
		})
	}
	if p := given.GitForge2; p != nil {
		add(GitForge2, Connector{
			Settings: model.IdentityProviders{GitForge2: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missing: missing("clientId", p.ClientID),
		})
	}
	if p := given.IDP1; p != nil {
		one := Connector{
			Settings: model.IdentityProviders{IDP1: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missing: missing("clientId", p.ClientID),
		}
		if one.missing == "" && len(p.Groups) > 0 {
			// Only the directory knows the groups: without it nobody is in one of them.
			one.missing = missing("serviceAccountFilePath", p.ServiceAccountFilePath, "adminEmail", p.AdminEmail)
		}
		add(IDP1, one)
	}
	if p := given.IDP2; p != nil {
		one := Connector{
			Settings: model.IdentityProviders{IDP2: p}, RedirectURI: p.RedirectURI, RequiredGroups: p.Groups, secret: p.ClientSecret,
			missing: missing("clientId", p.ClientID),
		}
		if !SingleTenant(p.Tenant) && len(p.Groups) > 0 {
			one.wrong, one.why = "tenant", "must be one tenant if groups is set, because groups belong to a tenant"
		}
		add(IDP2, one)
	}
	if p := given.SAML; p != nil {
		one := Connector{
			Settings: model.IdentityProviders{SAML: p}, Type: SAML, RedirectURI: p.RedirectURI, RequiredGroups: p.AllowedGroups, Posts: true,
			Unverified: p.InsecureSkipSignatureValidation,
			missing:    missing("ssoURL", p.SSOURL),
		}
		if p.GroupsAttr == "" && len(p.AllowedGroups) > 0 {
			one.wrong, one.why = "groupsAttr", whyGroups
		}
		add(SAML, one)
	}
	if p := given.ClusterManager; p != nil {
		add(ClusterManager, Connector{
			Settings: model.IdentityProviders{ClusterManager: p}, Type: ClusterManager, Token: true, secret: p.BearerToken,
			missing: missing("host", p.Host),
		})
	}
	return found
}

// whyGroups is why a setting must be set that names what has the groups of a person.
const whyGroups = "must be set, because groups are required"

// SingleTenant reports whether a tenant of the second identity provider is one organization, rather than a word for many.
func SingleTenant(tenant string) bool {
	return !slices.Contains([]string{"", "common", "consumers", "organizations"}, strings.ToLower(tenant))
}

// missing returns the first name whose value is empty. Empty: all have one.
func missing(pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return pairs[i]
		}
	}
	return ""
}

// Platform returns the address of the platform, below which browsers come back from the connector: what redirectURI has before
// /auth/ID/callback. It has no slash at its end.
//
// If nobody can sign in at the connector, field and why name a field of the configuration below auth and what it must be. They are
// empty otherwise. Source: ADR-0031.
func (c Connector) Platform() (address, field, why string) {
	path := c.callback()
	address, below := strings.CutSuffix(c.RedirectURI, path)
	switch {
	case c.taken:
		return "", strings.TrimSuffix(c.Path, c.Kind) + "id", fmt.Sprintf("%q is the ID of another connector, or a page of the platform", c.ID)
	case c.missing != "":
		return "", c.Path + "." + c.missing, "must be set"
	case c.wrong != "":
		return "", c.Path + "." + c.wrong, c.why
	case c.Token && c.RedirectURI == "":
		return "", c.Path, "needs status.platformHost"
	case !below || !strings.HasPrefix(address, "https://"):
		return "", c.Path + ".redirectURI", "must be an https URL that ends in " + path
	default:
		return address, "", ""
	}
}

// callback is the path to which browsers come back.
func (c Connector) callback() string { return "/auth/" + c.ID + "/callback" }

// Usable reports whether people can sign in at the connector, as far as the configuration says.
func (c Connector) Usable() bool {
	_, wrong, _ := c.Platform()
	return wrong == ""
}

// Issuer is what the platform calls itself in its answers to programs: the address of the platform.
func (c Connector) Issuer() string {
	address, _, _ := c.Platform()
	return address
}

// LoginURL is the address at which a sign-in begins.
func (c Connector) LoginURL() string { return c.Issuer() + "/auth/" + c.ID + "/login" }

// LogoutURL is the address at which the session of a person at the connector ends.
func (c Connector) LogoutURL() string { return c.Issuer() + "/auth/" + c.ID + "/logout" }

// TokenURL is the address at which a program fetches its key.
func (c Connector) TokenURL() string { return c.Issuer() + "/auth/token" }

// Fingerprint changes with each change of the settings.
func (c Connector) Fingerprint() string {
	// A block has no field that cannot be encoded. Its secret is encoded as a mark, and so is added.
	settings, _ := json.Marshal(c.Settings)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.ID, c.Kind, settings, c.secret.Reveal()))
	return hex.EncodeToString(sum[:])
}
