package platformconfig

import "management.platform.sh/shared/platform"

// Open returns the configuration of an environment: the one that Use has put there, else one on the state that Config of
// the environment knows nothing of.
func Open(env *platform.Environment) *Source {
	return platform.Single(env, func(env *platform.Environment) *Source {
		return New(Options{
			Store: env.Stores(Definition.Resource.Resource), Keyring: env.Keyring, Now: env.Now, Random: env.Random, Log: env.Log,
		})
	})
}

// Use makes source the configuration of an environment, before anything else is opened with it.
func Use(env *platform.Environment, source *Source) {
	platform.Provide(env, source)
	env.Config = source.Current
}
