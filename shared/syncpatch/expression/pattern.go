package expression

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/dop251/goja/parser"
)

// checkPattern returns a regular expression in the form that the engines of the interpreter need, and refuses one whose
// time would not be linear in the text. The interpreter has two engines: that of Go, which is linear, and one that
// backtracks. It uses the second for look-around and back-references, and for any pattern when a search continues in the
// middle of a text (flags g and y). So look-around and back-references are refused, and repetition inside repetition is
// refused with these flags. (The second engine also splits texts beyond ASCII; there, only the worker bounds the time.)
func checkPattern(pattern, flags string) (string, error) {
	if strings.Trim(flags, "gimsuy") != "" {
		return "", fmt.Errorf("unsupported flags %q of a regular expression; use g, i, m, s, u and y", flags)
	}
	pattern, err := portable(pattern, strings.Contains(flags, "u"))
	if err != nil {
		return "", err
	}
	translated, err := parser.TransformRegExp(pattern, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	var incompatible parser.RegexpErrorIncompatible
	switch {
	case errors.As(err, &incompatible):
		return "", errors.New("look-around and back-references are not supported in a regular expression")
	case err != nil:
		return "", fmt.Errorf("the regular expression is not valid: %w", err)
	}
	options := syntax.Perl
	if strings.Contains(flags, "i") {
		options |= syntax.FoldCase
	}
	_, err = syntax.Parse(translated, options)
	if err != nil {
		var invalid *syntax.Error
		if errors.As(err, &invalid) && invalid.Code == syntax.ErrInvalidRepeatSize {
			return "", errors.New("a regular expression may repeat at most 1000 times")
		}
		return "", fmt.Errorf("the regular expression is not valid: %w", err)
	}
	if strings.ContainsAny(flags, "gy") && ambiguous(pattern) {
		return "", errors.New("with the flags g and y, a repeated group must not contain a repetition or alternatives")
	}
	return pattern, nil
}

// notBlank are the ranges of the characters of one UTF-16 unit that \S matches. ECMA-262, WhiteSpace and LineTerminator.
const notBlank = `\u0000-\u0008\u000e-\u001f\u0021-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e` +
	`\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\uffff`

// portable rewrites a pattern so that both engines read it as JavaScript does: \S in a class becomes ranges, which the
// linear engine needs; [ in a class is escaped; and the backslash before a plain letter, which has a meaning in other
// dialects, is dropped.
func portable(pattern string, unicode bool) (string, error) {
	var out, class strings.Builder
	to := &out
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
				to.WriteByte(c)
				to.WriteByte(escaped)
			case unicode:
				return "", fmt.Errorf(`the regular expression is not valid: \%c has no meaning`, escaped)
			default:
				to.WriteByte(escaped)
			}
		case !inClass && c == '[':
			inClass, to = true, &class
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
			inClass, blanks, to = false, false, &out
		case inClass && c == '[', inClass && c == '-' && (afterS || class.Len() == 0 || strings.HasPrefix(pattern[i+1:], `\S`)):
			to.WriteByte('\\')
			to.WriteByte(c)
		default:
			to.WriteByte(c)
		}
	}
	out.WriteString(class.String())
	return out.String(), nil
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// ambiguous reports whether a repeated group contains a repetition or alternatives, so that a text may match it in many
// ways. It reads the pattern as it is written, like the engine that backtracks.
func ambiguous(pattern string) bool {
	// open says, for each enclosing group, whether there are several ways through it.
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
