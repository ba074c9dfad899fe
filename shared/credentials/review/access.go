package review

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// Access decides which requests to this API callers may make. It decides as the requests themselves do: package auth decides
// about the scope and the policy, and the rules of a kind about an object. It is safe for concurrent use. Source: ADR-0023.
type Access struct {
	// Project returns the project of a namespace.
	Project func(namespace string) string
	// Roles returns the roles of a caller in projects; nil: no caller has a role.
	Roles func(identity.Caller) map[string]string
	// Objects has the functions that decide about the objects of a resource. For a resource that is not listed, objects decide
	// nothing.
	Objects map[schema.GroupResource]Objects
	// Accounts returns the users and teams that may have rights for an object with a name in a namespace. Error: NotFound if there is
	// no such object.
	Accounts func(ctx context.Context, resource schema.GroupResource, namespace, name string) ([]directory.Account, error)
	// CallersWithGroups returns the callers of the access keys whose groups come from the keys alone.
	CallersWithGroups func(context.Context) ([]identity.Caller, error)
}

// Objects decides about the object with a name; see resource.Registry.Decide.
type Objects func(ctx context.Context, caller identity.Caller, verb, subresource, namespace, name string) (auth.Decision, error)

// OpenAccess returns the Access of an environment. It covers the given kinds, which package kinds has, the configuration, and the
// evaluation of patches. It reads objects and changes none.
func OpenAccess(env *platform.Environment, kinds []resource.Decider) *Access {
	objects := map[schema.GroupResource]Objects{
		platformconfig.Definition.GroupResource(): platformconfig.Open(env).Decide,
		model.Resource("syncpatchevaluations"): func(context.Context, identity.Caller, string, string, string, string) (auth.Decision, error) {
			return platform.Patches(env.Edition), nil
		},
	}
	for _, kind := range kinds {
		objects[kind.GroupResource()] = kind.Decide
		if kind.KeysAt() != "" {
			objects[kind.GroupResource()] = checkingAccessKeys(env, kind.Decide, kind.KeysAt())
		}
	}
	people := directory.Open(env)
	return &Access{Project: env.Project, Roles: people.Roles, Objects: objects, Accounts: accountsOf(env, people, kinds), CallersWithGroups: func(ctx context.Context) ([]identity.Caller, error) {
		return accesskey.CallersWithGroups(ctx, env)
	}}
}

// accountsOf returns all users and teams and, while owners need no object, the owners to whom the project of the namespace or the
// object gives a right.
func accountsOf(env *platform.Environment, people *directory.Directory, kinds []resource.Decider) func(context.Context, schema.GroupResource, string, string) ([]directory.Account, error) {
	return func(ctx context.Context, of schema.GroupResource, namespace, name string) ([]directory.Account, error) {
		var recipients []identity.Owner
		for _, kind := range kinds {
			if kind.GroupResource() != of || name == "" {
				continue
			}
			var err error
			if recipients, err = kind.Recipients(ctx, namespace, name); err != nil {
				return nil, err
			}
		}
		return people.Accounts(ctx, env.Project(namespace), recipients...)
	}
}

// checkingAccessKeys returns objects with a further condition: a create at the given subresource makes an access key of the
// caller, so the caller must be allowed to create access keys, too. A kubeconfig contains an access key, unless the request asks
// for a certificate.
func checkingAccessKeys(env *platform.Environment, objects Objects, createSubresource string) Objects {
	keys := accesskey.Open(env)
	return func(ctx context.Context, caller identity.Caller, verb, subresource, namespace, name string) (auth.Decision, error) {
		decision, err := objects(ctx, caller, verb, subresource, namespace, name)
		if err != nil || !decision.Allowed || verb != "create" || subresource != createSubresource {
			return decision, err
		}
		keyDecision, err := keys.Decide(ctx, caller, "create", "", "", "")
		if keyDecision.Allowed {
			return decision, err
		}
		return keyDecision, err
	}
}

// Decide decides whether a caller may make a request to this API, with the state of the object that it names. An object
// that does not exist is decided like an object that the caller does not see; admins see all objects. With the wildcard auth.All,
// every request that the wildcard stands for must be permitted. It returns the errors of the state. Source: ADR-0023.
func (a *Access) Decide(ctx context.Context, caller identity.Caller, request scope.Request) (auth.Decision, error) {
	requests := auth.Served(request)
	if len(requests) == 0 {
		return auth.Decision{Reason: "this API has no request that this stands for"}, nil
	}
	var decision auth.Decision
	for _, each := range requests {
		var err error
		if decision, err = a.decideSingle(ctx, caller, each); err != nil || !decision.Allowed {
			return decision, err
		}
	}
	return decision, nil
}

// decideSingle is Decide without wildcards.
func (a *Access) decideSingle(ctx context.Context, caller identity.Caller, request scope.Request) (auth.Decision, error) {
	policyDecision, objectDecision, err := a.decideInTurn(ctx, caller, request)
	if objectDecision == nil || err != nil {
		return policyDecision, err
	}
	return policyDecision.And(*objectDecision), nil
}

// decideInTurn returns the decision of the policy and, if that permits the request, the decision of the object. The second is nil if
// no object decides.
func (a *Access) decideInTurn(ctx context.Context, caller identity.Caller, request scope.Request) (auth.Decision, *auth.Decision, error) {
	request, caller = a.normalize(request), caller.ForVerb(request.Verb)
	if unserved, ok := auth.Unserved(request); ok {
		return unserved, nil, nil
	}
	name := request.Name
	if request.Verb == "deletecollection" {
		// The request has the name only in its field selector.
		request.Name = ""
	}
	policyDecision := auth.Decide(caller, request)
	objects, ok := a.Objects[schema.GroupResource{Group: request.Group, Resource: request.Resource}]
	if !policyDecision.Allowed || !ok {
		return policyDecision, nil, nil
	}
	objectDecision, err := objects(ctx, caller, request.Verb, request.Subresource, request.Namespace, name)
	if err != nil {
		return auth.Decision{}, nil, err
	}
	return policyDecision, &objectDecision, nil
}

// normalize returns a request of a review in the form in which a client sends it. In a review, kubectl adds the namespace of its
// context to resources without namespaces, and a name to a create.
func (a *Access) normalize(request scope.Request) scope.Request {
	if request.Group == model.GroupName && request.Resource == platformconfig.Name {
		request.Resource = platformconfig.Definition.Resource.Resource
	}
	if !isNamespaced(request) {
		request.Namespace = ""
	}
	if request.Verb == "create" && request.Subresource == "" {
		request.Name = ""
	}
	request.Project = a.Project(request.Namespace)
	return request
}

// isNamespaced reports whether a request is for a resource whose objects have a namespace.
func isNamespaced(request scope.Request) bool {
	for _, kind := range platform.StoredKinds {
		if kind.Namespaced && kind.Resource.GroupResource() == (schema.GroupResource{Group: request.Group, Resource: request.Resource}) {
			return true
		}
	}
	return false
}

// withRoles returns a caller with the roles that they have in projects.
func (a *Access) withRoles(caller identity.Caller) identity.Caller {
	if a.Roles != nil {
		caller.Roles = a.Roles(caller)
	}
	return caller
}

// AnswerPlatform fills the status of a review of a request to this API, for the user that the review describes as a review of
// a bearer does: user, groups and the scope in extra. A scope that cannot be read permits nothing. Errors: BadRequest
// unless the review is about exactly one of a resource and a path; the errors of the state. Source: ADR-0023.
func (a *Access) AnswerPlatform(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
	request, err := RequestOf(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	if err != nil {
		return err
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	groups := identity.WithoutKubernetes(review.Spec.Groups)
	caller := a.withRoles(identity.New(identity.OwnerByUsername(review.Spec.User, groups), groups))
	if texts, scoped := review.Spec.Extra[ExtraScope]; scoped {
		scopes, err := readScopes(texts)
		if err != nil {
			review.Status.Denied, review.Status.Reason = true, err.Error()
			return nil //nolint:nilerr // a scope that cannot be read is an answer
		}
		caller.Scope, caller.KeyScopes = scopes[0], scopes[1:]
	}
	decision, err := a.Decide(ctx, caller, request)
	if err != nil {
		return fmt.Errorf("deciding a review: %w", err)
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Denied: !decision.Allowed, Reason: decision.Reason}
	return nil
}
