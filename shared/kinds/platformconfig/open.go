package platformconfig

import (
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
)

// Open returns the configuration of an environment: the one that Use has set, or else a new one from the state. The
// environment's Config does not read a new one.
//
//go:noinline
func Open(env *platform.Environment) *Current {
	return platform.Single(env, func(env *platform.Environment) *Current {
		return New(Options{
			Store: env.Stores(Definition.Resource.Resource), Keyring: env.Keyring, Now: env.Now, Random: env.Random, Log: env.Log,
		})
	})
}

// Use makes current the configuration of an environment. Call it before the environment opens anything else.
func Use(env *platform.Environment, current *Current) {
	platform.Provide(env, current)
	platform.Provide(env, accesskey.LimitsFunc(current.KeyLimits))
	env.Config = current.Status
	current.Keys = func() *accesskey.Registry { return accesskey.Open(env) }
}
