package fieldmanager

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

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// unnoted are the fields that the library notes for nobody.
var unnoted = [][]string{
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

// usual is Update for the usual requests: a new object, and an update that changes or adds fields that its manager owns alone.
// It returns the entries that the library would, with the times before them. Otherwise it returns false, and the library has
// to look. Source: ADR-0028.
func (m *Manager) usual(live, object resource.Object, manager string) ([]metav1.ManagedFieldsEntry, bool) {
	if m.parts == nil || !utf8.ValidString(manager) {
		return nil, false
	}
	// This is the library's name for the manager that has none.
	manager = cmp.Or(manager, "unknown")
	known, given := live.GetManagedFields(), object.GetManagedFields()
	if given != nil && !slices.EqualFunc(given, known, sameEntry) {
		return nil, false
	}
	found := difference{}
	found.object(m.parts, reflect.ValueOf(live).Elem(), reflect.ValueOf(object).Elem())
	if found.unusual {
		return nil, false
	}
	if len(known) == 0 {
		if live.GetUID() != "" || len(found.paths) == 0 {
			return nil, false
		}
		return []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: m.kind.GroupVersion().String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(string(appendFields(nil, found.paths, 0))),
		}}, true
	}
	own, ok := m.own(known, manager, metav1.ManagedFieldsOperationUpdate, found.paths)
	if !ok || own < 0 && len(found.paths) > 0 {
		return nil, false
	}
	return written(known, own, &found), true
}

// own returns the index of the entry of a manager, or -1. It is not ok if the library has to look: the manager does not own all of
// some paths, others own some of them, or an entry is not as the library would write it.
func (m *Manager) own(entries []metav1.ManagedFieldsEntry, manager string, operation metav1.ManagedFieldsOperationType, paths [][]string) (own int, ok bool) {
	own = -1
	updates := 0
	for i := range entries {
		entry := &entries[i]
		switch {
		case entry.APIVersion != m.kind.GroupVersion().String() || entry.FieldsType != "FieldsV1" || entry.FieldsV1 == nil:
			return -1, false
		case slices.ContainsFunc(entries[:i], func(other metav1.ManagedFieldsEntry) bool { return sameManager(&other, entry) }):
			return -1, false
		case entry.Operation == metav1.ManagedFieldsOperationUpdate:
			updates++
		case entry.Operation != metav1.ManagedFieldsOperationApply:
			return -1, false
		}
		of := reader{text: entry.FieldsV1.GetRawBytes(), paths: paths}
		switch owned, ok := of.read(m.parts); {
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

// written returns the entries after a write by the manager of one of them.
func written(entries []metav1.ManagedFieldsEntry, own int, found *difference) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	if len(found.paths) > 0 {
		// It is not the time before, which may be absent.
		entries[own].Time = &metav1.Time{}
	}
	return entries
}

// usualApply is Apply for the usual requests: a manager applies the fields that it has applied before, with values of which none is
// empty, and changes none that others own. It returns the merged object with the entries that the library would write, but for
// the time. Otherwise it returns false, and the library has to look. Source: ADR-0028.
func (m *Manager) usualApply(live resource.Object, applied map[string]any, manager string) (resource.Object, bool) {
	known := live.GetManagedFields()
	if m.parts == nil || len(known) == 0 || applied["apiVersion"] != m.kind.GroupVersion().String() || applied["kind"] != m.kind.Kind {
		return nil, false
	}
	// The library keeps this annotation for kubectl.
	if _, has := live.GetAnnotations()[model.LastAppliedAnnotation]; has {
		return nil, false
	}
	of := application{}
	merged := live.DeepCopyObject().(resource.Object)
	of.object(m.parts, applied, reflect.ValueOf(merged).Elem())
	if of.unusual || len(of.paths) == 0 {
		return nil, false
	}
	text, err := json.Marshal(applied)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, merged) != nil {
		return nil, false
	}
	found := difference{}
	found.object(m.parts, reflect.ValueOf(live).Elem(), reflect.ValueOf(merged).Elem())
	if found.unusual {
		return nil, false
	}
	own, ok := m.own(known, manager, metav1.ManagedFieldsOperationApply, found.paths)
	if !ok || own < 0 || !bytes.Equal(known[own].FieldsV1.GetRawBytes(), appendFields(nil, of.paths, 0)) {
		return nil, false
	}
	merged.SetManagedFields(written(known, own, &found))
	return merged, true
}

// application finds the fields that an apply owns.
type application struct {
	paths   [][]string
	unusual bool
	at      []string
}

// object looks at the fields of an object to apply. It removes from the object that they are merged into the values that they
// replace as a whole.
func (a *application) object(parts []part, applied map[string]any, into reflect.Value) {
	if a.unusual = a.unusual || len(applied) == 0; a.unusual {
		return
	}
	seen := 0
	for i := range parts {
		p := &parts[i]
		value, given := applied[p.name]
		if !given {
			continue
		}
		seen++
		if value == nil || p.unowned {
			a.unusual = true
			return
		}
		if p.unnoted {
			// The library notes the time of a change here, too.
			had := p.entry.GetFrom(into)
			if a.unusual = had.Kind() != reflect.String || had.String() != value; a.unusual {
				return
			}
			continue
		}
		a.at = append(a.at, p.name)
		a.field(p, value, into)
		a.at = a.at[:len(a.at)-1]
		if a.unusual {
			return
		}
	}
	a.unusual = seen < len(applied)
}

func (a *application) field(p *part, value any, into reflect.Value) {
	fields, isObject := value.(map[string]any)
	var target reflect.Value
	if into.IsValid() {
		target = p.entry.GetFrom(into)
	}
	switch {
	case p.form == leaf:
		if a.unusual = hasEmpty(value); a.unusual {
			return
		}
		if !p.simple && target.IsValid() {
			target.SetZero()
		}
		a.paths = append(a.paths, slices.Clone(a.at))
	case p.form == object && isObject:
		a.object(p.parts, fields, reflect.Indirect(target))
	case p.form == texts && isObject:
		a.unusual = len(fields) == 0
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			_, isText := fields[name].(string)
			if a.unusual = a.unusual || !isText || !plain(name) || name == model.LastAppliedAnnotation; a.unusual {
				return
			}
			a.paths = append(a.paths, append(slices.Clone(a.at), name))
		}
	default:
		a.unusual = true
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
	return sameManager(&a, &b) && a.FieldsType == b.FieldsType && a.Time.Equal(b.Time) && sameFields(&a, &b)
}

// reader reads a text in the format FieldsV1 that is exactly as the library writes it, and has plain names of fields alone.
type reader struct {
	text []byte
	// paths are what is looked for, in order.
	paths [][]string
	owned int
}

// read returns how many of the paths are in the text, and whether it was able to read the text.
func (r *reader) read(parts []part) (owned int, ok bool) {
	ok = r.object(parts, false, r.paths, 0) && len(r.text) == 0 && r.text != nil
	return r.owned, ok
}

func (r *reader) take(token string) bool {
	if !bytes.HasPrefix(r.text, []byte(token)) {
		return false
	}
	r.text = r.text[len(token):]
	return true
}

// object reads an object that is not empty. Paths are those that begin as it does, to a depth. Open objects have any names.
func (r *reader) object(parts []part, open bool, paths [][]string, depth int) bool {
	if !r.take("{") {
		return false
	}
	last, first := "", true
	for ; first || r.take(","); first = false {
		if first && depth > 0 && r.take(`".":{}`) {
			if len(paths) > 0 && len(paths[0]) == depth {
				r.owned++
			}
			if bytes.HasPrefix(r.text, []byte("}")) {
				return false
			}
			continue
		}
		if !r.take(`"f:`) {
			return false
		}
		end := bytes.IndexByte(r.text, '"')
		if end < 0 {
			return false
		}
		name := string(r.text[:end])
		r.text = r.text[end+1:]
		if !plain(name) || last >= name && last != "" || !r.take(":") {
			return false
		}
		last = name
		at := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if at < 0 && !open || at >= 0 && parts[at].unnoted {
			return false
		}
		var within [][]string
		for _, path := range paths {
			if len(path) > depth && path[depth] == name {
				within = append(within, path)
			}
		}
		if r.take("{}") {
			if len(within) > 0 && len(within[0]) == depth+1 {
				r.owned++
			}
			continue
		}
		if open || parts[at].form != object && parts[at].form != texts {
			return false
		}
		if !r.object(parts[at].parts, parts[at].form == texts, within, depth+1) {
			return false
		}
	}
	return r.take("}")
}
