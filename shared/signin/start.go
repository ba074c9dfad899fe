package signin

import (
	"context"
	"net/url"

	"management.platform.sh/shared/platform"
)

// Starter is the part of the sign-in before a person is known. It reads and writes no state.
type Starter struct{ env *platform.Environment }

// OpenStarter returns the doors of an environment.
func OpenStarter(env *platform.Environment) *Starter { return &Starter{env} }

// Start begins a sign-in at a connector for a program that asks as RFC 8252 says. It returns where the browser goes, and the cookies
// that it keeps: the one of this attempt, and those of old attempts if it has too many.
//
// Errors: Refusal; nothing is stored in any case.
func (d *Starter) Start(ctx context.Context, idp Provider, id string, query url.Values, cookies map[string]string) (string, []Cookie, error) {
	conn, ok := findConnector(d.env.Config(), id)
	if !ok {
		return "", nil, unknownConnector()
	}
	pending, err := loginAttempt{Connector: conn.ID, Fingerprint: conn.Fingerprint()}, error(nil)
	if query.Has(trialParameter) {
		pending.Trial = true
		pending.State, err = parseTrialState(query)
	} else {
		pending.AuthRequest, err = d.parseAuthorizationRequest(ctx, conn.Issuer(), query, cookies)
	}
	if err != nil {
		return "", nil, err
	}
	attempt, newCookies, err := newAttempt(ctx, d.env, pending, cookies)
	if err != nil {
		return "", nil, err
	}
	address, err := idp.AuthorizationURL(ctx, conn, attempt.providerRequest())
	if err != nil {
		return "", nil, err
	}
	return address, newCookies, nil
}

// parseAuthorizationRequest returns what a program asks for in the query with which it sends the browser, or the device whose code was entered in this
// browser. Address is that of the platform: the console there is a program as well. Error: Refusal.
func (d *Starter) parseAuthorizationRequest(ctx context.Context, address string, query url.Values, cookies map[string]string) (authRequest, error) {
	if query.Has("device") {
		id, err := Parameter(query, "device")
		if err != nil {
			return authRequest{}, err
		}
		return EnteredDevice(ctx, d.env, id, cookies)
	}
	params, err := parameters(query, "response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope")
	if err != nil {
		return authRequest{}, err
	}
	switch {
	case params[0] != "code":
		return authRequest{}, refuseBadRequest("response_type must be code")
	case params[1] != ClientID:
		return authRequest{}, refuseBadRequest("client_id must be " + ClientID)
	case !isLoopbackRedirect(params[2]) && params[2] != address+ConsolePath:
		return authRequest{}, refuseBadRequest("redirect_uri must be an address on this computer, such as http://127.0.0.1:4711/callback")
	case params[4] != "S256" || !isUnreserved(params[3], 43, 43):
		return authRequest{}, refuseBadRequest("code_challenge must be that of the method S256")
	case !isUnreserved(params[5], 8, 128):
		return authRequest{}, refuseBadRequest("state must have 8 to 128 letters, digits and - . _ ~")
	}
	return authRequest{RedirectURI: params[2], CodeChallenge: params[3], State: params[5], Scope: grantedScope(params[6])}, nil
}

// MethodLink is a way to sign in for a program that knows no connector, and the address at which the sign-in begins in it.
type MethodLink struct{ Label, Address string }

// LoginMethods returns the ways to sign in for a program that asks at the authorization endpoint. Errors: Refusal.
func (d *Starter) LoginMethods(ctx context.Context, query url.Values, cookies map[string]string) ([]MethodLink, error) {
	address := Address(d.env.Config())
	methods := loginMethodsAt(d.env, address)
	if len(methods) == 0 {
		return nil, Misconfigured("there is no way to sign in with a browser")
	}
	if _, err := d.parseAuthorizationRequest(ctx, address, query, cookies); err != nil {
		return nil, err
	}
	var links []MethodLink
	for _, method := range methods {
		links = append(links, MethodLink{method.Label, withQuery("/auth/"+method.ID+"/login", query)})
	}
	return links, nil
}
