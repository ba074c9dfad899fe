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
// not go together with repetition inside of repetition.
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
	parsed, err := syntax.Parse(translated, options)
	if err != nil {
		var invalid *syntax.Error
		if errors.As(err, &invalid) && invalid.Code == syntax.ErrInvalidRepeatSize {
			return errors.New("a regular expression repeats at most 1000 times")
		}
		return fmt.Errorf("the regular expression is not valid: %w", err)
	}
	if strings.ContainsAny(flags, "gy") && ambiguous(parsed, false) {
		return errors.New("repetition inside of a repetition is not supported in a regular expression with the flag g or y")
	}
	return nil
}

// ambiguous says whether a text may match a repeated part in more ways than one: the part itself repeats, may be empty,
// or has alternatives that begin alike.
func ambiguous(e *syntax.Regexp, repeated bool) bool {
	switch e.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		if repeated {
			return true
		}
		repeated = e.Op != syntax.OpQuest
	case syntax.OpRepeat:
		if e.Max != e.Min {
			if repeated {
				return true
			}
			repeated = e.Max == -1 || e.Max > 10
		}
	case syntax.OpAlternate:
		if repeated && alike(e.Sub) {
			return true
		}
	case syntax.OpEmptyMatch:
		return repeated
	}
	for _, sub := range e.Sub {
		if ambiguous(sub, repeated) {
			return true
		}
	}
	return false
}

// alike says whether two of the alternatives can begin with the same character.
func alike(alternatives []*syntax.Regexp) bool {
	var seen []rune
	for _, a := range alternatives {
		ranges := first(a)
		if ranges == nil {
			return true
		}
		for i := 0; i < len(ranges); i += 2 {
			for j := 0; j < len(seen); j += 2 {
				if ranges[i] <= seen[j+1] && seen[j] <= ranges[i+1] {
					return true
				}
			}
		}
		seen = append(seen, ranges...)
	}
	return false
}

// first are the characters that a match can begin with, as pairs; nil when that takes more than a look.
func first(e *syntax.Regexp) []rune {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase != 0 {
			return nil
		}
		return []rune{e.Rune[0], e.Rune[0]}
	case syntax.OpCharClass:
		return e.Rune
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		return first(e.Sub[0])
	default:
		return nil
	}
}
