package platformconfig

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// signInWarnings names the connectors at which nobody can sign in, and why. They are no errors: earlier versions have stored such
// blocks, and a configuration may be written in several steps. Source: ADR-0031.
func signInWarnings(config *model.ConfigStatus) []string {
	if config.Auth == nil {
		return nil
	}
	var warnings []string
	warn := func(at *field.Path, why string) {
		warnings = append(warnings, fmt.Sprintf("%s: %s", at, why))
	}
	check := func(id string, provider *model.OIDCProvider, at *field.Path) {
		if provider == nil {
			return
		}
		address, wrong, why := provider.Platform(id)
		if wrong != "" {
			warn(at.Child(wrong), why+": nobody can sign in there")
			return
		}
		// The address of the platform is that in redirectURI.
		if home, err := url.Parse(address); config.PlatformHost != "" && err == nil && home.Host != config.PlatformHost {
			warn(at.Child("redirectURI"), fmt.Sprintf("browsers come back to %q, and status.platformHost is %q", home.Host, config.PlatformHost))
		}
	}
	path := field.NewPath("status", "auth")
	check(model.OIDCConnector, config.Auth.OIDC, path.Child("oidc"))
	for i := range config.Auth.Connectors {
		connector, at := &config.Auth.Connectors[i], path.Child("connectors").Index(i)
		if connector.ID == model.OIDCConnector && config.Auth.OIDC != nil {
			warn(at.Child("id"), fmt.Sprintf("%q is the connector in status.auth.oidc: nobody can sign in at this one", connector.ID))
			continue
		}
		check(connector.ID, connector.OIDC, at.Child("oidc"))
	}
	return warnings
}
