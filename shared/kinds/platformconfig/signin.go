package platformconfig

import (
	"fmt"
	"net/url"
	"slices"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/lazyregexp"
)

// signInWarnings names the connectors at which nobody can sign in, and why. They are no errors: earlier versions have stored such
// blocks, and a configuration may be written in several steps. Source: ADR-0031, ADR-0035.
func signInWarnings(config *model.ConfigStatus) []string {
	var warnings []string
	warn := func(at, why string) {
		warnings = append(warnings, fmt.Sprintf("status.auth.%s: %s", at, why))
	}
	for _, one := range connector.All(config) {
		if one.Unverified {
			warn(one.Path+".insecureSkipSignatureValidation", "responses are not verified: anybody can sign in as anybody")
		}
		address, wrong, why := one.Platform()
		if wrong != "" {
			warn(wrong, why+": nobody can sign in there")
			continue
		}
		doubts(one, func(field, why string) { warn(one.Path+"."+field, why) })
		// The address of the platform is that in redirectURI.
		if home, err := url.Parse(address); config.PlatformHost != "" && err == nil && home.Host != config.PlatformHost {
			warn(one.Path+".redirectURI", fmt.Sprintf("browsers come back to %q, and status.platformHost is %q", home.Host, config.PlatformHost))
		}
	}
	return warnings
}

// changing are claims that a provider may change, or give to a second person.
var changing = []string{"email", "name", "nickname", "phone_number", "preferred_username", "upn", "unique_name"}

// directoryID is the ID of a group of the second identity provider.
var directoryID = lazyregexp.New(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// doubts warns about fields of a connector that work as they are, and with which others than those that are meant could sign in.
func doubts(one connector.Connector, warn func(field, why string)) {
	if p := one.Settings.OIDC; p != nil {
		if p.InsecureCA {
			warn("insecureCa", "the certificate of the provider is not verified: whoever is between it and the platform can sign in as anybody")
		}
		if slices.Contains(changing, p.UsernameClaim) {
			warn("usernameClaim", fmt.Sprintf("the claim %q may change, or belong to somebody else one day, who then is the same user; sub never does", p.UsernameClaim))
		}
	}
	if p := one.Settings.IDP2; p != nil && slices.ContainsFunc(p.Groups, func(group string) bool { return !directoryID().MatchString(group) }) {
		warn("groups", "members of a tenant may choose the names of groups: use their IDs")
	}
}
