// Package exchangetoken is POST /auth/token: a program exchanges the code of a sign-in for an access key, or asks whether somebody has
// entered its code. It is the only place at which sign-ins make keys. Source: Spec 5.4; RFC 6749, 4.1.3 and 5; RFC 8628, 3.4; ADR-0031.
package exchangetoken

import (
	"context"
	"errors"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
)

// Deps is what the operation needs.
type Deps struct {
	Flow *signin.Flow
	Now  func() time.Time
}

// Input is the request.
type Input = frame.FormInput

// answer is a response of a token endpoint. Source: RFC 6749, 5.1.
type answer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	// ExpiresIn are seconds. Absent: the key does not expire.
	ExpiresIn int64  `json:"expires_in,omitempty"`
	User      string `json:"user"`
	// AccessKey is the name of the key.
	AccessKey string `json:"access_key"`
}

// refusal is an error of a token endpoint. Source: RFC 6749, 5.2.
type refusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// Do makes the key. A wrong request is answered with 400 as OAuth says. Errors: those of signin.Flow.Exchange and PollDevice.
func Do(ctx context.Context, deps Deps, in Input) (frame.FormResult, error) {
	wrong := func(code, why string, notes map[string]string) (frame.FormResult, error) {
		return frame.FormResult{Status: 400, JSON: refusal{code, why}, Annotations: notes}, nil
	}
	given := map[string]string{}
	for _, name := range []string{"grant_type", "client_id", "code", "code_verifier", "redirect_uri", "device_code"} {
		value, err := signin.Parameter(in.Form, name)
		if err != nil {
			return wrong("invalid_request", name+" is given more than once", nil)
		}
		given[name] = value
	}
	switch {
	case given["grant_type"] == "":
		return wrong("invalid_request", "grant_type is missing", nil)
	case given["client_id"] != signin.ClientID:
		return wrong("invalid_client", "client_id must be "+signin.ClientID, nil)
	}
	var granted signin.Grant
	var notes map[string]string
	var err error
	switch given["grant_type"] {
	case "authorization_code":
		if given["code"] == "" || given["code_verifier"] == "" || given["redirect_uri"] == "" {
			return wrong("invalid_request", "code, code_verifier and redirect_uri are required", nil)
		}
		granted, notes, err = deps.Flow.Exchange(ctx, given["code"], given["code_verifier"], given["redirect_uri"])
	case signin.DeviceGrant:
		if given["device_code"] == "" || given["code_verifier"] == "" {
			return wrong("invalid_request", "device_code and code_verifier are required", nil)
		}
		granted, notes, err = deps.Flow.PollDevice(ctx, given["device_code"], given["code_verifier"])
	default:
		return wrong("unsupported_grant_type", "grant_type must be authorization_code or "+signin.DeviceGrant, nil)
	}
	refused := (*signin.DeviceError)(nil)
	switch {
	case errors.Is(err, signin.ErrGrant):
		return wrong("invalid_grant", err.Error(), notes)
	case errors.As(err, &refused):
		return wrong(refused.Code, refused.Description, notes)
	case err != nil:
		return frame.FormResult{Annotations: notes}, err
	}
	made := answer{AccessToken: granted.Key.Reveal(), TokenType: "Bearer", User: granted.User, AccessKey: granted.Name}
	if !granted.Expires.IsZero() {
		made.ExpiresIn = max(1, int64(granted.Expires.Sub(deps.Now())/time.Second))
	}
	return frame.FormResult{JSON: made, Annotations: notes}, nil
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name: "exchangetoken",
	// The session at a provider is sealed for its key.
	Encrypts:  true,
	Endpoints: []frame.Endpoint{frame.Form("POST", "/auth/token", open, Do)},
}

func open(env *platform.Environment) Deps {
	// A key may be deleted with what belongs to it.
	kinds.Open(env)
	return Deps{Flow: signin.Open(env), Now: env.Now}
}
