package fastpath

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

// node is a field of a struct of the model, and how it is owned.
type node struct {
	name      string
	entry     *smdvalue.FieldCacheEntry
	ownership ownership
	// unowned fields, and all below them, have no owner.
	unowned bool
	// unmanaged fields have no owner either. The library removes them from entries that claim them.
	unmanaged bool
	// scalar fields are strings, numbers and booleans without an encoding of their own.
	scalar bool
	// children are the fields of an object, by name.
	children []node
}

// ownership is how the owners of a value are recorded.
type ownership int

const (
	// atomic values have one owner as a whole.
	atomic ownership = iota
	// structured values have owners for each of their fields.
	structured
	// stringMap is a map with owners for each of its entries.
	stringMap
	// unsupported values are left to the library.
	unsupported
)

// maxDepth is the depth of the types that are analyzed.
const maxDepth = 8

// nodesOf returns the fields of a struct by name. Resolve follows the reference of a schema.
func nodesOf(goType reflect.Type, schema *spec.Schema, resolve func(*spec.Schema) *spec.Schema, depth int) []node {
	entries := smdvalue.TypeReflectEntryOf(goType).OrderedFields()
	nodes := make([]node, 0, len(entries))
	for _, entry := range entries {
		next := node{name: entry.JsonName, entry: entry, ownership: unsupported}
		fieldType := fieldType(goType, next.name)
		property, known := schema.Properties[next.name]
		if resolved := resolve(&property); known && resolved != nil && fieldType != nil {
			next.ownership = ownershipOf(fieldType, resolved)
			next.scalar = next.ownership == atomic && isScalar(fieldType)
			if next.ownership == structured && depth == maxDepth {
				next.ownership = unsupported
			}
			if next.ownership == structured {
				next.children = nodesOf(elem(fieldType), resolved, resolve, depth+1)
			}
		}
		nodes = append(nodes, next)
	}
	return nodes
}

// nodeAt returns the node at a path. Nil: there is none.
func nodeAt(nodes []node, path []string) *node {
	for i := range nodes {
		switch candidate := &nodes[i]; {
		case candidate.name != path[0]:
		case len(path) == 1:
			return candidate
		default:
			return nodeAt(candidate.children, path[1:])
		}
	}
	return nil
}

// fieldType returns the type of a field by its JSON name, also where it is inlined. Nil: there is none.
func fieldType(goType reflect.Type, name string) reflect.Type {
	for _, field := range reflect.VisibleFields(goType) {
		if given, _, _ := strings.Cut(field.Tag.Get("json"), ","); given == name {
			return field.Type
		}
	}
	return nil
}

func elem(goType reflect.Type) reflect.Type {
	if goType.Kind() == reflect.Pointer {
		return goType.Elem()
	}
	return goType
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func marshals(goType reflect.Type) bool {
	return goType.Implements(marshaler) || reflect.PointerTo(goType).Implements(marshaler)
}

func isScalar(goType reflect.Type) bool {
	switch goType.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return !marshals(goType)
	default:
		return false
	}
}

func ownershipOf(goType reflect.Type, schema *spec.Schema) ownership {
	listType, _ := schema.Extensions.GetString("x-kubernetes-list-type")
	mapType, _ := schema.Extensions.GetString("x-kubernetes-map-type")
	value := elem(goType)
	switch {
	case schema.Type.Contains("string"), schema.Type.Contains("integer"), schema.Type.Contains("boolean"):
		return atomic
	case schema.Type.Contains("array") && listType == "atomic":
		return atomic
	case !schema.Type.Contains("object"):
		return unsupported
	case mapType == "atomic":
		return atomic
	case value.Kind() == reflect.Struct && len(schema.Properties) > 0 && !marshals(value):
		return structured
	case goType == reflect.TypeFor[map[string]string]() && schema.AdditionalProperties != nil:
		return stringMap
	default:
		return unsupported
	}
}

// changes finds the fields that an update adds or changes, without a copy of the object.
type changes struct {
	// paths are the paths of the fields that were added or changed, in the order of the library.
	paths [][]string
	// unsupported is true if only the library can compare the objects.
	unsupported bool
	// path is the path of the field that is being compared.
	path []string
}

func (c *changes) add(below ...string) {
	c.paths = append(c.paths, append(slices.Clone(c.path), below...))
}

// compareFields compares the fields of two structs. The first one is not valid if there was none.
func (c *changes) compareFields(nodes []node, was, is reflect.Value) {
	for i := range nodes {
		n := &nodes[i]
		if n.unowned || n.unmanaged {
			continue
		}
		var before reflect.Value
		if was.IsValid() {
			if before = n.entry.GetFrom(was); n.entry.CanOmit(before) {
				before = reflect.Value{}
			}
		}
		after := n.entry.GetFrom(is)
		if n.entry.CanOmit(after) {
			after = reflect.Value{}
		}
		switch {
		case !before.IsValid() && !after.IsValid():
			continue
		case before.IsValid() && after.IsValid() && equal(before, after):
			continue
		case !after.IsValid():
			// What is removed has owners to be found.
			c.unsupported = true
		default:
			c.path = append(c.path, n.name)
			c.compareField(n, before, after)
			c.path = c.path[:len(c.path)-1]
		}
		if c.unsupported {
			return
		}
	}
}

// compareField compares two values of a field, of which the first one is not valid if there was none.
func (c *changes) compareField(n *node, before, after reflect.Value) {
	if isNil(before) || isNil(after) {
		c.unsupported = true
		return
	}
	switch n.ownership {
	case atomic:
		c.compareAtomic(n, before, after)
	case structured:
		if !before.IsValid() {
			c.add()
		} else {
			before = reflect.Indirect(before)
		}
		c.compareFields(n.children, before, reflect.Indirect(after))
	case stringMap:
		c.compareMap(before, after)
	default:
		c.unsupported = true
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

func (c *changes) compareAtomic(n *node, before, after reflect.Value) {
	if !n.scalar {
		// Values that differ in Go may be written alike.
		is, err := json.Marshal(after.Interface())
		if c.unsupported = err != nil || string(is) == "null"; c.unsupported {
			return
		}
		if before.IsValid() {
			was, err := json.Marshal(before.Interface())
			if c.unsupported = err != nil || string(was) == "null"; c.unsupported || bytes.Equal(was, is) {
				return
			}
		}
	}
	c.add()
}

func (c *changes) compareMap(before, after reflect.Value) {
	is := after.Interface().(map[string]string)
	var was map[string]string
	if before.IsValid() {
		was = before.Interface().(map[string]string)
	} else {
		c.add()
	}
	for name := range was {
		if _, still := is[name]; !still {
			c.unsupported = true
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if value, known := was[name]; known && value == is[name] {
			continue
		}
		if c.unsupported = !isPlain(name); c.unsupported {
			return
		}
		c.add(name)
	}
}

// isPlain reports whether JSON writes a name without escapes.
func isPlain(name string) bool {
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
