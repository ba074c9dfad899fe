// Package evaluatepatches is POST on syncpatchevaluations: it returns what sync patches do to an object, and why. It
// stores nothing. Source: Spec 2.8; ADR-0013.
package evaluatepatches

import (
	"context"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
)

// Deps is what the operation needs.
type Deps struct{ Evaluator *evaluation.Evaluator }

// Input is the request.
type Input = frame.Question

// Do evaluates patches. Errors: those of evaluation.Evaluator, and BadRequest for a body that is not a
// SyncPatchEvaluation. A patch that fails is not an error.
func Do(ctx context.Context, deps Deps, in Input) (*model.SyncPatchEvaluation, error) {
	body, err := codec.Read(in.ContentType, in.Body)
	if err != nil {
		return nil, err
	}
	object := &model.SyncPatchEvaluation{}
	warnings, err := codec.Decode(body, object, in.Validation)
	if err != nil {
		return nil, err
	}
	want := model.SchemeGroupVersion.WithKind(evaluation.Kind)
	if err := frame.CheckKind(object, want); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(want)
	if object.Status, err = deps.Evaluator.Evaluate(ctx, object, syncpatch.AbsentPaths(body.JSON)); err != nil {
		return nil, err
	}
	in.Warn(append(warnings, object.Status.Warnings...)...)
	return object, nil
}

// Function is the operation as it is deployed. Its memory has room for two workers at their memory limit and the function
// itself.
var Function = &frame.Function{
	Name:      "evaluatepatches",
	Endpoints: []frame.Endpoint{frame.Review(evaluation.Resource, evaluation.Kind, "syncpatchevaluation", open, Do).Tabulated(evaluation.Table)},
	MemoryMB:  1024,
}

func open(env *platform.Environment) Deps {
	return Deps{Evaluator: evaluation.New(env.Edition, env.Patches)}
}
