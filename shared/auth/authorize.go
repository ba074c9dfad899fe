// Package auth answers two questions before every operation: who is the caller, and may they make this kind of request
// at all. Authentication turns a bearer into a Caller. Authorization decides on a Caller and a request by the scope of
// the credential and the policy of the resource. Which single objects callers may access, and what they may write into
// them, is decided by the rules of the resource. Source: Spec 2.3, 5; ADR-0005.
package auth

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// Decision is whether a request is permitted, and why not.
type Decision struct {
	Allowed bool
	// Reason says why, as a text for the caller.
	Reason string
}

// everybody are the resources whose verbs are open to every authenticated caller: callers see and change only their own
// objects. Reviews reveal nothing: callers with a bearer to review could also use it, and a review of access only
// evaluates what the caller sends (ADR-0012). Resources that are not listed are for admins.
var everybody = map[schema.GroupResource]bool{
	model.Resource("ownedaccesskeys"):                                     true,
	model.Resource("virtualclusterinstances"):                             true,
	model.Resource("directclusterendpointtokens"):                         true,
	model.Resource("selves"):                                              true,
	model.Resource("credentialrevocations"):                               true,
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:      true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}: true,
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:            true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:     true,
}

// reserved are verbs that are for admins although the resource is one of everybody. Creating an instance is reserved,
// because nothing says yet who belongs to the project of its namespace. Source: ADR-0017.
var reserved = map[schema.GroupResource]string{model.Resource("virtualclusterinstances"): "create"}

// readable are the resources that every authenticated caller may read, without their secrets, and only admins may
// change. Their subresources are for admins. Source: ADR-0015.
var readable = map[schema.GroupResource]bool{
	model.Resource("configs"): true,
}

// GivesBack reports whether a request deletes the very access key that it is made with. Every caller may do that, whatever
// their scope: it gives nobody anything. Source: ADR-0022.
func GivesBack(caller identity.Caller, request scope.Request) bool {
	key := model.Resource("ownedaccesskeys")
	return caller.Key != "" && request.Verb == "delete" && request.Group == key.Group && request.Resource == key.Resource &&
		request.Subresource == "" && request.Namespace == "" && request.Name == caller.Key
}

// Decide decides whether a caller may make a request. The scope comes first, because it also narrows admins.
func Decide(caller identity.Caller, request scope.Request) Decision {
	if GivesBack(caller, request) {
		return Decision{Allowed: true, Reason: "every access key may delete itself"}
	}
	request.Target = scope.TargetManagement
	if !scope.Allows(caller.Scope, request) {
		return Decision{Reason: scope.Refusal(request)}
	}
	if caller.KeyType == model.AccessKeyTypeKubeconfig && !ofKubeconfigs(request) {
		return Decision{Reason: "the token of a kubeconfig can only read its virtual cluster instance on this API, and delete itself"}
	}
	if caller.Admin() {
		return Decision{Allowed: true, Reason: "the caller is in the group " + identity.Admins}
	}
	resource := schema.GroupResource{Group: request.Group, Resource: request.Resource}
	isReserved := request.Subresource == "" && reserved[resource] == request.Verb
	if request.Resource == "" || everybody[resource] && !isReserved {
		return Decision{Allowed: true, Reason: "every authenticated caller may"}
	}
	if readable[resource] && request.Subresource == "" && slices.Contains([]string{"get", "list", "watch"}, request.Verb) {
		return Decision{Allowed: true, Reason: "every authenticated caller may read it, without its secrets"}
	}
	return Decision{Reason: fmt.Sprintf("only members of %s may %s %s", identity.Admins, request.Verb, resource)}
}

// ofKubeconfigs reports whether the token of a kubeconfig may make a request: to read the instance that its scope names, and
// to ask about the API and the caller. It makes no credentials. Source: ADR-0021.
func ofKubeconfigs(request scope.Request) bool {
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
	if decision.Allowed {
		return nil
	}
	return apierror.Forbidden(schema.GroupResource{Group: request.Group, Resource: request.Resource}, request.Name, decision.Reason, nil)
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
