// Package reviewtokens tells a connected cluster who the caller of a bearer is: an access key or a direct cluster endpoint
// token. Expired, disabled, revoked and foreign credentials are refused at once, with the reason.
// Source: Spec 5.1, 5.2, 5.3; ADR-0012.
package reviewtokens

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

type Deps struct {
	// Credentials authenticate bearers.
	Credentials review.Credentials
}

type Input = frame.ReviewRequest[*authenticationv1.TokenReview]

// Do answers a TokenReview. Error: BadRequest if it has no token. A refused bearer is a result, not an error.
func Do(ctx context.Context, deps Deps, in Input) (*authenticationv1.TokenReview, error) {
	if err := deps.Credentials.Answer(ctx, in.Object); err != nil {
		return nil, err
	}
	return in.Object, nil
}

var Function = &frame.Function{
	Name: "reviewtokens", Encrypts: true,
	Endpoints: []frame.Endpoint{frame.Review(authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"),
		"TokenReview", "tokenreview", open, Do).AboutAuthentication().WithoutSessions()},
}

func open(env *platform.Environment) Deps {
	tokens := issuer.Open(env, issuedtoken.Open(env))
	return Deps{Credentials: review.Credentials{AccessKey: accesskey.OpenAuthenticator(env).Bearer, Token: tokens.Verify, Audiences: tokens.Audiences()}}
}
