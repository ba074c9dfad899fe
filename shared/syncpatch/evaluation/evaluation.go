// Package evaluation tries sync patches on an object: it finds everything that is wrong with a SyncPatchEvaluation, and
// has a worker evaluate it. It stores nothing and reads nothing but the evaluation.
// Source: Spec 2.8; ADR-0013, ADR-0014.
package evaluation

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
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
	// Edition is settings.Enterprise or settings.Community. Empty means Enterprise.
	Edition string
	// Run checks and evaluates the evaluation of a client, as syncpatch.EvaluateSpec does.
	Run func(context.Context, *model.SyncPatchEvaluationSpec) (syncpatch.Outcome, error)
}

// New returns the evaluator of a platform. Its workers start at the first evaluation, and end with the process.
func New(edition string, patches settings.Patches) *Evaluator {
	pool := sync.OnceValue(func() *worker.Pool { return worker.New(Settings(patches)) })
	return &Evaluator{
		Edition: edition,
		Run: func(ctx context.Context, spec *model.SyncPatchEvaluationSpec) (syncpatch.Outcome, error) {
			return pool().Evaluate(ctx, spec)
		},
	}
}

// Settings returns the settings of workers. It adds one worker to the configured number, for short evaluations.
func Settings(patches settings.Patches) worker.Settings {
	return worker.Settings{
		Limits: syncpatch.LimitsOf(patches), Processes: patches.Workers + limits.SpareEvaluations, InProcess: patches.InProcess,
	}
}

// Evaluate returns the status of an evaluation. absent are the patches that were sent without a path, which the decoded
// object does not show. The failure of a patch is part of the status, with the object as it was sent. Errors: Forbidden
// in the community edition; Invalid with a cause for each field that is wrong; Internal if no worker can be started.
// Source: Spec 2.8; ADR-0013.
func (e *Evaluator) Evaluate(ctx context.Context, evaluation *model.SyncPatchEvaluation, absent []syncpatch.Problem) (model.SyncPatchEvaluationStatus, error) {
	var none model.SyncPatchEvaluationStatus
	if err := platform.Patches(e.Edition).Error(Resource.GroupResource(), ""); err != nil {
		return none, err
	}
	outcome, err := e.Run(ctx, &evaluation.Spec)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return none, err
	default:
		return none, apierror.Broken("the patches could not be evaluated, because no worker could be started").Because(err)
	}
	if wrong := syncpatch.Errors(append(outcome.Problems, absent...)); len(wrong) > 0 {
		return none, apierror.Invalid(schema.GroupKind{Group: model.GroupName, Kind: Kind}, evaluation.Name, wrong)
	}
	return *outcome.Status, nil
}
