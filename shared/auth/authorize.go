// Package auth answers the two questions before every operation: who calls, and may that caller do this
// at all. A bearer becomes a Caller; a Caller and a request become a decision from the scope of the
// credential and the policy of the resource. Which single objects a caller may touch, and what he may
// write into them, is the resource's own rule. Source: Spec 2.3, 5; ADR-0005.
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
	// Reason says why, in words for the caller.
	Reason string
}

// everybody are the resources whose verbs are open to every authenticated caller: each sees and changes
// there what is his own. Who has a bearer to be reviewed could use it, and a review of access says nothing that the
// asker does not bring along (ADR-0012). What is not listed is for admins.
var everybody = map[schema.GroupResource]bool{
	model.Resource("ownedaccesskeys"):                                     true,
	model.Resource("virtualclusterinstances"):                             true,
	model.Resource("directclusterendpointtokens"):                         true,
	model.Resource("selves"):                                              true,
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:      true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}: true,
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:            true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:     true,
}

// reserved are the verbs on resources of everybody that are for admins all the same. Registering an instance is: nothing
// says yet who belongs to the project whose namespace it is in. Source: ADR-0017.
var reserved = map[schema.GroupResource]string{model.Resource("virtualclusterinstances"): "create"}

// readable are resources that every authenticated caller may read, without what is secret of them, and admins alone
// may change. Of their parts nothing is open. Source: ADR-0015.
var readable = map[schema.GroupResource]bool{
	model.Resource("configs"): true,
}

// Decide tells whether a caller may do what a request asks. The scope is asked first: it narrows admins
// too.
func Decide(caller identity.Caller, request scope.Request) Decision {
	request.Target = scope.TargetManagement
	if !scope.Allows(caller.Scope, request) {
		return Decision{Reason: scope.Refusal(request)}
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

// Authorize is Decide as an error: Forbidden with the reason.
func Authorize(caller identity.Caller, request scope.Request) error {
	decision := Decide(caller, request)
	if decision.Allowed {
		return nil
	}
	return apierror.Forbidden(schema.GroupResource{Group: request.Group, Resource: request.Resource}, request.Name, decision.Reason, nil)
}

// RefuseImpersonation refuses the headers of a request that asks to be served as somebody else, as kubectl's --as does: it must
// not be answered as if nothing had been asked. The error is Forbidden. Source: ADR-0005.
func RefuseImpersonation(caller identity.Caller, header http.Header) error {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") {
			return apierror.Forbidden(schema.GroupResource{Resource: "users"}, header.Get("Impersonate-User"),
				fmt.Sprintf("%s cannot impersonate: an access key acts as its owner alone", caller.Owner), nil)
		}
	}
	return nil
}
