package authorize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/device"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/store"
)

// Consent asks the person of a login whether the program may have a key. It is safe for concurrent use.
type Consent struct {
	env     *platform.Environment
	logins  *logins.Store
	devices *device.Flow
}

// OpenConsent returns the consent endpoint of an environment.
func OpenConsent(env *platform.Environment, keys *accesskey.Registry) *Consent {
	return &Consent{env: env, logins: logins.Open(env), devices: device.Open(env, keys)}
}

// ConsentRequest is a login that waits for the consent of its person.
type ConsentRequest struct {
	// User is the name of the user, and Account is their account at the connector.
	User, Account string
	// Origin is the origin of the program that gets the key. Empty: the program runs on a Device.
	Origin string
	// IsConsole reports whether the program is the console, in the same browser.
	IsConsole bool
	// Device is the device for which the person signs in. Nil: the sign-in is for a program on the computer of the browser.
	Device *device.Details
	// Unverified means that the answer of the provider was not verified.
	Unverified bool
	// Cookie is the name of the cookie of the attempt.
	Cookie string
	// Platform is the address of the platform, and ID is the ID of the attempt.
	Platform, ID string

	attempt logins.Attempt
	record  store.Record
	login   logins.Login
}

// ConsentRequest returns the login with an ID that this browser started. Errors: Refusal; the store's errors.
func (e *Consent) ConsentRequest(ctx context.Context, id string, cookies map[string]string) (*ConsentRequest, error) {
	attempt, err := logins.OpenAttempt(ctx, e.env, id, cookies)
	if err != nil {
		return nil, err
	}
	address, settings, ok := method.Settings(e.env.Config(), attempt.Connector)
	if !ok || !oauth.EqualSecrets(settings, attempt.Fingerprint) {
		return nil, refusal.Expired("settings")
	}
	consent := &ConsentRequest{attempt: attempt, ID: id, Cookie: logins.CookiePrefix + id, Platform: address}
	consent.record, err = e.logins.Records.Get(ctx, logins.RecordName(attempt.State))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refusal.NotStartedHere("not proven")
	case err != nil:
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(consent.record.Object, &consent.login); err != nil {
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if consent.login.Stage != logins.StageAuthenticated {
		return nil, refusal.NotStartedHere("confirmed before")
	}
	consent.User, consent.Account = consent.login.User, consent.login.Identity.Username
	conn, _ := method.FindConnector(e.env.Config(), attempt.Connector)
	consent.Unverified = conn.Unverified
	if attempt.AuthRequest.Device == "" {
		consent.Origin, consent.IsConsole = oauth.Origin(attempt.AuthRequest.RedirectURI), attempt.AuthRequest.RedirectURI == address+oauth.ConsolePath
		return consent, nil
	}
	_, state, err := e.devices.Read(ctx, attempt.AuthRequest)
	if err != nil {
		return nil, err
	}
	consent.Device = &device.Details{
		Code: device.FormatUserCode(attempt.AuthRequest.UserCode), Host: state.Device.Host, Address: state.Device.Address,
		Age: e.env.Now().Sub(time.Unix(state.Device.RequestedAt, 0)),
	}
	return consent, nil
}

// Decide stores the decision of the person, and returns where the browser goes: to the program, with a code if the person allows the login.
// Empty: the login is for a device, and the browser goes nowhere. The first decision counts. Errors: Refusal; the store's errors.
func (e *Consent) Decide(ctx context.Context, consent *ConsentRequest, allow bool) (string, error) {
	if consent.Device != nil {
		if err := e.devices.Decide(ctx, consent.attempt.AuthRequest, consent.login, allow); err != nil {
			return "", err
		}
		// The login of the browser is redeemed. The decision counts even if this write fails.
		consent.login.Stage = logins.StageRedeemed
		_ = e.logins.Update(ctx, &consent.record, consent.login)
		return "", nil
	}
	answer := url.Values{"state": {consent.attempt.AuthRequest.State}, "iss": {consent.Platform}}
	record, now := consent.record, e.env.Now()
	if allow {
		code, err := oauth.RandomText(e.env.Random)
		if err != nil {
			return "", err
		}
		answer.Set("code", code)
		record.Digest = logins.CodeDigest(code)
		consent.login.Stage, consent.login.CodeExpires = logins.StageConsented, now.Add(logins.CodeLifetime).Unix()
	} else {
		answer.Set("error", "access_denied")
		consent.login.Stage = logins.StageRedeemed
	}
	if err := e.logins.Update(ctx, &record, consent.login); err != nil {
		if logins.IsConflict(err) {
			return "", refusal.NotStartedHere("confirmed before")
		}
		return "", err
	}
	return oauth.WithQuery(consent.attempt.AuthRequest.RedirectURI, answer), nil
}
