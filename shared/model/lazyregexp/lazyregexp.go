// Package lazyregexp compiles regular expressions at their first use. A function starts for a request, and most requests use few
// of the expressions in its program. Source: ADR-0010.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. That function panics if the expression is not valid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
