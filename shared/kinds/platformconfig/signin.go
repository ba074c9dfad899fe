package platformconfig

import (
	"fmt"
	"net/url"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
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
		// The address of the platform is that in redirectURI.
		if home, err := url.Parse(address); config.PlatformHost != "" && err == nil && home.Host != config.PlatformHost {
			warn(one.Path+".redirectURI", fmt.Sprintf("browsers come back to %q, and status.platformHost is %q", home.Host, config.PlatformHost))
		}
	}
	return warnings
}
