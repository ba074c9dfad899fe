// Package finishlogin is GET /auth/{connector}/callback: it takes a browser back from a connector, learns who has signed in, and finds
// or makes their user. Source: Spec 5.4; ADR-0031.
package finishlogin

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/credentials/signin/connectors"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct {
	Flow     *signin.Flow
	Provider signin.Provider
}

// Input is the request.
type Input = frame.FormInput

// Do finishes the sign-in at a connector, and sends the browser to the page that asks for a confirmation. Errors: those of
// signin.Flow.Finish.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	path, notes, err := deps.Flow.Finish(ctx, deps.Provider, in.Segment("connector"), in.Query, in.Cookies)
	return frame.FormResult{Location: path, Annotations: notes}, err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "finishlogin",
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.Form("GET", "/auth/{connector}/callback", open, Do)},
}

func open(env *platform.Environment) Deps {
	// The groups of a user make admins, and the last one is kept.
	kinds.Open(env)
	return Deps{Flow: signin.Open(env), Provider: connectors.Open(env)}
}
