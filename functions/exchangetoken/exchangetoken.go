// Package exchangetoken is POST /auth/token: a program exchanges the code of a sign-in for an access key, asks whether a person
// has entered its code, or refreshes its access key. A job exchanges the token that its issuer has signed for it. Sign-ins and
// jobs get keys only here. Source: Spec 5.4; RFC 6749, 4.1.3, 5 and 6; RFC 8628, 3.4; RFC 8693; ADR-0031, ADR-0036, ADR-0045.
package exchangetoken

import (
	"context"
	"errors"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/tokenexchange"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/token"
)

// Deps is what the operation needs.
type Deps struct {
	Tokens  *token.Endpoint
	Devices *device.Flow
	Jobs    *tokenexchange.Exchanger
	Now     func() time.Time
	// Address returns the address of the platform. Empty: it is not known.
	Address func() string
}

// Input is the request.
type Input = frame.FormInput

// tokenResponse is a response of a token endpoint. Source: RFC 6749, 5.1.
type tokenResponse struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	// ExpiresIn are seconds. Absent: the key does not expire.
	ExpiresIn int64 `json:"expires_in,omitempty"`
	// RefreshToken is for the access key after this one, and RefreshKey the name of the refresh key. Empty: the program did not ask for
	// offline_access. Source: ADR-0045.
	RefreshToken string `json:"refresh_token,omitempty"`
	RefreshKey   string `json:"refresh_key,omitempty"`
	// Scope is what the program got of the scopes that it asked for, which may be none. Nil: it asked for none.
	Scope *string `json:"scope,omitempty"`
	// IssuedTokenType is set for jobs. Source: RFC 8693, 2.2.1.
	IssuedTokenType string `json:"issued_token_type,omitempty"`
	// User or Team is the owner of the key.
	User string `json:"user,omitempty"`
	Team string `json:"team,omitempty"`
	// AccessKey is the name of the key.
	AccessKey string `json:"access_key"`
}

// errorResponse is the answer to a request that gets no key, as OAuth says.
func errorResponse(ctx context.Context, code, why string) (frame.FormResult, error) {
	return oauthErrorResponse(ctx, oauth.NewError(code, why))
}

// oauthErrorResponse is the answer with an error.
func oauthErrorResponse(ctx context.Context, why *oauth.Error) (frame.FormResult, error) {
	return frame.FormResult{Status: why.Status, JSON: why, Annotations: annotations.RecorderOf(ctx).Annotations()}, nil
}

// Do makes the key. A wrong request is answered as OAuth says. It returns the errors of token.Endpoint.RedeemCode and Refresh, of
// device.Flow.Poll, and of tokenexchange.Exchanger.Exchange.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	ctx, _ = annotations.WithRecorder(ctx)
	params := map[string]string{}
	for _, name := range []string{
		"grant_type", "client_id", "code", "code_verifier", "redirect_uri", "device_code", "subject_token", "subject_token_type", "actor_token",
		"requested_token_type", "scope", "resource", "audience", "rule", "refresh_token", "nonce",
	} {
		value, err := oauth.Parameter(in.Form, name)
		if err != nil {
			return errorResponse(ctx, "invalid_request", name+" is given more than once")
		}
		params[name] = value
	}
	if params["grant_type"] == "" {
		return errorResponse(ctx, "invalid_request", "grant_type is missing")
	}
	refusal := (*oauth.Error)(nil)
	if err := oauth.CheckClient(in.Form, in.Basic, params["grant_type"] == tokenexchange.GrantType); errors.As(err, &refusal) {
		return oauthErrorResponse(ctx, refusal)
	}
	if params["grant_type"] == tokenexchange.GrantType {
		return exchangeJob(ctx, deps, params, in.IdempotencyKey)
	}
	tokenRequest, known := token.ParseRequest(params["scope"], params["nonce"])
	if !known {
		return errorResponse(ctx, "invalid_request", "nonce has at most 128 letters, digits and - . _ ~")
	}
	var granted token.Response
	var err error
	switch params["grant_type"] {
	case "authorization_code":
		if params["code"] == "" || params["code_verifier"] == "" || params["redirect_uri"] == "" {
			return errorResponse(ctx, "invalid_request", "code, code_verifier and redirect_uri are required")
		}
		granted, err = deps.Tokens.RedeemCode(ctx, params["code"], params["code_verifier"], params["redirect_uri"], tokenRequest)
	case oauth.DeviceGrant:
		if params["device_code"] == "" || params["code_verifier"] == "" {
			return errorResponse(ctx, "invalid_request", "device_code and code_verifier are required")
		}
		granted, err = deps.Devices.Poll(ctx, params["device_code"], params["code_verifier"], tokenRequest)
	case "refresh_token":
		if params["refresh_token"] == "" {
			return errorResponse(ctx, "invalid_request", "refresh_token is missing")
		}
		granted, err = deps.Tokens.Refresh(ctx, secret.String(params["refresh_token"]))
	default:
		return errorResponse(ctx, "unsupported_grant_type", "grant_type must be authorization_code, refresh_token, "+oauth.DeviceGrant+" or "+tokenexchange.GrantType)
	}
	switch {
	case errors.Is(err, token.ErrInvalidGrant), errors.Is(err, token.ErrInvalidRefreshToken):
		return errorResponse(ctx, "invalid_grant", err.Error())
	case errors.As(err, &refusal):
		return oauthErrorResponse(ctx, refusal)
	case err != nil:
		return frame.FormResult{Annotations: annotations.RecorderOf(ctx).Annotations()}, err
	}
	response := tokenResponse{AccessToken: granted.Key.Reveal(), TokenType: "Bearer", User: granted.User, AccessKey: granted.KeyName}
	response.RefreshToken, response.RefreshKey, response.Scope = granted.RefreshToken.Reveal(), granted.RefreshKeyName, granted.Scope
	return frame.FormResult{JSON: response.withExpiry(granted.Expires, deps.Now()), Annotations: annotations.RecorderOf(ctx).Annotations()}, nil
}

// withExpiry returns the answer with the seconds until the end of the key. The zero time: it has none.
func (a tokenResponse) withExpiry(end, now time.Time) tokenResponse {
	if !end.IsZero() {
		a.ExpiresIn = max(1, int64(end.Sub(now)/time.Second))
	}
	return a
}

// exchangeJob makes the key of a job. Attempt is the name of the request. Source: RFC 8693, 2.
func exchangeJob(ctx context.Context, deps Deps, params map[string]string, attempt string) (frame.FormResult, error) {
	isOtherTarget := func(target string) bool { return target != "" && target != deps.Address() }
	switch kind, wanted := params["subject_token_type"], params["requested_token_type"]; {
	case params["subject_token"] == "" || kind == "":
		return errorResponse(ctx, "invalid_request", "subject_token and subject_token_type are required")
	case kind != tokenexchange.TypeJWT && kind != tokenexchange.TypeIDToken:
		return errorResponse(ctx, "invalid_request", "subject_token_type must be "+tokenexchange.TypeJWT+" or "+tokenexchange.TypeIDToken)
	case wanted != "" && wanted != tokenexchange.TypeAccess:
		return errorResponse(ctx, "invalid_request", "requested_token_type must be "+tokenexchange.TypeAccess)
	case params["actor_token"] != "":
		return errorResponse(ctx, "invalid_request", "a job acts for itself only: leave actor_token out")
	case params["scope"] != "":
		return errorResponse(ctx, "invalid_scope", "the trust rule says what the access key may do: leave scope out")
	case isOtherTarget(params["resource"]), isOtherTarget(params["audience"]):
		return errorResponse(ctx, "invalid_target", "the access key is for this platform: leave resource and audience out, or name its address")
	}
	granted, err := deps.Jobs.Exchange(ctx, params["subject_token"], params["rule"], attempt)
	refusal := (*tokenexchange.RefusedError)(nil)
	switch {
	case errors.As(err, &refusal):
		return errorResponse(ctx, refusal.Code, refusal.Text)
	case err != nil:
		return frame.FormResult{Annotations: annotations.RecorderOf(ctx).Annotations()}, err
	}
	response := tokenResponse{AccessToken: granted.Key.Reveal(), TokenType: "Bearer", IssuedTokenType: tokenexchange.TypeAccess, AccessKey: granted.KeyName}
	response.User, response.Team, _ = granted.Owner.Fields()
	return frame.FormResult{JSON: response.withExpiry(granted.Expires, deps.Now()), Annotations: annotations.RecorderOf(ctx).Annotations()}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "exchangetoken",
	// The session at a provider is sealed for its key.
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.Form("POST", "/auth/token", open, Do)},
}

func open(env *platform.Environment) Deps {
	keys := kinds.AccessKeys(env)
	return Deps{
		Tokens: token.Open(env, keys), Devices: device.Open(env, keys), Jobs: tokenexchange.Open(env, keys), Now: env.Now,
		Address: func() string { return method.Address(env.Config()) },
	}
}
