// Package evaluatepatches is POST on syncpatchevaluations: it returns what sync patches do to an object, and why. It
// stores nothing. Source: Spec 2.8; ADR-0013.
package evaluatepatches

import (
	"context"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
)

type Deps struct{ Evaluator *evaluation.Evaluator }

type Input = frame.ReviewRequest[*model.SyncPatchEvaluation]

type Output = frame.ReviewResult[*model.SyncPatchEvaluation]

// Do evaluates patches. Errors: the errors of evaluation.Evaluator, and BadRequest for an empty body. A patch that fails is not
// an error.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	if len(in.JSON) == 0 {
		return Output{}, apierror.BadRequest("the body is empty; a "+evaluation.Kind+" was expected", nil)
	}
	status, err := deps.Evaluator.Evaluate(ctx, in.Object, syncpatch.AbsentPaths(in.Object.Spec.Patches, in.JSON))
	if err != nil {
		return Output{}, err
	}
	in.Object.Status = status
	return Output{Object: in.Object, Warnings: status.Warnings}, nil
}

// Function has memory for two workers at their memory limit and for itself.
var Function = &frame.Function{
	Name: "evaluatepatches",
	Endpoints: []frame.Endpoint{frame.ReviewWithWarnings(evaluation.Resource, evaluation.Kind, "syncpatchevaluation", open, Do).
		Tabulated(evaluation.Table).Sharing(fairness.Evaluations)},
	MemoryMB: 1024,
}

func open(env *platform.Environment) Deps {
	return Deps{Evaluator: evaluation.New(env.Edition, env.Patches)}
}
