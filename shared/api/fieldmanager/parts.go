package fieldmanager

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// part is a field of a struct of the model, and how it is owned.
type part struct {
	name  string
	entry *smdvalue.FieldCacheEntry
	form  form
	// unowned fields, and all below them, belong to nobody.
	unowned bool
	// unnoted fields are noted for nobody, and are taken from those who say that they own them.
	unnoted bool
	// simple leaves are texts, numbers and booleans that are written as they are.
	simple bool
	// parts are those of an object, by name.
	parts []part
}

// form is how the owners of a value are noted.
type form int

const (
	// leaf is owned as a whole.
	leaf form = iota
	// object has owners for each of its fields.
	object
	// texts is a map with owners for each of its entries.
	texts
	// other is left to the library.
	other
)

// maxDepth bounds how deep types are looked into.
const maxDepth = 8

// partsOf returns the fields of a struct by name.
func (m *Manager) partsOf(goType reflect.Type, of *spec.Schema, depth int) []part {
	entries := smdvalue.TypeReflectEntryOf(goType).OrderedFields()
	made := make([]part, 0, len(entries))
	for _, entry := range entries {
		next := part{name: entry.JsonName, entry: entry, form: other}
		fieldType := fieldOf(goType, next.name)
		property, known := of.Properties[next.name]
		if resolved := m.resolve(&property); known && resolved != nil && fieldType != nil {
			next.form = formOf(fieldType, resolved)
			next.simple = next.form == leaf && isSimple(fieldType)
			if next.form == object && depth == maxDepth {
				next.form = other
			}
			if next.form == object {
				next.parts = m.partsOf(pointed(fieldType), resolved, depth+1)
			}
		}
		made = append(made, next)
	}
	return made
}

// at returns the part at a path below some parts. Nil: there is none.
func at(parts []part, path []string) *part {
	for i := range parts {
		switch found := &parts[i]; {
		case found.name != path[0]:
		case len(path) == 1:
			return found
		default:
			return at(found.parts, path[1:])
		}
	}
	return nil
}

// fieldOf returns the type of a field by its JSON name, also where it is inlined. Nil: there is none.
func fieldOf(goType reflect.Type, name string) reflect.Type {
	for _, field := range reflect.VisibleFields(goType) {
		if given, _, _ := strings.Cut(field.Tag.Get("json"), ","); given == name {
			return field.Type
		}
	}
	return nil
}

func pointed(goType reflect.Type) reflect.Type {
	if goType.Kind() == reflect.Pointer {
		return goType.Elem()
	}
	return goType
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func marshals(goType reflect.Type) bool {
	return goType.Implements(marshaler) || reflect.PointerTo(goType).Implements(marshaler)
}

func isSimple(goType reflect.Type) bool {
	switch goType.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return !marshals(goType)
	default:
		return false
	}
}

func formOf(goType reflect.Type, of *spec.Schema) form {
	listType, _ := of.Extensions.GetString("x-kubernetes-list-type")
	mapType, _ := of.Extensions.GetString("x-kubernetes-map-type")
	held := pointed(goType)
	switch {
	case of.Type.Contains("string"), of.Type.Contains("integer"), of.Type.Contains("boolean"):
		return leaf
	case of.Type.Contains("array") && listType == "atomic":
		return leaf
	case !of.Type.Contains("object"):
		return other
	case mapType == "atomic":
		return leaf
	case held.Kind() == reflect.Struct && len(of.Properties) > 0 && !marshals(held):
		return object
	case goType == reflect.TypeFor[map[string]string]() && of.AdditionalProperties != nil:
		return texts
	default:
		return other
	}
}

// difference finds the fields that an update adds or changes. The library does the same for every case; this does it for the
// usual ones, without a copy of the object. Source: ADR-0028.
type difference struct {
	// paths are those that were added or changed, in the order of the library.
	paths [][]string
	// unusual is true if the library must look.
	unusual bool
	at      []string
}

func (d *difference) add(below ...string) {
	d.paths = append(d.paths, append(slices.Clone(d.at), below...))
}

// object compares the fields of two structs. The first one is not valid if there was none.
func (d *difference) object(parts []part, was, is reflect.Value) {
	for i := range parts {
		p := &parts[i]
		if p.unowned || p.unnoted {
			continue
		}
		var before reflect.Value
		if was.IsValid() {
			if before = p.entry.GetFrom(was); p.entry.CanOmit(before) {
				before = reflect.Value{}
			}
		}
		after := p.entry.GetFrom(is)
		if p.entry.CanOmit(after) {
			after = reflect.Value{}
		}
		switch {
		case !before.IsValid() && !after.IsValid():
			continue
		case before.IsValid() && after.IsValid() && equal(before, after):
			continue
		case !after.IsValid():
			// What is removed has owners to be found.
			d.unusual = true
		default:
			d.at = append(d.at, p.name)
			d.field(p, before, after)
			d.at = d.at[:len(d.at)-1]
		}
		if d.unusual {
			return
		}
	}
}

// field compares two values of a field, of which the first one is not valid if there was none.
func (d *difference) field(p *part, before, after reflect.Value) {
	if isNil(before) || isNil(after) {
		d.unusual = true
		return
	}
	switch p.form {
	case leaf:
		d.leaf(p, before, after)
	case object:
		if !before.IsValid() {
			d.add()
		} else {
			before = reflect.Indirect(before)
		}
		d.object(p.parts, before, reflect.Indirect(after))
	case texts:
		d.texts(before, after)
	default:
		d.unusual = true
	}
}

// isNil reports whether a value is written as null.
func isNil(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return value.IsNil()
	default:
		return false
	}
}

func (d *difference) leaf(p *part, before, after reflect.Value) {
	if !p.simple {
		// Values that differ in Go may be written alike.
		is, err := json.Marshal(after.Interface())
		if d.unusual = err != nil || string(is) == "null"; d.unusual {
			return
		}
		if before.IsValid() {
			was, err := json.Marshal(before.Interface())
			if d.unusual = err != nil || string(was) == "null"; d.unusual || bytes.Equal(was, is) {
				return
			}
		}
	}
	d.add()
}

func (d *difference) texts(before, after reflect.Value) {
	is := after.Interface().(map[string]string)
	var was map[string]string
	if before.IsValid() {
		was = before.Interface().(map[string]string)
	} else {
		d.add()
	}
	for name := range was {
		if _, still := is[name]; !still {
			d.unusual = true
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if value, known := was[name]; known && value == is[name] {
			continue
		}
		if d.unusual = !plain(name); d.unusual {
			return
		}
		d.add(name)
	}
}

// plain reports whether JSON writes a name as it is.
func plain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_', c == '/':
		default:
			return false
		}
	}
	return true
}

// appendFields appends paths, which are in order, in the format FieldsV1.
func appendFields(text []byte, paths [][]string, depth int) []byte {
	text = append(text, '{')
	if len(paths[0]) == depth {
		if paths = paths[1:]; len(paths) == 0 {
			return append(text, '}')
		}
		text = append(text, `".":{},`...)
	}
	for len(paths) > 0 {
		name, end := paths[0][depth], 1
		for end < len(paths) && paths[end][depth] == name {
			end++
		}
		text = append(append(append(text, `"f:`...), name...), `":`...)
		text = append(appendFields(text, paths[:end], depth+1), ',')
		paths = paths[end:]
	}
	text[len(text)-1] = '}'
	return text
}
