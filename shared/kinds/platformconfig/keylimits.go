package platformconfig

import (
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
)

// keyLimits are how the limits on the life of access keys were lowered: the one on all keys, and the one on those of logins.
// They are stored beside the configuration. Source: ADR-0024.
type keyLimits struct {
	Max   accesskey.Steps `json:"max,omitempty"`
	Login accesskey.Steps `json:"login,omitempty"`
}

// of returns the steps that belong to the limits of a configuration. A limit that an older build wrote was always in force.
func (k keyLimits) of(config *model.ConfigStatus) keyLimits {
	known := func(steps accesskey.Steps, limit int64) accesskey.Steps {
		if limit > 0 && len(steps) > 0 && steps[len(steps)-1].Seconds == limit {
			return steps
		}
		return accesskey.Since(limit)
	}
	most, login := accesskey.LimitSeconds(config)
	return keyLimits{known(k.Max, most), known(k.Login, login)}
}

// next returns the steps after a change to the limits of a configuration.
func (k keyLimits) next(config *model.ConfigStatus, now time.Time) keyLimits {
	most, login := accesskey.LimitSeconds(config)
	return keyLimits{k.Max.Next(most, now), k.Login.Next(login, now)}
}

// limits returns the limits of a configuration with these steps.
func (k keyLimits) limits(config *model.ConfigStatus) accesskey.Limits {
	limits := accesskey.LimitsOf(config)
	limits.MaxSteps, limits.LoginSteps = k.Max, k.Login
	return limits
}
