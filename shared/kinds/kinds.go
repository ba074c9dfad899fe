// Package kinds joins all stored kinds of the platform, since objects of one kind can own objects of another. A function
// that creates, changes or deletes objects of one kind must know the other kinds. Functions that only read do not import
// this package, so that a change to the rules of one kind does not change programs that never run them.
// Source: Spec 2.2 (ownerReferences); ADR-0009, ADR-0019.
package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/kinds/project"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/trustrule"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// Stored contains the stored kinds of an environment, joined in one graph.
type Stored struct {
	AccessKeys   *accesskey.Registry
	IssuedTokens *issuedtoken.Register
	Instances    *instance.Registry
	Users        *user.Registry
	Teams        *team.Registry
	TrustRules   *trustrule.Registry
	Projects     *project.Registry
	// Graph has all the kinds as members.
	Graph *gc.Graph
}

// Open returns the stored kinds of an environment. Its registries are copies of the registries that each kind's own Open returns,
// joined in one graph. A function that needs only one kind calls the function of this package with the kind's name: a program
// that mentions Stored compiles the verbs of every kind once more.
//
//go:noinline
func Open(env *platform.Environment) *Stored {
	return platform.Single(env, func(env *platform.Environment) *Stored {
		graph := gc.NewGraph(permission(env))
		return &Stored{
			AccessKeys:   resource.Join(graph, accesskey.Open(env)),
			IssuedTokens: issuedtoken.Open(env).Join(graph),
			Instances:    resource.Join(graph, instance.Open(env)),
			Users:        resource.Join(graph, user.Open(env)),
			Teams:        resource.Join(graph, team.Open(env)),
			TrustRules:   resource.Join(graph, trustrule.Open(env)),
			Projects:     resource.Join(graph, project.Open(env)),
			Graph:        graph,
		}
	})
}

// Readers returns all kinds for decisions about their objects. The kinds are opened as functions open them that only read.
//
//go:noinline
func Readers(env *platform.Environment) []resource.Decider {
	return []resource.Decider{
		accesskey.Open(env), issuedtoken.Open(env), instance.Open(env), user.Open(env), team.Open(env), trustrule.Open(env), project.Open(env),
	}
}

// AccessKeys returns the access keys of an environment, joined with the other kinds.
//
//go:noinline
func AccessKeys(env *platform.Environment) *accesskey.Registry { return Open(env).AccessKeys }

// IssuedTokens returns the issued tokens of an environment, joined with the other kinds.
//
//go:noinline
func IssuedTokens(env *platform.Environment) *issuedtoken.Register { return Open(env).IssuedTokens }

// Instances returns the virtual cluster instances of an environment, joined with the other kinds.
//
//go:noinline
func Instances(env *platform.Environment) *instance.Registry { return Open(env).Instances }

// Users returns the users of an environment, joined with the other kinds.
//
//go:noinline
func Users(env *platform.Environment) *user.Registry { return Open(env).Users }

// Teams returns the teams of an environment, joined with the other kinds.
//
//go:noinline
func Teams(env *platform.Environment) *team.Registry { return Open(env).Teams }

// TrustRules returns the trust rules of an environment, joined with the other kinds.
//
//go:noinline
func TrustRules(env *platform.Environment) *trustrule.Registry { return Open(env).TrustRules }

// Projects returns the projects of an environment, joined with the other kinds.
//
//go:noinline
func Projects(env *platform.Environment) *project.Registry { return Open(env).Projects }

// Graph returns the graph of the kinds of an environment.
//
//go:noinline
func Graph(env *platform.Environment) *gc.Graph { return Open(env).Graph }

// permission returns a function that reports whether a caller may do a verb to an object that the request does not name.
func permission(env *platform.Environment) gc.Permission {
	return func(caller identity.Caller, verb string, target schema.GroupVersionResource, namespace, name string) bool {
		return auth.Decide(caller, scope.Request{
			Verb: verb, Group: target.Group, Resource: target.Resource, Namespace: namespace, Name: name, Project: env.Project(namespace),
		}).Allowed
	}
}
