package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/state/store"
)

// The stages of a trial: a sign-in that runs all checks, signs nobody in, and writes nothing but its report. Only a program with the state
// begins one: it stores the state of the sign-in before a browser has it.
const (
	trying = "trying"
	tried  = "tried"
	// trialOwner owns trials in the state.
	trialOwner = "trial"
	// trialParameter is the parameter with the state at the start of a trial.
	trialParameter = "trial"
)

// Trial is what a sign-in would have done.
type Trial struct {
	// Refusal is the check that has refused it, with the reason. Empty: all checks have passed.
	Refusal string `json:"refusal,omitempty"`
	// Claims are the names of the claims that came, sorted, and Absent is that of Person.
	Claims []string `json:"claims,omitempty"`
	Absent []string `json:"absent,omitempty"`
	// LeftOut names what came and does not fit.
	LeftOut string `json:"leftOut,omitempty"`
	// ID identifies the person at the connector.
	ID          string `json:"id,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Email       string `json:"email,omitempty"`
	// User is the user of the person. Empty: there is none, and NewUser is the name that one would get, if it is free.
	User    string `json:"user,omitempty"`
	NewUser string `json:"newUser,omitempty"`
	// Groups are those that the user would have, and Teams the teams that list one of them, or the user.
	Groups []string `json:"groups,omitempty"`
	Teams  []string `json:"teams,omitempty"`
	// NewTeams are the groups for which a team would be made.
	NewTeams []string `json:"newTeams,omitempty"`
}

// BeginTrial stores a trial at a connector, for ten minutes. It returns the address at which a person signs in for it, and its state. Errors:
// Refusal; those of the store.
func (f *Flow) BeginTrial(ctx context.Context, id string) (address, state string, err error) {
	chosen, known := lookup(f.env.Config(), id)
	if !known {
		return "", "", unknownConnector()
	}
	if state, err = random(f.env.Random); err != nil {
		return "", "", err
	}
	object, err := json.Marshal(signIn{Stage: trying})
	if err != nil {
		return "", "", fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := f.env.Now()
	_, err = f.records.Create(ctx, store.Record{Name: nameOf(state), Owner: trialOwner, Created: now, Expires: now.Add(attemptFor), Object: object})
	if err != nil {
		return "", "", fmt.Errorf("storing a sign-in: %w", err)
	}
	return with(chosen.LoginURL(), url.Values{trialParameter: {state}}), state, nil
}

// EndTrial returns the report of a trial, and removes it. False: nobody has signed in yet. Errors: Refusal if it has expired; those of the store.
func (f *Flow) EndTrial(ctx context.Context, state string) (Trial, bool, error) {
	var report Trial
	record, stored, err := f.trial(ctx, state)
	switch {
	case err != nil:
		return report, false, err
	case stored.Stage == trying:
		return report, false, nil
	case stored.Stage != tried:
		return report, false, expired("trial")
	}
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return report, false, err
	}
	text, err := ring.Open(stored.Proof, proofPlace(state))
	if err != nil {
		return report, false, fmt.Errorf("opening the report of a trial: %w", err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return report, false, fmt.Errorf("reading the report of a trial: %w", err)
	}
	if _, err := f.records.Delete(ctx, record.Name, record.Revision); err != nil && !lost(err) {
		return report, false, fmt.Errorf("removing a trial: %w", err)
	}
	return report, true, nil
}

// trial returns the record of a sign-in with a state. Its stage is empty if there is none.
func (f *Flow) trial(ctx context.Context, state string) (record store.Record, stored signIn, err error) {
	record, err = f.records.Get(ctx, nameOf(state))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return record, stored, nil
	case err != nil:
		return record, stored, fmt.Errorf("reading a sign-in: %w", err)
	}
	if err = json.Unmarshal(record.Object, &stored); err != nil {
		err = fmt.Errorf("reading a sign-in: %w", err)
	}
	return record, stored, err
}

// trialState returns the state of a trial from the query of its start.
func trialState(query url.Values) (string, error) {
	state, err := Parameter(query, trialParameter)
	if err == nil && !isToken(state, stateLength, stateLength) {
		err = badRequest("trial must be the address that platform doctor has printed")
	}
	return state, err
}

// try stores the report of a trial: of a person, or of why the provider's answer was refused. Errors: refused; Refusal if no trial waits for that
// state; those of the store.
func (f *Flow) try(ctx context.Context, chosen Connector, state string, person Person, refused error, notes map[string]string) error {
	record, stored, err := f.trial(ctx, state)
	switch {
	case err != nil:
		return err
	case stored.Stage != trying:
		return notStartedHere("trial")
	}
	report, err := f.report(ctx, chosen, person, refused)
	if err != nil {
		return err
	}
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encoding the report of a trial: %w", err)
	}
	ring, err := f.env.Keyring(ctx)
	if err != nil {
		return err
	}
	sealed, err := ring.Seal(text, proofPlace(state))
	if err != nil {
		return err
	}
	if record.Object, err = json.Marshal(signIn{Stage: tried, Proof: sealed}); err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	if _, err := f.records.Update(ctx, record); lost(err) {
		return notStartedHere("trial")
	} else if err != nil {
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	notes[AnnotationOutcome] = tried
	return refused
}

// report returns what a sign-in of a person would do. It writes nothing. Errors: those of the store and of the users.
func (f *Flow) report(ctx context.Context, chosen Connector, person Person, refused error) (Trial, error) {
	done := Trial{Claims: person.Claims, Absent: person.Absent, ID: person.Subject}
	settings, said := f.env.Config().Auth, map[string]string{}
	var refusal *Refusal
	if refused != nil || settings == nil {
		done.Refusal = "failed"
		if errors.As(refused, &refusal) {
			done.Refusal = refusal.Error()
		}
		return done, nil
	}
	groups, spec, _, err := mapped(chosen, person, settings.GroupsFilters, said)
	done.LeftOut, done.DisplayName, done.Email, done.Groups = said[AnnotationLeftOut], spec.DisplayName, spec.Email, groups
	if err == nil {
		found, wrong := f.find(ctx, chosen.ID, person.Subject)
		switch {
		case wrong != nil:
			err = wrong
		case found != nil:
			done.User = found.Name
		case settings.DisableUserCreation:
			err = notSetUp("disableUserCreation")
		default:
			done.NewUser = candidates(wantedName(chosen, person), "user", user.Digest(chosen.ID, person.Subject))[0]
		}
	}
	if errors.As(err, &refusal) {
		done.Refusal = refusal.Error()
		return done, nil
	}
	if err != nil {
		return done, err
	}
	missing, err := f.people.Unlisted(ctx, groups)
	if err != nil {
		return done, err
	}
	if !settings.DisableTeamCreation {
		done.NewTeams = missing
	}
	done.Teams = f.people.TeamsOf(done.User, groups...)
	return done, nil
}
