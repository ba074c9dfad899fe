package instance

import (
	"context"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
)

// Open returns the instances of an environment. It is for functions that read them; functions that write use
// package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		instances := NewRegistry(env.Stores(Definition.Resource.Resource), env.Now, env.Random, Settings{
			Project: env.Project, AllowLocal: env.LocalSigners,
			Keyring: func() (*encryption.Keyring, error) { return env.Keyring(context.Background()) },
		})
		instances.Quota = env.Quota
		instances.Graph = resource.LookupGraph(env, instances)
		return instances
	})
}
