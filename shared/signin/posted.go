package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// posted is the stage after the provider's form and before the browser's cookie: the person is known, and the browser is not
	// yet. A browser sends no cookie with a form of another site. Source: ADR-0038.
	posted = "posted"
	// postedOwner owns these sign-ins in the state.
	postedOwner = "posted"
	// postedFor is how long they are kept. No answer can be accepted for longer, so that each is accepted once.
	postedFor = attemptFor + codeFor + 2*time.Minute
)

// proof is what a posted answer has proven, as it is stored: sealed, because no browser has shown yet that it began this attempt.
type proof struct {
	Person Person `json:"person"`
	// Connector is its ID, and Settings are its Fingerprint.
	Connector string `json:"connector"`
	Settings  string `json:"settings"`
}

// proofPlace is what the proof of a state is sealed for.
func proofPlace(state string) string { return Resource + "/proof/" + nameOf(state) }

// Receive takes the answer of a provider that a browser posts from the provider's site. It learns who the person is, and keeps that for
// Resume: nobody is signed in yet. It returns the address at which the browser that began the sign-in goes on. Empty: it was a trial. Notes are for the audit,
// also after an error.
//
// Errors: Refusal; those of the store.
func (f *Flow) Receive(ctx context.Context, provider Provider, id string, form url.Values) (address string, notes map[string]string, err error) {
	notes = map[string]string{AnnotationConnector: id}
	defer func() { Annotate(notes, err) }()
	state, err := Parameter(form, "RelayState")
	if err != nil {
		return "", notes, err
	}
	chosen, known := lookup(f.env.Config(), id)
	switch {
	case !known || !chosen.Posts:
		return "", notes, unknownConnector()
	case !isToken(state, stateLength, stateLength):
		// Somebody began at the provider, or it is the answer to nobody here.
		return "", notes, notStartedHere("RelayState")
	}
	if chosen.Unverified {
		notes[AnnotationUnverified] = "true"
	}
	person, err := provider.Finish(ctx, chosen, Answer{Request: Request{State: state}, Values: form})
	if err != nil {
		// The browser has no cookie here that tells a trial.
		if wrong := f.try(ctx, chosen, state, person, err, notes); !errors.As(wrong, new(*Refusal)) {
			return "", notes, wrong
		}
		return "", notes, err
	}
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return "", notes, err
	}
	text, err := json.Marshal(proof{Person: person, Connector: id, Settings: chosen.Fingerprint()})
	if err != nil {
		return "", notes, fmt.Errorf("encoding a proof: %w", err)
	}
	sealed, err := ring.Seal(text, proofPlace(state))
	if errors.Is(err, encryption.ErrNoKey) {
		return "", notes, misconfigured("the platform has no encryption key").because(err)
	} else if err != nil {
		return "", notes, err
	}
	object, err := json.Marshal(signIn{Stage: posted, Proof: sealed})
	if err != nil {
		return "", notes, fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := f.env.Now()
	_, err = f.records.Create(ctx, store.Record{
		Name: nameOf(state), Owner: postedOwner, Created: now, Expires: now.Add(postedFor), Object: object,
	})
	switch {
	case errors.Is(err, store.ErrExists):
		if wrong := f.try(ctx, chosen, state, person, nil, notes); !errors.As(wrong, new(*Refusal)) {
			return "", notes, wrong
		}
		return "", notes, notStartedHere("replay")
	case err != nil:
		return "", notes, fmt.Errorf("storing a sign-in: %w", err)
	}
	notes[AnnotationOutcome] = posted
	return with(chosen.Issuer()+"/auth/resume", url.Values{"id": {idOf(state)}}), notes, nil
}

// Resume takes the browser back that began a sign-in, after Receive: it finds or makes the user. It returns the path of the page that
// asks for a confirmation. Notes are for the audit, also after an error.
//
// Errors: Refusal; those of the store and of the users.
func (f *Flow) Resume(ctx context.Context, id string, cookies map[string]string) (path string, notes map[string]string, err error) {
	notes = map[string]string{}
	defer func() { Annotate(notes, err) }()
	begun, err := unseal(ctx, f.env, id, cookies)
	if err != nil {
		return "", notes, err
	}
	notes[AnnotationConnector] = begun.Connector
	record, err := f.records.Get(ctx, nameOf(begun.State))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", notes, notStartedHere("not posted")
	case err != nil:
		return "", notes, fmt.Errorf("reading a sign-in: %w", err)
	}
	var state signIn
	if err := json.Unmarshal(record.Object, &state); err != nil {
		return "", notes, fmt.Errorf("reading a sign-in: %w", err)
	}
	if state.Stage != posted {
		return "", notes, notStartedHere("resumed before")
	}
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return "", notes, err
	}
	var proven proof
	text, err := ring.Open(state.Proof, proofPlace(begun.State))
	if err != nil {
		return "", notes, fmt.Errorf("opening a proof: %w", err)
	}
	if err := json.Unmarshal(text, &proven); err != nil {
		return "", notes, fmt.Errorf("reading a proof: %w", err)
	}
	chosen, known := lookup(f.env.Config(), begun.Connector)
	switch {
	case proven.Connector != begun.Connector:
		return "", notes, notStartedHere("connector")
	case !known || !same(chosen.Fingerprint(), begun.Settings) || !same(proven.Settings, begun.Settings):
		return "", notes, expired("settings")
	}
	next, err := f.prove(ctx, chosen, begun, proven.Person, notes)
	if err != nil {
		return "", notes, err
	}
	record.Owner = ownerOf(next.User)
	if err := f.write(ctx, &record, next); lost(err) {
		return "", notes, notStartedHere("resumed before")
	} else if err != nil {
		return "", notes, err
	}
	return f.asks(chosen, begun, notes), notes, nil
}
