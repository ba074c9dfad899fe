package signin

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
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/store"
)

const (
	// DeviceGrant is the grant_type of a program that waits for somebody to enter its code. Source: RFC 8628, 3.4.
	DeviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	// DevicePath is the path of the page where somebody enters a code.
	DevicePath = "/auth/device"
	// DeviceCookie is the cookie of a browser in which somebody has entered a code.
	DeviceCookie = "__Host-device"

	// deviceFor is how long a code can be entered, and its key be fetched.
	deviceFor = 10 * time.Minute
	// deviceInterval is the time between two questions of a program, and what each question that comes too early adds to it.
	deviceInterval = 5 * time.Second
	// deviceOwner owns the requests in the state, so that their number has a bound.
	deviceOwner = "device"
	// codeLetters are the letters of codes: no vowels, so that they form no words, and none that looks like another.
	codeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	// codeLength is the length of a code. There are 25,600,000,000.
	codeLength = 8
	// maxHost is the longest name that a program says its computer has, in bytes.
	maxHost = 64
)

// The stages of the request of a device.
const (
	waiting = "waiting"
	allowed = "allowed"
	denied  = "denied"
)

// device is what is stored of a program that waits for somebody to enter its code. Source: RFC 8628.
type device struct {
	// Host is what the program says that its computer is called. Empty: it says nothing.
	Host string `json:"host,omitempty"`
	// Address is the address from which it asked, and Asked when, in Unix seconds.
	Address string `json:"address"`
	Asked   int64  `json:"asked"`
	// Interval is how many seconds there must be between two of its questions.
	Interval int64 `json:"interval"`
}

// entered is a code that somebody has entered in a browser. It is in a cookie, sealed.
type entered struct {
	// Device is the name of the record of the request.
	Device string `json:"device"`
	Code   string `json:"code"`
	// At is when the code was entered, in Unix seconds.
	At int64 `json:"at"`
}

// DevicesEnabled reports whether people can sign in with the code of a device.
func DevicesEnabled(env *platform.Environment) bool {
	return env.DeviceLogin != settings.Off && len(ways(env)) > 0
}

// Devices returns the Refusal for the paths of devices if nobody can sign in with a code. Nil: people can.
func Devices(env *platform.Environment) error {
	switch {
	case env.DeviceLogin == settings.Off:
		return unknownConnector()
	case !DevicesEnabled(env):
		return misconfigured("there is no way to sign in with a browser")
	default:
		return nil
	}
}

// Way is a way to sign in, for a page that offers several.
type Way struct{ ID, Label string }

// ways returns the ways to sign in with a browser.
func ways(env *platform.Environment) []Way {
	config := env.Config()
	var found []Way
	for _, one := range Connectors(config) {
		found = append(found, Way{one.ID, one.DisplayName})
	}
	if PasswordEnabled(config) && Address(config) != "" {
		found = append(found, Way{PasswordID, "Password"})
	}
	return found
}

// DeviceRequest is what a program gets that asks for a code. Source: RFC 8628, 3.2.
type DeviceRequest struct {
	DeviceCode string `json:"device_code"`
	// UserCode is what somebody enters at VerificationURI.
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	// ExpiresIn and Interval are seconds.
	ExpiresIn int64 `json:"expires_in"`
	Interval  int64 `json:"interval"`
}

// OAuthError says what is wrong with the request of a program, in the words of OAuth. Source: RFC 6749, 5.2; RFC 8628, 3.5.
type OAuthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
	// Status is the status of the answer.
	Status int `json:"-"`
}

// Error returns the code.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// Wrong returns an OAuthError with the status of most of them.
func Wrong(code, description string) *OAuthError { return &OAuthError{code, description, 400} }

// CheckClient checks what a program says that it is, in its form or by HTTP Basic authentication, or in both. A program that need not say
// it may leave it out. Error: OAuthError. Source: RFC 6749, 2.3.1, 3.2.1 and 5.2.
func CheckClient(form url.Values, basic *url.Userinfo, mayLeaveOut bool) error {
	id, err := Parameter(form, "client_id")
	if err != nil {
		return Wrong("invalid_request", "client_id is given more than once")
	}
	if basic == nil {
		if id == ClientID || id == "" && mayLeaveOut {
			return nil
		}
		return Wrong("invalid_client", "client_id must be "+ClientID)
	}
	if password, _ := basic.Password(); basic.Username() != ClientID || password != "" || id != "" && id != ClientID {
		refused := Wrong("invalid_client", "the client must be "+ClientID+", with an empty secret")
		refused.Status = 401
		return refused
	}
	return nil
}

// AskDevice takes the request of a program that has no browser. Basic is what it sent by HTTP Basic authentication, address is where it
// comes from, and network what limits tell it apart by. It is stored, although nobody is known: the number of requests is bounded. Notes are for the audit, also after an error.
//
// Errors: OAuthError; Refusal; TooManyRequests; those of the store.
func (f *Flow) AskDevice(ctx context.Context, form url.Values, basic *url.Userinfo, address, network string) (made DeviceRequest, notes map[string]string, err error) {
	notes = map[string]string{}
	defer func() { Annotate(notes, err) }()
	if err := Devices(f.env); err != nil {
		return made, notes, err
	}
	made.VerificationURI = Address(f.env.Config()) + DevicePath
	if err := CheckClient(form, basic, false); err != nil {
		return made, notes, err
	}
	given, err := parameters(form, "code_challenge", "code_challenge_method", "hostname", "scope")
	switch {
	case err != nil:
		return made, notes, Wrong("invalid_request", "a parameter is given more than once")
	case given[1] != "S256" || !isToken(given[0], 43, 43):
		return made, notes, Wrong("invalid_request", "code_challenge must be that of the method S256")
	case given[2] != "" && !isToken(given[2], 1, maxHost):
		return made, notes, Wrong("invalid_request", "hostname must have at most 64 letters, digits and - . _ ~")
	}
	counter := Throttle(f.env, "too many codes were asked for: try again later")
	if _, err := counter.Take(ctx, throttle.Count{
		Parts: []string{"device", network}, Most: limits.DeviceRequestsOfAddress, Window: limits.DeviceRequestsWindow,
	}); err != nil {
		return made, notes, throttled(err)
	}
	if made.DeviceCode, err = random(f.env.Random); err != nil {
		return made, notes, err
	}
	now := f.env.Now()
	object, err := json.Marshal(signIn{
		Stage: waiting, Client: client{Challenge: given[0], Scope: grantedScope(given[3])}, Ends: now.Add(deviceFor).Unix(),
		Device: &device{Host: given[2], Address: address, Asked: now.Unix(), Interval: int64(deviceInterval / time.Second)},
	})
	if err != nil {
		return made, notes, fmt.Errorf("encoding the request of a device: %w", err)
	}
	for range maxTries {
		code, err := drawCode(f.env.Random)
		if err != nil {
			return made, notes, err
		}
		_, err = f.records.Create(ctx, store.Record{
			Name: deviceName(made.DeviceCode), Owner: deviceOwner, Digest: enteredDigest(code), Quota: store.Quota{Objects: limits.DeviceRequests},
			Created: now, Expires: now.Add(deviceFor + codeFor), Object: object,
		})
		switch {
		case errors.Is(err, store.ErrTaken):
			// The code is that of another request.
			continue
		case errors.Is(err, store.ErrQuota):
			return made, notes, throttled(apierror.TooMany("too many devices wait for a sign-in: try again later", int32(codeFor/time.Second)))
		case err != nil:
			return made, notes, fmt.Errorf("storing the request of a device: %w", err)
		}
		made.UserCode = showCode(code)
		made.VerificationURIComplete = with(made.VerificationURI, url.Values{"user_code": {made.UserCode}})
		made.ExpiresIn, made.Interval = int64(deviceFor/time.Second), int64(deviceInterval/time.Second)
		notes[AnnotationOutcome] = waiting
		return made, notes, nil
	}
	return made, notes, busy()
}

// deviceName is the name of the record of a request, by the code that only the program has.
func deviceName(code string) string { return Digest("device", code) }

// enteredDigest is the digest by which the state finds the code that people enter.
func enteredDigest(code string) string { return Digest("user code", code) }

// drawCode returns a code that people enter.
func drawCode(source io.Reader) (string, error) {
	var code strings.Builder
	for code.Len() < codeLength {
		var drawn [codeLength]byte
		if _, err := io.ReadFull(source, drawn[:]); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		for _, b := range drawn {
			// Each letter is as likely as the others.
			if int(b) < 256/len(codeLetters)*len(codeLetters) && code.Len() < codeLength {
				code.WriteByte(codeLetters[int(b)%len(codeLetters)])
			}
		}
	}
	return code.String(), nil
}

// showCode returns a code as people read it.
func showCode(code string) string { return code[:codeLength/2] + "-" + code[codeLength/2:] }

// readCode returns the code that somebody has typed: blanks, hyphens and small letters are fine. Empty: it is none.
func readCode(text string) string {
	if len(text) > maxHost {
		return ""
	}
	code := strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '\t' {
			return -1
		}
		return c
	}, strings.ToUpper(text))
	if len(code) != codeLength || strings.Trim(code, codeLetters) != "" {
		return ""
	}
	return code
}

// ErrCode says that a code is that of no device.
var ErrCode = errors.New("the code is not known, or has expired")

// EnteredCode is a code that somebody has entered, of a device that waits.
type EnteredCode struct {
	// Code is the code as people read it.
	Code string
	// Ways are the ways to sign in.
	Ways []Way
	// Cookie is what the browser keeps.
	Cookie Cookie

	id string
}

// URL is the address at which the sign-in begins in one of its ways.
func (e *EnteredCode) URL(way Way) string {
	return with("/auth/"+way.ID+"/login", url.Values{"device": {e.id}})
}

// EnterCode takes the code that somebody types. Network is what limits tell the browser apart by. Notes are for the audit, also after
// an error.
//
// Errors: Refusal, ErrCode among them; those of the store.
func (f *Flow) EnterCode(ctx context.Context, typed, network string) (found *EnteredCode, notes map[string]string, err error) {
	notes = map[string]string{}
	defer func() { Annotate(notes, err) }()
	if err := Devices(f.env); err != nil {
		return nil, notes, err
	}
	counter := Throttle(f.env, "too many wrong codes: try again later")
	giveBack, err := counter.Take(ctx, throttle.Count{
		Parts: []string{"user code", network}, Most: limits.DeviceCodesOfAddress, Window: limits.DeviceCodesWindow,
	})
	if err != nil {
		return nil, notes, throttled(err)
	}
	wrong := refuse("wrong_code", "", bad(ErrCode.Error())).because(ErrCode)
	code := readCode(typed)
	if code == "" {
		return nil, notes, wrong
	}
	record, err := f.records.GetByDigest(ctx, enteredDigest(code))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, notes, wrong
	case err != nil:
		return nil, notes, fmt.Errorf("reading the request of a device: %w", err)
	}
	if _, err := f.waiting(record); err != nil {
		return nil, notes, wrong
	}
	giveBack(ctx)
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return nil, notes, err
	}
	text, err := json.Marshal(entered{Device: record.Name, Code: code, At: f.env.Now().Unix()})
	if err != nil {
		return nil, notes, fmt.Errorf("encoding a code: %w", err)
	}
	sealed, err := ring.Seal(text, enteredPlace)
	if err != nil {
		return nil, notes, misconfigured("the platform has no encryption key").because(err)
	}
	notes[AnnotationOutcome] = "code_entered"
	return &EnteredCode{
		Code: showCode(code), Ways: ways(f.env), id: enteredID(record.Name),
		Cookie: Cookie{Name: DeviceCookie, Value: sealed, MaxAge: attemptFor},
	}, notes, nil
}

// enteredPlace is what the cookie of a code is sealed for.
const enteredPlace = Resource + "/device"

// enteredID names a request in the URL of a sign-in.
func enteredID(name string) string { return Digest("entered", name)[:16] }

// ofDevice returns the program for which a browser signs in, if somebody has entered its code in this browser: no link of others leads
// past the page where codes are entered. Errors: Refusal.
func (d *Doors) ofDevice(ctx context.Context, id string, cookies map[string]string) (client, error) {
	ring, err := d.env.Keyring(ctx)
	if err != nil {
		return client{}, err
	}
	var found entered
	text, err := ring.Open(cookies[DeviceCookie], enteredPlace)
	if err != nil || json.Unmarshal(text, &found) != nil || !same(id, enteredID(found.Device)) {
		return client{}, notStartedHere("no code was entered")
	}
	if age := d.env.Now().Sub(time.Unix(found.At, 0)); age < 0 || age >= attemptFor {
		return client{}, expired("code")
	}
	return client{Device: found.Device, Code: found.Code}, nil
}

// waiting returns the request of a device that waits for a decision. Error: Refusal if it does not, or not any more.
func (f *Flow) waiting(record store.Record) (signIn, error) {
	var state signIn
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return state, fmt.Errorf("reading the request of a device: %w", err)
	}
	switch {
	case state.Device == nil || state.Stage != waiting:
		return state, notStartedHere("the device does not wait")
	case f.env.Now().Unix() >= state.Ends:
		return state, expired("device")
	}
	return state, nil
}

// Device is the program for which somebody signs in, as they see it.
type Device struct {
	// Code is what the program shows.
	Code string
	// Host is what the program says that its computer is called. Empty: it says nothing.
	Host string
	// Address is the address from which it asked, and Ago how long ago.
	Address string
	Ago     time.Duration
}

// device returns the request for which somebody signs in. Errors: Refusal; those of the store.
func (f *Flow) device(ctx context.Context, program client) (store.Record, signIn, error) {
	record, err := f.records.Get(ctx, program.Device)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return record, signIn{}, expired("device")
	case err != nil:
		return record, signIn{}, fmt.Errorf("reading the request of a device: %w", err)
	}
	state, err := f.waiting(record)
	return record, state, err
}

// decideDevice stores what somebody decided about a device. The first decision counts. Errors: those of Decide.
func (f *Flow) decideDevice(ctx context.Context, pending *Pending, allow bool) error {
	record, state, err := f.device(ctx, pending.begun.Client)
	if err != nil {
		return err
	}
	if state.Stage = denied; allow {
		proof := pending.state
		state.Stage, state.User, state.UID, state.Generation, state.Identity = allowed, proof.User, proof.UID, proof.Generation, proof.Identity
		state.Session, state.Logout = proof.Session, proof.Logout
		state.SessionEnds = proof.SessionEnds
	}
	if err := f.write(ctx, &record, state); lost(err) {
		return notStartedHere("decided before")
	} else if err != nil {
		return err
	}
	// What the browser has proven is used. The decision counts if this is not stored.
	pending.state.Stage = used
	_ = f.write(ctx, &pending.record, pending.state)
	return nil
}

// PollDevice makes the key for a program once somebody has allowed it. Notes are for the audit.
//
// Errors: OAuthError with the codes of RFC 8628, 3.5; those of the store and of the keys.
func (f *Flow) PollDevice(ctx context.Context, code, verifier string, wanted Wanted) (Grant, map[string]string, error) {
	notes := map[string]string{AnnotationOutcome: "refused"}
	refuse := func(code, text string) (Grant, map[string]string, error) {
		return Grant{}, notes, Wrong(code, text)
	}
	record, err := f.records.Get(ctx, deviceName(code))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refuse("invalid_grant", ErrGrant.Error())
	case err != nil:
		return Grant{}, notes, fmt.Errorf("reading the request of a device: %w", err)
	}
	var state signIn
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return Grant{}, notes, fmt.Errorf("reading the request of a device: %w", err)
	}
	now := f.env.Now()
	switch {
	case state.Device == nil:
		return refuse("invalid_grant", ErrGrant.Error())
	case !isToken(verifier, 43, 128) || !same(S256(verifier), state.Client.Challenge):
		return refuse("invalid_grant", ErrGrant.Error())
	case state.Stage == denied:
		notes[AnnotationOutcome] = denied
		return refuse("access_denied", "the sign-in was refused")
	case state.Stage == used, state.Stage == ended:
		return refuse("invalid_grant", ErrGrant.Error())
	case now.Unix() >= state.Ends:
		notes[AnnotationOutcome] = "expired"
		return refuse("expired_token", "nobody has entered the code in time")
	case state.Stage == waiting:
		notes[AnnotationOutcome] = waiting
		early := now.Before(record.Activity.Add(time.Duration(state.Device.Interval) * time.Second))
		if early {
			state.Device.Interval += int64(deviceInterval / time.Second)
			// A question at the same time, or a decision, was faster. The next question is answered by what it wrote.
			if err := f.write(ctx, &record, state); err != nil && !lost(err) {
				return Grant{}, notes, err
			}
		}
		if err := f.records.Touch(ctx, record, now, time.Time{}); err != nil {
			return Grant{}, notes, fmt.Errorf("storing a question of a device: %w", err)
		}
		if early {
			return refuse("slow_down", "the program asks too often")
		}
		return refuse("authorization_pending", "nobody has allowed the sign-in yet")
	}
	notes[AnnotationUser], notes[AnnotationConnector] = state.User, state.Identity.Connector
	state.Stage = used
	if err := f.write(ctx, &record, state); lost(err) {
		return refuse("invalid_grant", ErrGrant.Error())
	} else if err != nil {
		return Grant{}, notes, err
	}
	granted, err := f.grant(ctx, &record, &state, wanted, notes)
	if errors.Is(err, ErrGrant) {
		return refuse("invalid_grant", ErrGrant.Error())
	}
	return granted, notes, err
}

// description says in the key of a sign-in what it is for.
func (state *signIn) description() string {
	switch {
	case state.Device != nil && state.Device.Host != "":
		return "Sign-in of a program on " + state.Device.Host + ", " + state.Device.Address
	case state.Device != nil:
		return "Sign-in of a program at " + state.Device.Address
	case state.Client.Redirect == OutOfBand:
		return "Sign-in with a password"
	case !isLoopback(state.Client.Redirect):
		return "Sign-in of the console"
	default:
		return "Sign-in of a program at " + origin(state.Client.Redirect)
	}
}
