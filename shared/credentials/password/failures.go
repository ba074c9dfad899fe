package password

import (
	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/limits"
)

// ofUser counts the attempts for a user name, whether or not there is such a user.
func ofUser(name string) throttle.Count {
	return throttle.Count{Parts: []string{"user", name}, Most: limits.PasswordFailures, Window: limits.PasswordFailuresWindow}
}

// ofAddress counts the attempts of an address.
func ofAddress(address string) throttle.Count {
	return throttle.Count{Parts: []string{"address", address}, Most: limits.PasswordFailuresOfAddress, Window: limits.PasswordFailuresWindow}
}
