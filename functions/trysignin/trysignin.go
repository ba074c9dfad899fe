// Package trysignin is POST on signintrials: an admin begins a trial of the sign-in at a connector, and learns what the sign-in
// would have done. The trial uses the pages of every sign-in and runs all checks, but signs no person in. It stores only the
// record of the trial. Source: Spec 5.4; ADR-0031.
package trysignin

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/trial"
	"management.platform.sh/shared/state/store"
)

var (
	// definition is the resource. Its objects are not stored.
	definition = model.SchemeGroupVersion.WithResource("signintrials")
	kind       = model.SchemeGroupVersion.WithKind("SignInTrial")
)

// Deps is what the operation needs.
type Deps struct {
	Trials *trial.Trials
	Config func() *model.ConfigStatus
}

// Input is the request.
type Input = frame.ReviewRequest[*model.SignInTrial]

// Output is the answer.
type Output = frame.ReviewResult[*model.SignInTrial]

// Do begins a trial, or returns the report of a trial that the caller has begun. A report is returned once. A dry run begins no
// trial, and does not remove a report.
//
// Errors: Invalid at spec.connector and spec.trial; TooManyRequests if the caller has too many trials; the errors of the state.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	spec, path := in.Object.Spec, field.NewPath("spec")
	switch {
	case spec.Connector != "" && spec.Trial != "":
		return Output{}, invalid(field.Forbidden(path.Child("trial"), "set either connector, to begin a trial, or trial, to learn what came of one"))
	case spec.Connector != "":
		return begin(ctx, deps, in)
	case spec.Trial != "":
		return report(ctx, deps, in)
	default:
		return Output{}, invalid(
			field.Required(path.Child("connector"), "the ID of a connector, to begin a trial; or set trial"),
			field.Required(path.Child("trial"), "the status.trial of the answer that began a trial, to learn what came of it; or set connector"),
		)
	}
}

func invalid(problems ...*field.Error) error { return apierror.Invalid(kind.GroupKind(), "", problems) }

// begin begins a trial.
func begin(ctx context.Context, deps Deps, in Input) (Output, error) {
	id := in.Object.Spec.Connector
	if problem := check(deps.Config(), id); problem != nil {
		return Output{}, invalid(problem)
	}
	answer := &model.SignInTrial{TypeMeta: in.Object.TypeMeta, Spec: model.SignInTrialSpec{Connector: id}}
	notes := map[string]string{annotations.AnnotationConnector: id}
	if in.DryRun {
		return Output{Object: answer, Annotations: notes}, nil
	}
	begun, err := deps.Trials.Begin(ctx, id, in.Caller.Owner.String())
	if err != nil {
		return Output{}, translate(err)
	}
	answer.Status = model.SignInTrialStatus{
		Phase: model.SignInTrialPending, Address: begun.Address, Trial: begun.State, ExpirationTimestamp: timestamp(begun.Expires),
	}
	return Output{Object: answer, Annotations: notes}, nil
}

// check returns what is wrong with the ID of a connector. Nil: people can sign in there.
func check(config *model.ConfigStatus, id string) *field.Error {
	at, usable := field.NewPath("spec", "connector"), []string{}
	for _, one := range connector.All(config) {
		_, setting, why := one.Platform()
		switch {
		case setting == "" && one.ID == id:
			return nil
		case setting == "":
			usable = append(usable, one.ID)
		case one.ID == id:
			return field.Invalid(at, id, "nobody can sign in there: status.auth."+setting+" "+why)
		}
	}
	if len(usable) == 0 {
		return field.Invalid(at, id, "the configuration has no connector at which people can sign in")
	}
	return field.NotSupported(at, id, usable)
}

// report returns what came of a trial.
func report(ctx context.Context, deps Deps, in Input) (Output, error) {
	readReport := deps.Trials.End
	if in.DryRun {
		readReport = deps.Trials.Report
	}
	found, expires, err := readReport(ctx, in.Object.Spec.Trial, in.Caller.Owner.String())
	switch {
	case errors.Is(err, trial.ErrUnknown):
		return Output{}, invalid(field.Invalid(field.NewPath("spec", "trial"), field.OmitValueType{},
			"is no trial that you have begun, or the trial has expired, or its report was given before: begin another one"))
	case err != nil:
		return Output{}, translate(err)
	}
	answer := &model.SignInTrial{TypeMeta: in.Object.TypeMeta, Status: model.SignInTrialStatus{Phase: model.SignInTrialPending}}
	if found != nil {
		answer.Status = model.SignInTrialStatus{Phase: model.SignInTrialComplete, Report: found}
	} else {
		answer.Status.ExpirationTimestamp = timestamp(expires)
	}
	return Output{Object: answer}, nil
}

// timestamp is a time as objects have it.
func timestamp(at time.Time) *metav1.Time { return &metav1.Time{Time: at.UTC().Truncate(time.Second)} }

// translate returns the API error for an error of the state.
func translate(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "trysignin",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.ReviewWithWarnings(definition, kind.Kind, "signintrial", open, Do).Delivering(),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Trials: trial.Open(env), Config: env.Config}
}
