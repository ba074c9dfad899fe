package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signin/trial"
	"management.platform.sh/shared/state/redisstore"
)

// signInEvery is the pause between two looks at a trial.
const signInEvery = time.Second

// SignIn runs one sign-in at a connector on trial, and reports the claims of the provider and the changes that a
// sign-in would make. It calls show with the address at which a person signs in, and waits for them until the trial
// expires. The trial creates no session, and only the trial itself is stored. An error means that the settings are
// wrong, or that the person has not signed in.
func SignIn(ctx context.Context, d Deployment, id string, show func(address string)) (Report, error) {
	if d.Keyring == nil {
		return Report{}, errors.New("--sign-in needs --encryption-key: the report of the sign-in is sealed")
	}
	client, err := redisstore.Open(d.Settings.Redis.URL.Reveal(), redisstore.Options{PoolSize: d.Settings.Redis.PoolSize, Timeout: d.Settings.Redis.Timeout})
	if err != nil {
		return Report{}, d.Settings.Wrong(d.Settings.Redis.URLFrom, err)
	}
	defer func() { _ = client.Close() }()
	e := &examination{Deployment: d, client: client}
	e.open()
	e.env.Now = d.Now
	if err := e.current.Refresh(ctx); err != nil {
		return Report{}, fmt.Errorf("reading the platform configuration: %w", err)
	}
	trials := trial.Open(e.env)
	begun, err := trials.Begin(ctx, id, "")
	if err != nil {
		return Report{}, fmt.Errorf("beginning a sign-in at the connector %q: %w", id, err)
	}
	show(begun.Address)
	for {
		found, _, err := trials.End(ctx, begun.State, "")
		switch {
		case err != nil:
			return Report{}, fmt.Errorf("waiting for somebody to sign in: %w", err)
		case found != nil:
			return TrialReport(d, found), nil
		}
		select {
		case <-ctx.Done():
			return Report{}, ctx.Err()
		case <-time.After(signInEvery):
		}
	}
}

// TrialReport returns the report on a trial, which ran here or at a platform. It uses Version and Now of the deployment.
func TrialReport(d Deployment, found *model.SignInTrialReport) Report {
	e := &examination{Deployment: d}
	e.trial(found)
	return e.report()
}

func (e *examination) trial(report *model.SignInTrialReport) {
	const check = "sign-in"
	if report.Refusal != "" {
		e.find(check, Critical, "see the table of mistakes in docs/people.md", "the sign-in would be refused: %s", report.Refusal)
	} else {
		e.find(check, Good, "", "all checks of the answer have passed")
	}
	facts := func(level Level, do, what string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			e.find(check, level, do, "%s: %s", what, text)
		}
	}
	facts(Good, "", "claims that came", report.Claims...)
	facts(Warning, "correct the field, or have the provider send the claim", "settings whose claims did not come", report.Absent...)
	facts(Warning, "have the provider shorten it", "left out", report.LeftOut)
	facts(Good, "", "the ID of the person", report.ID)
	facts(Good, "", "name", report.DisplayName)
	facts(Good, "", "email", report.Email)
	facts(Good, "", "user", report.User)
	facts(Good, "", "a new user would be made, with this name if it is free", report.NewUser)
	facts(Good, "", "groups", report.Groups...)
	facts(Good, "", "teams", report.Teams...)
	facts(Good, "", "a team would be made for each of", report.NewTeams...)
}
