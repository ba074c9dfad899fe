package user

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/platform"
)

// Open returns the users of an environment. It is for functions that read them; functions that write use package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		users := NewRegistry(env.Stores(Definition.Resource.Resource), env.Now, env.Random, lastadmin.Open(env), directory.Open(env))
		users.Graph = resource.LookupGraph(env, users)
		return users
	})
}
