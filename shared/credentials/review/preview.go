package review

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// Preview returns what an access key would permit that the caller creates with a scope and without groups. Without a scope, it
// returns what the caller may do. Requests with the key are decided in the same way. Errors: Invalid with a cause for each field
// that is wrong; the errors of the state. Source: ADR-0023, ADR-0030.
func (a *Access) Preview(ctx context.Context, caller identity.Caller, spec *model.ScopePreviewSpec) (model.ScopePreviewStatus, error) {
	var status model.ScopePreviewStatus
	path := field.NewPath("spec")
	if spec.WhoCan != nil {
		return a.whoCan(ctx, caller, spec, path)
	}
	problems := scope.Validate(spec.Scope, path.Child("scope"))
	var scopeRequest scope.Request
	if request := spec.Request; request != nil {
		var err *field.Error
		if scopeRequest, err = previewRequest(request, path.Child("request")); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return status, apierror.Invalid(model.SchemeGroupVersion.WithKind("ScopePreview").GroupKind(), "", problems)
	}
	holder := caller
	if spec.Scope != nil {
		holder = a.withRoles(Holder(caller, spec.Scope))
		for _, problem := range auth.Exceeds(spec.Scope, caller, path.Child("scope")) {
			status.Excess = append(status.Excess, model.ScopePreviewExcess{Field: problem.Field, Message: problem.ErrorBody()})
		}
	}
	rules := a.Rules(holder, spec.Namespace)
	status.Incomplete = rules.Incomplete
	for _, rule := range rules.ResourceRules {
		status.Rules = append(status.Rules, model.ScopePreviewRule{
			Verbs: rule.Verbs, Group: rule.APIGroups[0], Resource: rule.Resources[0], Names: rule.ResourceNames,
		})
	}
	for _, rule := range rules.NonResourceRules {
		status.Rules = append(status.Rules, model.ScopePreviewRule{Verbs: rule.Verbs, Paths: rule.NonResourceURLs})
	}
	if spec.Request == nil {
		return status, nil
	}
	decision, err := a.Decide(ctx, holder, scopeRequest)
	if err != nil {
		return status, err
	}
	status.Decision = &model.ScopePreviewDecision{Allowed: decision.Allowed, Reason: decision.Reason}
	return status, nil
}

// Holder returns the caller whom an access key would authenticate that the given caller creates with a scope and without groups.
// The name of the key is not known. Source: ADR-0030.
func Holder(caller identity.Caller, s *model.Scope) identity.Caller {
	holder := caller
	if caller.OwnerObject == nil {
		// A key has only the groups that it names, unless its owner has an object.
		holder = identity.New(caller.Owner, nil)
	}
	// The scopes of its maker narrow the key as well.
	holder.Scope, holder.KeyScopes = s, caller.Scopes()
	holder.Key, holder.KeyUID, holder.KeyType = "", "", model.AccessKeyTypeUser
	return holder
}

// previewRequest returns the request of a preview.
func previewRequest(r *model.ScopePreviewRequest, path *field.Path) (scope.Request, *field.Error) {
	switch {
	case r.Verb == "":
		return scope.Request{}, field.Required(path.Child("verb"), "such as get, list or create; * is every verb")
	case (r.Path == "") == (r.Resource == ""):
		return scope.Request{}, field.Invalid(path, field.OmitValueType{}, "set either resource or path")
	case r.Path != "":
		request, err := RequestOf(nil, &authorizationv1.NonResourceAttributes{Verb: r.Verb, Path: r.Path})
		if err != nil {
			return request, field.Invalid(path, field.OmitValueType{}, err.Error())
		}
		return request, nil
	default:
		request, err := RequestOf(&authorizationv1.ResourceAttributes{
			Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
		}, nil)
		if err != nil {
			return request, field.Invalid(path, field.OmitValueType{}, err.Error())
		}
		return request, nil
	}
}
