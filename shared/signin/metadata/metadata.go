// Package metadata describes the authorization server to clients of OAuth. Source: RFC 8414.
package metadata

import (
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
)

// Metadata say what clients of OAuth can do here. Fields without a value are absent. Source: RFC 8414, 2.
type Metadata struct {
	// Issuer is the address of the platform.
	Issuer string `json:"issuer"`
	// AuthorizationEndpoint is for programs that know no connector. Empty: sign-ins with a browser are not possible.
	AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         string `json:"token_endpoint"`
	// DeviceAuthorizationEndpoint is where a program asks for codes. Empty: there are none. Source: RFC 8628, 4.
	DeviceAuthorizationEndpoint string `json:"device_authorization_endpoint,omitempty"`
	// RevocationEndpoint is where a program gives a token back. Source: RFC 7009, 2.
	RevocationEndpoint     string   `json:"revocation_endpoint"`
	ScopesSupported        []string `json:"scopes_supported"`
	ResponseTypesSupported []string `json:"response_types_supported,omitempty"`
	ResponseModesSupported []string `json:"response_modes_supported,omitempty"`
	GrantTypesSupported    []string `json:"grant_types_supported"`
	// TokenEndpointAuthMethodsSupported and RevocationEndpointAuthMethodsSupported are the methods for a client with an empty
	// secret.
	TokenEndpointAuthMethodsSupported      []string `json:"token_endpoint_auth_methods_supported"`
	RevocationEndpointAuthMethodsSupported []string `json:"revocation_endpoint_auth_methods_supported"`
	CodeChallengeMethodsSupported          []string `json:"code_challenge_methods_supported,omitempty"`
	// IssParameterSupported reports whether the answer to a browser names the issuer. Source: RFC 9207, 3.
	IssParameterSupported bool `json:"authorization_response_iss_parameter_supported,omitempty"`
}

// Describe returns the metadata of an environment. False: the platform does not know its address.
func Describe(env *platform.Environment) (Metadata, bool) {
	address := method.Address(env.Config())
	if address == "" {
		return Metadata{}, false
	}
	methods := []string{"none", "client_secret_basic"}
	metadata := Metadata{
		Issuer: address, TokenEndpoint: address + "/auth/token", RevocationEndpoint: address + oauth.RevokePath, ScopesSupported: []string{oauth.OfflineAccess},
		TokenEndpointAuthMethodsSupported: methods, RevocationEndpointAuthMethodsSupported: methods, GrantTypesSupported: []string{"refresh_token", oauth.TokenExchangeGrant},
	}
	browsers, devices := len(method.ListWithIssuer(env, address)) > 0, device.Enabled(env)
	if browsers || devices {
		metadata.CodeChallengeMethodsSupported = []string{"S256"}
	}
	if browsers {
		metadata.AuthorizationEndpoint, metadata.IssParameterSupported = address+oauth.AuthorizePath, true
		metadata.ResponseTypesSupported, metadata.ResponseModesSupported = []string{"code"}, []string{"query"}
		metadata.GrantTypesSupported = append(metadata.GrantTypesSupported, "authorization_code")
	}
	if devices {
		metadata.DeviceAuthorizationEndpoint = address + oauth.DevicePath + "/code"
		metadata.GrantTypesSupported = append(metadata.GrantTypesSupported, oauth.DeviceGrant)
	}
	return metadata, true
}
