// Package trial has sign-ins on trial: all checks run, no person is signed in, and only the report is stored. Source: Spec 5.4; ADR-0031.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/provisioning"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/store"
)

// The stages of a trial. A trial is a sign-in that runs all checks, signs no person in, and writes only its report. An admin, or
// a program with access to the store, begins a trial. The trial is stored before a browser has its State.
const (
	stageTrialPending  = "trying"
	stageTrialComplete = "tried"
	// trialOwnerPrefix is the owner of the trials of programs with access to the store. The owner of the trials of a caller of
	// the API begins with it.
	trialOwnerPrefix = "trial"
	// Parameter is the parameter with the state at the start of a trial.
	Parameter = "trial"
)

// ErrUnknown says that there is no such trial, that it has expired, or that it belongs to another owner.
var ErrUnknown = errors.New("the trial is not known, or has expired, or its report was given before")

// Trials are the sign-ins on trial of an environment, for their owners. It is safe for concurrent use.
type Trials struct {
	env     *platform.Environment
	records store.Store
}

// Open returns the trials of an environment.
func Open(env *platform.Environment) *Trials {
	return &Trials{env: env, records: logins.Open(env).Records}
}

// Trial is a trial that was started.
type Trial struct {
	// Address is where a person signs in. It contains the State.
	Address string
	// State is the secret by which the owner ends the trial.
	State string
	// Expires is when the trial ends by itself.
	Expires time.Time
}

// Begin stores a trial at a connector, for ten minutes. Owner is the caller of the API who starts it; empty: the owner is a program with
// access to the state. An owner has at most limits.SignInTrials.
//
// Errors: Refusal; the store's errors.
func (t *Trials) Begin(ctx context.Context, id, owner string) (Trial, error) {
	conn, ok := method.FindConnector(t.env.Config(), id)
	if !ok {
		return Trial{}, refusal.UnknownConnector()
	}
	state, err := oauth.RandomText(t.env.Random)
	if err != nil {
		return Trial{}, err
	}
	object, err := json.Marshal(logins.Login{Stage: stageTrialPending, Identity: model.AccessKeyIdentity{Connector: conn.ID}})
	if err != nil {
		return Trial{}, fmt.Errorf("encoding a sign-in: %w", err)
	}
	now := t.env.Now()
	trial := Trial{Address: oauth.WithQuery(conn.LoginURL(), url.Values{Parameter: {state}}), State: state, Expires: now.Add(logins.AttemptLifetime)}
	_, err = t.records.Create(ctx, store.Record{
		Name: logins.RecordName(state), Owner: trialOwnerName(owner), Quota: store.Quota{Objects: limits.SignInTrials}, Created: now, Expires: trial.Expires, Object: object,
	})
	switch {
	case errors.Is(err, store.ErrQuota):
		return Trial{}, refusal.Throttled(apierror.TooMany("too many trials of sign-ins are open: try again later", int32(logins.CodeLifetime/time.Second)))
	case err != nil:
		return Trial{}, fmt.Errorf("storing a sign-in: %w", err)
	}
	return trial, nil
}

// trialOwnerName is the owner of the trials of a caller of the API; an empty caller is a program with access to the state.
func trialOwnerName(caller string) string {
	if caller == "" {
		return trialOwnerPrefix
	}
	return trialOwnerPrefix + "/" + caller
}

// Report returns the report of a trial, and when the trial ends. Nil: no person has signed in yet.
//
// Errors: a Refusal with the cause ErrUnknown; the store's errors.
func (t *Trials) Report(ctx context.Context, state, owner string) (*model.SignInTrialReport, time.Time, error) {
	report, record, err := t.readReport(ctx, state, owner)
	return report, record.Expires, err
}

// End is Report, and removes a trial that has a report: a report is returned once.
func (t *Trials) End(ctx context.Context, state, owner string) (*model.SignInTrialReport, time.Time, error) {
	report, record, err := t.readReport(ctx, state, owner)
	if err != nil || report == nil {
		return nil, record.Expires, err
	}
	if _, err := t.records.Delete(ctx, record.Name, record.Revision); err != nil && !logins.IsConflict(err) {
		return nil, record.Expires, fmt.Errorf("removing a trial: %w", err)
	}
	return report, record.Expires, nil
}

// readReport returns the report of a trial, nil if there is none yet, and its record.
func (t *Trials) readReport(ctx context.Context, state, owner string) (*model.SignInTrialReport, store.Record, error) {
	record, login, err := t.findTrial(ctx, state)
	switch {
	case err != nil:
		return nil, record, err
	case login.Stage != stageTrialPending && login.Stage != stageTrialComplete || record.Owner != trialOwnerName(owner):
		return nil, store.Record{}, refusal.Expired("trial").WithCause(ErrUnknown)
	case login.Stage == stageTrialPending:
		return nil, record, nil
	}
	ring, err := t.env.Keyring(ctx)
	if err != nil {
		return nil, record, err
	}
	text, err := ring.Open(login.SealedProof, logins.ProofSealContext(state))
	if err != nil {
		return nil, record, fmt.Errorf("opening the report of a trial: %w", err)
	}
	var report model.SignInTrialReport
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, record, fmt.Errorf("reading the report of a trial: %w", err)
	}
	return &report, record, nil
}

// findTrial returns the record of a sign-in with a state. Its stage is empty if there is none, or not any more.
func (t *Trials) findTrial(ctx context.Context, state string) (record store.Record, login logins.Login, err error) {
	record, err = t.records.Get(ctx, logins.RecordName(state))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Record{}, login, nil
	case err != nil:
		return store.Record{}, login, fmt.Errorf("reading a sign-in: %w", err)
	case !t.env.Now().Before(record.Expires):
		// It is removed later.
		return store.Record{}, login, nil
	}
	if err = json.Unmarshal(record.Object, &login); err != nil {
		err = fmt.Errorf("reading a sign-in: %w", err)
	}
	return record, login, err
}

// ParseState returns the state of a trial from the query of its start.
func ParseState(query url.Values) (string, error) {
	state, err := oauth.Parameter(query, Parameter)
	if err == nil && !oauth.IsUnreserved(state, logins.StateLength, logins.StateLength) {
		err = refusal.BadRequest("trial is not that of a trial: open the address as it was given")
	}
	return state, err
}

// Reporter stores the reports of trials. It is safe for concurrent use.
type Reporter struct {
	env         *platform.Environment
	trials      *Trials
	provisioner *provisioning.Provisioner
	directory   *directory.Directory
}

// OpenReporter returns what stores the reports of trials of an environment.
func OpenReporter(env *platform.Environment, provisioner *provisioning.Provisioner) *Reporter {
	return &Reporter{env: env, trials: Open(env), provisioner: provisioner, directory: directory.Open(env)}
}

// Complete stores the report of a trial: about a person, or about the cause for which the response of the provider was refused. Errors: the
// cause; a Refusal if no trial waits for this state; the store's errors.
func (r *Reporter) Complete(ctx context.Context, conn provider.Connector, state string, person provider.Person, cause error) error {
	recorder := annotations.RecorderOf(ctx)
	record, login, err := r.trials.findTrial(ctx, state)
	switch {
	case err != nil:
		return err
	case login.Stage != stageTrialPending || login.Identity.Connector != conn.ID:
		return refusal.NotStartedHere("trial")
	}
	report, err := r.newTrialReport(ctx, conn, person, cause)
	if err != nil {
		return err
	}
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encoding the report of a trial: %w", err)
	}
	ring, err := r.env.Keyring(ctx)
	if err != nil {
		return err
	}
	sealed, err := ring.Seal(text, logins.ProofSealContext(state))
	if err != nil {
		return err
	}
	if record.Object, err = json.Marshal(logins.Login{Stage: stageTrialComplete, Identity: login.Identity, SealedProof: sealed}); err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	if _, err := r.trials.records.Update(ctx, record); logins.IsConflict(err) {
		return refusal.NotStartedHere("trial")
	} else if err != nil {
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	recorder.SetOutcome(stageTrialComplete)
	return cause
}

// newTrialReport returns what a sign-in of a person would do. It writes nothing. It returns the errors of the store and of the
// users.
func (r *Reporter) newTrialReport(ctx context.Context, conn provider.Connector, person provider.Person, cause error) (model.SignInTrialReport, error) {
	report := model.SignInTrialReport{Claims: person.Claims, Absent: person.Absent, ID: person.Subject}
	config := r.env.Config().Auth
	ctx, recorder := annotations.WithRecorder(ctx)
	var answer *refusal.Refusal
	if cause != nil || config == nil {
		report.Refusal = "failed"
		if errors.As(cause, &answer) {
			report.Refusal = answer.Error()
		}
		return report, nil
	}
	groups, spec, _, err := provisioning.MapPerson(ctx, conn, person, config.GroupsFilters)
	report.LeftOut, report.DisplayName, report.Email, report.Groups = recorder.Omitted(), spec.DisplayName, spec.Email, groups
	if err == nil {
		account, findErr := r.provisioner.FindUser(ctx, conn.ID, person.Subject)
		switch {
		case findErr != nil:
			err = findErr
		case account != nil:
			report.User = account.Name
		case config.DisableUserCreation:
			err = refusal.NotSetUp("disableUserCreation")
		default:
			report.NewUser = provisioning.CandidateNames(provisioning.PreferredName(conn, person), "user", user.Digest(conn.ID, person.Subject))[0]
		}
	}
	if errors.As(err, &answer) {
		report.Refusal = answer.Error()
		return report, nil
	}
	if err != nil {
		return report, err
	}
	missing, err := r.directory.GroupsWithoutTeam(ctx, groups)
	if err != nil {
		return report, err
	}
	if !config.DisableTeamCreation {
		report.NewTeams = missing
	}
	report.Teams = r.directory.TeamsOf(report.User, groups...)
	return report, nil
}
