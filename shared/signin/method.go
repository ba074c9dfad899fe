package signin

import (
	"slices"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/platform"
)

// Connectors returns the connectors of a configuration at which people can sign in, in its order.
func Connectors(config *model.ConfigStatus) []Connector {
	return slices.DeleteFunc(connector.All(config), func(conn Connector) bool { return !conn.Usable() })
}

// findConnector returns the connector with an ID.
func findConnector(config *model.ConfigStatus, id string) (Connector, bool) {
	for _, conn := range Connectors(config) {
		if conn.ID == id {
			return conn, true
		}
	}
	return Connector{}, false
}

// PasswordID is in the place of the ID of a connector where people sign in with a password.
const PasswordID = "password"

// PasswordEnabled reports whether people can sign in with a password.
func PasswordEnabled(config *model.ConfigStatus) bool {
	return config.Auth == nil || config.Auth.Password == nil || !config.Auth.Password.Disabled
}

// Address is the address of the platform for browsers: platformHost, or that of the first connector. Empty: it is not known. The Host
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

// methodSettings returns the address of the platform for an attempt at a connector, or with a password, and the settings that the attempt rests
// on.
func methodSettings(config *model.ConfigStatus, id string) (address, settings string, ok bool) {
	if id == PasswordID {
		address = Address(config)
		return address, Digest(PasswordID, address), PasswordEnabled(config) && address != ""
	}
	conn, ok := findConnector(config, id)
	if !ok {
		return "", "", false
	}
	return conn.Issuer(), conn.Fingerprint(), true
}

// LoginMethod is a way to sign in, for a page that offers several.
type LoginMethod struct{ ID, Label string }

// loginMethods returns the ways to sign in with a browser.
func loginMethods(env *platform.Environment) []LoginMethod {
	config := env.Config()
	var methods []LoginMethod
	for _, conn := range Connectors(config) {
		methods = append(methods, LoginMethod{conn.ID, conn.DisplayName})
	}
	if PasswordEnabled(config) && Address(config) != "" {
		methods = append(methods, LoginMethod{PasswordID, "Password"})
	}
	return methods
}

// loginMethodsAt returns the ways to sign in whose answers name an address of the platform as iss. Source: RFC 9207, 2.4.
func loginMethodsAt(env *platform.Environment, address string) []LoginMethod {
	return slices.DeleteFunc(loginMethods(env), func(method LoginMethod) bool {
		methodAddress, _, ok := methodSettings(env.Config(), method.ID)
		return !ok || methodAddress != address
	})
}
