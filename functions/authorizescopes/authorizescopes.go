// Package authorizescopes tells a connected cluster whether a request is within the scope of its credential. Requests
// outside of the scope are denied; inside it the cluster's own rules decide. It tells admins what others may do on this
// API. Nothing is stored. Source: Spec 2.3, 5.3; ADR-0012, ADR-0023.
package authorizescopes

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
)

type Deps struct {
	// Access decides about requests to this API.
	Access *review.Access
}

type Input = frame.ReviewRequest[*authorizationv1.SubjectAccessReview]

// Do answers a SubjectAccessReview. Without an API in the URL, admins ask about this one. Errors: BadRequest if the URL
// does not name the API of the request, or if the review is about both or neither of a resource and a path;
// ServiceUnavailable if an object cannot be read.
func Do(ctx context.Context, deps Deps, in Input) (*authorizationv1.SubjectAccessReview, error) {
	if in.Caller.Admin() && review.IsAboutPlatform(in.Parameter) {
		if err := deps.Access.AnswerPlatform(ctx, in.Object); err != nil {
			return nil, err
		}
		return in.Object, nil
	}
	target, err := review.Target(in.Parameter)
	if err != nil {
		return nil, err
	}
	if err := review.AnswerAccess(target, in.Object); err != nil {
		return nil, err
	}
	return in.Object, nil
}

// endpoint returns an endpoint whose path parameters may also be in the query.
var endpoint = frame.Review(authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"),
	"SubjectAccessReview", "subjectaccessreview", open, Do).WithoutSessions()

// Function has a path for each kind of target as well, because a kube-apiserver drops the query of a webhook's URL.
var Function = &frame.Function{
	Name: "authorizescopes",
	Endpoints: []frame.Endpoint{
		endpoint,
		endpoint.WithPrefix("/cluster/{cluster}"),
		endpoint.WithPrefix("/project/{project}/space/{space}"),
		endpoint.WithPrefix("/project/{project}/virtualcluster/{virtualCluster}"),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Access: review.OpenAccess(env, kinds.Readers(env))}
}
