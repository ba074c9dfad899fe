// Package finishlogin is /auth/{connector}/callback: it takes a browser back from a connector, learns who has signed in, and finds
// or makes their user. A browser that posts the answer of its connector goes on at /auth/resume. Source: Spec 5.4; ADR-0031, ADR-0038.
package finishlogin

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/limits"
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
	Callback *authorize.Callback
	Provider provider.Provider
}

// Input is the request.
type Input = frame.FormInput

// Do finishes the sign-in at a connector, and sends the browser to the page that asks for a confirmation. If people sign in at
// the connector with API tokens, the answer is the page that asks for a token. It returns the errors of
// authorize.Callback.HandleCallback and authorize.Callback.APITokenPage.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id := in.Segment("connector")
	ctx, recorder := annotations.WithRecorder(ctx)
	if deps.Callback.TakesAPIToken(id) {
		tokenPage, err := deps.Callback.APITokenPage(ctx, id, in.Query, in.Cookies)
		if err != nil {
			return frame.FormResult{Annotations: recorder.Annotations()}, err
		}
		return frame.FormResult{Page: newTokenPage(tokenPage), Annotations: recorder.Annotations()}, nil
	}
	address, err := deps.Callback.HandleCallback(ctx, deps.Provider, id, in.Query, in.Cookies)
	return redirect(address, recorder, err)
}

// redirect sends the browser to an address. A trial of a sign-in has none.
func redirect(address string, recorder *annotations.Recorder, err error) (frame.FormResult, error) {
	result := frame.FormResult{Location: address, Annotations: recorder.Annotations()}
	if address == "" && err == nil {
		result.Page = &webpage.Page{
			Title: "The trial is over", Text: []string{"Nobody was signed in. The person who started the trial sees what a sign-in would do. You can close this page."},
		}
	}
	return result, err
}

// newTokenPage asks for a token of the connector.
func newTokenPage(tokenPage authorize.TokenPage) *webpage.Page {
	return &webpage.Page{
		Title: "Sign in",
		Text: []string{
			"Enter your API token for " + tokenPage.Connector + " (" + tokenPage.Host + ").",
			"The platform sends the token to " + tokenPage.Host + " to find out who you are, and does not store it. A token that expires in a minute is enough.",
		},
		Action: tokenPage.Path, Hidden: []webpage.Fact{{Name: "state", Value: tokenPage.State}},
		Fields:  []webpage.Field{{Name: provider.TokenField, Label: "API token", Type: "password", Autocomplete: "off"}},
		Buttons: []webpage.Button{{Name: "action", Value: "login", Label: "Sign in"}},
	}
}

// receive takes an answer that a browser posts from the site of the connector, or the token from page. It returns the errors of
// authorize.Callback.HandlePostedResponse and authorize.Callback.HandleCallback.
func receive(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id := in.Segment("connector")
	ctx, recorder := annotations.WithRecorder(ctx)
	var address string
	var err error
	if deps.Callback.TakesAPIToken(id) {
		// Another site cannot send this form: the browser would leave out the cookie of the attempt.
		address, err = deps.Callback.HandleCallback(ctx, deps.Provider, id, in.Form, in.Cookies)
	} else {
		address, err = deps.Callback.HandlePostedResponse(ctx, deps.Provider, id, in.Form)
	}
	return redirect(address, recorder, err)
}

// resume goes on with the browser that has begun, and brings its cookie now. It returns the errors of
// authorize.Callback.ResumePosted.
func resume(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id, err := oauth.Parameter(in.Query, "id")
	if err != nil {
		return frame.FormResult{}, err
	}
	ctx, recorder := annotations.WithRecorder(ctx)
	path, err := deps.Callback.ResumePosted(ctx, id, in.Cookies)
	return frame.FormResult{Location: path, Annotations: recorder.Annotations()}, err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "finishlogin",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.Form("GET", "/auth/{connector}/callback", open, Do),
		frame.Form("POST", "/auth/{connector}/callback", open, receive).FromElsewhere(limits.SAMLFormBytes),
		frame.Form("GET", "/auth/resume", open, resume),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Callback: authorize.OpenCallback(env, kinds.Users(env), kinds.Teams(env), kinds.AccessKeys(env)), Provider: connectors.Open(env)}
}
