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

// Path says which values of an object a patch is for. Its zero value is the whole object. The grammar, where
// blanks around the whole are not looked at:
//
//	path    = [ "." ] [ segment { "." segment | [ "." ] bracket } ]
//	segment = bracket | quoted | plain
//	bracket = "[" ( index | "*" | quoted ) "]"
//	quoted  = '"' characters '"' | "'" characters "'"
//	plain   = "*" | characters but . [ ] " ' *
//
// In quotes, a backslash in front of the quote or of another backslash stands for that character alone. `*`
// is every element of an array or map. A number is the index of an array, from 0, and a key of a map. What is
// quoted is always a key. Source: Spec 2.8; ADR-0013.
type Path struct {
	segments []segment
}

// segment is one step of a path.
type segment struct {
	wildcard bool
	key      string
	// literal is set where the key would be an index or a wildcard without its quotes.
	literal bool
}

// PathError is why a text is no path.
type PathError struct {
	// Message says what is wrong.
	Message string
	// Column is where, in characters from 1.
	Column int
}

// Error returns the message and the position.
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

// fail is an error at an offset of the text.
func (p *pathParser) fail(at int, message string) error {
	return &PathError{Message: message, Column: utf8.RuneCountInString(p.text[:at]) + 1}
}

// at tells whether the next character is one of these.
func (p *pathParser) at(characters string) bool {
	return p.next < len(p.text) && strings.IndexByte(characters, p.text[p.next]) >= 0
}

func (p *pathParser) parse() error {
	if p.at(".") {
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
		case p.at("."):
			p.next++
		case !p.at("["):
			return p.fail(p.next, "expected . or [")
		}
	}
}

func (p *pathParser) segment() error {
	switch {
	case p.next == len(p.text) || p.at("."):
		return p.fail(p.next, "the key is empty")
	case p.at("["):
		return p.bracket()
	case p.at(`"'`):
		key, err := p.quoted()
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
	case p.at("]"):
		return p.fail(p.next, "] without [")
	case p.at(`"'`):
		return p.fail(p.next, "a key that holds a quote must be in the other quotes, or behind a backslash in quotes")
	case key != "*" && strings.Contains(key, "*"):
		return p.fail(start+strings.Index(key, "*"), "* stands for a whole key; a key that holds it must be in quotes")
	default:
		p.add(key, false)
	}
	return nil
}

func (p *pathParser) bracket() error {
	open := p.next
	p.next++
	if p.at(`"'`) {
		key, err := p.quoted()
		if err != nil {
			return err
		}
		if !p.at("]") {
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
		return p.fail(start, "an index counts from 0 and is not negative")
	case key != "*" && !isIndex:
		return p.fail(start, fmt.Sprintf("%.300q is not an index and not *; a key in brackets must be in quotes", key))
	}
	p.add(key, false)
	return nil
}

// quoted reads a key in quotes, and the quotes.
func (p *pathParser) quoted() (string, error) {
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

// index reads a key as an index: digits without a leading zero. One that no array can have is the largest.
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

// String returns the path with its segments joined by dots. ParsePath gives the same path back. A path
// without wildcards is printed as context.path of the expressions is.
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

// appendKey adds a key of an object to a path, in quotes where it could not be read otherwise.
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

// wild tells whether the path has a wildcard.
func (p Path) wild() bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool { return s.wildcard })
}

// is tells whether the path consists of these keys.
func (p Path) is(keys ...string) bool {
	return slices.EqualFunc(p.segments, keys, func(s segment, key string) bool { return !s.wildcard && s.key == key })
}

// walk goes along a path through a JSON value, and changes it in place.
type walk struct {
	path Path
	// visit is called for each value at the path, which may be null, with the concrete path. Its result takes
	// the place of the value, unless remove is set.
	visit func(at string, value any) (result any, remove bool, err error)
	// missed is why the path ends early where it reaches farthest. missedDepth is how far it got there, plus one.
	missed      string
	missedDepth int
	at          []byte
}

// run returns the new value, or remove. Each value on the way is looked at once.
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
		w.miss(rest, func() string { return w.wrongKind(value, rest[0]) })
		return value, false, nil
	}
}

func (w *walk) fields(object map[string]any, rest []segment) error {
	if !rest[0].wildcard {
		if _, ok := object[rest[0].key]; !ok {
			w.miss(rest, func() string { return w.absent(object, rest[0].key) })
			return nil
		}
		return w.field(object, rest[0].key, rest[1:])
	}
	if len(object) == 0 {
		w.miss(rest, func() string { return w.where() + " is empty" })
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
			w.miss(rest, func() string { return w.wrongKind(array, rest[0]) })
			return array, false, nil
		}
		if n >= len(array) {
			w.miss(rest, func() string {
				return fmt.Sprintf("%s has %d elements, and none at %s", w.where(), len(array), rest[0].key)
			})
			return array, false, nil
		}
		first, end = n, n+1
	} else if end == 0 {
		w.miss(rest, func() string { return w.where() + " is empty" })
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

// miss keeps why the path ends here, unless it got as far elsewhere.
func (w *walk) miss(rest []segment, why func() string) {
	if depth := len(w.path.segments) - len(rest) + 1; depth > w.missedDepth {
		w.missed, w.missedDepth = why(), depth
	}
}

func (w *walk) where() string {
	if len(w.at) == 0 {
		return "the object"
	}
	return string(w.at)
}

func (w *walk) wrongKind(value any, s segment) string {
	if _, isArray := value.([]any); isArray {
		return fmt.Sprintf("%s is an array; %q is no index of it, and * would stand for each element", w.where(), s.key)
	}
	if s.wildcard {
		return fmt.Sprintf("%s is %s, and * needs an array or a map", w.where(), kindOf(value))
	}
	return fmt.Sprintf("%s is %s, and has no field %q", w.where(), kindOf(value), s.key)
}

func (w *walk) absent(object map[string]any, key string) string {
	missed := fmt.Sprintf("%s has no field %q", w.where(), key)
	for _, other := range slices.Sorted(maps.Keys(object)) {
		if strings.EqualFold(other, key) {
			return missed + fmt.Sprintf(", but %q", other)
		}
	}
	return missed
}

// kindOf names the kind of a JSON value, with its article.
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
