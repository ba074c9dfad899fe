package auth

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

// audience is a set of callers that may make a kind of request.
type audience int

const (
	// admins are the members of identity.Admins.
	admins audience = iota
	// projectAdmins are the admins of the project of the request's namespace, and the admins of the platform.
	projectAdmins
	// everybody has all authenticated callers.
	everybody
	// anybody has all callers, also callers without a credential.
	anybody
)

// rule says which audience may make requests: verbs on a resource or its subresource, or GET on paths.
type rule struct {
	who         audience
	verbs       []string
	resource    schema.GroupResource
	subresource string
	// paths are the paths of documents, each in full.
	paths []string
}

var (
	authentication = func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "authentication.k8s.io", Resource: resource}
	}
	authorization = func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "authorization.k8s.io", Resource: resource}
	}
	get    = []string{"get"}
	create = []string{"create"}
)

// policy lists who may make which request. Resources that it does not list are for admins. Paths that it does not list
// are for every authenticated caller, but reviews say that the API does not have them: test/api compares the list with
// the routes of the catalog.
//
// Callers see and change only their own objects, which the rules of each kind decide. Creating an instance is for
// admins of its project (ADR-0037). Creating users, teams and projects is for admins (ADR-0029, ADR-0037). Trust rules
// are for admins alone: other callers see none (ADR-0036). The configuration can be read without its secrets
// (ADR-0015). Reviews reveal nothing: callers with a bearer to review could also use it, and a review of access
// evaluates what the caller sends (ADR-0012). So does an evaluation of patches, in a worker of which each person has a share
// (ADR-0056).
var policy = []rule{
	{who: everybody, resource: model.Resource("ownedaccesskeys"), verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}},
	{who: everybody, resource: model.Resource("virtualclusterinstances"), verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}},
	{who: projectAdmins, resource: model.Resource("virtualclusterinstances"), verbs: create},
	{who: everybody, resource: model.Resource("virtualclusterinstances"), subresource: "status", verbs: []string{"get", "update", "patch"}},
	{who: everybody, resource: model.Resource("virtualclusterinstances"), subresource: "kubeconfig", verbs: create},
	{who: everybody, resource: model.Resource("directclusterendpointtokens"), verbs: []string{"get", "list", "watch", "create", "delete", "deletecollection"}},
	{who: everybody, resource: model.Resource("users"), verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}},
	{who: admins, resource: model.Resource("users"), verbs: create},
	{who: everybody, resource: model.Resource("users"), subresource: "accesskeys", verbs: []string{"get", "create"}},
	{who: everybody, resource: model.Resource("users"), subresource: "signout", verbs: create},
	{who: everybody, resource: model.Resource("users"), subresource: "password", verbs: create},
	{who: everybody, resource: model.Resource("teams"), verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}},
	{who: admins, resource: model.Resource("teams"), verbs: create},
	{who: everybody, resource: model.Resource("teams"), subresource: "accesskeys", verbs: []string{"get", "create"}},
	{who: everybody, resource: model.Resource("trustrules"), verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}},
	{who: admins, resource: model.Resource("trustrules"), verbs: create},
	{who: everybody, resource: model.Resource("projects"), verbs: []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"}},
	{who: admins, resource: model.Resource("projects"), verbs: create},
	{who: everybody, resource: model.Resource("configs"), verbs: []string{"get", "list", "watch"}},
	{who: admins, resource: model.Resource("configs"), verbs: []string{"reveal", "update", "patch"}},
	{who: admins, resource: model.Resource("configs"), subresource: "history", verbs: get},
	{who: admins, resource: model.Resource("configs"), subresource: "rollback", verbs: create},
	{who: everybody, resource: model.Resource("auditevents"), verbs: []string{"get", "list"}},
	{who: everybody, resource: model.Resource("syncpatchevaluations"), verbs: create},
	{who: admins, resource: model.Resource("signintrials"), verbs: create},
	{who: everybody, resource: model.Resource("selves"), verbs: create},
	{who: everybody, resource: model.Resource("scopepreviews"), verbs: create},
	{who: anybody, resource: model.Resource("credentialrevocations"), verbs: create},
	{who: everybody, resource: authentication("selfsubjectreviews"), verbs: create},
	{who: everybody, resource: authentication("tokenreviews"), verbs: create},
	{who: everybody, resource: authorization("selfsubjectaccessreviews"), verbs: create},
	{who: everybody, resource: authorization("selfsubjectrulesreviews"), verbs: create},
	{who: everybody, resource: authorization("subjectaccessreviews"), verbs: create},
	{who: anybody, paths: []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/openid/v1/jwks", "/openid/v1/revoked"}, verbs: []string{"get", "head"}},
	{who: anybody, paths: []string{"/console"}, verbs: []string{"get", "head"}},
	{who: everybody, paths: []string{"/auth/session"}, verbs: []string{"post"}},
	{who: anybody, paths: []string{"/auth/session"}, verbs: []string{"delete"}},
	{who: anybody, paths: []string{"/auth/authorize", "/auth/info", "/auth/confirm", "/auth/resume", "/auth/password/login", "/auth/device"}, verbs: []string{"get"}},
	{who: anybody, paths: []string{"/auth/confirm", "/auth/token", "/auth/revoke", "/auth/password/login", "/auth/device", "/auth/device/code"}, verbs: []string{"post"}},
	{who: everybody, paths: append([]string{"/version", "/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/" + model.GroupName + "/v1"}, groupPaths()...), verbs: get},
	// The runner and the servers have these routes besides the catalog.
	{who: anybody, paths: []string{"/healthz", "/livez", "/readyz"}, verbs: []string{"get", "head"}},
	{who: everybody, paths: []string{"/metrics"}, verbs: get},
}

// groupPaths are the paths of the documents about the groups of the API, and of the list of custom resource definitions.
func groupPaths() []string {
	var paths []string
	for _, group := range []string{model.GroupName, "authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io"} {
		paths = append(paths, "/apis/"+group, "/apis/"+group+"/v1")
	}
	return append(paths, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
}

// serves reports whether a rule is about the resource or the path of a request, whatever its verb.
func (r rule) serves(request scope.Request) bool {
	if request.Path != "" {
		return slices.Contains(r.paths, request.Path)
	}
	return len(r.paths) == 0 && r.resource.Group == request.Group && r.resource.Resource == request.Resource && r.subresource == request.Subresource
}

// lookup returns the audience of a request. Ok is false for a request that is not listed.
func lookup(request scope.Request) (audience, bool) {
	for _, r := range policy {
		if r.serves(request) && slices.Contains(r.verbs, request.Verb) {
			return r.who, true
		}
	}
	if request.Path != "" {
		return everybody, false
	}
	return admins, false
}

// All is the wildcard in reviews: every verb, group, resource or subresource that the API has.
const All = "*"

// Served returns the requests that the API has and that request stands for, with the wildcard All in its verb, group,
// resource or subresource. Without a wildcard, it is the request itself. Source: ADR-0023.
func Served(request scope.Request) []scope.Request {
	wild := request.Verb == All || request.Group == All || request.Resource == All || request.Subresource == All
	if !wild {
		return []scope.Request{request}
	}
	matches := func(pattern, value string) bool { return pattern == All || pattern == value }
	group, subresource := request.Group, request.Subresource
	if request.Resource == All {
		// kubectl sends the resource "*" with the core group, which has no resources here.
		group, subresource = cmp.Or(group, All), cmp.Or(subresource, All)
	}
	var requests []scope.Request
	for _, each := range Everything() {
		if each.Path == request.Path && matches(request.Verb, each.Verb) &&
			matches(group, each.Group) && matches(request.Resource, each.Resource) && matches(subresource, each.Subresource) {
			each.Namespace, each.Name = request.Namespace, request.Name
			requests = append(requests, each)
		}
	}
	return requests
}

// Everything returns every request that the API has, without namespace and name.
func Everything() []scope.Request {
	var requests []scope.Request
	for _, r := range policy {
		for _, verb := range r.verbs {
			for _, path := range r.paths {
				requests = append(requests, scope.Request{Verb: verb, Path: path})
			}
			if len(r.paths) == 0 {
				requests = append(requests, scope.Request{Verb: verb, Group: r.resource.Group, Resource: r.resource.Resource, Subresource: r.subresource})
			}
		}
	}
	return requests
}
