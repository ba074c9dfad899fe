package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tooDeep is the message for an expression that is nested too deeply.
var tooDeep = fmt.Sprintf("an expression may be nested at most %d levels deep", maxNesting)

// Scan returns an error for a text that is too long or whose brackets are nested too deeply, without parsing it: its
// time is linear in the text, and it needs almost no memory. A text without error may still be no expression. Its
// errors are *SyntaxError.
func Scan(text string) error {
	if len(text) > MaxLength {
		return &SyntaxError{fmt.Sprintf("an expression may have at most %d bytes, this one has %d", MaxLength, len(text)), 1, 1}
	}
	s := scanner{text: text}
	for s.at < len(text) {
		if s.step(); s.depth > maxNesting {
			before := text[:s.at-1]
			line := before[strings.LastIndexByte(before, '\n')+1:]
			return &SyntaxError{tooDeep, strings.Count(before, "\n") + 1, utf8.RuneCountInString(line) + 1}
		}
	}
	return nil
}

// scanner counts the brackets of a text. It skips strings, templates, comments and tokens that must be a regular
// expression. Where a token is ambiguous, it counts too few brackets rather than too many.
type scanner struct {
	text  string
	at    int
	depth int
	// templates are the depths at which a } continues a template.
	templates []int
	// operand reports whether the last token ended an operand, so that a slash divides.
	operand bool
}

// step skips one token.
func (s *scanner) step() {
	c := s.text[s.at]
	s.at++
	switch {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		return
	case c == '\'' || c == '"':
		s.skip(c)
	case c == '`':
		s.template()
	case c == '/' && strings.HasPrefix(s.text[s.at:], "/"):
		s.skipUntil("\n")
		return
	case c == '/' && strings.HasPrefix(s.text[s.at:], "*"):
		s.at++
		s.skipUntil("*/")
		return
	case c == '/' && !s.operand:
		s.pattern()
	case c == '(' || c == '[' || c == '{':
		s.depth++
		s.operand = false
		return
	case c == '}' && len(s.templates) > 0 && s.templates[len(s.templates)-1] == s.depth:
		s.templates = s.templates[:len(s.templates)-1]
		s.depth--
		s.template()
	case c == ')' || c == ']' || c == '}':
		s.depth = max(s.depth-1, 0)
	case inName(c):
		s.word()
		return
	default:
		s.operand = false
		return
	}
	s.operand = true
}

func inName(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// word skips a name or a number.
func (s *scanner) word() {
	from := s.at - 1
	for s.at < len(s.text) && inName(s.text[s.at]) {
		s.at++
	}
	switch s.text[from:s.at] {
	case "return", "typeof", "in", "of", "delete", "void", "throw", "new", "case", "do", "else", "instanceof":
		s.operand = false
	default:
		s.operand = true
	}
}

// skip skips a string up to its quote.
func (s *scanner) skip(quote byte) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch c {
		case quote, '\n':
			return
		case '\\':
			s.at = min(s.at+1, len(s.text))
		}
	}
}

// template skips the text of a template up to its end or the next expression in it.
func (s *scanner) template() {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '`':
			return
		case c == '\\':
			s.at = min(s.at+1, len(s.text))
		case c == '$' && strings.HasPrefix(s.text[s.at:], "{"):
			s.at++
			s.depth++
			s.templates = append(s.templates, s.depth)
			s.operand = false
			return
		}
	}
}

// pattern skips a regular expression.
func (s *scanner) pattern() {
	class := false
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '\n' || c == '/' && !class:
			return
		case c == '\\':
			s.at = min(s.at+1, len(s.text))
		case c == '[':
			class = true
		case c == ']':
			class = false
		}
	}
}

func (s *scanner) skipUntil(end string) {
	if i := strings.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.text)
}
