package issuedtoken

import (
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
)

// Open returns the register of direct cluster endpoint tokens of an environment. It is for functions that read it;
// functions that write use package kinds.
//
//go:noinline
func Open(env *platform.Environment) *Register {
	return platform.Single(env, func(env *platform.Environment) *Register {
		tokens := NewRegister(env.Stores(Definition.Resource.Resource), env.Stores(RevokedResource), accesskey.Open(env), env.Now, env.Random,
			accesskey.OpenLimits(env))
		tokens.Quota = env.Quota
		tokens.Graph = resource.LookupGraph(env, tokens.Registry)
		return tokens
	})
}
