package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
)

// trialEvery is the pause between two requests for the result of a trial.
const trialEvery = 2 * time.Second

// TrySignIn runs one sign-in at a connector of a platform on trial, with the credential of platform login. It calls
// show with the address at which a person signs in, and waits for them until the trial expires. The trial creates no
// session. Errors: the reason why the platform begins no trial, or has no report. Source: ADR-0031.
func TrySignIn(ctx context.Context, host, authority, connector string, show func(address string)) (*model.SignInTrialReport, error) {
	platform, err := reach(ctx, host, authority)
	if err != nil {
		return nil, err
	}
	begun, err := platform.trial(ctx, model.SignInTrialSpec{Connector: connector})
	if err == nil && (begun.Address == "" || begun.Trial == "") {
		err = errors.New("the answer has no trial")
	}
	if err != nil {
		return nil, fmt.Errorf("beginning a sign-in at the connector %q: %w", connector, err)
	}
	show(begun.Address)
	for {
		found, err := platform.trial(ctx, model.SignInTrialSpec{Trial: begun.Trial})
		switch {
		case err != nil:
			return nil, fmt.Errorf("waiting for somebody to sign in: %w", err)
		case found.Report != nil:
			return found.Report, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(trialEvery):
		}
	}
}

// trial begins a trial, or requests its result. A second request for a trial begins another one, which expires.
func (r *platformClient) trial(ctx context.Context, spec model.SignInTrialSpec) (model.SignInTrialStatus, error) {
	var answer model.SignInTrial
	body, err := json.Marshal(model.SignInTrial{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "SignInTrial"}, Spec: spec,
	})
	if err == nil {
		err = r.ask(mayRepeat(ctx), http.MethodPost, "/signintrials", bytes.NewReader(body), &answer)
	}
	return answer.Status, err
}
