package accesskey

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Open returns the access keys of an environment. It is for functions that read them; functions that write use
// package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		state := &retiring{Store: env.Stores(Definition.Resource.Resource), retired: OpenRetired(env)}
		keys := NewRegistry(state, env.Now, env.Random, OpenLimits(env))
		keys.Quota = env.Quota
		mustRulesOf(keys).people = directory.Open(env)
		keys.Graph = resource.LookupGraph(env, keys)
		return keys
	})
}

// OpenAuthenticator returns the authenticator for the access keys of an environment.
//
//go:noinline
func OpenAuthenticator(env *platform.Environment) *auth.Authenticator {
	return platform.Single(env, func(env *platform.Environment) *auth.Authenticator {
		return &auth.Authenticator{Bearers: bearers(env)}
	})
}

// OpenRefreshAuthenticator returns the authenticator for the refresh keys of an environment. No other authenticator accepts
// refresh keys. Source: ADR-0045.
//
//go:noinline
func OpenRefreshAuthenticator(env *platform.Environment) *auth.Authenticator {
	return &auth.Authenticator{Bearers: refreshBearers{bearers(env)}}
}

func bearers(env *platform.Environment) *Bearers {
	return &Bearers{Keys: Open(env), Now: env.Now, Limits: OpenLimits(env), Log: env.Log}
}

// LimitsFunc returns the current limits on the life of keys.
type LimitsFunc func() Limits

// OpenLimits returns a function that returns the limits on the life of keys, as the configuration of an environment has them at
// each call. A shell that knows since when the limits are in force provides a LimitsFunc; otherwise the limits count as always in
// force. Source: Spec 2.7, 8; ADR-0024.
//
//go:noinline
func OpenLimits(env *platform.Environment) func() Limits {
	return platform.Single(env, func(env *platform.Environment) LimitsFunc {
		return func() Limits { return LimitsOf(env.Config()) }
	})
}

// LimitsOf returns the limits of a configuration, as if they were always in force.
func LimitsOf(config *model.ConfigStatus) Limits {
	most, login := LimitSeconds(config)
	return Limits{Max: model.Seconds(most), Login: model.Seconds(login)}
}

// LimitSeconds returns the limits of a configuration in seconds: for all keys, and for the keys of logins. 0 or less is no limit.
func LimitSeconds(config *model.ConfigStatus) (most, login int64) {
	login = model.DefaultLoginAccessKeyTTLSeconds
	if config.Auth == nil {
		return 0, login
	}
	if config.Auth.LoginAccessKeyTTLSeconds != nil {
		login = *config.Auth.LoginAccessKeyTTLSeconds
	}
	return config.Auth.AccessKeyMaxTTLSeconds, login
}
