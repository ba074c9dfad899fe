package team

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/platform"
)

// Open returns the teams of an environment. It is for functions that read them; functions that write use package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		teams := NewRegistry(env.Stores(Definition.Resource.Resource), env.Now, env.Random, lastadmin.Open(env))
		teams.Graph = resource.LookupGraph(env, teams)
		return teams
	})
}
