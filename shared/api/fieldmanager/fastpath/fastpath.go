// Package fastpath computes the managedFields of common writes without the library of Kubernetes, which package fieldmanager
// uses for all other writes. Each function returns false where only the library can decide, and otherwise exactly what the
// library would return: tests of package fieldmanager compare both with random objects. The build tag nofastpath switches the
// package off. Source: ADR-0028.
package fastpath

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// Fields are the fields of a kind, with how they are owned. They do not change.
type Fields struct {
	kind schema.GroupVersionKind
	// nodes are the fields of the kind. Nil: only the library can decide.
	nodes []node
}

// New returns the fields of a kind with a Go type and a schema. Resolve follows the reference of a schema. Unowned has the paths
// of fields that never have an owner, nor have the fields below them.
func New(kind schema.GroupVersionKind, goType reflect.Type, root *spec.Schema, resolve func(*spec.Schema) *spec.Schema, unowned [][]string) *Fields {
	f := &Fields{kind: kind}
	if !enabled {
		return f
	}
	f.nodes = nodesOf(goType, root, resolve, 1)
	for _, path := range unmanagedFields {
		if field := nodeAt(f.nodes, path); field != nil {
			field.unmanaged = true
		}
	}
	for _, path := range unowned {
		field := nodeAt(f.nodes, path)
		if field == nil {
			// It is an entry of a map, which only the library tells from others.
			return &Fields{kind: kind}
		}
		field.unowned = true
	}
	return f
}

// unmanagedFields are the fields of which the library records no owner.
var unmanagedFields = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"metadata", "creationTimestamp"},
	{"metadata", "selfLink"},
	{"metadata", "uid"},
	{"metadata", "clusterName"},
	{"metadata", "generation"},
	{"metadata", "managedFields"},
	{"metadata", "resourceVersion"},
}

// maxUpdaters is the number of entries for updates from which on the library combines the oldest.
const maxUpdaters = 10

// Update returns the managedFields after a create, or after an update that changes or adds fields that its manager owns alone.
// The entries have their earlier times; an entry without a time is new or changed.
func (f *Fields) Update(live, object resource.Object, manager string) ([]metav1.ManagedFieldsEntry, bool) {
	if f.nodes == nil || !utf8.ValidString(manager) {
		return nil, false
	}
	// This is the library's name for the manager that has none.
	manager = cmp.Or(manager, "unknown")
	entries, requested := live.GetManagedFields(), object.GetManagedFields()
	if requested != nil && !slices.EqualFunc(requested, entries, sameEntry) {
		return nil, false
	}
	changed := changes{}
	changed.compareFields(f.nodes, reflect.ValueOf(live).Elem(), reflect.ValueOf(object).Elem())
	if changed.unsupported {
		return nil, false
	}
	if len(entries) == 0 {
		if live.GetUID() != "" || len(changed.paths) == 0 {
			return nil, false
		}
		return []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: f.kind.GroupVersion().String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(string(appendFields(nil, changed.paths, 0))),
		}}, true
	}
	own, ok := f.entryOf(entries, manager, metav1.ManagedFieldsOperationUpdate, changed.paths)
	if !ok || own < 0 && len(changed.paths) > 0 {
		return nil, false
	}
	return entriesAfter(entries, own, &changed), true
}

// entryOf returns the index of the entry of a manager, or -1. It is not ok if only the library can decide: the manager does not own all of
// some paths, other managers own some of them, or an entry differs from what the library would write.
func (f *Fields) entryOf(entries []metav1.ManagedFieldsEntry, manager string, operation metav1.ManagedFieldsOperationType, paths [][]string) (own int, ok bool) {
	own = -1
	updates := 0
	for i := range entries {
		entry := &entries[i]
		switch {
		case entry.APIVersion != f.kind.GroupVersion().String() || entry.FieldsType != "FieldsV1" || entry.FieldsV1 == nil:
			return -1, false
		case slices.ContainsFunc(entries[:i], func(other metav1.ManagedFieldsEntry) bool { return SameManager(&other, entry) }):
			return -1, false
		case entry.Operation == metav1.ManagedFieldsOperationUpdate:
			updates++
		case entry.Operation != metav1.ManagedFieldsOperationApply:
			return -1, false
		}
		reader := entryReader{text: entry.FieldsV1.GetRawBytes(), paths: paths}
		switch owned, ok := reader.read(f.nodes); {
		case !ok:
			return -1, false
		case entry.Manager == manager && entry.Operation == operation && entry.Subresource == "":
			if own = i; owned < len(paths) {
				return -1, false
			}
		case owned > 0:
			return -1, false
		}
	}
	return own, updates <= maxUpdaters
}

// entriesAfter returns the entries after a write by the manager of one of them.
func entriesAfter(entries []metav1.ManagedFieldsEntry, own int, changed *changes) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	if len(changed.paths) > 0 {
		// It is not the time before, which may be absent.
		entries[own].Time = &metav1.Time{}
	}
	return entries
}

// Apply returns the merged object of an apply of the same fields as the manager applied before, with values of which none is empty,
// that changes no field of another owner. Its entries are as Update returns them.
func (f *Fields) Apply(live resource.Object, applied map[string]any, manager string) (resource.Object, bool) {
	entries := live.GetManagedFields()
	if f.nodes == nil || len(entries) == 0 || applied["apiVersion"] != f.kind.GroupVersion().String() || applied["kind"] != f.kind.Kind {
		return nil, false
	}
	// The library keeps this annotation for kubectl.
	if _, has := live.GetAnnotations()[model.LastAppliedAnnotation]; has {
		return nil, false
	}
	fields := appliedFields{}
	merged := live.DeepCopyObject().(resource.Object)
	fields.collect(f.nodes, applied, reflect.ValueOf(merged).Elem())
	if fields.unsupported || len(fields.paths) == 0 {
		return nil, false
	}
	text, err := json.Marshal(applied)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, merged) != nil {
		return nil, false
	}
	changed := changes{}
	changed.compareFields(f.nodes, reflect.ValueOf(live).Elem(), reflect.ValueOf(merged).Elem())
	if changed.unsupported {
		return nil, false
	}
	own, ok := f.entryOf(entries, manager, metav1.ManagedFieldsOperationApply, changed.paths)
	if !ok || own < 0 || !bytes.Equal(entries[own].FieldsV1.GetRawBytes(), appendFields(nil, fields.paths, 0)) {
		return nil, false
	}
	merged.SetManagedFields(entriesAfter(entries, own, &changed))
	return merged, true
}

// appliedFields finds the fields that an apply owns.
type appliedFields struct {
	paths       [][]string
	unsupported bool
	// path is the path of the field that is being read.
	path []string
}

// collect collects the fields of an object to apply. It removes from the object that they are merged into the values that they
// replace as a whole.
func (a *appliedFields) collect(nodes []node, applied map[string]any, into reflect.Value) {
	if a.unsupported = a.unsupported || len(applied) == 0; a.unsupported {
		return
	}
	seen := 0
	for i := range nodes {
		n := &nodes[i]
		value, given := applied[n.name]
		if !given {
			continue
		}
		seen++
		if value == nil || n.unowned {
			a.unsupported = true
			return
		}
		if n.unmanaged {
			// The library sets the time of a change here, too.
			had := n.entry.GetFrom(into)
			if a.unsupported = had.Kind() != reflect.String || had.String() != value; a.unsupported {
				return
			}
			continue
		}
		a.path = append(a.path, n.name)
		a.collectField(n, value, into)
		a.path = a.path[:len(a.path)-1]
		if a.unsupported {
			return
		}
	}
	a.unsupported = seen < len(applied)
}

func (a *appliedFields) collectField(n *node, value any, into reflect.Value) {
	fields, isObject := value.(map[string]any)
	var target reflect.Value
	if into.IsValid() {
		target = n.entry.GetFrom(into)
	}
	switch {
	case n.ownership == atomic:
		if a.unsupported = hasEmpty(value); a.unsupported {
			return
		}
		if !n.scalar && target.IsValid() {
			target.SetZero()
		}
		a.paths = append(a.paths, slices.Clone(a.path))
	case n.ownership == structured && isObject:
		a.collect(n.children, fields, reflect.Indirect(target))
	case n.ownership == stringMap && isObject:
		a.unsupported = len(fields) == 0
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			_, isText := fields[name].(string)
			if a.unsupported = a.unsupported || !isText || !isPlain(name) || name == model.LastAppliedAnnotation; a.unsupported {
				return
			}
			a.paths = append(a.paths, append(slices.Clone(a.path), name))
		}
	default:
		a.unsupported = true
	}
}

// hasEmpty reports whether a value to apply is or has one that a stored object may not have in that form: an empty one, which is left
// out, or a fraction.
func hasEmpty(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case bool:
		return !value
	case int64:
		return value == 0
	case []any:
		return len(value) == 0 || slices.ContainsFunc(value, hasEmpty)
	case map[string]any:
		return len(value) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(value)), hasEmpty)
	default:
		return true
	}
}

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return SameManager(&a, &b) && a.FieldsType == b.FieldsType && a.Time.Equal(b.Time) && SameFields(&a, &b)
}

// entryReader reads a text in the format FieldsV1 that is exactly as the library writes it and has only plain field names.
type entryReader struct {
	text []byte
	// paths are the paths to find, in order.
	paths [][]string
	owned int
}

// read returns how many of the paths are in the text, and whether it was able to read the text.
func (r *entryReader) read(nodes []node) (owned int, ok bool) {
	ok = r.readObject(nodes, false, r.paths, 0) && len(r.text) == 0 && r.text != nil
	return r.owned, ok
}

func (r *entryReader) consume(token string) bool {
	if !bytes.HasPrefix(r.text, []byte(token)) {
		return false
	}
	r.text = r.text[len(token):]
	return true
}

// readObject reads an object that is not empty. Paths has the paths whose first elements, up to depth, lead to this object. The
// names of an open object are not checked.
func (r *entryReader) readObject(nodes []node, open bool, paths [][]string, depth int) bool {
	if !r.consume("{") {
		return false
	}
	last, first := "", true
	for ; first || r.consume(","); first = false {
		if first && depth > 0 && r.consume(`".":{}`) {
			if len(paths) > 0 && len(paths[0]) == depth {
				r.owned++
			}
			if bytes.HasPrefix(r.text, []byte("}")) {
				return false
			}
			continue
		}
		if !r.consume(`"f:`) {
			return false
		}
		end := bytes.IndexByte(r.text, '"')
		if end < 0 {
			return false
		}
		name := string(r.text[:end])
		r.text = r.text[end+1:]
		if !isPlain(name) || last >= name && last != "" || !r.consume(":") {
			return false
		}
		last = name
		index := slices.IndexFunc(nodes, func(n node) bool { return n.name == name })
		if index < 0 && !open || index >= 0 && nodes[index].unmanaged {
			return false
		}
		var within [][]string
		for _, path := range paths {
			if len(path) > depth && path[depth] == name {
				within = append(within, path)
			}
		}
		if r.consume("{}") {
			if len(within) > 0 && len(within[0]) == depth+1 {
				r.owned++
			}
			continue
		}
		if open || nodes[index].ownership != structured && nodes[index].ownership != stringMap {
			return false
		}
		if !r.readObject(nodes[index].children, nodes[index].ownership == stringMap, within, depth+1) {
			return false
		}
	}
	return r.consume("}")
}

// SameManager reports whether Kubernetes takes two entries for entries of one manager.
func SameManager(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
		(a.APIVersion == b.APIVersion || a.Operation == metav1.ManagedFieldsOperationApply)
}

// SameFields reports whether two entries have the same fields.
func SameFields(a, b *metav1.ManagedFieldsEntry) bool {
	return a.APIVersion == b.APIVersion && a.FieldsV1 != nil && b.FieldsV1 != nil && string(a.FieldsV1.GetRawBytes()) == string(b.FieldsV1.GetRawBytes())
}
