// Package evaluation answers requests to try sync patches on an object: it reads the request, finds everything that is
// wrong with it, and has a worker do what the patches say. It stores nothing, and reads nothing but the request.
// Source: Spec 2.8; ADR-0013, ADR-0014.
package evaluation

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/worker"
)

// Resource is where evaluations are created. Source: Spec 2.8; ADR-0003.
var Resource = model.SchemeGroupVersion.WithResource("syncpatchevaluations")

// Kind is the kind of an evaluation. Source: ADR-0003.
const Kind = "SyncPatchEvaluation"

// Evaluator answers requests. It is safe for concurrent use.
type Evaluator struct {
	// Edition is that of platform.Environment.
	Edition string
	// Evaluate evaluates one object, as syncpatch.Evaluate does.
	Evaluate func(context.Context, *syncpatch.Checked) (*syncpatch.Result, error)
}

// Open returns the evaluator of an environment. Its workers are started at the first evaluation, and end with the
// process.
func Open(env *platform.Environment) *Evaluator {
	pool := sync.OnceValue(func() *worker.Pool { return worker.New(Settings(env.Patches)) })
	return &Evaluator{
		Edition: env.Edition,
		Evaluate: func(ctx context.Context, request *syncpatch.Checked) (*syncpatch.Result, error) {
			return pool().Evaluate(ctx, request)
		},
	}
}

// Settings are those of workers in an environment.
func Settings(s settings.Patches) worker.Settings {
	return worker.Settings{
		Limits: syncpatch.Limits{
			Expression: s.ExpressionTime, Object: s.ObjectTime, Memory: s.MemoryBytes, Result: s.ResultBytes, Depth: s.Depth,
		},
		Processes: s.Workers,
		InProcess: s.InProcess,
	}
}

// Review answers one request. What a patch does wrong while it runs is in the answer, with the object as it was sent.
// Errors: Forbidden in the community edition; BadRequest for a body that is no SyncPatchEvaluation; Invalid with a cause
// for each field that is wrong; Unavailable when no worker can be had. Source: Spec 2.8; ADR-0013.
func (e *Evaluator) Review(ctx context.Context, in frame.Question) (*model.SyncPatchEvaluation, error) {
	if e.Edition == settings.Community {
		return nil, apierror.Forbidden(Resource.GroupResource(), "",
			"sync patches are part of the enterprise edition, and this platform runs the community edition", nil)
	}
	evaluation, absent, warnings, err := read(in)
	if err != nil {
		return nil, err
	}
	request, problems := syncpatch.CheckSpec(&evaluation.Spec)
	problems = append(problems, absent...)
	if wrong := syncpatch.Errors(problems); len(wrong) > 0 {
		return nil, invalid(evaluation, wrong)
	}
	result, err := e.Evaluate(ctx, request)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, err
	default:
		return nil, apierror.Unavailable().Because(err)
	}
	if evaluation.Status, err = result.Status(); err != nil {
		return nil, err
	}
	evaluation.Status.Warnings = syncpatch.Warnings(problems)
	in.Warn(append(warnings, evaluation.Status.Warnings...)...)
	return evaluation, nil
}

// read decodes a body, and finds what the object does not show. It may leave out that it is a SyncPatchEvaluation, but not
// be something else. Source: Spec 2.1, 9.
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

func invalid(evaluation *model.SyncPatchEvaluation, problems field.ErrorList) error {
	return apierror.Invalid(schema.GroupKind{Group: model.GroupName, Kind: Kind}, evaluation.Name, problems)
}
