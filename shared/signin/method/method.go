// Package method has the ways to sign in that the configuration offers: its connectors and the password. Source: Spec 5.4.
package method

import (
	"slices"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/provider"
)

// Connectors returns the connectors of a configuration at which people can sign in, in its order.
func Connectors(config *model.ConfigStatus) []provider.Connector {
	return slices.DeleteFunc(connector.All(config), func(conn provider.Connector) bool { return !conn.Usable() })
}

// FindConnector returns the connector with an ID.
func FindConnector(config *model.ConfigStatus, id string) (provider.Connector, bool) {
	for _, conn := range Connectors(config) {
		if conn.ID == id {
			return conn, true
		}
	}
	return provider.Connector{}, false
}

// PasswordID is in the place of the ID of a connector where people sign in with a password.
const PasswordID = "password"

// PasswordEnabled reports whether people can sign in with a password.
func PasswordEnabled(config *model.ConfigStatus) bool {
	return config.Auth == nil || config.Auth.Password == nil || !config.Auth.Password.Disabled
}

// Address is the address of the platform for browsers: platformHost, or the issuer of the first connector. Empty: it is not known. The Host
// header is never used.
func Address(config *model.ConfigStatus) string {
	if config.PlatformHost != "" {
		return "https://" + config.PlatformHost
	}
	for _, conn := range Connectors(config) {
		return conn.Issuer()
	}
	return ""
}

// Settings returns the address of the platform for a login method, and the fingerprint of the settings on which an attempt rests.
func Settings(config *model.ConfigStatus, id string) (address, settings string, ok bool) {
	if id == PasswordID {
		address = Address(config)
		return address, digest.Sum(PasswordID, address), PasswordEnabled(config) && address != ""
	}
	conn, ok := FindConnector(config, id)
	if !ok {
		return "", "", false
	}
	return conn.Issuer(), conn.Fingerprint(), true
}

// Method is a way to sign in that a page offers.
type Method struct{ ID, Label string }

// List returns the ways to sign in with a browser.
func List(env *platform.Environment) []Method {
	config := env.Config()
	var methods []Method
	for _, conn := range Connectors(config) {
		methods = append(methods, Method{conn.ID, conn.DisplayName})
	}
	if PasswordEnabled(config) && Address(config) != "" {
		methods = append(methods, Method{PasswordID, "Password"})
	}
	return methods
}

// ListWithIssuer returns the ways to sign in whose authorization responses have a given iss. Source: RFC 9207, 2.4.
func ListWithIssuer(env *platform.Environment, address string) []Method {
	return slices.DeleteFunc(List(env), func(method Method) bool {
		methodAddress, _, ok := Settings(env.Config(), method.ID)
		return !ok || methodAddress != address
	})
}
