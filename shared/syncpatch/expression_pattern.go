package syncpatch

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/dop251/goja/parser"
)

// checkPattern refuses a regular expression whose time would not be linear in the text. Go's engine is linear, and the
// interpreter uses it wherever it can; a pattern with look-around or back-references it gives to one that backtracks.
// So it does, for any pattern, where a search goes on in the middle of a text (flags g and y), which is why those do
// not go together with repetition inside of repetition. (Texts beyond ASCII are split by that engine too: there a worker is
// the only bound.)
func checkPattern(pattern, flags string) error {
	if strings.Trim(flags, "gimsuy") != "" {
		return fmt.Errorf("the flags of a regular expression are of g, i, m, s, u and y, not %q", flags)
	}
	translated, err := parser.TransformRegExp(pattern, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	var incompatible parser.RegexpErrorIncompatible
	switch {
	case errors.As(err, &incompatible):
		return errors.New("look-around and back-references are not supported in a regular expression")
	case err != nil:
		return fmt.Errorf("the regular expression is not valid: %w", err)
	}
	options := syntax.Perl
	if strings.Contains(flags, "i") {
		options |= syntax.FoldCase
	}
	_, err = syntax.Parse(translated, options)
	if err != nil {
		var invalid *syntax.Error
		if errors.As(err, &invalid) && invalid.Code == syntax.ErrInvalidRepeatSize {
			return errors.New("a regular expression repeats at most 1000 times")
		}
		return fmt.Errorf("the regular expression is not valid: %w", err)
	}
	if strings.ContainsAny(flags, "gy") && ambiguous(pattern) {
		return errors.New("a repeated group that holds a repetition or alternatives is not supported with the flags g and y")
	}
	return nil
}

// ambiguous says whether a repeated group holds a repetition or alternatives, so that a text may match it in many ways.
// It looks at the pattern as it is written, as an engine that backtracks does.
func ambiguous(pattern string) bool {
	// open holds for each group around whether there are several ways through it.
	open := []bool{false}
	closed := false
	for i := 0; i < len(pattern); i++ {
		here := len(open) - 1
		group := closed
		closed = false
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			for i++; i < len(pattern) && pattern[i] != ']'; i++ {
				if pattern[i] == '\\' {
					i++
				}
			}
		case '(':
			open = append(open, false)
			if i+1 < len(pattern) && pattern[i+1] == '?' {
				i++
			}
		case ')':
			if here == 0 {
				return true
			}
			several := open[here]
			open = open[:here]
			open[here-1] = open[here-1] || several
			closed = several
		case '|':
			open[here] = true
		case '*', '+', '{':
			if group {
				return true
			}
			open[here] = true
		case '?':
			open[here] = true
		}
	}
	return false
}
