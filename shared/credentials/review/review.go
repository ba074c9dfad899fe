// Package review answers the questions of connected clusters about the platform's credentials: who a bearer is
// (TokenReview), and whether a request is within the bearer's scope (SubjectAccessReview). The answers have the form that an
// unmodified kube-apiserver expects of its webhooks. The cluster itself decides what a user may do: a scope can only refuse. For
// this API, Access answers what callers may do, as the API itself decides. Source: Spec 2.3, 5.2, 5.3; ADR-0012, ADR-0023.
package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
)

// The keys of status.user.extra of a TokenReview, besides identity.ExtraAccessKey. They come back in spec.extra of a
// SubjectAccessReview. Source: ADR-0012.
const (
	// ExtraScope holds the scopes that narrow the credential, each as a JSON text: a request must be permitted by all of them.
	// Usually there is one scope. A credential without a scope has no such key.
	ExtraScope = model.GroupName + "/scope"
	// ExtraToken holds the jti of the token that was reviewed.
	ExtraToken = model.GroupName + "/token"
)

// textInvalid is the refusal of a bearer token that is no credential of the platform.
const textInvalid = "invalid bearer token"

// Credentials authenticate bearers.
type Credentials struct {
	// AccessKey authenticates an access key. Error: Unauthorized if it refuses the key.
	AccessKey func(context.Context, secret.String) (identity.Caller, error)
	// Token verifies a direct cluster endpoint token for one of the audiences, and returns the scopes that narrow the token in
	// addition to its own scope; see token.Verifier.
	Token func(ctx context.Context, bearer secret.String, audiences []string) (token.Claims, []*model.Scope, error)
	// Audiences are the audiences of tokens for the connected clusters of this platform.
	Audiences []string
}

// Answer fills the status of a review and removes the bearer from the review. A refused bearer is not an error:
// status.error has the reason. Errors: BadRequest if the review has no token; other errors if the bearer could not be checked.
//
// status.audiences has the audiences that are in spec.audiences and in the token. It is empty for access keys and for tokens for
// all clusters of the platform: a kube-apiserver then assumes that the credential is meant for itself, and not for services
// behind it. Source: ADR-0012.
func (c Credentials) Answer(ctx context.Context, review *authenticationv1.TokenReview) error {
	bearer := secret.String(review.Spec.Token)
	review.Spec.Token = ""
	review.Status = authenticationv1.TokenReviewStatus{}
	if bearer == "" {
		return apierror.BadRequest("spec.token must be set",
			field.ErrorList{field.Required(field.NewPath("spec", "token"), "the bearer to review")})
	}
	// A text in the form of an access key is too short for a token.
	answer := c.token
	if accesskey.CheckBearer(bearer) == nil {
		answer = c.accessKey
	}
	status, refusal, err := answer(ctx, bearer, review.Spec.Audiences)
	if err != nil {
		return err
	}
	if refusal != "" {
		status = authenticationv1.TokenReviewStatus{Error: refusal}
	}
	review.Status = status
	return nil
}

func (c Credentials) accessKey(ctx context.Context, bearer secret.String, _ []string) (status authenticationv1.TokenReviewStatus, refusal string, err error) {
	caller, err := c.AccessKey(ctx, bearer)
	if err != nil {
		if problem := apierror.From(err).Status(); problem.Reason == metav1.StatusReasonUnauthorized {
			return status, problem.Message, nil
		}
		return status, "", err
	}
	if prefix := caller.Owner.Reserved(); prefix != "" {
		return status, identity.ReservedText(prefix), nil
	}
	user, err := describe(caller, identity.ExtraAccessKey, caller.Key)
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: user}, "", err
}

func (c Credentials) token(ctx context.Context, bearer secret.String, wanted []string) (status authenticationv1.TokenReviewStatus, refusal string, err error) {
	claims, scopes, err := c.Token(ctx, bearer, slices.Concat(c.Audiences, wanted))
	if err != nil {
		refusal := token.Refusal(err)
		if refusal == nil {
			return status, "", fmt.Errorf("verifying a token: %w", err)
		}
		if errors.Is(refusal, token.ErrMalformed) {
			return status, textInvalid, nil
		}
		return status, refusal.Error(), nil
	}
	common := slices.DeleteFunc(slices.Clone(wanted), func(audience string) bool { return !claims.HasAudience(audience) })
	owner := identity.OwnerByUsername(claims.Subject, claims.Groups)
	if prefix := owner.Reserved(); prefix != "" {
		return status, identity.ReservedText(prefix), nil
	}
	caller := identity.Caller{Owner: owner, Groups: claims.Groups, Scope: claims.Scope, KeyScopes: scopes}
	user, err := describe(caller, ExtraToken, claims.ID)
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: user, Audiences: common}, "", err
}

// describe returns a user as the cluster sees them. Name identifies the credential, and kind is the key of Extra under which the
// name is written.
func describe(caller identity.Caller, kind, name string) (authenticationv1.UserInfo, error) {
	user := authenticationv1.UserInfo{
		Username: caller.Owner.Username(), UID: caller.Owner.String(),
		Groups: identity.WithoutKubernetes(caller.Groups),
		Extra:  map[string]authenticationv1.ExtraValue{kind: {name}},
	}
	for _, narrow := range scope.Narrowest(caller.Scopes()) {
		text, err := json.Marshal(narrow)
		if err != nil {
			return authenticationv1.UserInfo{}, fmt.Errorf("writing a scope: %w", err)
		}
		user.Extra[ExtraScope] = append(user.Extra[ExtraScope], string(text))
	}
	return user, nil
}

// Target returns a request that names the API about which a cluster asks. The parameters name the API: cluster; project and
// space; or project and virtualCluster. Error: BadRequest for any other set. Source: ADR-0012.
func Target(parameter func(string) string) (scope.Request, error) {
	request := scope.Request{
		Cluster: parameter("cluster"), Project: parameter("project"), Space: parameter("space"), VirtualCluster: parameter("virtualCluster"),
	}
	cluster, project, space, virtual := request.Cluster != "", request.Project != "", request.Space != "", request.VirtualCluster != ""
	switch {
	case cluster && !project && !space && !virtual:
		request.Target = scope.TargetCluster
	case !cluster && project && space && !virtual:
		request.Target = scope.TargetProjectSpace
	case !cluster && project && !space && virtual:
		request.Target = scope.TargetProjectVirtualCluster
	default:
		return scope.Request{}, apierror.BadRequest(
			"the URL must name the API of the request: cluster, or project and space, or project and virtualCluster; only members of "+
				identity.Admins+" ask about this API, without a name", nil)
	}
	return request, nil
}

// IsAboutPlatform reports whether none of the parameters of Target is set: the review is about this API.
func IsAboutPlatform(parameter func(string) string) bool {
	return parameter("cluster")+parameter("project")+parameter("space")+parameter("virtualCluster") == ""
}

// AnswerAccess fills the status of a review of a request to the API of target: denied if the request is outside of a scope of the
// credential, and no opinion otherwise, so that the cluster's own rules decide. A scope that cannot be read permits nothing.
// Error: BadRequest unless the review is about exactly one of a resource and a path. Source: ADR-0012.
func AnswerAccess(target scope.Request, review *authorizationv1.SubjectAccessReview) error {
	request, err := RequestOf(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	if err != nil {
		return err
	}
	request.Target, request.Cluster, request.Space, request.VirtualCluster = target.Target, target.Cluster, target.Space, target.VirtualCluster
	request.Project = target.Project
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	texts, scoped := review.Spec.Extra[ExtraScope]
	if !scoped {
		review.Status.Reason = "the credential has no scope"
		return nil
	}
	narrow, err := readScopes(texts)
	switch {
	case err != nil:
		review.Status.Denied, review.Status.Reason = true, err.Error()
	case slices.ContainsFunc(narrow, func(s *model.Scope) bool { return !scope.Allows(s, request) }):
		review.Status.Denied, review.Status.Reason = true, scope.Refusal(request)
	default:
		review.Status.Reason = "the scope of the credential permits it; the rules of the cluster decide"
	}
	return nil
}

// readScopes reads the scopes of a credential from at least one text: the credential's own scope, and the scopes of the keys to
// which it is bound.
func readScopes(texts []string) ([]*model.Scope, error) {
	if maxScopes := limits.LineageBounds + 2; len(texts) == 0 || len(texts) > maxScopes {
		return nil, fmt.Errorf("the credential has %d scopes; it can have from 1 to %d", len(texts), maxScopes)
	}
	scopes := make([]*model.Scope, len(texts))
	for i, text := range texts {
		var err error
		if scopes[i], err = token.ParseScope([]byte(text)); err != nil {
			return nil, fmt.Errorf("the scope of the credential: %w", err)
		}
	}
	return scopes, nil
}

// RequestOf returns the request that a review is about, without its target. Error: BadRequest unless the review has exactly one
// of a resource and a path.
func RequestOf(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (scope.Request, error) {
	switch {
	case resource != nil && path == nil:
		return scope.Request{
			Verb: resource.Verb, Group: resource.Group, Resource: resource.Resource, Subresource: resource.Subresource,
			Namespace: resource.Namespace, Name: resource.Name,
		}, nil
	case path != nil && resource == nil:
		return scope.Request{Verb: path.Verb, Path: path.Path}, nil
	default:
		return scope.Request{}, apierror.BadRequest(
			"exactly one of spec.resourceAttributes and spec.nonResourceAttributes must be set", nil)
	}
}
