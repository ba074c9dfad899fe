package review

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// concurrentDecisions is the number of accounts that are decided about at a time. A decision about an object costs a round trip.
const concurrentDecisions = 8

// whoCan answers spec.whoCan: the teams, and then the users, who may make the request with a credential without a scope, each by
// name, and then the owners who may with the groups of an access key. The decision about each of them is the decision about a request of
// theirs. Errors: Invalid with a cause for each field that is wrong; Forbidden unless the caller may list users and teams, and sees all of
// them or administers the project of the request; NotFound if there is no such object; the errors of the state. Source: ADR-0057.
func (a *Access) whoCan(ctx context.Context, caller identity.Caller, spec *model.ScopePreviewSpec, path *field.Path) (model.ScopePreviewStatus, error) {
	request, problem := a.whoCanRequest(spec, path)
	if problem != nil {
		return model.ScopePreviewStatus{}, apierror.Invalid(model.SchemeGroupVersion.WithKind("ScopePreview").GroupKind(), "", field.ErrorList{problem})
	}
	if err := mayListAccounts(caller, a.Project(request.Namespace)); err != nil {
		return model.ScopePreviewStatus{}, err
	}
	accounts, err := a.Accounts(ctx, schema.GroupResource{Group: request.Group, Resource: request.Resource}, request.Namespace, request.Name)
	if err != nil {
		return model.ScopePreviewStatus{}, err
	}
	var subjects []subject
	for _, account := range accounts {
		subjects = append(subjects, subject{account, a.withRoles(account.Caller())})
	}
	withGroups, err := a.CallersWithGroups(ctx)
	if err != nil {
		return model.ScopePreviewStatus{}, err
	}
	for _, holder := range withGroups {
		subjects = append(subjects, subject{directory.Account{Owner: holder.Owner}, holder})
	}
	decisions, failures := make([]auth.Decision, len(subjects)), make([]error, concurrentDecisions)
	var deciding sync.WaitGroup
	for worker := range concurrentDecisions {
		deciding.Go(func() {
			for i := worker; i < len(subjects) && failures[worker] == nil; i += concurrentDecisions {
				decisions[i], failures[worker] = a.decideForSubject(ctx, subjects[i].caller, request)
			}
		})
	}
	deciding.Wait()
	if err := errors.Join(failures...); err != nil {
		return model.ScopePreviewStatus{}, err
	}
	var status model.ScopePreviewStatus
	permitted := map[identity.Owner]bool{}
	for i, each := range subjects {
		if !decisions[i].Allowed || permitted[each.Owner] {
			continue
		}
		if len(status.Subjects) == limits.Subjects {
			status.Incomplete = true
			break
		}
		permitted[each.Owner] = true
		answer := model.ScopePreviewSubject{DisplayName: each.State.DisplayName, AccessKey: each.caller.Key, Source: decisions[i].Source, Reason: decisions[i].Reason}
		for _, also := range decisions[i].Also {
			answer.Also = append(answer.Also, model.ScopePreviewGrant{Source: also.Source, Reason: also.Reason})
		}
		answer.User, answer.Team, answer.Subject = each.Owner.Fields()
		if each.Owner.Kind == identity.User {
			answer.Teams = slices.DeleteFunc(each.Teams(), func(team string) bool { return !permitted[identity.Owner{Kind: identity.Team, Name: team}] })
		}
		status.Subjects = append(status.Subjects, answer)
	}
	return status, nil
}

// subject is an account with the caller of its credentials, or the owner of an access key with groups of its own.
type subject struct {
	directory.Account
	caller identity.Caller
}

// whoCanRequest returns the request of spec.whoCan.
func (a *Access) whoCanRequest(spec *model.ScopePreviewSpec, path *field.Path) (scope.Request, *field.Error) {
	whoCan := path.Child("whoCan")
	switch {
	case spec.Scope != nil || spec.Namespace != "" || spec.Request != nil:
		return scope.Request{}, field.Forbidden(path, "whoCan must be the only field: the answer is about no scope")
	case spec.WhoCan.Path != "":
		return scope.Request{}, field.Forbidden(whoCan.Child("path"), "must be a request for a resource")
	}
	request, problem := previewRequest(spec.WhoCan, whoCan)
	if problem != nil {
		return request, problem
	}
	if unserved, ok := auth.Unserved(a.normalize(request)); ok {
		return request, field.Invalid(whoCan, field.OmitValueType{}, unserved.Reason)
	}
	return a.normalize(request), nil
}

// mayListAccounts refuses callers to whom the answer would show users or teams that their credential does not.
func mayListAccounts(caller identity.Caller, project string) error {
	for _, resource := range []string{directory.Users, directory.Teams} {
		request := scope.Request{Verb: "list", Group: model.GroupName, Resource: resource}
		if err := auth.Authorize(caller, request); err != nil {
			return err
		}
	}
	if caller.ForVerb("list").Admin() || caller.Administers(project) {
		return nil
	}
	return apierror.Forbidden(model.Resource("scopepreviews"), "",
		"only members of "+identity.Admins+" and "+identity.Auditors+", and admins of the project of the namespace, may ask who can make a request", nil)
}

// decideForSubject decides about a request of a subject, and names everything that permits it. What permits it to an admin apart from
// being one is what permits it to them without the groups of admins.
func (a *Access) decideForSubject(ctx context.Context, caller identity.Caller, request scope.Request) (auth.Decision, error) {
	caller.ExplainAll = true
	decision, err := a.explain(ctx, caller, request)
	if err != nil || decision.Source != auth.SourceAdmin {
		return decision, err
	}
	other, err := a.explain(ctx, a.withRoles(caller.WithoutAdmin()), request)
	if err == nil && other.Allowed {
		decision.Also = append([]auth.Decision{other}, other.Also...)
	}
	return decision, err
}

// explain decides about a request. Of the decisions of the policy and of the object, it returns the one that says what gives the right.
func (a *Access) explain(ctx context.Context, caller identity.Caller, request scope.Request) (auth.Decision, error) {
	policyDecision, objectDecision, err := a.decideInTurn(ctx, caller, request)
	switch {
	case err != nil || objectDecision == nil:
		return policyDecision, err
	case !objectDecision.Allowed || objectDecision.Source != "" || policyDecision.Source == "":
		return *objectDecision, nil
	}
	return policyDecision, nil
}
