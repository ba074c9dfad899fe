// Package evaluatepatches is POST on syncpatchevaluations: what sync patches make of an object, and why. Nothing is
// stored. Source: Spec 2.8; ADR-0013.
package evaluatepatches

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/syncpatch/evaluation"
)

// Deps is what the operation needs.
type Deps struct{ Evaluator *evaluation.Evaluator }

// Input is the request.
type Input = frame.Question

// Do evaluates patches. Errors: as evaluation.Evaluator says; a patch that fails is none.
func Do(ctx context.Context, deps Deps, in Input) (*model.SyncPatchEvaluation, error) {
	return deps.Evaluator.Review(ctx, in)
}

// Function is the operation as it is deployed. Two workers in the midst of an attack, and the function itself, have room
// in its memory.
var Function = &frame.Function{
	Name:      "evaluatepatches",
	Endpoints: []frame.Endpoint{frame.Review(evaluation.Resource, evaluation.Kind, "syncpatchevaluation", open, Do).Tabulated(evaluation.Table)},
	MemoryMB:  1024,
}

func open(env *platform.Environment) Deps { return Deps{Evaluator: evaluation.Open(env)} }
