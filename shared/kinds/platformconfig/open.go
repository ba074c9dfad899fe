package platformconfig

import (
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
)

// Open returns the configuration of an environment: the one that Use has set, or else a new one in the state, which the
// environment's Config does not read.
//
//go:noinline
func Open(env *platform.Environment) *Source {
	return platform.Single(env, func(env *platform.Environment) *Source {
		return New(Options{
			Store: env.Stores(Definition.Resource.Resource), Keyring: env.Keyring, Now: env.Now, Random: env.Random, Log: env.Log,
		})
	})
}

// Use makes source the configuration of an environment. Call it before anything else is opened with the environment.
func Use(env *platform.Environment, source *Source) {
	platform.Provide(env, source)
	platform.Provide(env, accesskey.LimitsFunc(source.KeyLimits))
	env.Config = source.Current
	source.Keys = func() *accesskey.Registry { return accesskey.Open(env) }
}
