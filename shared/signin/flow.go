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
		return "", badRequest("the parameter " + name + " is given more than once")
	}
}

// parameters returns several parameters, in the order of their names.
func parameters(values url.Values, names ...string) ([]string, error) {
	found := make([]string, len(names))
	for i, name := range names {
		var err error
		if found[i], err = Parameter(values, name); err != nil {
			return nil, err
		}
	}
	return found, nil
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
func (d *Doors) Start(ctx context.Context, provider Provider, id string, query url.Values, sent map[string]string) (string, []Cookie, error) {
	chosen, known := lookup(d.env.Config(), id)
	if !known {
		return "", nil, unknownConnector()
	}
	next, err := attempt{Connector: chosen.ID, Settings: chosen.Fingerprint()}, error(nil)
	if query.Has(trialParameter) {
		next.Trial = true
		next.State, err = trialState(query)
	} else {
		next.Client, err = d.asked(ctx, chosen.Issuer(), query, sent)
	}
	if err != nil {
		return "", nil, err
	}
	begun, cookies, err := d.begin(ctx, next, sent)
	if err != nil {
		return "", nil, err
	}
	address, err := provider.Begin(ctx, chosen, begun.request())
	if err != nil {
		return "", nil, err
	}
	return address, cookies, nil
}

// End returns the address at which the session of a person at a connector ends. Empty: the connector has none. Errors: Refusal.
func (d *Doors) End(ctx context.Context, provider Provider, id string) (string, error) {
	chosen, known := lookup(d.env.Config(), id)
	if !known {
		return "", unknownConnector()
	}
	return provider.End(ctx, chosen)
}

// asked returns what a program asks for in the query with which it sends the browser, or the device whose code was entered in this
// browser. Address is that of the platform: the console there is a program as well. Error: Refusal.
func (d *Doors) asked(ctx context.Context, address string, query url.Values, sent map[string]string) (client, error) {
	if query.Has("device") {
		id, err := Parameter(query, "device")
		if err != nil {
			return client{}, err
		}
		return d.ofDevice(ctx, id, sent)
	}
	given, err := parameters(query, "response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope")
	if err != nil {
		return client{}, err
	}
	switch {
	case given[0] != "code":
		return client{}, badRequest("response_type must be code")
	case given[1] != ClientID:
		return client{}, badRequest("client_id must be " + ClientID)
	case !isLoopback(given[2]) && given[2] != address+ConsolePath:
		return client{}, badRequest("redirect_uri must be an address on this computer, such as http://127.0.0.1:4711/callback")
	case given[4] != "S256" || !isToken(given[3], 43, 43):
		return client{}, badRequest("code_challenge must be that of the method S256")
	case !isToken(given[5], 8, 128):
		return client{}, badRequest("state must have 8 to 128 letters, digits and - . _ ~")
	}
	return client{Redirect: given[2], Challenge: given[3], State: given[5], Scope: grantedScope(given[6])}, nil
}

// AuthorizePath is the path of the authorization endpoint, for programs that know no connector. Source: RFC 6749, 3.1.
const AuthorizePath = "/auth/authorize"

// RevokePath is the path at which clients of OAuth revoke a token. Source: RFC 7009, 2.
const RevokePath = "/auth/revoke"

// Choice is a way to sign in for a program that knows no connector, and the address at which the sign-in begins in it.
type Choice struct{ Label, Address string }

// Choose returns the ways to sign in for a program that asks at the authorization endpoint. Errors: Refusal.
func (d *Doors) Choose(ctx context.Context, query url.Values, sent map[string]string) ([]Choice, error) {
	address := Address(d.env.Config())
	found := waysAt(d.env, address)
	if len(found) == 0 {
		return nil, misconfigured("there is no way to sign in with a browser")
	}
	if _, err := d.asked(ctx, address, query, sent); err != nil {
		return nil, err
	}
	var choices []Choice
	for _, way := range found {
		choices = append(choices, Choice{way.Label, with("/auth/"+way.ID+"/login", query)})
	}
	return choices, nil
}

// waysAt returns the ways to sign in whose answers name an address of the platform as iss. Source: RFC 9207, 2.4.
func waysAt(env *platform.Environment, address string) []Way {
	return slices.DeleteFunc(ways(env), func(way Way) bool {
		at, _, known := door(env.Config(), way.ID)
		return !known || at != address
	})
}

// begin completes a new attempt, and returns the cookies that the browser keeps: the one of this attempt, and those of old attempts
// if it has too many.
func (d *Doors) begin(ctx context.Context, begun attempt, sent map[string]string) (attempt, []Cookie, error) {
	begun.Started = d.env.Now().Unix()
	var err error
	for _, text := range []*string{&begun.State, &begun.Nonce, &begun.Verifier} {
		if *text != "" {
			continue
		}
		if *text, err = random(d.env.Random); err != nil {
			return begun, nil, err
		}
	}
	value, err := seal(ctx, d.env, begun)
	if err != nil {
		return begun, nil, err
	}
	cookies := []Cookie{{Name: cookiePrefix + begun.id(), Value: value, MaxAge: attemptFor}}
	var old []string
	for name := range sent {
		if strings.HasPrefix(name, cookiePrefix) {
			old = append(old, name)
		}
	}
	if len(old) >= maxAttempts {
		slices.Sort(old)
		for _, name := range old {
			cookies = append(cookies, Cookie{Name: name})
		}
	}
	return begun, cookies, nil
}

// The stages of a stored sign-in.
const (
	proven    = "proven"
	confirmed = "confirmed"
	used      = "used"
	// ended is a sign-in that its provider has ended. It leads to no key, at whatever stage it was.
	ended = "ended"
)

// signIn is a sign-in whose person is known, as it is stored.
type signIn struct {
	Stage string `json:"stage"`
	// User, UID and Generation are those of the user at the sign-in.
	User       string `json:"user"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation,omitempty"`
	// Identity is who the user is at the connector.
	Identity model.AccessKeyIdentity `json:"identity"`
	Client   client                  `json:"client"`
	// Device is the program that waits, if this is its request.
	Device *device `json:"device,omitempty"`
	// Session is the Session of the provider, sealed for the user. Empty: there is none.
	Session string `json:"session,omitempty"`
	// Logout are the names by which the provider may end the sign-in.
	Logout []string `json:"logout,omitempty"`
	// Ends is when the code expires, in Unix seconds. 0: there is none yet.
	Ends int64 `json:"ends,omitempty"`
	// SessionEnds is when the session at the connector ends, and with it the key, in Unix seconds. 0: it does not say.
	SessionEnds int64 `json:"sessionEnds,omitempty"`
	// Key is the key that the sign-in gave. Nil: it gave none.
	Key *model.AccessKeyReference `json:"key,omitempty"`
	// Proof is a sealed proof, at the stage posted, or the sealed report of a trial, at the stage tried. There is no user then.
	Proof string `json:"proof,omitempty"`
}

// withoutState is what is stored of a program: only the cookie of its browser has the state that the program has sent, and the code
// that somebody has entered.
func (c client) withoutState() client {
	c.State, c.Code = "", ""
	return c
}

// nameOf is the name of the record of a sign-in: a state has one record, and so one person.
func nameOf(state string) string { return Digest("state", state) }

// TokenField is the field of a form in which somebody enters a token of a connector.
const TokenField = "token"

// TokenPage is the page at which somebody enters a token of a connector.
type TokenPage struct {
	// Connector is the display name, and Host the host to which the token is sent.
	Connector, Host string
	// Path is that of the page, and State the one of the attempt.
	Path, State string
}

// AsksForToken reports whether people enter a token of a connector on a page of the platform.
func (f *Flow) AsksForToken(id string) bool {
	chosen, known := lookup(f.env.Config(), id)
	return known && chosen.Token
}

// TokenPage returns the page of an attempt. Errors: Refusal. Notes are for the audit, also after an error.
func (f *Flow) TokenPage(ctx context.Context, id string, query url.Values, cookies map[string]string) (page TokenPage, notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: id}
	defer func() { Annotate(notes, err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return page, notes, err
	}
	begun, err := unseal(ctx, f.env, idOf(state), cookies)
	if err != nil {
		return page, notes, err
	}
	chosen, known := lookup(f.env.Config(), id)
	switch {
	case !same(begun.State, state) || begun.Connector != id:
		return page, notes, notStartedHere("state")
	case !known || !chosen.Token || !same(chosen.Fingerprint(), begun.Settings):
		return page, notes, expired("settings")
	}
	return TokenPage{
		Connector: chosen.DisplayName, Host: chosen.Settings.ClusterManager.Host, Path: strings.TrimPrefix(chosen.RedirectURI, chosen.Issuer()), State: state,
	}, notes, nil
}

// Finish takes a browser back from a provider: it learns who the person is, finds or makes their user, and stores the sign-in. It
// returns the path of the page that asks for a confirmation. Empty: it was a trial, and the browser goes nowhere. Notes are for the audit, also after
// an error.
//
// Errors: Refusal; those of the store and of the users.
func (f *Flow) Finish(ctx context.Context, provider Provider, id string, query url.Values, cookies map[string]string) (path string, notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: id}
	defer func() { Annotate(notes, err) }()
	state, err := Parameter(query, "state")
	if err != nil {
		return "", notes, err
	}
	begun, err := unseal(ctx, f.env, idOf(state), cookies)
	if err != nil {
		return "", notes, err
	}
	chosen, known := lookup(f.env.Config(), begun.Connector)
	switch {
	case !same(begun.State, state) || begun.Connector != id:
		// The answer of one provider at the address of another.
		return "", notes, notStartedHere("state")
	case chosen.Posts:
		return "", notes, badRequest("the provider must post its answer")
	case !known || !same(chosen.Fingerprint(), begun.Settings):
		return "", notes, expired("settings")
	}
	person, err := provider.Finish(ctx, chosen, Answer{Request: begun.request(), Values: query})
	if begun.Trial {
		return "", notes, f.try(ctx, chosen, begun.State, person, err, notes)
	}
	if err != nil {
		return "", notes, err
	}
	next, err := f.prove(ctx, chosen, begun, person, notes)
	if err != nil {
		return "", notes, err
	}
	now := f.env.Now()
	object, err := json.Marshal(next)
	if err != nil {
		return "", notes, fmt.Errorf("encoding a sign-in: %w", err)
	}
	_, err = f.records.Create(ctx, store.Record{
		Name: nameOf(begun.State), Owner: ownerOf(next.User), Created: now, Expires: now.Add(attemptFor + codeFor), References: next.Logout,
		Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		return "", notes, notStartedHere("replay")
	case err != nil:
		return "", notes, fmt.Errorf("storing a sign-in: %w", err)
	}
	return f.asks(chosen, begun, notes), notes, nil
}

// prove finds or makes the user of a person, and returns their sign-in as it is stored.
func (f *Flow) prove(ctx context.Context, chosen Connector, begun attempt, person Person, notes map[string]string) (signIn, error) {
	if begun.Trial {
		return signIn{}, notStartedHere("trial")
	}
	found, mapped, err := f.admit(ctx, chosen, person, notes)
	if err != nil {
		return signIn{}, err
	}
	notes[AnnotationUser] = found.Name
	session, err := f.sealSession(ctx, person.Session, string(found.UID))
	if err != nil {
		return signIn{}, err
	}
	next := signIn{
		Stage: proven, User: found.Name, UID: string(found.UID), Generation: found.Spec.TokenGeneration, Identity: mapped, Client: begun.Client.withoutState(),
		Session: session, Logout: logoutNames(chosen, person.Session),
	}
	if !person.SessionEnds.IsZero() {
		next.SessionEnds = person.SessionEnds.Unix()
	}
	return next, nil
}

// asks returns the path of the page that asks for a confirmation of a sign-in that is proven.
func (f *Flow) asks(chosen Connector, begun attempt, notes map[string]string) string {
	notes[AnnotationOutcome] = proven
	return with(chosen.Issuer()+"/auth/confirm", url.Values{"id": {begun.id()}})
}

// ownerOf is the owner of the sign-ins of a user.
func ownerOf(name string) string { return identity.Owner{Kind: identity.User, Name: name}.String() }

// Pending is a sign-in that the person has not confirmed yet.
type Pending struct {
	// User is the name of the user, and Account who they are at the connector.
	User, Account string
	// Origin is that of the program that gets the key. Empty: it is that on a Device.
	Origin string
	// Console tells that the program is the console, in the same browser.
	Console bool
	// Device is the device for which somebody signs in. Nil: it is a program on the computer of the browser.
	Device *Device
	// Unverified tells that the answer of the provider was not verified.
	Unverified bool
	// Cookie is the name of the cookie of the attempt.
	Cookie string
	// Platform is the address of the platform, and ID that of the attempt.
	Platform, ID string

	begun  attempt
	record store.Record
	state  signIn
}

// Pending returns the sign-in with an ID that this browser began. Errors: Refusal; those of the store.
func (f *Flow) Pending(ctx context.Context, id string, cookies map[string]string) (*Pending, error) {
	begun, err := unseal(ctx, f.env, id, cookies)
	if err != nil {
		return nil, err
	}
	address, settings, known := door(f.env.Config(), begun.Connector)
	if !known || !same(settings, begun.Settings) {
		return nil, expired("settings")
	}
	found := &Pending{begun: begun, ID: id, Cookie: cookiePrefix + id, Platform: address}
	found.record, err = f.records.Get(ctx, nameOf(begun.State))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, notStartedHere("not proven")
	case err != nil:
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(found.record.Object, &found.state); err != nil {
		return nil, fmt.Errorf("reading a sign-in: %w", err)
	}
	if found.state.Stage != proven {
		return nil, notStartedHere("confirmed before")
	}
	found.User, found.Account = found.state.User, found.state.Identity.Username
	chosen, _ := lookup(f.env.Config(), begun.Connector)
	found.Unverified = chosen.Unverified
	if begun.Client.Device == "" {
		found.Origin, found.Console = origin(begun.Client.Redirect), begun.Client.Redirect == address+ConsolePath
		return found, nil
	}
	_, state, err := f.device(ctx, begun.Client)
	if err != nil {
		return nil, err
	}
	found.Device = &Device{
		Code: showCode(begun.Client.Code), Host: state.Device.Host, Address: state.Device.Address,
		Ago: f.env.Now().Sub(time.Unix(state.Device.Asked, 0)),
	}
	return found, nil
}

// Decide stores what the person decided, and returns where the browser goes: with a code if the person allows the sign-in. Empty: it was
// about a device, and the browser goes nowhere. Of several decisions, the first one counts. Errors: Refusal; those of the store.
func (f *Flow) Decide(ctx context.Context, pending *Pending, allow bool) (string, error) {
	if pending.Device != nil {
		return "", f.decideDevice(ctx, pending, allow)
	}
	answer := url.Values{"state": {pending.begun.Client.State}, "iss": {pending.Platform}}
	record, now := pending.record, f.env.Now()
	if allow {
		code, err := random(f.env.Random)
		if err != nil {
			return "", err
		}
		answer.Set("code", code)
		record.Digest = codeDigest(code)
		pending.state.Stage, pending.state.Ends = confirmed, now.Add(codeFor).Unix()
	} else {
		answer.Set("error", "access_denied")
		pending.state.Stage = used
	}
	if err := f.write(ctx, &record, pending.state); err != nil {
		if lost(err) {
			return "", notStartedHere("confirmed before")
		}
		return "", err
	}
	return with(pending.begun.Client.Redirect, answer), nil
}

// codeDigest is the digest by which the state finds a code.
func codeDigest(code string) string { return Digest("code", code) }

// write replaces the record of a sign-in, which gets its new revision.
func (f *Flow) write(ctx context.Context, record *store.Record, state signIn) error {
	var err error
	if record.Object, err = json.Marshal(state); err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	record.References = state.Logout
	revision, err := f.records.Update(ctx, *record)
	if err != nil {
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	record.Revision = revision
	return nil
}

// lost tells that another request was faster.
func lost(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
}

// Grant is what a program gets for a code.
type Grant struct {
	// Key is the access key, and Name that of its object.
	Key  secret.String
	Name string
	User string
	// Expires is when the key stops working. Zero: never.
	Expires time.Time
	// Refresh is the refresh token for the key after this one, and RefreshKey the name of the object of its refresh key. Empty: the program
	// asked for no refresh token.
	Refresh    secret.String
	RefreshKey string
	// Scope is what the program got of the scopes that it asked for. Nil: it asked for none.
	Scope *string
}

// grantOf returns what a program gets of a key that was made just now.
func grantOf(key *model.OwnedAccessKey) Grant {
	granted := Grant{Key: secret.String(key.Spec.Key), Name: key.Name, User: key.Spec.User}
	if end := key.Status.ExpirationTimestamp; end != nil {
		granted.Expires = end.Time
	}
	return granted
}

// ErrGrant says that a code, or what proves that the program asked for it, is not valid, or not any more.
var ErrGrant = errors.New("the code is not valid any more, or not for this program")

// Exchange makes the key of a sign-in. A code works once, whether or not the rest of the request is right. If the program uses it again, the
// key ends. Notes are for the audit.
//
// Errors: ErrGrant, also if the user is gone, disabled or has signed out since; those of the store and of the keys. Source: RFC 6749, 4.1.2.
func (f *Flow) Exchange(ctx context.Context, code, verifier, redirect string, wanted Wanted) (Grant, map[string]string, error) {
	notes := map[string]string{AnnotationOutcome: "refused"}
	record, err := f.records.GetByDigest(ctx, codeDigest(code))
	var state signIn
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Grant{}, notes, ErrGrant
	case err != nil:
		return Grant{}, notes, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return Grant{}, notes, fmt.Errorf("reading a sign-in: %w", err)
	}
	notes[AnnotationUser], notes[AnnotationConnector] = state.User, state.Identity.Connector
	// The code alone is no proof: it has been in an address.
	proves := isToken(verifier, 43, 128) && same(S256(verifier), state.Client.Challenge) && same(redirect, state.Client.Redirect)
	fresh := state.Stage == confirmed
	if fresh {
		state.Stage = used
		if err := f.write(ctx, &record, state); lost(err) {
			fresh = false
		} else if err != nil {
			return Grant{}, notes, err
		}
	}
	switch {
	case proves && !fresh:
		return Grant{}, notes, f.reusedCode(ctx, record.Name, notes)
	case !proves || f.env.Now().Unix() >= state.Ends:
		return Grant{}, notes, ErrGrant
	}
	granted, err := f.grant(ctx, &record, &state, wanted, notes)
	return granted, notes, err
}

// reusedCode ends the key of a sign-in whose code a program uses again, and returns ErrGrant, or why the key has not ended. The program has
// lost an answer that somebody may have, or two programs have the code and its verifier. A key that is being made does not reach its
// program. Source: RFC 6749, 4.1.2.
func (f *Flow) reusedCode(ctx context.Context, name string, notes map[string]string) error {
	record, err := f.records.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrGrant
	case err != nil:
		return fmt.Errorf("reading a sign-in: %w", err)
	}
	state, err := f.endSignIn(ctx, record)
	if err != nil {
		return err
	}
	notes[AnnotationOutcome] = "code_reused"
	if state.Key == nil {
		f.env.Log.WarnContext(ctx, "a code was used twice", "user", state.User)
		return ErrGrant
	}
	key, _, err := f.storedKey(ctx, stored{Key: state.Key.Name}, state.Key.UID)
	if err != nil || key == nil {
		return cmp.Or(err, ErrGrant)
	}
	notes[AnnotationKey] = key.Name
	f.env.Log.WarnContext(ctx, "a code was used twice, and its key has ended", "user", state.User, "key", key.Name)
	if err := resource.Revoke(ctx, f.all, Sweeper, key); err != nil {
		return err
	}
	return ErrGrant
}

// grant makes the key of a sign-in that is used, with its record. Errors: ErrGrant if the user is gone or disabled, or has signed out
// since, here or at the provider, or if the code was used again; those of the store and of the keys.
func (f *Flow) grant(ctx context.Context, record *store.Record, state *signIn, wanted Wanted, notes map[string]string) (Grant, error) {
	if wanted.Scope == nil {
		wanted.Scope = state.Client.Scope
	}
	owner := identity.Owner{Kind: identity.User, Name: state.User}
	read, err := f.people.Read(ctx, owner)
	if err != nil {
		return Grant{}, fmt.Errorf("reading the user of a sign-in: %w", err)
	}
	made := &model.AccessKeyOwner{UID: state.UID, Generation: state.Generation}
	present, err := f.people.Of(ctx, owner, read)
	if err == nil {
		err = present.Fits(made)
	}
	switch {
	case refusedOwner(err) || err == nil && !present.Managed, state.SessionEnds != 0 && f.env.Now().Unix() >= state.SessionEnds:
		return Grant{}, ErrGrant
	case err != nil:
		return Grant{}, err
	}
	// The key is made with the rights of the user, for the user as they were when they signed in.
	caller := identity.New(owner, nil)
	caller.OwnerObject = made
	key := f.key(state)
	if wanted.offline() {
		wanted.refreshKey(state, key)
	}
	written, err := resource.Create(ctx, f.keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: ClientID, Object: key})
	if err != nil {
		return Grant{}, err
	}
	if err := f.keepSession(ctx, state, written.Object); err != nil {
		// The provider could not end the key.
		return Grant{}, f.withdraw(ctx, written.Object, err)
	}
	// Whoever ends the sign-in marks the record before they look for the key or its session. Either they find it, or this write fails.
	reference := referenceOf(written.Object)
	state.Key = &reference
	if err := f.write(ctx, record, *state); lost(err) {
		notes[AnnotationOutcome] = ended
		return Grant{}, f.withdraw(ctx, written.Object, ErrGrant)
	} else if err != nil {
		return Grant{}, f.withdraw(ctx, written.Object, err)
	}
	granted := grantOf(written.Object)
	granted.Scope = wanted.Scope
	if wanted.offline() {
		if granted, err = f.firstRefreshed(ctx, written.Object); err != nil {
			if errors.Is(err, ErrRefresh) {
				err = ErrGrant
			}
			return Grant{}, f.withdraw(ctx, written.Object, err)
		}
	}
	notes[AnnotationOutcome], notes[AnnotationKey] = "key_made", granted.Name
	f.forget(ctx, owner, written.Object.Name)
	return granted, nil
}

// key returns the key of a sign-in. Source: Spec 2.5 (type, ttl, identity).
func (f *Flow) key(state *signIn) *model.OwnedAccessKey {
	_, ttl := accesskey.LimitSeconds(f.env.Config())
	if left := state.SessionEnds - f.env.Now().Unix(); state.SessionEnds != 0 && (ttl <= 0 || left < ttl) {
		ttl = left
	}
	who := state.Identity
	made := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: accesskey.LoginPrefix},
		Spec: model.OwnedAccessKeySpec{
			User: state.User, Type: model.AccessKeyTypeLogin, TTLSeconds: max(0, ttl), Identity: &who,
			Description: state.description(),
		},
	}
	if state.Device != nil {
		made.GenerateName = accesskey.DevicePrefix
	}
	if state.Session != "" {
		made.Spec.IdentityRefresh = &metav1.Time{Time: f.env.Now()}
	}
	return made
}
