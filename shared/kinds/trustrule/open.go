package trustrule

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/platform"
)

// Open returns the trust rules of an environment. It is for functions that read them; functions that write use package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		trusted := NewRegistry(env.Stores(Definition.Resource.Resource), env.Now, env.Random)
		trusted.Graph = resource.LookupGraph(env, trusted)
		return trusted
	})
}
