// Package kinds is all stored kinds of the platform together, since objects of one may own objects of another: who
// creates, changes or deletes objects of one kind has to know the others. Functions that only read do not import it, so
// that a rule of one kind changes no program that never runs it. Source: Spec 2.2 (ownerReferences); ADR-0009, ADR-0019.
package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// Stored is the stored kinds of an environment, joined in one graph.
type Stored struct {
	AccessKeys   *accesskey.Registry
	IssuedTokens *issuedtoken.Register
	Instances    *instance.Registry
	// Graph is all of them.
	Graph *resource.Graph
}

// Open returns the stored kinds of an environment. The registries are those that each kind's own Open returns; from now on
// they know each other.
func Open(env *platform.Environment) *Stored {
	return platform.Single(env, func(env *platform.Environment) *Stored {
		stored := &Stored{AccessKeys: accesskey.Open(env), IssuedTokens: issuedtoken.Open(env), Instances: instance.Open(env)}
		stored.Graph = resource.NewGraph(permission(env), stored.AccessKeys, stored.IssuedTokens.Registry, stored.Instances)
		return stored
	})
}

// permission tells whether a caller might do to an object what their request does not name.
func permission(env *platform.Environment) resource.Permission {
	return func(caller identity.Caller, verb string, target schema.GroupVersionResource, namespace, name string) bool {
		return auth.Decide(caller, scope.Request{
			Verb: verb, Group: target.Group, Resource: target.Resource, Namespace: namespace, Name: name, Project: env.Project(namespace),
		}).Allowed
	}
}
