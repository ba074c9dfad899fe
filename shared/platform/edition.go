package platform

import (
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/settings"
)

// Patches decides whether a platform of that edition evaluates sync patches. Source: Spec 2.8; ADR-0013.
func Patches(edition string) auth.Decision {
	if edition == settings.Community {
		return auth.Decision{Reason: "sync patches are part of the enterprise edition, and this platform runs the community edition"}
	}
	return auth.Decision{Allowed: true, Reason: "this platform runs the enterprise edition"}
}
