// Package device is the device authorization grant: a program without a browser shows a user code, which a person enters in a browser
// elsewhere. Source: RFC 8628; ADR-0031.
package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/token"
	"management.platform.sh/shared/state/store"
)

const (
	// CookieName is the cookie of a browser in which a person has entered a code.
	CookieName = "__Host-device"

	// deviceLifetime is how long a code can be entered, and its key be fetched.
	deviceLifetime = 10 * time.Minute
	// pollInterval is the time between two questions of a program, and what each question that comes too early adds to it.
	pollInterval = 5 * time.Second
	// deviceOwner owns the requests in the state, so that their number has a bound.
	deviceOwner = "device"
	// userCodeAlphabet are the letters of codes: no vowels, so that they form no words, and none that looks like another.
	userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	// userCodeLength is the length of a code. There are 25,600,000,000.
	userCodeLength = 8
	// maxHostname is the longest name that a program says its computer has, in bytes.
	maxHostname = 64
)

// enteredUserCode is a code that a person has entered in a browser. It is in a cookie, sealed.
type enteredUserCode struct {
	// Details is the name of the record of the request.
	Device   string `json:"device"`
	UserCode string `json:"code"`
	// EnteredAt is when the code was entered, in Unix seconds.
	EnteredAt int64 `json:"at"`
}

// Enabled reports whether people can sign in with a device code.
func Enabled(env *platform.Environment) bool {
	return env.DeviceLogin != settings.Off && len(method.List(env)) > 0
}

// Check returns the Refusal for the paths of devices if the device flow is not available. Nil: it is.
func Check(env *platform.Environment) error {
	switch {
	case env.DeviceLogin == settings.Off:
		return refusal.UnknownConnector()
	case !Enabled(env):
		return refusal.Misconfigured("there is no way to sign in with a browser")
	default:
		return nil
	}
}

// Flow is the device authorization grant: a program without a browser gets a code, which a person enters in a browser elsewhere. It is
// safe for concurrent use. Source: RFC 8628.
type Flow struct {
	env    *platform.Environment
	logins *logins.Store
	tokens *token.Endpoint
}

// Open returns the device flow of an environment.
func Open(env *platform.Environment, keys *accesskey.Registry) *Flow {
	return &Flow{env: env, logins: logins.Open(env), tokens: token.Open(env, keys)}
}

// Authorization is the device authorization response. Source: RFC 8628, 3.2.
type Authorization struct {
	DeviceCode string `json:"device_code"`
	// UserCode is the code that a person enters at VerificationURI.
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	// ExpiresIn and Interval are seconds.
	ExpiresIn int64 `json:"expires_in"`
	Interval  int64 `json:"interval"`
}

// Authorize takes the device authorization request of a program without a browser. Basic is its HTTP Basic authentication, address is the
// client address, and network identifies the client to limits. The request is stored although no person is known yet, so the number of
// requests is bounded.
//
// Errors: oauth.Error; Refusal; TooManyRequests; the store's errors. Source: RFC 8628, 3.1.
func (f *Flow) Authorize(ctx context.Context, form url.Values, basic *url.Userinfo, address, network string) (authorization Authorization, err error) {
	recorder := annotations.RecorderOf(ctx)
	defer func() { recorder.SetError(err) }()
	if err := Check(f.env); err != nil {
		return authorization, err
	}
	authorization.VerificationURI = method.Address(f.env.Config()) + oauth.DevicePath
	if err := oauth.CheckClient(form, basic, false); err != nil {
		return authorization, err
	}
	params, err := oauth.Parameters(form, "code_challenge", "code_challenge_method", "hostname", "scope")
	switch {
	case err != nil:
		return authorization, oauth.NewError("invalid_request", "a parameter is given more than once")
	case params[1] != "S256" || !oauth.IsUnreserved(params[0], 43, 43):
		return authorization, oauth.NewError("invalid_request", "code_challenge must be made with the method S256")
	case params[2] != "" && !oauth.IsUnreserved(params[2], 1, maxHostname):
		return authorization, oauth.NewError("invalid_request", "hostname must have at most 64 letters, digits and - . _ ~")
	}
	counter := logins.Throttle(f.env, "too many codes were asked for: try again later")
	if _, err := counter.Take(ctx, throttle.Count{
		Parts: []string{"device", network}, Limit: limits.DeviceRequestsOfAddress, Window: limits.DeviceRequestsWindow,
	}); err != nil {
		return authorization, refusal.Throttled(err)
	}
	if authorization.DeviceCode, err = oauth.RandomText(f.env.Random); err != nil {
		return authorization, err
	}
	now := f.env.Now()
	object, err := json.Marshal(logins.Login{
		Stage: logins.StagePending, AuthRequest: logins.AuthRequest{CodeChallenge: params[0], Scope: oauth.GrantedScope(params[3])}, CodeExpires: now.Add(deviceLifetime).Unix(),
		Device: &logins.Device{Host: params[2], Address: address, RequestedAt: now.Unix(), Interval: int64(pollInterval / time.Second)},
	})
	if err != nil {
		return authorization, fmt.Errorf("encoding the request of a device: %w", err)
	}
	for range logins.MaxTries {
		code, err := randomUserCode(f.env.Random)
		if err != nil {
			return authorization, err
		}
		_, err = f.logins.Records.Create(ctx, store.Record{
			Name: deviceRecordName(authorization.DeviceCode), Owner: deviceOwner, Digest: userCodeDigest(code), Quota: store.Quota{Objects: limits.DeviceRequests},
			Created: now, Expires: now.Add(deviceLifetime + logins.CodeLifetime), Object: object,
		})
		switch {
		case errors.Is(err, store.ErrTaken):
			// Another request has the code.
			continue
		case errors.Is(err, store.ErrQuota):
			return authorization, refusal.Throttled(apierror.TooMany("too many devices wait for a sign-in: try again later", int32(logins.CodeLifetime/time.Second)))
		case err != nil:
			return authorization, fmt.Errorf("storing the request of a device: %w", err)
		}
		authorization.UserCode = FormatUserCode(code)
		authorization.VerificationURIComplete = oauth.WithQuery(authorization.VerificationURI, url.Values{"user_code": {authorization.UserCode}})
		authorization.ExpiresIn, authorization.Interval = int64(deviceLifetime/time.Second), int64(pollInterval/time.Second)
		recorder.SetOutcome(logins.StagePending)
		return authorization, nil
	}
	return authorization, refusal.Busy()
}

// deviceRecordName is the name of the record of a request, by the code that only the program has.
func deviceRecordName(code string) string { return digest.Sum("device", code) }

// userCodeDigest is the digest by which the state finds the code that people enter.
func userCodeDigest(code string) string { return digest.Sum("user code", code) }

// randomUserCode returns a code that people enter.
func randomUserCode(reader io.Reader) (string, error) {
	var code strings.Builder
	for code.Len() < userCodeLength {
		var bytes [userCodeLength]byte
		if _, err := io.ReadFull(reader, bytes[:]); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		for _, b := range bytes {
			// Each letter is as likely as the others.
			if int(b) < 256/len(userCodeAlphabet)*len(userCodeAlphabet) && code.Len() < userCodeLength {
				code.WriteByte(userCodeAlphabet[int(b)%len(userCodeAlphabet)])
			}
		}
	}
	return code.String(), nil
}

// FormatUserCode returns a code as people read it.
func FormatUserCode(code string) string {
	return code[:userCodeLength/2] + "-" + code[userCodeLength/2:]
}

// parseUserCode returns the user code in a text that a person typed: blanks, hyphens and small letters are accepted. Empty: the text is not
// a user code.
func parseUserCode(text string) string {
	if len(text) > maxHostname {
		return ""
	}
	code := strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '\t' {
			return -1
		}
		return c
	}, strings.ToUpper(text))
	if len(code) != userCodeLength || strings.Trim(code, userCodeAlphabet) != "" {
		return ""
	}
	return code
}

// ErrUnknownUserCode means that no device has the code.
var ErrUnknownUserCode = errors.New("the code is not known, or has expired")

// AcceptedUserCode is a user code that a person has entered, of a device that waits.
type AcceptedUserCode struct {
	// Code is the code as people read it.
	Code string
	// Methods are the ways to sign in.
	Methods []method.Method
	// Cookie is what the browser keeps.
	Cookie logins.Cookie

	deviceID string
}

// URL is the address at which the sign-in begins in one of its ways.
func (e *AcceptedUserCode) URL(way method.Method) string {
	return oauth.WithQuery("/auth/"+way.ID+"/login", url.Values{"device": {e.deviceID}})
}

// EnterUserCode takes the user code that a person types. Network identifies the browser to limits.
//
// Errors: Refusal, with ErrUnknownUserCode as a cause; the store's errors.
func (f *Flow) EnterUserCode(ctx context.Context, input, network string) (accepted *AcceptedUserCode, err error) {
	recorder := annotations.RecorderOf(ctx)
	defer func() { recorder.SetError(err) }()
	if err := Check(f.env); err != nil {
		return nil, err
	}
	counter := logins.Throttle(f.env, "too many wrong codes: try again later")
	giveBack, err := counter.Take(ctx, throttle.Count{
		Parts: []string{"user code", network}, Limit: limits.DeviceCodesOfAddress, Window: limits.DeviceCodesWindow,
	})
	if err != nil {
		return nil, refusal.Throttled(err)
	}
	unknownCode := refusal.New("wrong_code", "", apierror.BadRequest(ErrUnknownUserCode.Error(), nil)).WithCause(ErrUnknownUserCode)
	code := parseUserCode(input)
	if code == "" {
		return nil, unknownCode
	}
	record, err := f.logins.Records.GetByDigest(ctx, userCodeDigest(code))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknownCode
	case err != nil:
		return nil, fmt.Errorf("reading the request of a device: %w", err)
	}
	if _, err := f.pendingDevice(record); err != nil {
		return nil, unknownCode
	}
	giveBack(ctx)
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(enteredUserCode{Device: record.Name, UserCode: code, EnteredAt: f.env.Now().Unix()})
	if err != nil {
		return nil, fmt.Errorf("encoding a code: %w", err)
	}
	sealed, err := ring.Seal(text, userCodeSealContext)
	if err != nil {
		return nil, refusal.Misconfigured("the platform has no encryption key").WithCause(err)
	}
	recorder.SetOutcome("code_entered")
	return &AcceptedUserCode{
		Code: FormatUserCode(code), Methods: method.List(f.env), deviceID: deviceRequestID(record.Name),
		Cookie: logins.Cookie{Name: CookieName, Value: sealed, MaxAge: logins.AttemptLifetime},
	}, nil
}

// userCodeSealContext is what the cookie of a code is sealed for.
const userCodeSealContext = logins.Resource + "/device"

// deviceRequestID names a request in the URL of a sign-in.
func deviceRequestID(name string) string { return digest.Sum("entered", name)[:16] }

// ReadEnteredDevice returns the authorization request of a device whose user code was entered in this browser: a link from elsewhere cannot
// skip the page where codes are entered. Errors: Refusal.
func ReadEnteredDevice(ctx context.Context, env *platform.Environment, id string, cookies map[string]string) (logins.AuthRequest, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return logins.AuthRequest{}, err
	}
	var entry enteredUserCode
	text, err := ring.Open(cookies[CookieName], userCodeSealContext)
	if err != nil || json.Unmarshal(text, &entry) != nil || !oauth.EqualSecrets(id, deviceRequestID(entry.Device)) {
		return logins.AuthRequest{}, refusal.NotStartedHere("no code was entered")
	}
	if age := env.Now().Sub(time.Unix(entry.EnteredAt, 0)); age < 0 || age >= logins.AttemptLifetime {
		return logins.AuthRequest{}, refusal.Expired("code")
	}
	return logins.AuthRequest{Device: entry.Device, UserCode: entry.UserCode}, nil
}

// pendingDevice returns the request of a device that waits for a decision. Error: a Refusal if it does not wait, or has expired.
func (f *Flow) pendingDevice(record store.Record) (logins.Login, error) {
	var login logins.Login
	if err := json.Unmarshal(record.Object, &login); err != nil {
		return login, fmt.Errorf("reading the request of a device: %w", err)
	}
	switch {
	case login.Device == nil || login.Stage != logins.StagePending:
		return login, refusal.NotStartedHere("the device does not wait")
	case f.env.Now().Unix() >= login.CodeExpires:
		return login, refusal.Expired("device")
	}
	return login, nil
}

// Details is the device for which a person signs in, as the person sees it.
type Details struct {
	// Code is what the program shows.
	Code string
	// Host is what the program says that its computer is called. Empty: it says nothing.
	Host string
	// Address is the address from which it asked, and Ago how long ago.
	Address string
	Age     time.Duration
}

// Read returns the request for which a person signs in. Errors: Refusal; the store's errors.
func (f *Flow) Read(ctx context.Context, request logins.AuthRequest) (store.Record, logins.Login, error) {
	record, err := f.logins.Records.Get(ctx, request.Device)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return record, logins.Login{}, refusal.Expired("device")
	case err != nil:
		return record, logins.Login{}, fmt.Errorf("reading the request of a device: %w", err)
	}
	login, err := f.pendingDevice(record)
	return record, login, err
}

// Decide stores the decision of a person about a device. The first decision counts. Errors: Refusal; the store's errors.
func (f *Flow) Decide(ctx context.Context, request logins.AuthRequest, login logins.Login, allow bool) error {
	record, deviceLogin, err := f.Read(ctx, request)
	if err != nil {
		return err
	}
	if deviceLogin.Stage = logins.StageDenied; allow {
		deviceLogin.Stage, deviceLogin.User, deviceLogin.UID, deviceLogin.TokenGeneration, deviceLogin.Identity = logins.StageApproved, login.User, login.UID, login.TokenGeneration, login.Identity
		deviceLogin.SealedSession, deviceLogin.LogoutNames = login.SealedSession, login.LogoutNames
		deviceLogin.SessionEnds = login.SessionEnds
	}
	if err := f.logins.Update(ctx, &record, deviceLogin); logins.IsConflict(err) {
		return refusal.NotStartedHere("decided before")
	} else if err != nil {
		return err
	}
	return nil
}

// Poll returns the key for a device code once a person has allowed the login.
//
// Errors: oauth.Error with the codes of RFC 8628, 3.5; the errors of the store and of the keys.
func (f *Flow) Poll(ctx context.Context, code, verifier string, request token.Request) (token.Response, error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetOutcome("refused")
	refuse := func(code, text string) (token.Response, error) {
		return token.Response{}, oauth.NewError(code, text)
	}
	record, err := f.logins.Records.Get(ctx, deviceRecordName(code))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	case err != nil:
		return token.Response{}, fmt.Errorf("reading the request of a device: %w", err)
	}
	var login logins.Login
	if err := json.Unmarshal(record.Object, &login); err != nil {
		return token.Response{}, fmt.Errorf("reading the request of a device: %w", err)
	}
	now := f.env.Now()
	switch {
	case login.Device == nil:
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	case !oauth.IsUnreserved(verifier, 43, 128) || !oauth.EqualSecrets(oauth.S256(verifier), login.AuthRequest.CodeChallenge):
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	case login.Stage == logins.StageDenied:
		recorder.SetOutcome(logins.StageDenied)
		return refuse("access_denied", "the sign-in was refused")
	case login.Stage == logins.StageRedeemed, login.Stage == logins.StageLoggedOut:
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	case now.Unix() >= login.CodeExpires:
		recorder.SetOutcome("expired")
		return refuse("expired_token", "nobody has entered the code in time")
	case login.Stage == logins.StagePending:
		recorder.SetOutcome(logins.StagePending)
		early := now.Before(record.Activity.Add(time.Duration(login.Device.Interval) * time.Second))
		if early {
			login.Device.Interval += int64(pollInterval / time.Second)
			// A concurrent poll, or the decision, was written first. The next poll reads it.
			if err := f.logins.Update(ctx, &record, login); err != nil && !logins.IsConflict(err) {
				return token.Response{}, err
			}
		}
		if err := f.logins.Records.Touch(ctx, record, now, time.Time{}); err != nil {
			return token.Response{}, fmt.Errorf("storing a question of a device: %w", err)
		}
		if early {
			return refuse("slow_down", "the program asks too often")
		}
		return refuse("authorization_pending", "nobody has allowed the sign-in yet")
	}
	recorder.SetUser(login.User)
	recorder.SetConnector(login.Identity.Connector)
	login.Stage = logins.StageRedeemed
	if err := f.logins.Update(ctx, &record, login); logins.IsConflict(err) {
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	} else if err != nil {
		return token.Response{}, err
	}
	response, err := f.tokens.IssueKey(ctx, &record, &login, request)
	if errors.Is(err, token.ErrInvalidGrant) {
		return refuse("invalid_grant", token.ErrInvalidGrant.Error())
	}
	return response, err
}
