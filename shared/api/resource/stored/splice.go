// Package stored works on the stored text of objects. It makes the JSON of an answer from such a text without decoding it, and
// keeps the fields of a text that this build does not know. The build tag nosplice switches the first off: then every answer is
// encoded from a decoded object. Source: ADR-0028.
package stored

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"hash/fnv"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// A text that this build can splice ends with a mark, which is a member that no kind has:
//
//	"splice":"<schema and checksum><length of the status>.<basis>"
//
// The schema is a hash of the Go type, so that the text has exactly the fields that this build knows, in its order. The checksum
// covers the text and the rest of the mark: it recognizes a text that was damaged, or rewritten by a build that does not know the
// mark and keeps it. Every other text is decoded. A change of the checksum, or of the meaning of the mark, changes markFormat.
const (
	markFormat = "2"
	markMember = "splice"
	markStart  = `,"` + markMember + `":"`
	markEnd    = `"}`
	// sumLength is the length of the schema and the checksum in base64.
	sumLength = 11
)

// Mark returns a canonical text with a mark of its schema and of a basis, which Splice hands to observe. Ok is false for a text
// that decoding would change, or whose last member is not the status.
func Mark(text []byte, schema uint32, basis string) (marked []byte, ok bool) {
	if !enabled {
		return nil, false
	}
	body := text[:len(text)-1]
	status, found := Member(text, "status")
	last := found && len(status) >= len("{}") && &status[len(status)-1] == &body[len(body)-1]
	// Decoding changes invalid characters and nulls.
	if !last || bytes.Contains(text, []byte(`\ufffd`)) || bytes.Contains(text, []byte(":null")) {
		return nil, false
	}
	rest := strconv.Itoa(len(status)) + "." + basis
	marked = make([]byte, 0, len(text)+len(markStart)+sumLength+len(rest)+len(markEnd))
	marked = append(append(marked, body...), markStart...)
	checksum := sum(schema, body, []byte(rest))
	return append(append(append(marked, checksum[:]...), rest...), markEnd...), true
}

// Cut returns a text without its mark and without its last brace, and the value of the mark. Found is false for a text without
// one.
func Cut(text []byte) (body, mark []byte, found bool) {
	inner, found := bytes.CutSuffix(text, []byte(markEnd))
	if !found {
		return nil, nil, false
	}
	quote := bytes.LastIndexByte(inner, '"')
	if quote < 0 {
		return nil, nil, false
	}
	body, found = bytes.CutSuffix(inner[:quote+1], []byte(markStart))
	return body, inner[quote+1:], found
}

// Canonical returns a marked text without its mark and without its last brace. Ok is false if this build may encode the object as
// another text.
func Canonical(text []byte, schema uint32) (body []byte, ok bool) {
	body, _, ok = verify(text, schema)
	return body, ok
}

// verify is Canonical, and returns the value of the mark behind the checksum.
func verify(text []byte, schema uint32) (body, rest []byte, ok bool) {
	body, mark, found := Cut(text)
	if !enabled || !found || len(mark) < sumLength {
		return nil, nil, false
	}
	// Base64 is compared, because its last letter has bits that decoding ignores.
	if [sumLength]byte(mark) != sum(schema, body, mark[sumLength:]) {
		return nil, nil, false
	}
	return body, mark[sumLength:], true
}

// Splice appends the answer for a marked text: the text with a resource version, and with the fields that observe appends to the
// beginning of the status. Ok is false if the answer has to be made from the object.
func Splice(answer, text []byte, schema uint32, resourceVersion int64, observe func(answer []byte, basis string) []byte) (spliced []byte, ok bool) {
	body, rest, ok := verify(text, schema)
	if !ok {
		return answer, false
	}
	length, basis, _ := strings.Cut(string(rest), ".")
	size, err := strconv.Atoi(length)
	_, end, hasUID := UID(body)
	status := len(body) - size + len("{")
	if err != nil || !hasUID || status < end || size < len("{}") {
		return answer, false
	}
	answer = append(answer, body[:end]...)
	answer = append(answer, `,"resourceVersion":"`...)
	answer = append(strconv.AppendInt(answer, resourceVersion, 10), '"')
	answer = append(answer, body[end:status]...)
	answer = observe(answer, basis)
	if body[status] == '}' {
		answer = bytes.TrimSuffix(answer, []byte(","))
	}
	answer = append(answer, body[status:]...)
	return append(answer, '}'), true
}

// sum returns the schema and the checksum, in base64, of a text that ends before its last brace, and of the rest of the mark.
func sum(schema uint32, body, rest []byte) (checksum [sumLength]byte) {
	var both [8]byte
	binary.BigEndian.PutUint32(both[:], schema)
	binary.BigEndian.PutUint32(both[4:], crc32.Update(crc32.ChecksumIEEE(body), crc32.IEEETable, rest))
	base64.RawURLEncoding.Encode(checksum[:], both[:])
	return checksum
}

// UID returns the uid in a canonical text, and where its string ends. No text of a field that comes before it has a quote
// that is not escaped.
func UID(body []byte) (uid []byte, end int, found bool) {
	const name = `"uid":"`
	_, rest, found := bytes.Cut(body, []byte(name))
	if !found {
		return nil, 0, false
	}
	length := bytes.IndexByte(rest, '"')
	if length < 0 {
		return nil, 0, false
	}
	return rest[:length], len(body) - len(rest) + length + 1, true
}

// Member returns the value of a member of an object. The text is one that encoding/json has written.
func Member(text []byte, name string) (value []byte, found bool) {
	for key, value := range Members(text) {
		if string(key) == name {
			return value, true
		}
	}
	return nil, false
}

// Members returns the members of an object with their names, without decoding them. The text is one that encoding/json has
// written: without blanks.
func Members(text []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for quote := 1; quote < len(text) && text[quote] == '"'; quote++ {
			colon := skipString(text, quote)
			name := text[quote+1 : colon-1]
			comma := skipValue(text, colon+1)
			if !yield(name, text[colon+1:comma]) {
				return
			}
			quote = comma
		}
	}
}

// skipString returns the position after a string.
func skipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// skipValue returns the position after a value.
func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = skipString(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(text)
}

// schemas are the hashes of types, by type.
var schemas sync.Map

// SchemaOf returns a hash of a type, of everything that decides how encoding/json writes it: the names, the options, the order and
// the types of its fields.
func SchemaOf(goType reflect.Type) uint32 {
	if known, ok := schemas.Load(goType); ok {
		return known.(uint32)
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, markFormat)
	describeType(hash, goType, map[reflect.Type]bool{})
	known, _ := schemas.LoadOrStore(goType, hash.Sum32())
	return known.(uint32)
}

var marshals = reflect.TypeFor[json.Marshaler]()

// describeType writes what SchemaOf hashes.
func describeType(w io.Writer, goType reflect.Type, seen map[reflect.Type]bool) {
	_, _ = io.WriteString(w, goType.String()+";")
	if seen[goType] || goType.Implements(marshals) || reflect.PointerTo(goType).Implements(marshals) {
		return
	}
	seen[goType] = true
	switch goType.Kind() {
	case reflect.Struct:
		for i := range goType.NumField() {
			field := goType.Field(i)
			_, _ = io.WriteString(w, field.Name+" "+field.Tag.Get("json")+" ")
			describeType(w, field.Type, seen)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describeType(w, goType.Elem(), seen)
	case reflect.Map:
		describeType(w, goType.Key(), seen)
		describeType(w, goType.Elem(), seen)
	default:
		// The name says everything.
	}
}
