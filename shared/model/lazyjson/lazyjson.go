// Package lazyjson decodes JSON into large types at the start of a function. Before encoding/json decodes a struct, it
// prepares to encode and decode everything that the struct may contain. For the configuration of the platform, this
// preparation took a tenth of the time from the start of a function to its first response, whatever was configured. Source:
// ADR-0010.
package lazyjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Unmarshal decodes JSON into a pointer to a zero value, with the same result and the same errors as json.Unmarshal. It
// decodes structs and lists of structs member by member, so that encoding/json prepares only for the types of the members
// in the text. Use it for the first text of a type: once encoding/json has prepared the type, json.Unmarshal is six times
// as fast.
func Unmarshal(text []byte, target any) error {
	if pointer := reflect.ValueOf(target); pointer.Kind() == reflect.Pointer && !pointer.IsNil() && json.Valid(text) {
		made := reflect.New(pointer.Type().Elem())
		if decode(text, made.Elem()) {
			pointer.Elem().Set(made.Elem())
			return nil
		}
	}
	return json.Unmarshal(text, target)
}

// decode decodes valid JSON into a value. It returns false if encoding/json must decode the whole text instead, for example
// for every text with an error.
func decode(text []byte, target reflect.Value) bool {
	decodeWhole := func() bool { return json.Unmarshal(text, target.Addr().Interface()) == nil }
	if pointer := reflect.PointerTo(target.Type()); bytes.Equal(text, []byte("null")) || pointer.Implements(jsonUnmarshaler) || pointer.Implements(textUnmarshaler) {
		return decodeWhole()
	}
	switch {
	case target.Kind() == reflect.Pointer:
		if target.IsNil() {
			target.Set(reflect.New(target.Type().Elem()))
		}
		return decode(text, target.Elem())
	case target.Kind() == reflect.Struct && text[0] == '{':
		return decodeObject(text, target)
	case target.Kind() == reflect.Slice && target.IsNil() && target.Type().Elem().Kind() == reflect.Struct:
		return decodeList(text, target)
	default:
		return decodeWhole()
	}
}

func decodeObject(text []byte, target reflect.Value) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false
		}
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return false
		}
		field, ok := find(target, name.(string))
		if !ok || field.IsValid() && !decode(member, field) {
			return false
		}
	}
	return true
}

func decodeList(text []byte, target reflect.Value) bool {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return false
	}
	target.Set(reflect.MakeSlice(target.Type(), len(entries), len(entries)))
	for i, entry := range entries {
		if !decode(entry, target.Index(i)) {
			return false
		}
	}
	return true
}

// find returns the field of a struct for the name of a member, or the zero Value if the struct has no such field. ok is
// false if encoding/json must decode the struct instead: if the name differs only in case, or if an option of a field
// changes how it is decoded.
func find(in reflect.Value, member string) (value reflect.Value, ok bool) {
	for i := range in.NumField() {
		field := in.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "string"), field.Anonymous && field.Type.Kind() != reflect.Struct:
			return value, false
		case field.Anonymous && name == "":
			inner, ok := find(in.Field(i), member)
			if !ok {
				return value, false
			}
			if inner.IsValid() {
				value = inner
			}
			continue
		case !field.IsExported() || name == "-":
			continue
		case name == "":
			name = field.Name
		}
		if name == member {
			return in.Field(i), true
		}
		if strings.EqualFold(name, member) {
			return value, false
		}
	}
	return value, true
}
