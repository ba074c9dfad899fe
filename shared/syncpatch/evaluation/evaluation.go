// Package evaluation tries sync patches on an object: it finds everything that is wrong with a SyncPatchEvaluation, and
// has a worker evaluate it. It stores nothing and reads nothing but the evaluation.
// Source: Spec 2.8; ADR-0013, ADR-0014.
package evaluation

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/worker"
)

// Resource is the resource of evaluations. Source: Spec 2.8; ADR-0003.
var Resource = model.SchemeGroupVersion.WithResource("syncpatchevaluations")

// Kind is the kind of an evaluation. Source: ADR-0003.
const Kind = "SyncPatchEvaluation"

// Evaluator evaluates patches. It is safe for concurrent use.
type Evaluator struct {
	// Edition is that of platform.Environment.
	Edition string
	// Run evaluates one checked request, as syncpatch.Evaluate does.
	Run func(context.Context, *syncpatch.Checked) (*syncpatch.Result, error)
}

// Open returns the evaluator of an environment. Its workers are started at the first evaluation, and end with the
// process.
func Open(env *platform.Environment) *Evaluator { return New(env.Edition, Settings(env.Patches)) }

// New returns the evaluator of an edition. Its workers are started at the first evaluation, and end with the process.
func New(edition string, workers worker.Settings) *Evaluator {
	pool := sync.OnceValue(func() *worker.Pool { return worker.New(workers) })
	return &Evaluator{
		Edition: edition,
		Run: func(ctx context.Context, checked *syncpatch.Checked) (*syncpatch.Result, error) {
			return pool().Evaluate(ctx, checked)
		},
	}
}

// Settings returns the settings of the workers of an environment.
func Settings(s settings.Patches) worker.Settings {
	return worker.Settings{
		Limits: syncpatch.Limits{
			Expression: s.ExpressionTime, Object: s.ObjectTime, Memory: s.MemoryBytes, Result: s.ResultBytes, Depth: s.Depth,
		},
		Processes: s.Workers,
		InProcess: s.InProcess,
	}
}

// Evaluate returns the status of an evaluation. absent are the patches that were sent without a path, which the decoded
// object does not show. A patch that fails is part of the status, with the object as it was sent. Errors: Forbidden in
// the community edition; Invalid with a cause for each field that is wrong; Unavailable when no worker can be started.
// Source: Spec 2.8; ADR-0013.
func (e *Evaluator) Evaluate(ctx context.Context, evaluation *model.SyncPatchEvaluation, absent []syncpatch.Problem) (model.SyncPatchEvaluationStatus, error) {
	var none model.SyncPatchEvaluationStatus
	if err := e.allowed(); err != nil {
		return none, err
	}
	checked, problems := syncpatch.CheckSpec(&evaluation.Spec)
	if wrong := syncpatch.Errors(append(problems, absent...)); len(wrong) > 0 {
		return none, apierror.Invalid(schema.GroupKind{Group: model.GroupName, Kind: Kind}, evaluation.Name, wrong)
	}
	result, err := e.Run(ctx, checked)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return none, err
	default:
		return none, apierror.Unavailable().Because(err)
	}
	status, err := result.Status()
	status.Warnings = syncpatch.Warnings(problems)
	return status, err
}

// allowed refuses evaluations in the community edition. Source: Spec 2.8 (patches).
func (e *Evaluator) allowed() error {
	if e.Edition != settings.Community {
		return nil
	}
	return apierror.Forbidden(Resource.GroupResource(), "",
		"sync patches are part of the enterprise edition, and this platform runs the community edition", nil)
}

// Review answers one request. Errors: as Evaluate says, and BadRequest for a body that is not a SyncPatchEvaluation.
func (e *Evaluator) Review(ctx context.Context, in frame.Question) (*model.SyncPatchEvaluation, error) {
	if err := e.allowed(); err != nil {
		return nil, err
	}
	evaluation, absent, warnings, err := read(in)
	if err != nil {
		return nil, err
	}
	if evaluation.Status, err = e.Evaluate(ctx, evaluation, absent); err != nil {
		return nil, err
	}
	in.Warn(append(warnings, evaluation.Status.Warnings...)...)
	return evaluation, nil
}

// read decodes a body, and finds the patches without a path. The body may leave out its kind and version, but must not
// have others. Source: Spec 2.1, 9.
func read(in frame.Question) (*model.SyncPatchEvaluation, []syncpatch.Problem, []string, error) {
	body, err := codec.Read(in.ContentType, in.Body)
	if err != nil {
		return nil, nil, nil, err
	}
	evaluation := &model.SyncPatchEvaluation{}
	warnings, err := codec.Decode(body, evaluation, in.Validation)
	if err != nil {
		return nil, nil, nil, err
	}
	want := model.SchemeGroupVersion.WithKind(Kind)
	if err := frame.CheckKind(evaluation, want); err != nil {
		return nil, nil, nil, err
	}
	evaluation.SetGroupVersionKind(want)
	return evaluation, syncpatch.AbsentPaths(body.JSON), warnings, nil
}
