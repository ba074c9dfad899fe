// Package opensession begins and ends the sessions of browsers. A session is a cookie with the access key that the browser
// signs in with: there is no other state, so that everything that ends the key ends the session. The frame reads the cookie,
// and says when it counts. Source: ADR-0030.
package opensession

import (
	"context"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/platform"
)

// path is the path of the session of a browser.
const path = "/auth/session"

// Deps is what the operation needs.
type Deps struct {
	// Now is the current time.
	Now func() time.Time
}

// Input is the request.
type Input = frame.SessionInput

// Output is the session that the browser has afterwards.
type Output = frame.Session

// Do returns a session for the credential of the request, which lasts as long as its key: at least a second, because the frame
// has just accepted it. Without a credential, it returns no session.
func Do(_ context.Context, deps Deps, in Input) (Output, error) {
	session := Output{Bearer: in.Bearer}
	if end := in.Caller.KeyExpires; in.Bearer != "" && !end.IsZero() {
		session.Lifetime = max(time.Second, end.Sub(deps.Now()))
	}
	return session, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:      "opensession",
	Endpoints: []frame.Endpoint{frame.BeginSession(path, open, Do), frame.EndSession(path, open, Do)},
}

func open(env *platform.Environment) Deps { return Deps{Now: env.Now} }
