package project

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Open returns the projects of an environment. It is for functions that read them; functions that write use package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Registry {
	return platform.Single(env, func(env *platform.Environment) *Registry {
		projects := NewRegistry(env.Stores(Definition.Resource.Resource), env.Now, env.Random, Settings{
			Namespace: env.ProjectNamespace,
			Instances: func() store.Store { return env.Stores("virtualclusterinstances") },
		})
		projects.Graph = resource.LookupGraph(env, projects)
		return projects
	})
}
