package expression

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/dop251/goja/parser"

	"management.platform.sh/shared/limits"
)

// checkPattern returns a regular expression in the form that the engines of the interpreter need, and refuses an
// expression whose time would not be linear in the text. The interpreter has two engines: the engine of Go, which is
// linear, and an engine that backtracks. It uses the second for look-around and back-references, and for any pattern if
// a search continues in the middle of a text (flags g and y). Look-around and back-references are therefore refused,
// and repetition inside repetition is refused with these flags. (The second engine also splits texts beyond ASCII.
// There, only the worker bounds the time.)
//
// The flag i without u becomes a part of the pattern, so the flags are returned as well.
//
// The number is the number of steps of the pattern in the linear engine, which needs memory for each step and may need
// time for each step at each character. More than maxSteps are refused.
func checkPattern(pattern, flags string) (_, _ string, steps int, err error) {
	if strings.Trim(flags, "gimsuy") != "" {
		return "", "", 0, fmt.Errorf("unsupported flags %q of a regular expression; use g, i, m, s, u and y", flags)
	}
	if pattern, err = portable(pattern, strings.Contains(flags, "u")); err != nil {
		return "", "", 0, err
	}
	folded := strings.Contains(flags, "i") && !strings.Contains(flags, "u")
	if folded {
		flags = strings.ReplaceAll(flags, "i", "")
	}
	if steps, err = checkSteps(pattern, flags); err != nil {
		return "", "", 0, err
	}
	if strings.ContainsAny(flags, "gy") && ambiguous(pattern) {
		return "", "", 0, errors.New("with the flags g and y, a repeated group must not contain a repetition or alternatives")
	}
	if folded {
		pattern = fold(pattern)
		steps, err = checkSteps(pattern, flags)
	}
	return pattern, flags, steps, err
}

// checkSteps parses a pattern as the linear engine does, and returns the number of its steps.
func checkSteps(pattern, flags string) (int, error) {
	translated, err := parser.TransformRegExp(pattern, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	var incompatible parser.RegexpErrorIncompatible
	switch {
	case errors.As(err, &incompatible):
		return 0, errors.New("look-around and back-references are not supported in a regular expression")
	case err != nil:
		return 0, errors.New(patternMessage(err))
	}
	options := syntax.Perl
	if strings.Contains(flags, "i") {
		options |= syntax.FoldCase
	}
	parsed, err := syntax.Parse(translated, options)
	if err != nil {
		return 0, errors.New(patternMessage(err))
	}
	steps := stepsOf(parsed)
	if steps > maxSteps {
		return 0, errors.New(tooManySteps)
	}
	return steps, nil
}

// maxSteps bounds the steps of all regular expressions of an expression together. Source: ADR-0014.
const maxSteps = limits.PatternSteps

// tooManySteps is the message for more steps.
var tooManySteps = fmt.Sprintf("the regular expressions of an expression may have at most %d steps, and each repetition repeats its steps", maxSteps)

// stepsOf returns the number of instructions of a pattern in the linear engine, or a little more. It stops soon after
// maxSteps, so it does not overflow.
func stepsOf(pattern *syntax.Regexp) int {
	steps := 1
	switch pattern.Op {
	case syntax.OpLiteral:
		return max(len(pattern.Rune), 1)
	case syntax.OpCharClass:
		// The ranges need memory, too.
		return 1 + len(pattern.Rune)/16
	case syntax.OpCapture, syntax.OpStar:
		steps = 2
	default:
	}
	for _, part := range pattern.Sub {
		steps = min(steps+stepsOf(part)+1, 2*maxSteps)
	}
	if pattern.Op == syntax.OpRepeat {
		steps = min(steps*max(pattern.Min, pattern.Max, 1), 2*maxSteps)
	}
	return steps
}

// notBlank are the ranges of the characters of one UTF-16 unit that \S matches. Source: ECMA-262, WhiteSpace and
// LineTerminator.
const notBlank = `\u0000-\u0008\u000e-\u001f\u0021-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e` +
	`\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\uffff`

// portable rewrites a pattern so that both engines read it as JavaScript does: \S in a class becomes ranges, which the
// linear engine needs; [ in a class is escaped; and the backslash before a plain letter, which has a meaning in other
// dialects, is dropped.
func portable(pattern string, unicode bool) (string, error) {
	var out, class strings.Builder
	target := &out
	inClass, blanks, behind := false, false, false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		afterS := behind
		behind = false
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			switch escaped := pattern[i]; {
			case inClass && escaped == 'S':
				blanks, behind = true, true
			case unicode && (escaped == 'p' || escaped == 'P'):
				return "", fmt.Errorf(`\%c is not supported in a regular expression`, escaped)
			case !letter(escaped) || strings.IndexByte("bBcdDfknrsStuvwWx", escaped) >= 0:
				target.WriteByte(c)
				target.WriteByte(escaped)
			case unicode:
				return "", fmt.Errorf(`the regular expression is not valid: \%c has no meaning`, escaped)
			default:
				target.WriteByte(escaped)
			}
		case !inClass && c == '[':
			inClass, target = true, &class
			if strings.HasPrefix(pattern[i+1:], "^") {
				i++
				out.WriteString("[^")
			} else {
				out.WriteByte(c)
			}
		case inClass && c == ']':
			if blanks {
				out.WriteString(notBlank)
				if unicode {
					out.WriteString(`\u{10000}-\u{10ffff}`)
				}
			}
			out.WriteString(class.String())
			out.WriteByte(c)
			class.Reset()
			inClass, blanks, target = false, false, &out
		case inClass && c == '[', inClass && c == '-' && (afterS || class.Len() == 0 || strings.HasPrefix(pattern[i+1:], `\S`)):
			target.WriteByte('\\')
			target.WriteByte(c)
		default:
			target.WriteByte(c)
		}
	}
	out.WriteString(class.String())
	return out.String(), nil
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// ambiguous reports whether a repeated group contains a repetition or alternatives, so that it may match a text in many
// ways. It reads the pattern as it is written, like the engine that backtracks.
func ambiguous(pattern string) bool {
	// open has, for each enclosing group, whether there are several ways through it.
	open := []bool{false}
	closed := false
	for i := 0; i < len(pattern); i++ {
		innermost := len(open) - 1
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
			if innermost == 0 {
				return true
			}
			several := open[innermost]
			open = open[:innermost]
			open[innermost-1] = open[innermost-1] || several
			closed = several
		case '|':
			open[innermost] = true
		case '*', '+', '{':
			if group {
				return true
			}
			open[innermost] = true
		case '?':
			open[innermost] = true
		}
	}
	return false
}
