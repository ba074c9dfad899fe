// Package authorize is the authorization endpoint: it sends a browser to the provider that the person chooses, takes it back, and asks the
// person for consent. It knows no HTTP and no protocol of a provider. Source: Spec 5.4; RFC 6749, 3.1 and 4.1; RFC 9207; ADR-0031,
// ADR-0038.
package authorize

import (
	"context"
	"net/url"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/trial"
)

// Starter is the authorization endpoint. It starts logins, and reads and writes no state.
type Starter struct{ env *platform.Environment }

// OpenStarter returns the authorization endpoint of an environment.
func OpenStarter(env *platform.Environment) *Starter { return &Starter{env} }

// Start starts a login at a connector (RFC 8252). It returns the provider's URL and the cookies to set. Cookies of old attempts are removed
// when there are more than five.
//
// Errors: Refusal. In any case nothing is stored.
func (d *Starter) Start(ctx context.Context, idp provider.Provider, id string, query url.Values, cookies map[string]string) (string, []logins.Cookie, error) {
	conn, ok := method.FindConnector(d.env.Config(), id)
	if !ok {
		return "", nil, refusal.UnknownConnector()
	}
	pending, err := logins.Attempt{Connector: conn.ID, Fingerprint: conn.Fingerprint()}, error(nil)
	if query.Has(trial.Parameter) {
		pending.Trial = true
		pending.State, err = trial.ParseState(query)
	} else {
		pending.AuthRequest, err = d.ParseRequest(ctx, conn.Issuer(), query, cookies)
	}
	if err != nil {
		return "", nil, err
	}
	attempt, newCookies, err := logins.NewAttempt(ctx, d.env, pending, cookies)
	if err != nil {
		return "", nil, err
	}
	address, err := idp.AuthorizationURL(ctx, conn, attempt.ProviderRequest())
	if err != nil {
		return "", nil, err
	}
	return address, newCookies, nil
}

// ParseRequest reads the authorization request of a program, or the device whose user code was entered in this browser. Address is the
// address of the platform: its console is a client as well. Error: Refusal. Source: RFC 6749, 4.1.1; RFC 7636, 4.3.
func (d *Starter) ParseRequest(ctx context.Context, address string, query url.Values, cookies map[string]string) (logins.AuthRequest, error) {
	if query.Has("device") {
		id, err := oauth.Parameter(query, "device")
		if err != nil {
			return logins.AuthRequest{}, err
		}
		return device.ReadEnteredDevice(ctx, d.env, id, cookies)
	}
	params, err := oauth.Parameters(query, "response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope")
	if err != nil {
		return logins.AuthRequest{}, err
	}
	switch {
	case params[0] != "code":
		return logins.AuthRequest{}, refusal.BadRequest("response_type must be code")
	case params[1] != oauth.ClientID:
		return logins.AuthRequest{}, refusal.BadRequest("client_id must be " + oauth.ClientID)
	case !oauth.IsLoopbackRedirect(params[2]) && params[2] != address+oauth.ConsolePath:
		return logins.AuthRequest{}, refusal.BadRequest("redirect_uri must be an address on this computer, such as http://127.0.0.1:4711/callback")
	case params[4] != "S256" || !oauth.IsUnreserved(params[3], 43, 43):
		return logins.AuthRequest{}, refusal.BadRequest("code_challenge must be made with the method S256")
	case !oauth.IsUnreserved(params[5], 8, 128):
		return logins.AuthRequest{}, refusal.BadRequest("state must have 8 to 128 letters, digits and - . _ ~")
	}
	return logins.AuthRequest{RedirectURI: params[2], CodeChallenge: params[3], State: params[5], Scope: oauth.GrantedScope(params[6])}, nil
}

// MethodLink is a way to sign in, with the address at which the login starts.
type MethodLink struct{ Label, Address string }

// LoginMethods returns the ways to sign in for a request at the authorization endpoint. Errors: Refusal.
func (d *Starter) LoginMethods(ctx context.Context, query url.Values, cookies map[string]string) ([]MethodLink, error) {
	address := method.Address(d.env.Config())
	methods := method.ListWithIssuer(d.env, address)
	if len(methods) == 0 {
		return nil, refusal.Misconfigured("there is no way to sign in with a browser")
	}
	if _, err := d.ParseRequest(ctx, address, query, cookies); err != nil {
		return nil, err
	}
	var links []MethodLink
	for _, method := range methods {
		links = append(links, MethodLink{method.Label, oauth.WithQuery("/auth/"+method.ID+"/login", query)})
	}
	return links, nil
}
