package platformconfig

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/lazyregexp"
)

// signInWarnings returns a warning for each connector at which users cannot sign in now, or at which one person could sign
// in as another. These are not errors: earlier versions have stored such blocks, and an author may write a configuration in
// several steps. Source: ADR-0031, ADR-0035.
func signInWarnings(config *model.ConfigStatus, now time.Time) []string {
	var warnings []string
	warn := func(fieldPath, why string) {
		warnings = append(warnings, fmt.Sprintf("status.auth.%s: %s", fieldPath, why))
	}
	for _, conn := range connector.All(config) {
		if conn.Unverified {
			warn(conn.Path+".insecureSkipSignatureValidation", "responses are not verified: anybody can sign in as anybody")
		}
		address, wrongField, why := conn.Platform()
		if wrongField != "" {
			warn(wrongField, why+": nobody can sign in there")
			continue
		}
		connectorWarnings(conn, now, func(field, why string) { warn(conn.Path+"."+field, why) })
		// redirectURI has the address of the platform.
		if home, err := url.Parse(address); config.PlatformHost != "" && err == nil && home.Host != config.PlatformHost {
			warn(conn.Path+".redirectURI", fmt.Sprintf("browsers come back to %q, and status.platformHost is %q", home.Host, config.PlatformHost))
		}
	}
	return warnings
}

// changeableClaims are claims that a provider may change, or give to a second person.
var changeableClaims = []string{"email", "name", "nickname", "phone_number", "preferred_username", "upn", "unique_name"}

// directoryID matches the ID of a group of the second identity provider.
var directoryID = lazyregexp.New(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// connectorWarnings warns about valid settings of a connector that keep users from signing in, or let one person sign in as
// another.
func connectorWarnings(conn connector.Connector, now time.Time, warn func(field, why string)) {
	if p := conn.Settings.OIDC; p != nil {
		if p.InsecureCA {
			warn("insecureCa", "the certificate of the provider is not verified: whoever is between it and the platform can sign in as anybody")
		}
		if slices.Contains(changeableClaims, p.UsernameClaim) {
			warn("usernameClaim", fmt.Sprintf("the claim %q may change, or belong to somebody else one day, who then is the same user; sub never does", p.UsernameClaim))
		}
	}
	if p := conn.Settings.IDP2; p != nil && slices.ContainsFunc(p.Groups, func(group string) bool { return !directoryID().MatchString(group) }) {
		warn("groups", "members of a tenant may choose the names of groups: use their IDs")
	}
	if p := conn.Settings.SAML; p != nil {
		samlWarnings(p, now, warn)
	}
}

// samlWarnings is connectorWarnings for a SAML provider.
func samlWarnings(p *model.SAMLProvider, now time.Time, warn func(field, why string)) {
	if strings.HasPrefix(p.SSOURL, "http:") {
		warn("ssoURL", "is not https: whoever is between a browser and the provider can read and change what people enter there")
	}
	switch p.NameIDPolicyFormat[strings.LastIndex(p.NameIDPolicyFormat, ":")+1:] {
	case "transient":
		warn("nameIDPolicyFormat", "a transient ID is another one at each sign-in: nobody can sign in there")
	case "emailAddress":
		warn("nameIDPolicyFormat", "an address may change, or belong to somebody else one day, who then is the same user; a persistent ID never does")
	}
	if p.CAData == "" || hasPlaceholder(p.CAData) {
		return
	}
	text, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(p.CAData))
	certificates, err := connector.Certificates(text)
	if err != nil {
		warn("caData", "has something that is not a certificate: nobody can sign in there")
	} else if found, why := connector.UsableCertificates(certificates, now); len(found) == 0 {
		warn("caData", why+": nobody can sign in there")
	}
}

// groupsScope is the scope that many providers require before they send the claim groups.
const groupsScope = "groups"

// scopeWarning returns a warning if a connector does not request the groups scope that its provider supports. Empty: there
// is no warning.
func scopeWarning(p *model.OIDCProvider, supportedScopes []string) string {
	if p.GroupsClaim != groupsScope || !slices.Contains(supportedScopes, groupsScope) || slices.Contains(p.Scopes, groupsScope) {
		return ""
	}
	return "does not have groups, and groupsClaim is groups: the provider has a scope of this name, and may not send the claim without it"
}
