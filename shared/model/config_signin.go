package model

import "strings"

// OIDCConnector is the ID of the connector in auth.oidc. Source: ADR-0031.
const OIDCConnector = "oidc"

// Platform returns the address of the platform, below which browsers come back from the provider: what redirectURI has before
// /auth/ID/callback, with the ID of the connector. It has no slash at its end.
//
// If nobody can sign in at the provider, field and why name a field of the provider and what it must be. They are empty otherwise.
// Source: ADR-0031.
func (p *OIDCProvider) Platform(connector string) (address, field, why string) {
	path := "/auth/" + connector + "/callback"
	address, below := strings.CutSuffix(p.RedirectURI, path)
	switch {
	case p.IssuerURL == "":
		return "", "issuerUrl", "must be set"
	case p.ClientID == "":
		return "", "clientId", "must be set"
	case !below || !strings.HasPrefix(address, "https://"):
		return "", "redirectURI", "must be an https URL that ends in " + path
	default:
		return address, "", ""
	}
}
