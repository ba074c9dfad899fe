// Package endlogin is /auth/{connector}/logout, where sessions end at both sides. A GET sends a browser to the connector, where the session of
// the person there ends; it stores nothing, and keys of the platform end by credentialrevocations. A POST comes from the connector, which says
// that it has ended a session: the keys of that session end here. Source: Spec 2.7 (postLogoutRedirectURI); OpenID Connect RP-Initiated
// Logout 1.0 and Back-Channel Logout 1.0; ADR-0031, ADR-0042.
package endlogin

import (
	"context"
	"errors"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/connectors"
	"management.platform.sh/shared/signin/logout"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/webpage"
)

// Deps is what the operation needs.
type Deps struct {
	Config   func() *model.ConfigStatus
	Provider interface {
		provider.Provider
		provider.LogoutVerifier
	}
	// Logout ends keys. Nil: the operation ends none.
	Logout *logout.BackChannel
}

// Input is the request.
type Input = frame.FormInput

// Do sends the browser to the connector. A connector without a sign-out gets a page that says so. It returns the errors of
// logout.EndSessionURL.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id := in.Segment("connector")
	ctx, recorder := annotations.WithRecorder(ctx)
	recorder.SetConnector(id)
	recorder.SetOutcome("ended")
	address, err := logout.EndSessionURL(ctx, deps.Config(), deps.Provider, id)
	switch {
	case err != nil:
		recorder.SetError(err)
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	case address == "":
		return frame.FormResult{Annotations: recorder.Annotations(), Page: &webpage.Page{
			Title: "The provider has no sign-out",
			Text:  []string{"Your session at the provider continues until it expires. You can close this page."},
		}}, nil
	}
	return frame.FormResult{Location: address, Annotations: recorder.Annotations()}, nil
}

// logoutError is why a logout token is not accepted. Source: OpenID Connect Back-Channel Logout 1.0, 2.8.
type logoutError struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// receive takes a logout token from the connector. A token that is not accepted is answered with 400, also if the connector cannot be asked
// about it. Errors: NotFound for a connector that sends no logout tokens; the errors of the state in
// logout.BackChannel.HandleLogoutToken.
func receive(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	ctx, recorder := annotations.WithRecorder(ctx)
	err := deps.Logout.HandleLogoutToken(ctx, deps.Provider, in.Segment("connector"), in.Form)
	var refused *refusal.Refusal
	switch {
	case errors.As(err, &refused) && apierror.From(err).Status().Code != 404:
		return frame.FormResult{
			Status: 400, JSON: logoutError{"invalid_request", apierror.From(err).Status().Message}, Annotations: recorder.Annotations(),
		}, nil
	case err != nil:
		return frame.FormResult{Annotations: recorder.Annotations()}, err
	}
	return frame.FormResult{JSON: struct{}{}, Annotations: recorder.Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "endlogin",
	Endpoints: []frame.Endpoint{
		frame.Form("GET", "/auth/{connector}/logout", open, Do), frame.Form("POST", "/auth/{connector}/logout", openKeys, receive),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Config: env.Config, Provider: connectors.Open(env)}
}

func openKeys(env *platform.Environment) Deps {
	deps := open(env)
	deps.Logout = logout.Open(env, kinds.AccessKeys(env))
	return deps
}
