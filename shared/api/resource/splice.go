package resource

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource/stored"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// addedBytes is how much longer an answer can be than the stored text. A longer one costs a copy.
const addedBytes = 150

// splicer returns the group of a kind whose stored texts can be spliced, and nil for other kinds.
func (r *Registry[T]) splicer() Splicer[T] {
	if r.Format != nil {
		return nil
	}
	return r.Splicer
}

// schema identifies the fields of the kind in the marks of stored texts.
func (r *Registry[T]) schema() uint32 { return stored.SchemaOf(reflect.TypeFor[T]()) }

// marked returns the text to store for an object whose text is canonical, with a mark from which answers can be made. Before is
// the text that it replaces: the mark alone must not make an object larger, because objects that do not grow are within every
// bound.
func (r *Registry[T]) marked(text []byte, object T, record store.Record, before []byte) []byte {
	splicer := r.splicer()
	created := object.GetCreationTimestamp()
	if splicer == nil || object.GetUID() == "" || object.GetDeletionTimestamp() != nil || !created.Time.Equal(record.Created) {
		return text
	}
	if r.Relations != nil && len(r.Relations.Related(object)) > 0 {
		return text
	}
	basis, fit := splicer.Basis(object)
	if !fit {
		return text
	}
	marked, ok := stored.Mark(text, r.schema(), basis)
	_, _, hadMark := stored.Cut(before)
	if !ok || len(marked) > limits.ObjectBytes || !hadMark && len(text) <= len(before) && len(before) < len(marked) {
		return text
	}
	return marked
}

// storedText returns the text that this build would store for an object that it has read from a record.
func (r *Registry[T]) storedText(object T, record store.Record) ([]byte, error) {
	if body, ok := r.canonical(record.Object); ok {
		return append(bytes.Clone(body), '}'), nil
	}
	return r.encode(object)
}

// canonical returns the text of a record as this build encodes its object, without its last brace. Ok is false if the text may be
// another.
func (r *Registry[T]) canonical(text []byte) (body []byte, ok bool) {
	if r.splicer() == nil {
		return nil, false
	}
	return stored.Canonical(text, r.schema())
}

// replacement returns the text to store in place of a record, for an object with the text updated. Known is the part of the record
// that this build understands.
func (r *Registry[T]) replacement(record store.Record, known, updated []byte, object T) ([]byte, error) {
	present := record.Object
	if body, _, found := stored.Cut(present); found {
		present = append(bytes.Clone(body), '}')
	}
	text, err := stored.KeepUnknown(present, known, updated)
	if err != nil || !bytes.Equal(text, updated) {
		return text, err
	}
	return r.marked(text, object, record, record.Object), nil
}

// splice appends the answer for a record: its text with the resource version and the current status. Ok is false if the answer has
// to be made from the object.
func (r *Registry[T]) splice(answer []byte, record store.Record) (spliced []byte, ok bool) {
	splicer := r.splicer()
	if splicer == nil {
		return answer, false
	}
	return stored.Splice(answer, record.Object, r.schema(), record.Revision, func(answer []byte, basis string) []byte {
		return splicer.Observed(answer, basis, record)
	})
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
	uid, _, _ := stored.UID(text.JSON)
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
		releaseBuffer(list.buffer)
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
