package expression

import (
	"fmt"
	"time"

	"management.platform.sh/shared/limits"
)

// MaxLength is the maximum length of an expression, in bytes. Source: ADR-0014.
const MaxLength = limits.ExpressionBytes

// maxNesting is the maximum nesting of the syntax of an expression. Source: ADR-0014.
const maxNesting = limits.ExpressionDepth

// Limits bound the expressions of a Machine. All of them must be set: 0 allows nothing. Source: ADR-0014.
type Limits struct {
	// Time is the time for one run.
	Time time.Duration
	// Total is the time for all runs together.
	Total time.Duration
	// Result is the maximum size of the result of one run, in bytes of JSON.
	Result int64
	// Depth is the maximum nesting of calls, and of a result.
	Depth int
}

// Limit is the name of a limit, as errors have it. Source: ADR-0014.
type Limit string

// The limits that an expression can exceed while it runs.
const (
	LimitTime   Limit = "time per expression"
	LimitTotal  Limit = "time per object"
	LimitResult Limit = "result size"
	LimitDepth  Limit = "depth"
)

// Exceeded returns the error for exceeding the limit. allowed is the value of the limit, with its unit.
func (l Limit) Exceeded(allowed string) *Error {
	return &Error{Message: fmt.Sprintf("the limit of %s, %s, is exceeded", l, allowed)}
}

// Exceeded returns the error for exceeding one of the limits of expressions.
func (l Limits) Exceeded(limit Limit) *Error {
	return limit.Exceeded(map[Limit]string{
		LimitTime:   l.Time.String(),
		LimitTotal:  l.Total.String(),
		LimitResult: fmt.Sprintf("%d bytes", l.Result),
		LimitDepth:  fmt.Sprintf("%d levels", l.Depth),
	}[limit])
}
