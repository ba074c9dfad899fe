// Package describelogin is GET /auth/info: how people can sign in, for programs and pages that offer it. Clients of OAuth find the same at
// /.well-known/oauth-authorization-server. Source: Spec 5.4; RFC 8414; ADR-0031.
package describelogin

import (
	"context"
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/metadata"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
)

// Deps is what the operation needs.
type Deps struct {
	// Config returns the current platform configuration.
	Config func() *model.ConfigStatus
	// Devices reports whether people can sign in with the code of a device.
	Devices func() bool
	// Metadata returns what clients of OAuth read. False: the platform does not know its address.
	Metadata func() (metadata.Metadata, bool)
}

// Input is the request.
type Input = frame.FormInput

// Output is how people can sign in.
type Output struct {
	Methods methods `json:"methods"`
}

// methods are the ways to sign in.
type methods struct {
	// SSO are the connectors, in the order of the configuration. Empty: there is none.
	SSO []connectorMethod `json:"sso"`
	// Password is the sign-in with a password.
	Password passwordMethod `json:"password"`
	// Device is the sign-in with a code that a program without a browser shows.
	Device deviceMethod `json:"device"`
}

// connectorMethod is a connector.
type connectorMethod struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type,omitempty"`
	// Issuer is what answers to programs name as iss.
	Issuer        string `json:"issuer"`
	LoginEndpoint string `json:"loginEndpoint"`
	TokenEndpoint string `json:"tokenEndpoint"`
	// LogoutEndpoint is where a browser ends the session of the person at the connector.
	LogoutEndpoint string `json:"logoutEndpoint"`
}

// passwordMethod is the sign-in with a password.
type passwordMethod struct {
	Enabled bool `json:"enabled"`
	// Issuer, LoginEndpoint and TokenEndpoint are as in connectorMethod. Absent if the address of the platform is not known, or
	// the sign-in is not enabled.
	Issuer        string `json:"issuer,omitempty"`
	LoginEndpoint string `json:"loginEndpoint,omitempty"`
	TokenEndpoint string `json:"tokenEndpoint,omitempty"`
}

// deviceMethod is the sign-in with a code. Its addresses are absent if it is not enabled.
type deviceMethod struct {
	Enabled bool `json:"enabled"`
	// Issuer and TokenEndpoint are as in connectorMethod.
	Issuer        string `json:"issuer,omitempty"`
	TokenEndpoint string `json:"tokenEndpoint,omitempty"`
	// DeviceEndpoint is where a program asks for codes.
	DeviceEndpoint string `json:"deviceEndpoint,omitempty"`
}

// Do returns how people can sign in now. It never fails.
func Do(_ context.Context, deps Deps, _ Input) (frame.FormResult, error) {
	info := Output{Methods: methods{SSO: []connectorMethod{}}}
	for _, connector := range method.Connectors(deps.Config()) {
		info.Methods.SSO = append(info.Methods.SSO, connectorMethod{
			ID: connector.ID, DisplayName: connector.DisplayName, Type: connector.Type, Issuer: connector.Issuer(),
			LoginEndpoint: connector.LoginURL(), TokenEndpoint: connector.TokenURL(), LogoutEndpoint: connector.LogoutURL(),
		})
	}
	if config := deps.Config(); method.PasswordEnabled(config) {
		info.Methods.Password.Enabled = true
		if address := method.Address(config); address != "" {
			info.Methods.Password = passwordMethod{
				Enabled: true, Issuer: address, LoginEndpoint: address + "/auth/password/login", TokenEndpoint: address + "/auth/token",
			}
		}
	}
	if deps.Devices() {
		address := method.Address(deps.Config())
		info.Methods.Device = deviceMethod{
			Enabled: true, Issuer: address, TokenEndpoint: address + "/auth/token", DeviceEndpoint: address + oauth.DevicePath + "/code",
		}
	}
	return frame.FormResult{JSON: info}, nil
}

// serveMetadata returns what clients of OAuth read. Error: NotFound if the platform does not know its address. Source: RFC 8414, 3.
func serveMetadata(_ context.Context, deps Deps, _ frame.DocumentInput) (*frame.Page, error) {
	found, ok := deps.Metadata()
	if !ok {
		return nil, apierror.NoRoute()
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("encoding the metadata: %w", err)
	}
	return &frame.Page{MediaType: codec.JSON, Body: append(text, '\n')}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "describelogin",
	Endpoints: []frame.Endpoint{frame.Form("GET", "/auth/info", open, Do), document(), document().Head()},
}

func document() frame.Endpoint {
	return frame.Document("/.well-known/oauth-authorization-server", frame.Everyone, open, serveMetadata).AlsoAtRoot().AboutAuthentication()
}

func open(env *platform.Environment) Deps {
	return Deps{
		Config: env.Config, Devices: func() bool { return device.Enabled(env) },
		Metadata: func() (metadata.Metadata, bool) { return metadata.Describe(env) },
	}
}
