package syncpatch

import "fmt"

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
	l = l.withDefaults()
	allowed := map[Limit]string{
		LimitExpression: l.Expression.String(),
		LimitObject:     l.Object.String(),
		LimitMemory:     fmt.Sprintf("%d bytes", l.Memory),
		LimitResult:     fmt.Sprintf("%d bytes", l.Result),
		LimitDepth:      fmt.Sprintf("%d levels", l.Depth),
	}[limit]
	return &EvaluationError{Message: fmt.Sprintf("the limit of %s, %s, is exceeded", limit, allowed)}
}
