package expression

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// fold returns a pattern that matches, without the flag i, the texts that the given pattern matches with the flag i and
// without the flag u. The engines of the interpreter compare by Unicode's case folding, in which the Kelvin sign equals
// k and the long s equals s. The pattern is valid and comes from portable. Source: ECMA-262, Canonicalize.
func fold(pattern string) string {
	f := folder{rest: pattern}
	var out strings.Builder
	for f.rest != "" {
		switch {
		case strings.HasPrefix(f.rest, "(?<"):
			out.WriteString(f.next(strings.IndexByte(f.rest, '>') + 1))
		case strings.HasPrefix(f.rest, "(?"):
			out.WriteString(f.next(len("(?:")))
		case strings.HasPrefix(f.rest, "[]"), strings.HasPrefix(f.rest, "[^]"):
			out.WriteString(f.next(strings.IndexByte(f.rest, ']') + 1))
		case f.rest[0] == '[':
			f.class(&out)
		default:
			text, char := f.atom()
			if partners := cased().partners[char]; len(partners) > 0 {
				text = "[" + text + string(partners) + "]"
			}
			out.WriteString(text)
		}
	}
	return out.String()
}

// folder reads a pattern.
type folder struct {
	// rest is the text that is not read yet.
	rest string
}

// next reads a text of a length in bytes, or the rest if it is shorter.
func (f *folder) next(length int) string {
	text := f.rest[:min(max(length, 1), len(f.rest))]
	f.rest = f.rest[len(text):]
	return text
}

// several stands for an escape that is not one character.
const several rune = -1

// controls are the characters of escapes. \b is one in a class only, and elsewhere it has no case either.
var controls = map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// atom reads a character or an escape, and returns its text and the character.
func (f *folder) atom() (text string, char rune) {
	if f.rest[0] != '\\' || len(f.rest) == 1 {
		char, length := utf8.DecodeRuneInString(f.rest)
		return f.next(length), char
	}
	digits := 0
	switch c := f.rest[1]; {
	case strings.IndexByte("BdDsSwW", c) >= 0:
		return f.next(2), several
	case controls[c] != 0:
		return f.next(2), controls[c]
	case c == 'c' && len(f.rest) > 2:
		control := rune(f.rest[2]) % 32
		return f.next(3), control
	case '0' <= c && c <= '7':
		after := strings.TrimLeft(f.rest[1:], "01234567")
		octal := f.next(len(f.rest) - len(after))
		code, _ := strconv.ParseUint(octal[1:], 8, 16)
		return octal, rune(code)
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	default:
		char, length := utf8.DecodeRuneInString(f.rest[1:])
		return f.next(1 + length), char
	}
	if end := 2 + digits; len(f.rest) >= end {
		if code, err := strconv.ParseUint(f.rest[2:end], 16, 16); err == nil {
			return f.next(end), rune(code)
		}
	}
	// An escape without its digits is the letter.
	letter := f.next(2)[1:]
	return letter, rune(letter[0])
}

// span is the range of characters from low to high.
type span struct{ low, high rune }

// class reads a class, and writes it with the partners of its characters.
func (f *folder) class(out *strings.Builder) {
	out.WriteString(f.next(1))
	if strings.HasPrefix(f.rest, "^") {
		out.WriteString(f.next(1))
	}
	var members strings.Builder
	var spans []span
	add := func(low, high rune) {
		// A pattern without the flag u has a character beyond U+FFFF as two units.
		if low > 0xffff {
			_, low = utf16.EncodeRune(low)
		}
		if high > 0xffff {
			high, _ = utf16.EncodeRune(high)
		}
		if several < low && low <= high {
			spans = append(spans, span{low, high})
		}
	}
	for f.rest != "" && f.rest[0] != ']' {
		text, low := f.atom()
		members.WriteString(text)
		if len(f.rest) < 2 || f.rest[0] != '-' || f.rest[1] == ']' {
			add(low, low)
			continue
		}
		members.WriteString(f.next(1))
		text, high := f.atom()
		members.WriteString(text)
		if low == several || high == several {
			add(low, low)
			add(high, high)
			continue
		}
		add(low, high)
	}
	for _, more := range missing(spans) {
		out.WriteRune(more.low)
		if more.low < more.high {
			out.WriteString("-" + string(more.high))
		}
	}
	out.WriteString(members.String())
	out.WriteString(f.next(1))
}

// missing returns the partners of the characters in spans that no span contains.
func missing(spans []span) []span {
	spans = join(spans)
	table := cased()
	var partners []span
	for _, s := range spans {
		first, _ := slices.BinarySearch(table.characters, s.low)
		for _, char := range table.characters[first:] {
			if char > s.high {
				break
			}
			for _, partner := range table.partners[char] {
				i, exact := slices.BinarySearchFunc(spans, partner, func(s span, char rune) int { return cmp.Compare(s.low, char) })
				if !exact && (i == 0 || spans[i-1].high < partner) {
					partners = append(partners, span{partner, partner})
				}
			}
		}
	}
	return join(partners)
}

// join sorts spans, and merges spans that overlap or adjoin.
func join(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	joined := spans[:0]
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && s.low <= joined[last].high+1 {
			joined[last].high = max(joined[last].high, s.high)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// caseTable has the characters that differ only in case.
type caseTable struct {
	// characters have partners. They are sorted.
	characters []rune
	// partners of a character are the other characters that a pattern with the flag i accepts in its place.
	partners map[rune][]rune
}

// cased returns the case table of JavaScript: two characters are partners if they have the same upper case. The upper
// case must be one UTF-16 unit, and must not be ASCII unless both characters are. Source: ECMA-262, Canonicalize.
var cased = sync.OnceValue(func() *caseTable {
	upper := cases.Upper(language.Und)
	same := map[rune][]rune{}
	for char := rune(0); char <= 0xffff; char++ {
		if unicode.SimpleFold(char) == char {
			continue
		}
		text := upper.String(string(char))
		canonical, length := utf8.DecodeRuneInString(text)
		if length < len(text) || canonical > 0xffff || char >= utf8.RuneSelf && canonical < utf8.RuneSelf {
			canonical = char
		}
		same[canonical] = append(same[canonical], char)
	}
	table := &caseTable{partners: map[rune][]rune{}}
	for _, all := range same {
		for i, char := range all {
			if len(all) > 1 {
				table.characters = append(table.characters, char)
				table.partners[char] = slices.Concat(all[:i], all[i+1:])
			}
		}
	}
	slices.Sort(table.characters)
	return table
})
