package syncpatch

import (
	"context"
	"fmt"

	"management.platform.sh/shared/model"
)

// The longest text of an expression in bytes, and how deep its syntax may nest. Source: ADR-0014.
const (
	MaxExpressionLength = 16 << 10
	maxNesting          = 250
)

// Limit is the name of a limit, as errors have it. Source: ADR-0014.
type Limit string

// The limits that an expression can go beyond while it runs.
const (
	LimitExpression Limit = "time per expression"
	LimitObject     Limit = "time per object"
	LimitMemory     Limit = "memory"
	LimitResult     Limit = "result size"
	LimitDepth      Limit = "depth"
)

// Exceeded is the error for a limit, with its name and what it allows.
func (l Limits) Exceeded(limit Limit) *EvaluationError {
	l = l.WithDefaults()
	allowed := map[Limit]string{
		LimitExpression: l.Expression.String(),
		LimitObject:     l.Object.String(),
		LimitMemory:     fmt.Sprintf("%d bytes", l.Memory),
		LimitResult:     fmt.Sprintf("%d bytes", l.Result),
		LimitDepth:      fmt.Sprintf("%d levels", l.Depth),
	}[limit]
	return &EvaluationError{Message: fmt.Sprintf("the limit of %s, %s, is exceeded", limit, allowed)}
}

// Violated says whether an evaluation ended because it went beyond a limit.
func (l Limits) Violated(err *model.SyncPatchError) bool {
	if err == nil {
		return false
	}
	for _, limit := range []Limit{LimitExpression, LimitObject, LimitMemory, LimitResult, LimitDepth} {
		if err.Message == l.Exceeded(limit).Message {
			return true
		}
	}
	return false
}

type progressKey struct{}

// WithProgress makes an evaluation tell of each patch and concrete path before it works there. Whoever ends an evaluation
// from outside can so name what he ended.
func WithProgress(ctx context.Context, progress func(patch int, path string)) context.Context {
	return context.WithValue(ctx, progressKey{}, progress)
}

func progressOf(ctx context.Context) func(patch int, path string) {
	if progress, ok := ctx.Value(progressKey{}).(func(patch int, path string)); ok {
		return progress
	}
	return func(int, string) {}
}
