package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Parameter returns the only value of a parameter. Error: Refusal if there are several.
func Parameter(values url.Values, name string) (string, error) {
	switch given := values[name]; len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	default:
		return "", refuseBadRequest("the parameter " + name + " is given more than once")
	}
}

// parameters returns several parameters, in the order of their names.
func parameters(values url.Values, names ...string) ([]string, error) {
	results := make([]string, len(names))
	for i, name := range names {
		var err error
		if results[i], err = Parameter(values, name); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Cookie is a cookie of an attempt. An empty value removes it.
type Cookie struct {
	Name, Value string
	MaxAge      time.Duration
}

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
	attempt, newCookies, err := d.newAttempt(ctx, pending, cookies)
	if err != nil {
		return "", nil, err
	}
	address, err := idp.AuthorizationURL(ctx, conn, attempt.providerRequest())
	if err != nil {
		return "", nil, err
	}
	return address, newCookies, nil
}

// EndSessionURL returns the address at which the session of a person at a connector ends. Empty: the connector has none. Errors: Refusal.
func (d *Starter) EndSessionURL(ctx context.Context, idp Provider, id string) (string, error) {
	conn, ok := findConnector(d.env.Config(), id)
	if !ok {
		return "", unknownConnector()
	}
	return idp.EndSessionURL(ctx, conn)
}

// parseAuthorizationRequest returns what a program asks for in the query with which it sends the browser, or the device whose code was entered in this
// browser. Address is that of the platform: the console there is a program as well. Error: Refusal.
func (d *Starter) parseAuthorizationRequest(ctx context.Context, address string, query url.Values, cookies map[string]string) (authRequest, error) {
	if query.Has("device") {
		id, err := Parameter(query, "device")
		if err != nil {
			return authRequest{}, err
		}
		return d.deviceAuthRequest(ctx, id, cookies)
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

// AuthorizePath is the path of the authorization endpoint, for programs that know no connector. Source: RFC 6749, 3.1.
const AuthorizePath = "/auth/authorize"

// RevokePath is the path at which clients of OAuth revoke a token. Source: RFC 7009, 2.
const RevokePath = "/auth/revoke"

// MethodLink is a way to sign in for a program that knows no connector, and the address at which the sign-in begins in it.
type MethodLink struct{ Label, Address string }

// LoginMethods returns the ways to sign in for a program that asks at the authorization endpoint. Errors: Refusal.
func (d *Starter) LoginMethods(ctx context.Context, query url.Values, cookies map[string]string) ([]MethodLink, error) {
	address := Address(d.env.Config())
	methods := loginMethodsAt(d.env, address)
	if len(methods) == 0 {
		return nil, misconfigured("there is no way to sign in with a browser")
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

// loginMethodsAt returns the ways to sign in whose answers name an address of the platform as iss. Source: RFC 9207, 2.4.
func loginMethodsAt(env *platform.Environment, address string) []LoginMethod {
	return slices.DeleteFunc(loginMethods(env), func(method LoginMethod) bool {
		methodAddress, _, ok := methodSettings(env.Config(), method.ID)
		return !ok || methodAddress != address
	})
}

// newAttempt completes a new attempt, and returns the cookies that the browser keeps: the one of this attempt, and those of old attempts
// if it has too many.
func (d *Starter) newAttempt(ctx context.Context, attempt loginAttempt, cookies map[string]string) (loginAttempt, []Cookie, error) {
	attempt.Started = d.env.Now().Unix()
	var err error
	for _, text := range []*string{&attempt.State, &attempt.Nonce, &attempt.Verifier} {
		if *text != "" {
			continue
		}
		if *text, err = randomToken(d.env.Random); err != nil {
			return attempt, nil, err
		}
	}
	value, err := sealAttempt(ctx, d.env, attempt)
	if err != nil {
		return attempt, nil, err
	}
	newCookies := []Cookie{{Name: cookiePrefix + attempt.id(), Value: value, MaxAge: attemptLifetime}}
	var old []string
	for name := range cookies {
		if strings.HasPrefix(name, cookiePrefix) {
			old = append(old, name)
		}
	}
	if len(old) >= maxAttempts {
		slices.Sort(old)
		for _, name := range old {
			newCookies = append(newCookies, Cookie{Name: name})
		}
	}
	return attempt, newCookies, nil
}

// The stages of a stored sign-in.
const (
	stageAuthenticated = "proven"
	stageConsented     = "confirmed"
	stageRedeemed      = "used"
	// stageLoggedOut is a sign-in that its provider has ended. It leads to no key, at whatever stage it was.
	stageLoggedOut = "ended"
)

// storedLogin is a sign-in whose person is known, as it is stored.
type storedLogin struct {
	Stage string `json:"stage"`
	// User, UID and Generation are those of the user at the sign-in.
	User            string `json:"user"`
	UID             string `json:"uid"`
	TokenGeneration int64  `json:"generation,omitempty"`
	// Identity is who the user is at the connector.
	Identity    model.AccessKeyIdentity `json:"identity"`
	AuthRequest authRequest             `json:"client"`
	// Device is the program that waits, if this is its request.
	Device *deviceRecord `json:"device,omitempty"`
	// SealedSession is the Session of the provider, sealed for the user. Empty: there is none.
	SealedSession string `json:"session,omitempty"`
	// LogoutNames are the names by which the provider may end the sign-in.
	LogoutNames []string `json:"logout,omitempty"`
	// CodeExpires is when the code expires, in Unix seconds. 0: there is none yet.
	CodeExpires int64 `json:"ends,omitempty"`
	// SessionEnds is when the session at the connector ends, and with it the key, in Unix seconds. 0: it does not say.
	SessionEnds int64 `json:"sessionEnds,omitempty"`
	// Key is the key that the sign-in gave. Nil: it gave none.
	Key *model.AccessKeyReference `json:"key,omitempty"`
	// SealedProof is a sealed proof, at the stage posted, or the sealed report of a trial, at the stage tried. There is no user then.
	SealedProof string `json:"proof,omitempty"`
}

// withoutBrowserState is what is stored of a program: only the cookie of its browser has the state that the program has sent, and the code
// that somebody has entered.
func (c authRequest) withoutBrowserState() authRequest {
	c.State, c.UserCode = "", ""
	return c
}

// loginRecordName is the name of the record of a sign-in: a state has one record, and so one person.
func loginRecordName(state string) string { return Digest("state", state) }

// TokenField is the field of a form in which somebody enters a token of a connector.
const TokenField = "token"

// TokenPage is the page at which somebody enters a token of a connector.
type TokenPage struct {
	// Connector is the display name, and Host the host to which the token is sent.
	Connector, Host string
	// Path is that of the page, and State the one of the attempt.
	Path, State string
}

// TakesAPIToken reports whether people enter a token of a connector on a page of the platform.
func (f *Flow) TakesAPIToken(id string) bool {
	conn, ok := findConnector(f.env.Config(), id)
	return ok && conn.Token
}

// APITokenPage returns the page of an attempt. Errors: Refusal.
func (f *Flow) APITokenPage(ctx context.Context, id string, query url.Values, cookies map[string]string) (page TokenPage, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return page, err
	}
	attempt, err := openAttempt(ctx, f.env, attemptID(state), cookies)
	if err != nil {
		return page, err
	}
	conn, ok := findConnector(f.env.Config(), id)
	switch {
	case !constantTimeEqual(attempt.State, state) || attempt.Connector != id:
		return page, notStartedHere("state")
	case !ok || !conn.Token || !constantTimeEqual(conn.Fingerprint(), attempt.Fingerprint):
		return page, expired("settings")
	}
	return TokenPage{
		Connector: conn.DisplayName, Host: conn.Settings.ClusterManager.Host, Path: strings.TrimPrefix(conn.RedirectURI, conn.Issuer()), State: state,
	}, nil
}

// HandleCallback takes a browser back from a provider: it learns who the person is, finds or makes their user, and stores the sign-in. It
// returns the path of the page that asks for a confirmation. Empty: it was a trial, and the browser goes nowhere.
//
// Errors: Refusal; those of the store and of the users.
func (f *Flow) HandleCallback(ctx context.Context, idp Provider, id string, query url.Values, cookies map[string]string) (path string, err error) {
	recorder := RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return "", err
	}
	attempt, err := openAttempt(ctx, f.env, attemptID(state), cookies)
	if err != nil {
		return "", err
	}
	conn, ok := findConnector(f.env.Config(), attempt.Connector)
	switch {
	case !constantTimeEqual(attempt.State, state) || attempt.Connector != id:
		// The answer of one provider at the address of another.
		return "", notStartedHere("state")
	case conn.Posts:
		return "", refuseBadRequest("the provider must post its answer")
	case !ok || !constantTimeEqual(conn.Fingerprint(), attempt.Fingerprint):
		return "", expired("settings")
	}
	person, err := idp.HandleCallback(ctx, conn, Response{Request: attempt.providerRequest(), Values: query})
	if attempt.Trial {
		return "", f.completeTrial(ctx, conn, attempt.State, person, err)
	}
	if err != nil {
		return "", err
	}
	login, err := f.completeLogin(ctx, conn, attempt, person)
	if err != nil {
		return "", err
	}
	now := f.env.Now()
	object, err := json.Marshal(login)
	if err != nil {
		return "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	_, err = f.records.Create(ctx, store.Record{
		Name: loginRecordName(attempt.State), Owner: ownerOf(login.User), Created: now, Expires: now.Add(attemptLifetime + codeLifetime), References: login.LogoutNames,
		Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return "", notStartedHere("replay")
	case err != nil:
		return "", fmt.Errorf("storing a sign-in: %w", err)
	}
	return f.consentPath(ctx, conn, attempt), nil
}

// completeLogin finds or makes the user of a person, and returns their sign-in as it is stored.
func (f *Flow) completeLogin(ctx context.Context, conn Connector, attempt loginAttempt, person Person) (storedLogin, error) {
	recorder := RecorderOf(ctx)
	if attempt.Trial {
		return storedLogin{}, notStartedHere("trial")
	}
	account, keyIdentity, err := f.provisionUser(ctx, conn, person)
	if err != nil {
		return storedLogin{}, err
	}
	recorder.SetUser(account.Name)
	session, err := f.sealSession(ctx, person.Session, string(account.UID))
	if err != nil {
		return storedLogin{}, err
	}
	login := storedLogin{
		Stage: stageAuthenticated, User: account.Name, UID: string(account.UID), TokenGeneration: account.Spec.TokenGeneration, Identity: keyIdentity, AuthRequest: attempt.AuthRequest.withoutBrowserState(),
		SealedSession: session, LogoutNames: logoutNames(conn, person.Session),
	}
	if !person.SessionEnds.IsZero() {
		login.SessionEnds = person.SessionEnds.Unix()
	}
	return login, nil
}

// consentPath returns the path of the page that asks for a confirmation of a sign-in that is proven.
func (f *Flow) consentPath(ctx context.Context, conn Connector, attempt loginAttempt) string {
	RecorderOf(ctx).SetOutcome(stageAuthenticated)
	return withQuery(conn.Issuer()+"/auth/confirm", url.Values{"id": {attempt.id()}})
}

// ownerOf is the owner of the sign-ins of a user.
func ownerOf(name string) string { return identity.Owner{Kind: identity.User, Name: name}.String() }

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
func (f *Flow) ConsentRequest(ctx context.Context, id string, cookies map[string]string) (*ConsentRequest, error) {
	attempt, err := openAttempt(ctx, f.env, id, cookies)
	if err != nil {
		return nil, err
	}
	address, settings, ok := methodSettings(f.env.Config(), attempt.Connector)
	if !ok || !constantTimeEqual(settings, attempt.Fingerprint) {
		return nil, expired("settings")
	}
	consent := &ConsentRequest{attempt: attempt, ID: id, Cookie: cookiePrefix + id, Platform: address}
	consent.record, err = f.records.Get(ctx, loginRecordName(attempt.State))
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
	conn, _ := findConnector(f.env.Config(), attempt.Connector)
	consent.Unverified = conn.Unverified
	if attempt.AuthRequest.Device == "" {
		consent.Origin, consent.IsConsole = origin(attempt.AuthRequest.RedirectURI), attempt.AuthRequest.RedirectURI == address+ConsolePath
		return consent, nil
	}
	_, state, err := f.readDevice(ctx, attempt.AuthRequest)
	if err != nil {
		return nil, err
	}
	consent.Device = &DeviceDetails{
		Code: formatUserCode(attempt.AuthRequest.UserCode), Host: state.Device.Host, Address: state.Device.Address,
		Age: f.env.Now().Sub(time.Unix(state.Device.RequestedAt, 0)),
	}
	return consent, nil
}

// Decide stores what the person decided, and returns where the browser goes: with a code if the person allows the sign-in. Empty: it was
// about a device, and the browser goes nowhere. Of several decisions, the first one counts. Errors: Refusal; those of the store.
func (f *Flow) Decide(ctx context.Context, consent *ConsentRequest, allow bool) (string, error) {
	if consent.Device != nil {
		return "", f.decideDevice(ctx, consent, allow)
	}
	answer := url.Values{"state": {consent.attempt.AuthRequest.State}, "iss": {consent.Platform}}
	record, now := consent.record, f.env.Now()
	if allow {
		code, err := randomToken(f.env.Random)
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
	if err := f.writeLogin(ctx, &record, consent.login); err != nil {
		if isConflict(err) {
			return "", notStartedHere("confirmed before")
		}
		return "", err
	}
	return withQuery(consent.attempt.AuthRequest.RedirectURI, answer), nil
}

// codeDigest is the digest by which the state finds a code.
func codeDigest(code string) string { return Digest("code", code) }

// writeLogin replaces the record of a sign-in, which gets its new revision.
func (f *Flow) writeLogin(ctx context.Context, record *store.Record, state storedLogin) error {
	var err error
	if record.Object, err = json.Marshal(state); err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	record.References = state.LogoutNames
	revision, err := f.records.Update(ctx, *record)
	if err != nil {
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	record.Revision = revision
	return nil
}

// isConflict tells that another request was faster.
func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
}

// TokenResponse is what a program gets for a code.
type TokenResponse struct {
	// Key is the access key, and Name that of its object.
	Key     secret.String
	KeyName string
	User    string
	// Expires is when the key stops working. Zero: never.
	Expires time.Time
	// RefreshToken is the refresh token for the key after this one, and RefreshKey the name of the object of its refresh key. Empty: the program
	// asked for no refresh token.
	RefreshToken   secret.String
	RefreshKeyName string
	// Scope is what the program got of the scopes that it asked for. Nil: it asked for none.
	Scope *string
}

// newTokenResponse returns what a program gets of a key that was made just now.
func newTokenResponse(key *model.OwnedAccessKey) TokenResponse {
	response := TokenResponse{Key: secret.String(key.Spec.Key), KeyName: key.Name, User: key.Spec.User}
	if end := key.Status.ExpirationTimestamp; end != nil {
		response.Expires = end.Time
	}
	return response
}

// ErrInvalidGrant says that a code, or what proves that the program asked for it, is not valid, or not any more.
var ErrInvalidGrant = errors.New("the code is not valid any more, or not for this program")

// RedeemCode makes the key of a sign-in. A code works once, whether or not the rest of the request is right. If the program uses it again, the
// key ends.
//
// Errors: ErrInvalidGrant, also if the user is gone, disabled or has signed out since; those of the store and of the keys. Source: RFC 6749, 4.1.2.
func (f *Flow) RedeemCode(ctx context.Context, code, verifier, redirect string, request TokenRequest) (TokenResponse, error) {
	recorder := RecorderOf(ctx)
	recorder.SetOutcome("refused")
	record, err := f.records.GetByDigest(ctx, codeDigest(code))
	var login storedLogin
	switch {
	case errors.Is(err, store.ErrNotFound):
		return TokenResponse{}, ErrInvalidGrant
	case err != nil:
		return TokenResponse{}, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(record.Object, &login); err != nil {
		return TokenResponse{}, fmt.Errorf("reading a sign-in: %w", err)
	}
	recorder.SetUser(login.User)
	recorder.SetConnector(login.Identity.Connector)
	// The code alone is no proof: it has been in an address.
	proved := isUnreserved(verifier, 43, 128) && constantTimeEqual(S256(verifier), login.AuthRequest.CodeChallenge) && constantTimeEqual(redirect, login.AuthRequest.RedirectURI)
	unredeemed := login.Stage == stageConsented
	if unredeemed {
		login.Stage = stageRedeemed
		if err := f.writeLogin(ctx, &record, login); isConflict(err) {
			unredeemed = false
		} else if err != nil {
			return TokenResponse{}, err
		}
	}
	switch {
	case proved && !unredeemed:
		return TokenResponse{}, f.endReusedCode(ctx, record.Name)
	case !proved || f.env.Now().Unix() >= login.CodeExpires:
		return TokenResponse{}, ErrInvalidGrant
	}
	response, err := f.issueKey(ctx, &record, &login, request)
	return response, err
}

// endReusedCode ends the key of a sign-in whose code a program uses again, and returns ErrInvalidGrant, or why the key has not ended. The program has
// lost an answer that somebody may have, or two programs have the code and its verifier. A key that is being made does not reach its
// program. Source: RFC 6749, 4.1.2.
func (f *Flow) endReusedCode(ctx context.Context, name string) error {
	recorder := RecorderOf(ctx)
	record, err := f.records.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrInvalidGrant
	case err != nil:
		return fmt.Errorf("reading a sign-in: %w", err)
	}
	login, err := f.markLoggedOut(ctx, record)
	if err != nil {
		return err
	}
	recorder.SetOutcome("code_reused")
	if login.Key == nil {
		f.env.Log.WarnContext(ctx, "a code was used twice", "user", login.User)
		return ErrInvalidGrant
	}
	key, _, err := f.readKey(ctx, storedSession{Key: login.Key.Name}, login.Key.UID)
	if err != nil || key == nil {
		return cmp.Or(err, ErrInvalidGrant)
	}
	recorder.SetKey(key.Name)
	f.env.Log.WarnContext(ctx, "a code was used twice, and its key has ended", "user", login.User, "key", key.Name)
	if err := resource.Revoke(ctx, f.keys, Sweeper, key); err != nil {
		return err
	}
	return ErrInvalidGrant
}

// issueKey makes the key of a sign-in that is used, with its record. Errors: ErrInvalidGrant if the user is gone or disabled, or has signed out
// since, here or at the provider, or if the code was used again; those of the store and of the keys.
func (f *Flow) issueKey(ctx context.Context, record *store.Record, login *storedLogin, request TokenRequest) (TokenResponse, error) {
	recorder := RecorderOf(ctx)
	if request.Scope == nil {
		request.Scope = login.AuthRequest.Scope
	}
	owner := identity.Owner{Kind: identity.User, Name: login.User}
	refs, err := f.directory.Read(ctx, owner)
	if err != nil {
		return TokenResponse{}, fmt.Errorf("reading the user of a sign-in: %w", err)
	}
	ownerObject := &model.AccessKeyOwner{UID: login.UID, Generation: login.TokenGeneration}
	ownerState, err := f.directory.Of(ctx, owner, refs)
	if err == nil {
		err = ownerState.Fits(ownerObject)
	}
	switch {
	case isOwnerRefused(err) || err == nil && !ownerState.Managed, login.SessionEnds != 0 && f.env.Now().Unix() >= login.SessionEnds:
		return TokenResponse{}, ErrInvalidGrant
	case err != nil:
		return TokenResponse{}, err
	}
	// The key is made with the rights of the user, for the user as they were when they signed in.
	caller := identity.New(owner, nil)
	caller.OwnerObject = ownerObject
	key := f.newLoginKey(login)
	if request.wantsRefreshToken() {
		request.makeRefreshKey(login, key)
	}
	written, err := resource.Create(ctx, f.loginKeys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: ClientID, Object: key})
	if err != nil {
		return TokenResponse{}, err
	}
	if err := f.storeSession(ctx, login, written.Object); err != nil {
		// The provider could not end the key.
		return TokenResponse{}, f.withdrawKey(ctx, written.Object, err)
	}
	// Whoever ends the sign-in marks the record before they look for the key or its session. Either they find it, or this write fails.
	reference := keyReference(written.Object)
	login.Key = &reference
	if err := f.writeLogin(ctx, record, *login); isConflict(err) {
		recorder.SetOutcome(stageLoggedOut)
		return TokenResponse{}, f.withdrawKey(ctx, written.Object, ErrInvalidGrant)
	} else if err != nil {
		return TokenResponse{}, f.withdrawKey(ctx, written.Object, err)
	}
	response := newTokenResponse(written.Object)
	response.Scope = request.Scope
	if request.wantsRefreshToken() {
		if response, err = f.issueFirstRefreshToken(ctx, written.Object); err != nil {
			if errors.Is(err, ErrInvalidRefreshToken) {
				err = ErrInvalidGrant
			}
			return TokenResponse{}, f.withdrawKey(ctx, written.Object, err)
		}
	}
	recorder.SetOutcome("key_made")
	recorder.SetKey(response.KeyName)
	f.deleteOldestKeys(ctx, owner, written.Object.Name)
	return response, nil
}

// newLoginKey returns the key of a sign-in. Source: Spec 2.5 (type, ttl, identity).
func (f *Flow) newLoginKey(login *storedLogin) *model.OwnedAccessKey {
	_, ttl := accesskey.LimitSeconds(f.env.Config())
	if remaining := login.SessionEnds - f.env.Now().Unix(); login.SessionEnds != 0 && (ttl <= 0 || remaining < ttl) {
		ttl = remaining
	}
	keyIdentity := login.Identity
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: accesskey.LoginPrefix},
		Spec: model.OwnedAccessKeySpec{
			User: login.User, Type: model.AccessKeyTypeLogin, TTLSeconds: max(0, ttl), Identity: &keyIdentity,
			Description: login.keyDescription(),
		},
	}
	if login.Device != nil {
		key.GenerateName = accesskey.DevicePrefix
	}
	if login.SealedSession != "" {
		key.Spec.IdentityRefresh = &metav1.Time{Time: f.env.Now()}
	}
	return key
}
