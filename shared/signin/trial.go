package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// The stages of a trial: a sign-in that runs all checks, signs nobody in, and writes nothing but its report. An admin, or a program with the
// state, begins one: it is stored before a browser has its state.
const (
	trying = "trying"
	tried  = "tried"
	// trialOwner owns the trials of programs with the state. Those of a caller of the API have an owner of their own, below it.
	trialOwner = "trial"
	// trialParameter is the parameter with the state at the start of a trial.
	trialParameter = "trial"
)

// ErrTrial says that there is no such trial, or not any more, or not of this owner.
var ErrTrial = errors.New("the trial is not known, or has expired, or its report was given before")

// Trials are the sign-ins on trial of an environment, for whoever begins them. It is safe for concurrent use.
type Trials struct {
	env     *platform.Environment
	records store.Store
}

// OpenTrials returns the trials of an environment.
func OpenTrials(env *platform.Environment) *Trials { return &Trials{env: env, records: Records(env)} }

// BegunTrial is a trial for which nobody has signed in.
type BegunTrial struct {
	// Address is where a person signs in. It contains the State.
	Address string
	// State is the secret by which the owner ends the trial.
	State string
	// Expires is when the trial ends by itself.
	Expires time.Time
}

// Begin stores a trial at a connector, for ten minutes. Owner is the caller of the API who begins it; empty: it is a program with the state. An
// owner has at most limits.SignInTrials.
//
// Errors: Refusal; those of the store.
func (t *Trials) Begin(ctx context.Context, id, owner string) (BegunTrial, error) {
	chosen, known := lookup(t.env.Config(), id)
	if !known {
		return BegunTrial{}, unknownConnector()
	}
	state, err := random(t.env.Random)
	if err != nil {
		return BegunTrial{}, err
	}
	object, err := json.Marshal(signIn{Stage: trying, Identity: model.AccessKeyIdentity{Connector: chosen.ID}})
	if err != nil {
		return BegunTrial{}, fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := t.env.Now()
	begun := BegunTrial{Address: with(chosen.LoginURL(), url.Values{trialParameter: {state}}), State: state, Expires: now.Add(attemptFor)}
	_, err = t.records.Create(ctx, store.Record{
		Name: nameOf(state), Owner: ownerOfTrials(owner), Quota: store.Quota{Objects: limits.SignInTrials}, Created: now, Expires: begun.Expires, Object: object,
	})
	switch {
	case errors.Is(err, store.ErrQuota):
		return BegunTrial{}, throttled(apierror.TooMany("too many trials of sign-ins are open: try again later", int32(codeFor/time.Second)))
	case err != nil:
		return BegunTrial{}, fmt.Errorf("storing a sign-in: %w", err)
	}
	return begun, nil
}

// ownerOfTrials is the owner of the trials of a caller of the API; empty: of a program with the state.
func ownerOfTrials(caller string) string {
	if caller == "" {
		return trialOwner
	}
	return trialOwner + "/" + caller
}

// Report returns the report of a trial that its owner has begun, and when the trial ends. Nil: nobody has signed in yet.
//
// Errors: a Refusal that is ErrTrial; those of the store.
func (t *Trials) Report(ctx context.Context, state, owner string) (*model.SignInTrialReport, time.Time, error) {
	report, record, err := t.read(ctx, state, owner)
	return report, record.Expires, err
}

// End is Report, and removes a trial that has a report: a report is given once.
func (t *Trials) End(ctx context.Context, state, owner string) (*model.SignInTrialReport, time.Time, error) {
	report, record, err := t.read(ctx, state, owner)
	if err != nil || report == nil {
		return nil, record.Expires, err
	}
	if _, err := t.records.Delete(ctx, record.Name, record.Revision); err != nil && !lost(err) {
		return nil, record.Expires, fmt.Errorf("removing a trial: %w", err)
	}
	return report, record.Expires, nil
}

// read returns the report of a trial, nil if there is none yet, and its record.
func (t *Trials) read(ctx context.Context, state, owner string) (*model.SignInTrialReport, store.Record, error) {
	record, stored, err := t.find(ctx, state)
	switch {
	case err != nil:
		return nil, record, err
	case stored.Stage != trying && stored.Stage != tried || record.Owner != ownerOfTrials(owner):
		return nil, store.Record{}, expired("trial").because(ErrTrial)
	case stored.Stage == trying:
		return nil, record, nil
	}
	ring, err := t.env.Keyring(ctx)
	if err != nil {
		return nil, record, err
	}
	text, err := ring.Open(stored.Proof, proofPlace(state))
	if err != nil {
		return nil, record, fmt.Errorf("opening the report of a trial: %w", err)
	}
	var report model.SignInTrialReport
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, record, fmt.Errorf("reading the report of a trial: %w", err)
	}
	return &report, record, nil
}

// find returns the record of a sign-in with a state. Its stage is empty if there is none, or not any more.
func (t *Trials) find(ctx context.Context, state string) (record store.Record, stored signIn, err error) {
	record, err = t.records.Get(ctx, nameOf(state))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Record{}, stored, nil
	case err != nil:
		return store.Record{}, stored, fmt.Errorf("reading a sign-in: %w", err)
	case !t.env.Now().Before(record.Expires):
		// It is removed later.
		return store.Record{}, stored, nil
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
		err = badRequest("trial is not that of a trial: open the address as it was given")
	}
	return state, err
}

// try stores the report of a trial: of a person, or of why the provider's answer was refused. Errors: refused; Refusal if no trial waits for that
// state; those of the store.
func (f *Flow) try(ctx context.Context, chosen Connector, state string, person Person, refused error, notes map[string]string) error {
	record, stored, err := f.trials.find(ctx, state)
	switch {
	case err != nil:
		return err
	case stored.Stage != trying || stored.Identity.Connector != chosen.ID:
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
	if record.Object, err = json.Marshal(signIn{Stage: tried, Identity: stored.Identity, Proof: sealed}); err != nil {
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
func (f *Flow) report(ctx context.Context, chosen Connector, person Person, refused error) (model.SignInTrialReport, error) {
	done := model.SignInTrialReport{Claims: person.Claims, Absent: person.Absent, ID: person.Subject}
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
