package syncpatch

import (
	"fmt"
	"sync"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/syncpatch/expression"
)

// LimitMemory is the limit that an evaluation can exceed in addition to the limits of expressions.
const LimitMemory expression.Limit = "memory"

// Limits bound an evaluation. 0 means the default. Source: ADR-0013, ADR-0014.
type Limits struct {
	// Expression is the time for one expression at one path.
	Expression time.Duration `json:"expression,omitempty"`
	// Object is the time for all patches of an object, checks included.
	Object time.Duration `json:"object,omitempty"`
	// Memory is the maximum memory of an evaluation, in bytes. Only a worker can enforce it.
	Memory int64 `json:"memory,omitempty"`
	// Result is the maximum size of the result of one expression, and of the growth of the object by all patches
	// together, in bytes of JSON.
	Result int64 `json:"result,omitempty"`
	// Depth is the maximum nesting of calls, and of a result.
	Depth int `json:"depth,omitempty"`
	// Trace is the maximum size of the trace, in bytes. Matches beyond it are left out and counted.
	Trace int64 `json:"trace,omitempty"`
}

// DefaultLimits returns the limits for settings that leave them out, and 1 MiB for the trace. Source: ADR-0013,
// ADR-0014.
func DefaultLimits() Limits { return defaultLimits() }

var defaultLimits = sync.OnceValue(func() Limits {
	of := LimitsOf(settings.Default().Patches)
	of.Trace = limits.PatchTraceBytes
	return of
})

// LimitsOf returns the limits in the settings of a platform.
func LimitsOf(patches settings.Patches) Limits {
	return Limits{
		Expression: patches.ExpressionTime, Object: patches.ObjectTime,
		Memory: patches.MemoryBytes, Result: patches.ResultBytes, Depth: patches.Depth,
	}
}

// WithDefaults returns the limits with the default in place of each 0.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	if l.Expression > 0 {
		d.Expression = l.Expression
	}
	if l.Object > 0 {
		d.Object = l.Object
	}
	if l.Memory > 0 {
		d.Memory = l.Memory
	}
	if l.Result > 0 {
		d.Result = l.Result
	}
	if l.Depth > 0 {
		d.Depth = l.Depth
	}
	if l.Trace > 0 {
		d.Trace = l.Trace
	}
	return d
}

// expressions returns the limits of the expressions.
func (l Limits) expressions() expression.Limits {
	return expression.Limits{Time: l.Expression, Total: l.Object, Result: l.Result, Depth: l.Depth}
}

// Exceeded returns the error for exceeding a limit, with its name and value.
func (l Limits) Exceeded(limit expression.Limit) *expression.Error {
	l = l.WithDefaults()
	if limit == LimitMemory {
		return limit.Exceeded(fmt.Sprintf("%d bytes", l.Memory))
	}
	return l.expressions().Exceeded(limit)
}

// Violated reports whether an evaluation ended because it exceeded a limit.
func (l Limits) Violated(err *model.SyncPatchError) bool {
	if err == nil {
		return false
	}
	for _, limit := range []expression.Limit{
		expression.LimitTime, expression.LimitTotal, LimitMemory, expression.LimitResult, expression.LimitDepth,
	} {
		if err.Message == l.Exceeded(limit).Message {
			return true
		}
	}
	return false
}
