// Package auth answers two questions before every operation: who is the caller, and may they make this kind of request
// at all. Authentication turns a bearer into a Caller. Authorization decides on a Caller and a request by the scope of
// the credential and the policy of the resource. Which single objects callers may access is decided by the rules of
// their kind, with the same Decision. Source: Spec 2.3, 5; ADR-0005, ADR-0023.
package auth

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// GivesBack reports whether a request deletes the access key that authenticates it. Every caller may do that, whatever
// their scope, because it grants nothing. Source: ADR-0022.
func GivesBack(caller identity.Caller, request scope.Request) bool {
	key := model.Resource("ownedaccesskeys")
	return caller.Key != "" && request.Verb == "delete" && request.Group == key.Group && request.Resource == key.Resource &&
		request.Subresource == "" && request.Namespace == "" && request.Name == caller.Key
}

// Decide decides whether a caller may make a request, before its object is looked at: by the policy of the resource and
// all scopes of the caller. A scope narrows admins, too. What the object itself permits is for the rules of its kind;
// reviews and requests ask both, in this order. Source: ADR-0021, ADR-0023.
func Decide(caller identity.Caller, request scope.Request) Decision {
	if GivesBack(caller, request) {
		return Decision{Allowed: true, Reason: "every access key may delete itself"}
	}
	request.Target = scope.TargetManagement
	callers, _ := lookup(request)
	if callers == anybody {
		return Decision{Allowed: true, Reason: "everybody may, even without a credential"}
	}
	entry, permitted := scope.Permits(caller.Scope, request)
	switch {
	case !permitted:
		return Decision{Reason: scope.Refusal(request)}
	case slices.ContainsFunc(caller.KeyScopes, func(s *model.Scope) bool { return !scope.Allows(s, request) }):
		return Decision{Reason: scope.RefusalOf("the scope of a key or of a trust rule that this credential was made with", request)}
	case issues(request) && caller.Owner.Reserved() != "":
		return Decision{Reason: identity.ReservedText(caller.Owner.Reserved()) + ": the caller gets no credentials for clusters"}
	case caller.KeyType == model.AccessKeyTypeKubeconfig && !permitsKubeconfigToken(request):
		return Decision{Reason: "the token of a kubeconfig can only read its virtual cluster instance on this API, and delete itself; an access key of its owner can do more"}
	case caller.Admin():
		return PermittedAdmin.because(describeEntry(entry))
	case callers == everybody:
		return Decision{Allowed: true, Reason: "every authenticated caller may" + describeEntry(entry)}
	case callers == projectAdmins && caller.Administers(request.Project):
		return PermittedByRole(model.ProjectRoleAdmin, request.Project).because(describeEntry(entry))
	case callers == projectAdmins:
		return Decision{Reason: fmt.Sprintf("only members of %s and admins of the project of the namespace may %s", identity.Admins, describe(request))}
	default:
		return Decision{Reason: fmt.Sprintf("only members of %s may %s", identity.Admins, describe(request))}
	}
}

// Exceeds returns an error for each entry of a scope that one of the scopes of a caller does not cover, at its path below
// path. If there is none, a credential with that scope permits nothing that the caller may not do. A nil scope permits
// everything. Source: ADR-0005, ADR-0021.
func Exceeds(child *model.Scope, caller identity.Caller, path *field.Path) field.ErrorList {
	if excess := scope.Exceeds(child, caller.Scope, path); len(excess) > 0 {
		return excess
	}
	for _, s := range caller.KeyScopes {
		excess := scope.Exceeds(child, s, path)
		for _, problem := range excess {
			problem.Detail += "; a key that it was made with has that scope"
		}
		if len(excess) > 0 {
			return excess
		}
	}
	return nil
}

// Narrowest returns the scope of a caller that all other scopes of the caller cover, as far as scope.Exceeds can tell.
// If there is none, it returns the scope of the credential, or the first scope if the credential has none. Nil: nothing
// narrows the caller. Source: ADR-0021.
func Narrowest(caller identity.Caller) *model.Scope {
	scopes := caller.Scopes()
	if narrowest := scope.Narrowest(scopes); len(narrowest) == 1 {
		return narrowest[0]
	}
	if len(scopes) == 0 {
		return nil
	}
	return scopes[0]
}

// describeEntry names the entry of the scope that permits a request.
func describeEntry(entry string) string {
	if entry == "" {
		return ""
	}
	return "; spec.scope." + entry + " of the credential permits it"
}

// describe names a request within a sentence.
func describe(request scope.Request) string {
	if request.Path != "" {
		return request.Verb + " " + request.Path
	}
	name := schema.GroupResource{Group: request.Group, Resource: request.Resource}.String()
	if request.Subresource != "" {
		name += "/" + request.Subresource
	}
	return request.Verb + " " + name
}

// Unserved decides about a request that the API does not have: no caller may make it. Ok is false if the API has it.
// Endpoints answer such a request with 404 or 405, so only reviews need this. Source: ADR-0023.
func Unserved(request scope.Request) (decision Decision, ok bool) {
	if _, served := lookup(request); served {
		return Decision{}, false
	}
	if request.Path != "" {
		return Decision{Hidden: true, Reason: fmt.Sprintf("this API has no path %q with the verb %q", request.Path, request.Verb)}, true
	}
	var verbs []string
	for _, r := range policy {
		if r.serves(request) {
			verbs = append(verbs, r.verbs...)
		}
	}
	if len(verbs) == 0 {
		return Decision{Hidden: true, Reason: "this API has no resource to " + describe(request)}, true
	}
	return Decision{Hidden: true, Reason: fmt.Sprintf("this API cannot %s; its verbs there are %s", describe(request), strings.Join(verbs, ", "))}, true
}

// issues reports whether a request asks for a credential with which clusters know the caller by name. Source: ADR-0022.
func issues(request scope.Request) bool {
	return request.Verb == "create" && request.Group == model.GroupName &&
		(request.Resource == "directclusterendpointtokens" || request.Resource == "virtualclusterinstances" && request.Subresource == "kubeconfig")
}

// permitsKubeconfigToken reports whether the token of a kubeconfig may make a request: such a token may read the instance that
// its scope names, and ask about the API and the caller. It creates no credentials. Source: ADR-0021.
func permitsKubeconfigToken(request scope.Request) bool {
	switch {
	case request.Resource == "":
		return true
	case request.Subresource != "":
		return false
	case request.Verb == "get":
		return request.Group == model.GroupName && request.Resource == "virtualclusterinstances"
	case request.Verb == "create":
		return slices.Contains(aboutTheCaller, schema.GroupResource{Group: request.Group, Resource: request.Resource})
	default:
		return false
	}
}

// aboutTheCaller are the resources with which callers ask who they are and what they may do, and give credentials back.
var aboutTheCaller = []schema.GroupResource{
	model.Resource("selves"),
	model.Resource("credentialrevocations"),
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
}

// Authorize calls Decide and returns a refusal as an error: Forbidden with the reason.
func Authorize(caller identity.Caller, request scope.Request) error {
	decision := Decide(caller, request)
	return decision.Error(schema.GroupResource{Group: request.Group, Resource: request.Resource}, request.Name)
}

// RefuseImpersonation refuses the headers of a request to act as another user, as kubectl's --as sends them: the API
// must not ignore such a request. The error is Forbidden. Source: ADR-0005.
func RefuseImpersonation(caller identity.Caller, header http.Header) error {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") {
			return apierror.Forbidden(schema.GroupResource{Resource: "users"}, header.Get("Impersonate-User"),
				fmt.Sprintf("%s cannot impersonate: an access key acts as its owner alone", caller.Owner), nil)
		}
	}
	return nil
}
