package syncpatch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path selects the values of an object that a patch applies to. The zero value selects the whole object. The grammar,
// which ignores blanks around the path:
//
//	path    = [ "." ] [ segment { "." segment | [ "." ] bracket } ]
//	segment = bracket | quoted | plain
//	bracket = "[" ( index | "*" | quoted ) "]"
//	quoted  = '"' characters '"' | "'" characters "'"
//	plain   = "*" | characters but . [ ] " ' *
//
// In quotes, a backslash escapes the quote and another backslash. `*` selects every element of an array or map. A
// number is an index in an array, from 0, and a key in a map. A quoted segment is always a key. Source: Spec 2.8; ADR-0013.
type Path struct {
	segments []segment
}

// segment is one step of a path.
type segment struct {
	wildcard bool
	key      string
	// literal reports whether the key is quoted, and would be an index or a wildcard without its quotes.
	literal bool
}

// PathError says why a text is not a path.
type PathError struct {
	// Message is the reason.
	Message string
	// Column is the position, counted in characters from 1.
	Column int
}

func (e *PathError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Message) }

// ParsePath reads a path. Its error is a *PathError.
func ParsePath(text string) (Path, error) {
	p := pathParser{text: strings.TrimRightFunc(text, unicode.IsSpace)}
	p.next = len(p.text) - len(strings.TrimLeftFunc(p.text, unicode.IsSpace))
	if err := p.parse(); err != nil {
		return Path{}, err
	}
	return Path{p.segments}, nil
}

type pathParser struct {
	text     string
	next     int
	segments []segment
}

// fail returns an error at an offset in the text.
func (p *pathParser) fail(at int, message string) error {
	return &PathError{Message: message, Column: utf8.RuneCountInString(p.text[:at]) + 1}
}

// nextIsOneOf reports whether the next character is one of these.
func (p *pathParser) nextIsOneOf(characters string) bool {
	return p.next < len(p.text) && strings.IndexByte(characters, p.text[p.next]) >= 0
}

func (p *pathParser) parse() error {
	if p.nextIsOneOf(".") {
		p.next++
	}
	if p.next == len(p.text) {
		return nil
	}
	for {
		if err := p.segment(); err != nil {
			return err
		}
		switch {
		case p.next == len(p.text):
			return nil
		case p.nextIsOneOf("."):
			p.next++
		case !p.nextIsOneOf("["):
			return p.fail(p.next, "expected . or [")
		}
	}
}

func (p *pathParser) segment() error {
	switch {
	case p.next == len(p.text) || p.nextIsOneOf("."):
		return p.fail(p.next, "the key is empty")
	case p.nextIsOneOf("["):
		return p.bracket()
	case p.nextIsOneOf(`"'`):
		key, err := p.quotedKey()
		p.add(key, true)
		return err
	}
	start := p.next
	if end := strings.IndexAny(p.text[start:], `.[]"'`); end >= 0 {
		p.next += end
	} else {
		p.next = len(p.text)
	}
	switch key := p.text[start:p.next]; {
	case p.nextIsOneOf("]"):
		return p.fail(p.next, "] without [")
	case p.nextIsOneOf(`"'`):
		return p.fail(p.next, "a key with a quote must be in quotes of the other kind, or in quotes with a backslash before the quote")
	case key != "*" && strings.Contains(key, "*"):
		return p.fail(start+strings.Index(key, "*"), "* matches whole keys; a key that contains * must be in quotes")
	default:
		p.add(key, false)
	}
	return nil
}

func (p *pathParser) bracket() error {
	open := p.next
	p.next++
	if p.nextIsOneOf(`"'`) {
		key, err := p.quotedKey()
		if err != nil {
			return err
		}
		if !p.nextIsOneOf("]") {
			return p.fail(p.next, "expected ]")
		}
		p.next++
		p.add(key, true)
		return nil
	}
	end := strings.IndexByte(p.text[p.next:], ']')
	if end < 0 {
		return p.fail(open, "[ without ]")
	}
	start := p.next
	key := p.text[start : start+end]
	p.next += end + 1
	_, isIndex := index(key)
	switch {
	case key == "":
		return p.fail(start, "the brackets are empty")
	case key[0] == '-':
		return p.fail(start, "an index counts from 0 and cannot be negative")
	case key != "*" && !isIndex:
		return p.fail(start, fmt.Sprintf("%.300q is neither an index nor *; a key in brackets must be in quotes", key))
	}
	p.add(key, false)
	return nil
}

// quotedKey reads a key with its quotes.
func (p *pathParser) quotedKey() (string, error) {
	open, quote := p.next, p.text[p.next]
	var key strings.Builder
	for p.next++; p.next < len(p.text); p.next++ {
		c := p.text[p.next]
		if c == '\\' && p.next+1 < len(p.text) && (p.text[p.next+1] == quote || p.text[p.next+1] == '\\') {
			p.next++
			c = p.text[p.next]
		} else if c == quote {
			p.next++
			if key.Len() == 0 {
				return "", p.fail(open, "the key is empty")
			}
			return key.String(), nil
		}
		key.WriteByte(c)
	}
	return "", p.fail(open, "the quote is not closed")
}

func (p *pathParser) add(key string, quoted bool) {
	s := segment{key: key}
	_, isIndex := index(key)
	switch {
	case quoted:
		s.literal = isIndex || key == "*"
	case key == "*":
		s = segment{wildcard: true}
	}
	p.segments = append(p.segments, s)
}

// index reads a key as an index: digits without a leading zero. An index that is too large for an int is math.MaxInt.
func index(key string) (int, bool) {
	if key == "" || strings.Trim(key, "0123456789") != "" || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	n, err := strconv.Atoi(key)
	if err != nil {
		n = math.MaxInt
	}
	return n, true
}

// String returns the path with its segments joined by dots. ParsePath parses it to the same path. A path without
// wildcards is printed as expressions see it in context.path.
func (p Path) String() string {
	var b []byte
	for _, s := range p.segments {
		switch {
		case s.wildcard:
			b = append(join(b), '*')
		case s.literal:
			b = appendQuoted(join(b), s.key)
		default:
			b = appendKey(b, s.key)
		}
	}
	return string(b)
}

func join(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, '.')
	}
	return b
}

// appendKey adds a key of an object to a path, in quotes if it needs them.
func appendKey(b []byte, key string) []byte {
	b = join(b)
	if key == "" || strings.ContainsAny(key, `.[]"'*`) || strings.TrimSpace(key) != key {
		return appendQuoted(b, key)
	}
	return append(b, key...)
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func appendQuoted(b []byte, key string) []byte {
	b = append(b, '"')
	b = append(b, quoter.Replace(key)...)
	return append(b, '"')
}

func (p Path) hasWildcard() bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool { return s.wildcard })
}

// hasKeys reports whether the path consists of these keys.
func (p Path) hasKeys(keys ...string) bool {
	return slices.EqualFunc(p.segments, keys, func(s segment, key string) bool { return !s.wildcard && s.key == key })
}

// walk follows a path through a JSON value, and changes it in place.
type walk struct {
	path Path
	// visit is called with each value at the path, which may be null, and its concrete path. Its result replaces the
	// value, unless remove is set.
	visit func(at string, value any) (result any, remove bool, err error)
	// missed is the reason why the path ended early, at the deepest value that it reached. missedDepth is the number of
	// segments to that value, plus one.
	missed      string
	missedDepth int
	// missedAt is that value.
	missedAt any
	at       []byte
}

// run returns the new value, or remove. It visits each value once.
func (w *walk) run(value any) (result any, remove bool, err error) {
	return w.step(value, w.path.segments)
}

func (w *walk) step(value any, rest []segment) (any, bool, error) {
	if len(rest) == 0 {
		return w.visit(string(w.at), value)
	}
	switch value := value.(type) {
	case map[string]any:
		return value, false, w.fields(value, rest)
	case []any:
		return w.elements(value, rest)
	default:
		w.miss(value, rest, func() string { return w.wrongKind(value, rest[0]) })
		return value, false, nil
	}
}

func (w *walk) fields(object map[string]any, rest []segment) error {
	if !rest[0].wildcard {
		if _, ok := object[rest[0].key]; !ok {
			w.miss(object, rest, func() string { return w.describeAbsent(object, rest[0].key) })
			return nil
		}
		return w.field(object, rest[0].key, rest[1:])
	}
	if len(object) == 0 {
		w.miss(object, rest, func() string { return w.missPlace() + " is empty" })
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err := w.field(object, key, rest[1:]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) field(object map[string]any, key string, rest []segment) error {
	length := len(w.at)
	w.at = appendKey(w.at, key)
	result, remove, err := w.step(object[key], rest)
	w.at = w.at[:length]
	switch {
	case err != nil:
		return err
	case remove:
		delete(object, key)
	default:
		object[key] = result
	}
	return nil
}

func (w *walk) elements(array []any, rest []segment) (any, bool, error) {
	first, end := 0, len(array)
	if !rest[0].wildcard {
		n, ok := index(rest[0].key)
		if !ok || rest[0].literal {
			w.miss(array, rest, func() string { return w.wrongKind(array, rest[0]) })
			return array, false, nil
		}
		if n >= len(array) {
			w.miss(array, rest, func() string {
				return fmt.Sprintf("%s has %d elements, none at index %s", w.missPlace(), len(array), rest[0].key)
			})
			return array, false, nil
		}
		first, end = n, n+1
	} else if end == 0 {
		w.miss(array, rest, func() string { return w.missPlace() + " is empty" })
	}
	var removed int
	for i := first; i < end; i++ {
		length := len(w.at)
		w.at = strconv.AppendInt(join(w.at), int64(i), 10)
		result, remove, err := w.step(array[i], rest[1:])
		w.at = w.at[:length]
		if err != nil {
			return nil, false, err
		}
		if remove {
			removed++
			continue
		}
		array[i-removed] = result
	}
	if removed > 0 {
		array = slices.Delete(array, end-removed, end)
	}
	return array, false, nil
}

// miss records why the path ends here, unless it got as far elsewhere.
func (w *walk) miss(value any, rest []segment, why func() string) {
	if depth := len(w.path.segments) - len(rest) + 1; depth > w.missedDepth {
		w.missed, w.missedDepth, w.missedAt = why(), depth, value
	}
}

func (w *walk) missPlace() string {
	if len(w.at) == 0 {
		return "the object"
	}
	return string(w.at)
}

func (w *walk) wrongKind(value any, s segment) string {
	if _, isArray := value.([]any); isArray {
		return fmt.Sprintf("%s is an array, and %q is not an index; * matches every element", w.missPlace(), s.key)
	}
	if s.wildcard {
		return fmt.Sprintf("%s is %s, and * needs an array or a map", w.missPlace(), kindOf(value))
	}
	return fmt.Sprintf("%s is %s, and has no field %q", w.missPlace(), kindOf(value), s.key)
}

func (w *walk) describeAbsent(object map[string]any, key string) string {
	missed := fmt.Sprintf("%s has no field %q", w.missPlace(), key)
	for _, other := range slices.Sorted(maps.Keys(object)) {
		if strings.EqualFold(other, key) {
			return missed + fmt.Sprintf("; did you mean %q?", other)
		}
	}
	return missed
}

// kindOf names the kind of a JSON value, with an article.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	default:
		return "a number"
	}
}
