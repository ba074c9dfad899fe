package accesskey

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Open returns the access keys of an environment. It is for functions that read them; functions that write use
// kinds.Open.
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		state := &retiring{Store: env.Stores(Definition.Resource.Resource), retired: OpenRetired(env)}
		keys := NewRegistry(state, env.Now, env.Random, OpenLimits(env))
		keys.Quota = env.Quota
		resource.JoinForReading(env, keys)
		return keys
	})
}

// OpenAuthenticator returns what authenticates with the access keys of an environment.
func OpenAuthenticator(env *platform.Environment) *auth.Authenticator {
	return platform.Single(env, func(env *platform.Environment) *auth.Authenticator {
		return &auth.Authenticator{Bearers: &Bearers{Keys: Open(env), Now: env.Now, Limits: OpenLimits(env), Log: env.Log}}
	})
}

// OpenLimits returns the limits on the life of keys as the configuration of an environment has them at each call.
// Source: Spec 2.7, 8.
func OpenLimits(env *platform.Environment) func() Limits {
	return func() Limits {
		login := int64(model.DefaultLoginAccessKeyTTLSeconds)
		settings := env.Config().Auth
		if settings == nil {
			return Limits{Login: model.Seconds(login)}
		}
		if settings.LoginAccessKeyTTLSeconds != nil {
			login = *settings.LoginAccessKeyTTLSeconds
		}
		return Limits{Max: model.Seconds(settings.AccessKeyMaxTTLSeconds), Login: model.Seconds(login)}
	}
}
