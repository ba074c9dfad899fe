package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// ConsentEndpoint asks the person of a login whether the program may have a key. It is safe for concurrent use.
type ConsentEndpoint struct {
	env     *platform.Environment
	logins  *LoginStore
	devices *DeviceFlow
}

// OpenConsent returns the consent endpoint of an environment.
func OpenConsent(env *platform.Environment) *ConsentEndpoint {
	return &ConsentEndpoint{env: env, logins: OpenLogins(env), devices: OpenDeviceFlow(env)}
}

// ConsentRequest is a sign-in that the person has not confirmed yet.
type ConsentRequest struct {
	// User is the name of the user, and Account who they are at the connector.
	User, Account string
	// Origin is that of the program that gets the key. Empty: it is that on a Device.
	Origin string
	// IsConsole tells that the program is the console, in the same browser.
	IsConsole bool
	// Device is the device for which somebody signs in. Nil: it is a program on the computer of the browser.
	Device *DeviceDetails
	// Unverified tells that the answer of the provider was not verified.
	Unverified bool
	// Cookie is the name of the cookie of the attempt.
	Cookie string
	// Platform is the address of the platform, and ID that of the attempt.
	Platform, ID string

	attempt loginAttempt
	record  store.Record
	login   storedLogin
}

// ConsentRequest returns the sign-in with an ID that this browser began. Errors: Refusal; those of the store.
func (e *ConsentEndpoint) ConsentRequest(ctx context.Context, id string, cookies map[string]string) (*ConsentRequest, error) {
	attempt, err := openAttempt(ctx, e.env, id, cookies)
	if err != nil {
		return nil, err
	}
	address, settings, ok := methodSettings(e.env.Config(), attempt.Connector)
	if !ok || !constantTimeEqual(settings, attempt.Fingerprint) {
		return nil, expired("settings")
	}
	consent := &ConsentRequest{attempt: attempt, ID: id, Cookie: cookiePrefix + id, Platform: address}
	consent.record, err = e.logins.Records.Get(ctx, loginRecordName(attempt.State))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, notStartedHere("not proven")
	case err != nil:
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(consent.record.Object, &consent.login); err != nil {
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if consent.login.Stage != stageAuthenticated {
		return nil, notStartedHere("confirmed before")
	}
	consent.User, consent.Account = consent.login.User, consent.login.Identity.Username
	conn, _ := findConnector(e.env.Config(), attempt.Connector)
	consent.Unverified = conn.Unverified
	if attempt.AuthRequest.Device == "" {
		consent.Origin, consent.IsConsole = origin(attempt.AuthRequest.RedirectURI), attempt.AuthRequest.RedirectURI == address+ConsolePath
		return consent, nil
	}
	_, state, err := e.devices.readDevice(ctx, attempt.AuthRequest)
	if err != nil {
		return nil, err
	}
	consent.Device = &DeviceDetails{
		Code: formatUserCode(attempt.AuthRequest.UserCode), Host: state.Device.Host, Address: state.Device.Address,
		Age: e.env.Now().Sub(time.Unix(state.Device.RequestedAt, 0)),
	}
	return consent, nil
}

// Decide stores what the person decided, and returns where the browser goes: with a code if the person allows the sign-in. Empty: it was
// about a device, and the browser goes nowhere. Of several decisions, the first one counts. Errors: Refusal; those of the store.
func (e *ConsentEndpoint) Decide(ctx context.Context, consent *ConsentRequest, allow bool) (string, error) {
	if consent.Device != nil {
		if err := e.devices.decideDevice(ctx, consent.attempt.AuthRequest, consent.login, allow); err != nil {
			return "", err
		}
		// What the browser has proven is used. The decision counts if this is not stored.
		consent.login.Stage = stageRedeemed
		_ = e.logins.writeLogin(ctx, &consent.record, consent.login)
		return "", nil
	}
	answer := url.Values{"state": {consent.attempt.AuthRequest.State}, "iss": {consent.Platform}}
	record, now := consent.record, e.env.Now()
	if allow {
		code, err := randomToken(e.env.Random)
		if err != nil {
			return "", err
		}
		answer.Set("code", code)
		record.Digest = codeDigest(code)
		consent.login.Stage, consent.login.CodeExpires = stageConsented, now.Add(codeLifetime).Unix()
	} else {
		answer.Set("error", "access_denied")
		consent.login.Stage = stageRedeemed
	}
	if err := e.logins.writeLogin(ctx, &record, consent.login); err != nil {
		if isConflict(err) {
			return "", notStartedHere("confirmed before")
		}
		return "", err
	}
	return withQuery(consent.attempt.AuthRequest.RedirectURI, answer), nil
}
