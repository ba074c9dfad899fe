package expression

import (
	"fmt"
	"time"

	"management.platform.sh/shared/limits"
)

// MaxLength is the longest text of an expression, in bytes. Source: ADR-0014.
const MaxLength = limits.ExpressionBytes

// maxNesting is how deep the syntax of an expression may nest. Source: ADR-0014.
const maxNesting = limits.ExpressionDepth

// Limits bound what the expressions of a Machine cost. All of them are set: 0 allows nothing. Source: ADR-0014.
type Limits struct {
	// Time is the time for one run.
	Time time.Duration
	// Total is the time for all runs together.
	Total time.Duration
	// Result is the size of the result of one run, in bytes of JSON.
	Result int64
	// Depth is how deep calls may be nested, and how deep a result.
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

// Exceeded returns the error for going beyond the limit. allowed is what the limit allows, with its unit.
func (l Limit) Exceeded(allowed string) *Error {
	return &Error{Message: fmt.Sprintf("the limit of %s, %s, is exceeded", l, allowed)}
}

// Exceeded returns the error for going beyond one of the limits of expressions.
func (l Limits) Exceeded(limit Limit) *Error {
	return limit.Exceeded(map[Limit]string{
		LimitTime:   l.Time.String(),
		LimitTotal:  l.Total.String(),
		LimitResult: fmt.Sprintf("%d bytes", l.Result),
		LimitDepth:  fmt.Sprintf("%d levels", l.Depth),
	}[limit])
}
