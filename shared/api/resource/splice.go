package resource

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// Splicer is an optional part of Rules, for kinds of which an answer can be made from the stored text: Observe adds fields to
// the beginning of the status, and changes nothing else. Source: ADR-0028.
type Splicer[T Object] interface {
	// Basis returns what Observed needs of an object as it is stored, as a few letters and digits. Fit is false if Observe
	// changes more of the object than its status, such as a secret.
	Basis(object T) (basis string, fit bool)
	// Observed appends the fields that Observe adds to the status, in JSON. Each of them ends with a comma. Basis is what
	// Basis returned. The creation time of the record is that of the object.
	Observed(text []byte, basis string, record store.Record) []byte
}

// A text that this build can splice ends with a member that no kind has:
//
//	"splice":"<schema and checksum><length of the status>.<basis>"
//
// The schema is that of the Go type, so that the text has exactly the fields that this build knows, in its order. The checksum
// covers the text and the rest of the member: it tells a text that was damaged, or rewritten by a build that does not know the
// member and keeps it. Everything else is decoded. Whoever changes the checksum, or what the member means, changes
// spliceFormat.
const (
	spliceFormat = "2"
	spliceMember = "splice"
	spliceStart  = `,"` + spliceMember + `":"`
	spliceEnd    = `"}`
	// sumLength is the length of the schema and the checksum in base64.
	sumLength = 11
	// addedBytes is how much longer an answer can be than the stored text. A longer one costs a copy.
	addedBytes = 150
)

// splicer returns the rules of a kind whose stored texts can be spliced, and nil for other kinds.
func (r *Registry[T]) splicer() Splicer[T] {
	if _, records := r.Rules.(Recorder[T]); records {
		return nil
	}
	rules, _ := r.Rules.(Splicer[T])
	return rules
}

// spliceable returns the text to store for an object whose text is canonical, so that answers can be made from it. Before is
// the text that it replaces: the member alone must not make an object larger: objects that do not grow are within every
// bound.
func (r *Registry[T]) spliceable(text []byte, object T, record store.Record, before []byte) []byte {
	rules := r.splicer()
	created := object.GetCreationTimestamp()
	if rules == nil || object.GetUID() == "" || object.GetDeletionTimestamp() != nil || !created.Time.Equal(record.Created) {
		return text
	}
	if related, depends := r.Rules.(Relations[T]); depends && len(related.Related(object)) > 0 {
		return text
	}
	basis, fit := rules.Basis(object)
	body := text[:len(text)-1]
	shown, found := member(text, status)
	last := found && len(shown) >= len("{}") && &shown[len(shown)-1] == &body[len(body)-1]
	// Of an invalid character and of a null, decoding makes another text.
	if !fit || !last || bytes.Contains(text, []byte(`\ufffd`)) || bytes.Contains(text, []byte(":null")) {
		return text
	}
	rest := strconv.Itoa(len(shown)) + "." + basis
	marked := make([]byte, 0, len(text)+len(spliceStart)+sumLength+len(rest)+len(spliceEnd))
	marked = append(append(marked, body...), spliceStart...)
	sum := r.sum(body, []byte(rest))
	marked = append(append(append(marked, sum[:]...), rest...), spliceEnd...)
	_, _, marking := cutSplice(before)
	if len(marked) > limits.ObjectBytes || !marking && len(text) <= len(before) && len(before) < len(marked) {
		return text
	}
	return marked
}

// storedText returns the text that this build would store for an object that it has read from a record.
func (r *Registry[T]) storedText(object T, record store.Record) ([]byte, error) {
	if body, _, known := r.canonical(record.Object); known {
		return append(bytes.Clone(body), '}'), nil
	}
	return r.encode(object)
}

// replacement returns the text to store in place of a record, for an object with the text updated. Known is what this build
// understands of the record.
func (r *Registry[T]) replacement(record store.Record, known, updated []byte, object T) ([]byte, error) {
	stored := record.Object
	if body, _, found := cutSplice(stored); found {
		stored = append(bytes.Clone(body), '}')
	}
	text, err := keepUnknown(stored, known, updated)
	if err != nil || !bytes.Equal(text, updated) {
		return text, err
	}
	return r.spliceable(text, object, record, record.Object), nil
}

// sum is the schema and the checksum, in base64, of a text that ends before its last brace, and of the rest of the member.
func (r *Registry[T]) sum(body, rest []byte) (sum [sumLength]byte) {
	var both [8]byte
	binary.BigEndian.PutUint32(both[:], schemaOf(reflect.TypeFor[T]()))
	binary.BigEndian.PutUint32(both[4:], crc32.Update(crc32.ChecksumIEEE(body), crc32.IEEETable, rest))
	base64.RawURLEncoding.Encode(sum[:], both[:])
	return sum
}

// cutSplice returns a text without its member for splicing and without its last brace, and the value of the member. Found is
// false for a text without one.
func cutSplice(text []byte) (body, value []byte, found bool) {
	inner, found := bytes.CutSuffix(text, []byte(spliceEnd))
	if !found {
		return nil, nil, false
	}
	at := bytes.LastIndexByte(inner, '"')
	if at < 0 {
		return nil, nil, false
	}
	body, found = bytes.CutSuffix(inner[:at+1], []byte(spliceStart))
	return body, inner[at+1:], found
}

// canonical returns the text of a record as this build encodes its object, without its last brace, and the value of its member
// for splicing. Known is false if the text may be another.
func (r *Registry[T]) canonical(text []byte) (body, value []byte, known bool) {
	if r.splicer() == nil {
		return nil, nil, false
	}
	body, value, found := cutSplice(text)
	if !found || len(value) < sumLength {
		return nil, nil, false
	}
	// Base64 is compared, because its last letter has bits that decoding ignores.
	if [sumLength]byte(value) != r.sum(body, value[sumLength:]) {
		return nil, nil, false
	}
	return body, value[sumLength:], true
}

// splice appends the answer for a record: its text with the resource version and the current status. Done is false if
// the answer has to be made from the object.
func (r *Registry[T]) splice(text []byte, record store.Record) (answer []byte, done bool) {
	body, value, known := r.canonical(record.Object)
	if !known {
		return text, false
	}
	length, basis, _ := strings.Cut(string(value), ".")
	size, err := strconv.Atoi(length)
	_, end, hasUID := uidIn(body)
	at := len(body) - size + len("{")
	if err != nil || !hasUID || at < end || size < len("{}") {
		return text, false
	}
	text = append(text, body[:end]...)
	text = append(text, `,"resourceVersion":"`...)
	text = append(strconv.AppendInt(text, record.Revision, 10), '"')
	text = append(text, body[end:at]...)
	text = r.splicer().Observed(text, basis, record)
	if body[at] == '}' {
		text = bytes.TrimSuffix(text, []byte(","))
	}
	text = append(text, body[at:]...)
	return append(text, '}'), true
}

// uidIn returns the uid in a canonical text, and where its string ends. No text of a field that comes before it has a quote
// that is not escaped.
func uidIn(body []byte) (uid []byte, end int, found bool) {
	const name = `"uid":"`
	at := bytes.Index(body, []byte(name))
	if at < 0 {
		return nil, 0, false
	}
	at += len(name)
	length := bytes.IndexByte(body[at:], '"')
	if length < 0 {
		return nil, 0, false
	}
	return body[at : at+length], at + length + 1, true
}

// member returns the value of a member of an object. The text is one that encoding/json has written.
func member(text []byte, name string) (value []byte, found bool) {
	for key, value := range members(text) {
		if string(key) == name {
			return value, true
		}
	}
	return nil, false
}

// members returns the members of an object with their names, without decoding them. The text is one that encoding/json has
// written: without blanks.
func members(text []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for at := 1; at < len(text) && text[at] == '"'; at++ {
			colon := skipString(text, at)
			name := text[at+1 : colon-1]
			end := skipValue(text, colon+1)
			if !yield(name, text[colon+1:end]) {
				return
			}
			at = end
		}
	}
}

// skipString returns the position after a string.
func skipString(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// skipValue returns the position after a value.
func skipValue(text []byte, at int) int {
	depth := 0
	for at < len(text) {
		switch text[at] {
		case '"':
			at = skipString(text, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return len(text)
}

// schemas are the hashes of types, by type.
var schemas sync.Map

// schemaOf returns a hash of what decides how encoding/json writes a type: the names, the options, the order and the types of
// its fields.
func schemaOf(of reflect.Type) uint32 {
	if known, ok := schemas.Load(of); ok {
		return known.(uint32)
	}
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, spliceFormat)
	describeType(hash, of, map[reflect.Type]bool{})
	known, _ := schemas.LoadOrStore(of, hash.Sum32())
	return known.(uint32)
}

var marshals = reflect.TypeFor[json.Marshaler]()

// describeType writes what schemaOf hashes.
func describeType(to io.Writer, of reflect.Type, seen map[reflect.Type]bool) {
	_, _ = io.WriteString(to, of.String()+";")
	if seen[of] || of.Implements(marshals) || reflect.PointerTo(of).Implements(marshals) {
		return
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			_, _ = io.WriteString(to, field.Name+" "+field.Tag.Get("json")+" ")
			describeType(to, field.Type, seen)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describeType(to, of.Elem(), seen)
	case reflect.Map:
		describeType(to, of.Key(), seen)
		describeType(to, of.Elem(), seen)
	default:
		// The name says everything.
	}
}

// Text is an object in the JSON of an answer, which was made from the stored text. The zero value is no object.
type Text struct {
	// PartialObjectMetadata has the name, the namespace, the uid and the resource version, and nothing else.
	metav1.PartialObjectMetadata
	// JSON is the object.
	JSON []byte
}

// Encoded returns the JSON of the object.
func (t *Text) Encoded() []byte { return t.JSON }

// textOf returns the object of a record as text.
func (r *Registry[T]) textOf(record store.Record) (text Text, done bool) {
	if text.JSON, done = r.splice(make([]byte, 0, len(record.Object)+addedBytes), record); !done {
		return Text{}, false
	}
	uid, _, _ := uidIn(text.JSON)
	namespace, name, namespaced := strings.Cut(record.Name, "/")
	if !namespaced {
		namespace, name = "", record.Name
	}
	text.Namespace, text.Name, text.UID = namespace, name, types.UID(uid)
	text.ResourceVersion = strconv.FormatInt(record.Revision, 10)
	return text, true
}

// answerText returns the JSON of an object that was read from a record, as the API shows it.
func (r *Registry[T]) answerText(object T, record store.Record) ([]byte, error) {
	if text, done := r.splice(nil, record); done {
		return text, nil
	}
	return json.Marshal(object)
}

// listText is a list in the JSON of an answer.
type listText struct {
	metav1.TypeMeta
	json []byte
	// buffer has the text, if it is to be used again.
	buffer []byte
}

// Encoded returns the JSON of the list.
func (l *listText) Encoded() []byte { return l.json }

// DeepCopyObject implements runtime.Object.
func (l *listText) DeepCopyObject() runtime.Object {
	return &listText{TypeMeta: l.TypeMeta, json: bytes.Clone(l.json)}
}

// Release lets the memory of a list that a verb returned as text be used again, once its text has been sent. For other objects, it
// does nothing.
func Release(object any) {
	if list, ok := object.(*listText); ok {
		release(list.buffer)
		list.json, list.buffer = nil, nil
	}
}

// EncodedText returns the JSON of an object or list that a verb returned as text. Ok is false for all others.
func EncodedText(object any) (text []byte, ok bool) {
	encoded, ok := object.(interface{ Encoded() []byte })
	if !ok {
		return nil, false
	}
	return encoded.Encoded(), true
}
