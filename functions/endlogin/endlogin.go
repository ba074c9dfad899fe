// Package endlogin is GET /auth/{connector}/logout: it sends a browser to a connector, where the session of the person there ends. Keys of
// the platform end by credentialrevocations. It stores nothing. Source: Spec 2.7 (postLogoutRedirectURI); OpenID Connect RP-Initiated
// Logout 1.0; ADR-0031.
package endlogin

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/webpage"
	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/credentials/signin/connectors"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct {
	Doors    *signin.Doors
	Provider signin.Provider
}

// Input is the request.
type Input = frame.FormInput

// Do sends the browser to the connector. A connector without a sign-out gets a page that says so. Errors: those of signin.Doors.End.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	id := in.Segment("connector")
	notes := map[string]string{signin.AnnotationConnector: id, signin.AnnotationOutcome: "ended"}
	address, err := deps.Doors.End(ctx, deps.Provider, id)
	switch {
	case err != nil:
		signin.Annotate(notes, err)
		return frame.FormResult{Annotations: notes}, err
	case address == "":
		return frame.FormResult{Annotations: notes, Page: &webpage.Page{
			Title: "The provider has no sign-out",
			Text:  []string{"Your session at the provider goes on until it ends by itself. You can close this page."},
		}}, nil
	}
	return frame.FormResult{Location: address, Annotations: notes}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "endlogin",
	Endpoints: []frame.Endpoint{frame.Form("GET", "/auth/{connector}/logout", open, Do)},
}

func open(env *platform.Environment) Deps {
	return Deps{Doors: signin.OpenDoors(env), Provider: connectors.Open(env)}
}
