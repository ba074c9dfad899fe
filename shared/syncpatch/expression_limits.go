package syncpatch

import (
	"fmt"
	"time"
)

// Limits bound one evaluation. A zero field means the default. Source: ADR-0014.
type Limits struct {
	// ExpressionTime is how long one expression may run at one path. Default 100 ms.
	ExpressionTime time.Duration
	// ObjectTime is how long all expressions of an evaluation may run together. Default 1 s.
	ObjectTime time.Duration
	// Memory is how many bytes one evaluation may hold at a time, beyond the program itself. Default 64 MiB. It holds
	// in a worker process alone (package worker).
	Memory int64
	// ResultSize is how many bytes the result of one expression may have as JSON. Default 1 MiB.
	ResultSize int64
	// Depth is how deep calls may nest in an expression, and arrays and objects in its result. Default 200.
	Depth int
	// Entering, when it is set, is told of each concrete path before its expression runs. Whoever watches an
	// evaluation from outside can thus name the expression that he ended.
	Entering func(path string) `json:"-"`
}

// The longest text of an expression in bytes, and how deep its syntax may nest. Source: ADR-0014.
const (
	MaxExpressionLength = 16 << 10
	maxNesting          = 250
)

// WithDefaults returns the limits with every zero field set.
func (l Limits) WithDefaults() Limits {
	if l.ExpressionTime == 0 {
		l.ExpressionTime = 100 * time.Millisecond
	}
	if l.ObjectTime == 0 {
		l.ObjectTime = time.Second
	}
	if l.Memory == 0 {
		l.Memory = 64 << 20
	}
	if l.ResultSize == 0 {
		l.ResultSize = 1 << 20
	}
	if l.Depth == 0 {
		l.Depth = 200
	}
	return l
}

// The names of limits, as LimitError has them. Source: ADR-0014.
const (
	LimitExpressionTime = "time per expression"
	LimitObjectTime     = "time per object"
	LimitMemory         = "memory"
	LimitResultSize     = "result size"
	LimitDepth          = "depth"
)

// LimitError says which limit an expression went beyond.
type LimitError struct {
	// Limit is one of the names above.
	Limit string
	// Allowed is the limit with its unit.
	Allowed string
}

// Error names the limit and what it allows.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit of %s (%s) is exceeded", e.Limit, e.Allowed)
}

// Exceeded is the error for one of the named limits.
func (l Limits) Exceeded(limit string) *LimitError {
	switch limit {
	case LimitExpressionTime:
		return &LimitError{limit, l.ExpressionTime.String()}
	case LimitObjectTime:
		return &LimitError{limit, l.ObjectTime.String()}
	case LimitMemory:
		return &LimitError{limit, fmt.Sprintf("%d bytes", l.Memory)}
	case LimitResultSize:
		return &LimitError{limit, fmt.Sprintf("%d bytes", l.ResultSize)}
	case LimitDepth:
		return &LimitError{limit, fmt.Sprintf("%d levels", l.Depth)}
	default:
		panic("syncpatch: no limit is called " + limit)
	}
}
