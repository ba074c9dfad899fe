package password

import (
	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/limits"
)

// userCount counts the attempts for a user name, whether or not there is such a user.
func userCount(name string) throttle.Count {
	return throttle.Count{Parts: []string{"user", name}, Limit: limits.PasswordFailures, Window: limits.PasswordFailuresWindow}
}

// addressCount counts the attempts of an address.
func addressCount(address string) throttle.Count {
	return throttle.Count{Parts: []string{"address", address}, Limit: limits.PasswordFailuresOfAddress, Window: limits.PasswordFailuresWindow}
}
