// Package startlogin is GET /auth/{connector}/login: it sends a browser to a connector, where the person signs in. It stores nothing:
// the attempt is in a sealed cookie of the browser. GET /auth/authorize is for programs that know no connector: the person chooses one.
// Source: Spec 5.4; RFC 6749, 3.1; ADR-0031.
package startlogin

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/authorize"
	"management.platform.sh/shared/signin/connectors"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/webpage"
)

// Deps is what the operation needs.
type Deps struct {
	Starter  *authorize.Starter
	Provider provider.Provider
}

// Input is the request.
type Input = frame.FormInput

// Do begins a sign-in. It returns the errors of authorize.Starter.Start.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id := in.Segment("connector")
	ctx, recorder := annotations.WithRecorder(ctx)
	recorder.SetConnector(id)
	recorder.SetOutcome("started")
	address, cookies, err := deps.Starter.Start(ctx, deps.Provider, id, in.Query, in.Cookies)
	if err != nil {
		recorder.SetError(err)
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	result := frame.FormResult{Location: address, Annotations: recorder.Annotations()}
	for _, cookie := range cookies {
		result.Cookies = append(result.Cookies, frame.Cookie(cookie))
	}
	return result, nil
}

// chooseMethod offers the ways to sign in. If there is one, the browser goes on in it. It returns the errors of
// authorize.Starter.LoginMethods.
func chooseMethod(ctx context.Context, starter *authorize.Starter, in Input) (frame.FormResult, error) {
	ctx, recorder := annotations.WithRecorder(ctx)
	recorder.SetOutcome("offered")
	choices, err := starter.LoginMethods(ctx, in.Query, in.Cookies)
	if err != nil {
		recorder.SetError(err)
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	if len(choices) == 1 {
		return frame.FormResult{Location: choices[0].Address, Annotations: recorder.Annotations()}, nil
	}
	page := &webpage.Page{Title: "Sign in", Text: []string{"A program asks for an access key that acts as you. Sign in to see which program."}}
	for _, choice := range choices {
		page.Links = append(page.Links, webpage.Link{Label: "Sign in: " + choice.Label, Address: choice.Address})
	}
	return frame.FormResult{Page: page, Annotations: recorder.Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "startlogin",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", "/auth/{connector}/login", open, Do), frame.Form("GET", oauth.AuthorizePath, authorize.OpenStarter, chooseMethod),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Starter: authorize.OpenStarter(env), Provider: connectors.Open(env)}
}
