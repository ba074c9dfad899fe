package authorize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// stagePosted is the stage after the provider's form and before the browser's cookie: the person is known, and the browser is not
	// yet. A browser sends no cookie with a form of another site. Source: ADR-0038.
	stagePosted = "posted"
	// postedOwner owns these sign-ins in the state.
	postedOwner = "posted"
	// postedLifetime is how long they are kept. No answer can be accepted for longer, so that each is accepted once.
	postedLifetime = logins.AttemptLifetime + logins.CodeLifetime + 2*time.Minute
)

// postedProof is the person of a posted response, as it is stored. It is sealed, because no browser has proven yet that it started this
// attempt.
type postedProof struct {
	Person provider.Person `json:"person"`
	// Connector is its ID, and Settings are its Fingerprint.
	Connector   string `json:"connector"`
	Fingerprint string `json:"settings"`
}

// HandlePostedResponse takes the response that a browser posts from the provider's site. It identifies the person, and stores them for
// ResumePosted: no login is complete yet. It returns the address to which the browser that started the login is sent. Empty: the login was
// a trial.
//
// Errors: Refusal; the store's errors.
func (e *Callback) HandlePostedResponse(ctx context.Context, idp provider.Provider, id string, form url.Values) (address string, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetConnector(id)
	defer func() { recorder.SetError(err) }()
	state, err := oauth.Parameter(form, "RelayState")
	if err != nil {
		return "", err
	}
	conn, ok := method.FindConnector(e.env.Config(), id)
	switch {
	case !ok || !conn.PostBinding:
		return "", refusal.UnknownConnector()
	case !oauth.IsUnreserved(state, logins.StateLength, logins.StateLength):
		// The login was started at the provider, or not here.
		return "", refusal.NotStartedHere("RelayState")
	}
	if conn.Unverified {
		recorder.SetUnverified()
	}
	person, err := idp.HandleCallback(ctx, conn, provider.Response{Request: provider.Request{State: state}, Values: form})
	if err != nil {
		// The browser has no cookie here that tells a trial.
		if trialErr := e.reporter.Complete(ctx, conn, state, person, err); !errors.As(trialErr, new(*refusal.Refusal)) {
			return "", trialErr
		}
		return "", err
	}
	ring, err := e.env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(postedProof{Person: person, Connector: id, Fingerprint: conn.Fingerprint()})
	if err != nil {
		return "", fmt.Errorf("encoding a proof: %w", err)
	}
	sealed, err := ring.Seal(text, logins.ProofSealContext(state))
	if errors.Is(err, encryption.ErrNoKey) {
		return "", refusal.Misconfigured("the platform has no encryption key").WithCause(err)
	} else if err != nil {
		return "", err
	}
	object, err := json.Marshal(logins.Login{Stage: stagePosted, SealedProof: sealed})
	if err != nil {
		return "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := e.env.Now()
	_, err = e.logins.Records.Create(ctx, store.Record{
		Name: logins.RecordName(state), Owner: postedOwner, Created: now, Expires: now.Add(postedLifetime), Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		if trialErr := e.reporter.Complete(ctx, conn, state, person, nil); !errors.As(trialErr, new(*refusal.Refusal)) {
			return "", trialErr
		}
		return "", refusal.NotStartedHere("replay")
	case err != nil:
		return "", fmt.Errorf("storing a sign-in: %w", err)
	}
	recorder.SetOutcome(stagePosted)
	return oauth.WithQuery(conn.Issuer()+"/auth/resume", url.Values{"id": {logins.AttemptID(state)}}), nil
}

// ResumePosted takes back the browser that started a login, after HandlePostedResponse: it finds or creates the user. It returns the path
// of the consent page.
//
// Errors: Refusal; the errors of the store and of the users.
func (e *Callback) ResumePosted(ctx context.Context, id string, cookies map[string]string) (path string, err error) {
	recorder := annotations.RecorderOf(ctx)
	defer func() { recorder.SetError(err) }()
	attempt, err := logins.OpenAttempt(ctx, e.env, id, cookies)
	if err != nil {
		return "", err
	}
	recorder.SetConnector(attempt.Connector)
	record, err := e.logins.Records.Get(ctx, logins.RecordName(attempt.State))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", refusal.NotStartedHere("not posted")
	case err != nil:
		return "", fmt.Errorf("reading a sign-in: %w", err)
	}
	var stored logins.Login
	if err := json.Unmarshal(record.Object, &stored); err != nil {
		return "", fmt.Errorf("reading a sign-in: %w", err)
	}
	if stored.Stage != stagePosted {
		return "", refusal.NotStartedHere("resumed before")
	}
	ring, err := e.env.Keyring(ctx)
	if err != nil {
		return "", err
	}
	var proof postedProof
	text, err := ring.Open(stored.SealedProof, logins.ProofSealContext(attempt.State))
	if err != nil {
		return "", fmt.Errorf("opening a proof: %w", err)
	}
	if err := json.Unmarshal(text, &proof); err != nil {
		return "", fmt.Errorf("reading a proof: %w", err)
	}
	conn, ok := method.FindConnector(e.env.Config(), attempt.Connector)
	switch {
	case proof.Connector != attempt.Connector:
		return "", refusal.NotStartedHere("connector")
	case !ok || !oauth.EqualSecrets(conn.Fingerprint(), attempt.Fingerprint) || !oauth.EqualSecrets(proof.Fingerprint, attempt.Fingerprint):
		return "", refusal.Expired("settings")
	}
	login, err := e.completeLogin(ctx, conn, attempt, proof.Person)
	if err != nil {
		return "", err
	}
	record.Owner = logins.OwnerName(login.User)
	if err := e.logins.Update(ctx, &record, login); logins.IsConflict(err) {
		return "", refusal.NotStartedHere("resumed before")
	} else if err != nil {
		return "", err
	}
	return e.consentPath(ctx, conn, attempt), nil
}
