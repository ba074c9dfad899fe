// Package whoami tells callers who they are and what they may do: selves for the platform's command line, the self subject
// reviews that kubectl auth sends, and what a key with a scope would permit. It stores nothing and reveals nothing about other callers.
// Source: Spec 5; ADR-0005, ADR-0023, ADR-0030.
package whoami

import (
	"cmp"
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
)

type Deps struct {
	// Inspect turns another key into its caller, without a use of it.
	Inspect func(context.Context, secret.String) (identity.Caller, error)
	// Access decides which requests the caller may make.
	Access *review.Access
	// Config returns the current platform configuration.
	Config func() *model.ConfigStatus
}

// Input is a request about the caller, or about another access key.
type Input = frame.ReviewRequest[*model.Self]

// Do answers POST selves: the caller, or the owner of spec.accessKey. Unauthorized when that key is refused; BadRequest
// for a body that is not a Self. An empty body asks about the caller.
func Do(ctx context.Context, deps Deps, in Input) (*model.Self, error) {
	self, caller := in.Object, in.Caller
	if bearer := secret.String(self.Spec.AccessKey); bearer != "" {
		var err error
		if caller, err = deps.Inspect(ctx, bearer); err != nil {
			return nil, err
		}
	}
	self.Spec.AccessKey = ""
	self.Status = model.SelfStatus{
		UID:                    caller.Owner.String(),
		Groups:                 caller.Groups,
		AccessKey:              caller.Key,
		AccessKeyType:          caller.KeyType,
		AccessKeyScope:         auth.Narrowest(caller),
		ProjectNamespacePrefix: cmp.Or(deps.Config().ProjectNamespacePrefix, model.DefaultProjectNamespacePrefix),
	}
	if end := caller.KeyExpires; !end.IsZero() {
		self.Status.AccessKeyExpirationTimestamp = &metav1.Time{Time: end.UTC()}
	}
	switch caller.Owner.Kind {
	case identity.User:
		self.Status.User = &model.SelfUser{Name: caller.Owner.Name, DisplayName: caller.DisplayName}
	case identity.Team:
		self.Status.Team = &model.SelfTeam{Name: caller.Owner.Name}
	case identity.Subject:
		self.Status.Subject = caller.Owner.Name
	}
	return self, nil
}

// subjectReview answers kubectl auth whoami.
func subjectReview(_ context.Context, _ Deps, in frame.ReviewRequest[*authenticationv1.SelfSubjectReview]) (*authenticationv1.SelfSubjectReview, error) {
	answer := in.Object
	answer.Status.UserInfo = authenticationv1.UserInfo{
		Username: in.Caller.Owner.Username(),
		UID:      in.Caller.Owner.String(),
		Groups:   in.Caller.Groups,
		Extra:    map[string]authenticationv1.ExtraValue{identity.ExtraAccessKey: {in.Caller.Key}},
	}
	return answer, nil
}

// accessReview answers kubectl auth can-i: what the API would decide for that request of the caller. BadRequest unless
// the review is about exactly one of a resource and a path; ServiceUnavailable if the object cannot be read.
func accessReview(ctx context.Context, deps Deps, in frame.ReviewRequest[*authorizationv1.SelfSubjectAccessReview]) (*authorizationv1.SelfSubjectAccessReview, error) {
	answer := in.Object
	request, err := review.RequestOf(answer.Spec.ResourceAttributes, answer.Spec.NonResourceAttributes)
	if err != nil {
		return nil, err
	}
	decision, err := deps.Access.Decide(ctx, in.Caller, request)
	if err != nil {
		return nil, err
	}
	answer.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Reason: decision.Reason}
	return answer, nil
}

// rulesReview answers kubectl auth can-i --list: what the caller may do in a namespace. BadRequest without a namespace, as
// in Kubernetes.
func rulesReview(_ context.Context, deps Deps, in frame.ReviewRequest[*authorizationv1.SelfSubjectRulesReview]) (*authorizationv1.SelfSubjectRulesReview, error) {
	answer := in.Object
	if answer.Spec.Namespace == "" {
		return nil, apierror.BadRequest("spec.namespace must be set", field.ErrorList{
			field.Required(field.NewPath("spec", "namespace"), "the rules are those of a namespace")})
	}
	answer.Status = deps.Access.Rules(in.Caller, answer.Spec.Namespace)
	return answer, nil
}

// preview returns what a key with a scope would permit. It returns the errors of review.Access.Preview.
func preview(ctx context.Context, deps Deps, in frame.ReviewRequest[*model.ScopePreview]) (*model.ScopePreview, error) {
	status, err := deps.Access.Preview(ctx, in.Caller, &in.Object.Spec)
	if err != nil {
		return nil, err
	}
	in.Object.Status = status
	return in.Object, nil
}

var Function = &frame.Function{
	Name: "whoami",
	Endpoints: []frame.Endpoint{
		frame.Review(model.SchemeGroupVersion.WithResource("selves"), "Self", "self", open, Do).AboutAuthentication(),
		frame.Review(authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"),
			"SelfSubjectReview", "selfsubjectreview", open, subjectReview).AboutAuthentication(),
		frame.Review(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"),
			"SelfSubjectAccessReview", "selfsubjectaccessreview", open, accessReview),
		frame.Review(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews"),
			"SelfSubjectRulesReview", "selfsubjectrulesreview", open, rulesReview),
		frame.Review(model.SchemeGroupVersion.WithResource("scopepreviews"), "ScopePreview", "scopepreview", open, preview),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Inspect: accesskey.OpenAuthenticator(env).Inspect, Access: review.OpenAccess(env, kinds.Readers(env)), Config: env.Config}
}
