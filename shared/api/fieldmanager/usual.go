package fieldmanager

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
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
	own := -1
	updates := 0
	for i := range known {
		entry := &known[i]
		switch {
		case entry.APIVersion != m.kind.GroupVersion().String() || entry.FieldsType != "FieldsV1" || entry.FieldsV1 == nil:
			return nil, false
		case slices.ContainsFunc(known[:i], func(other metav1.ManagedFieldsEntry) bool { return sameManager(&other, entry) }):
			return nil, false
		case entry.Operation == metav1.ManagedFieldsOperationUpdate:
			updates++
		case entry.Operation != metav1.ManagedFieldsOperationApply:
			return nil, false
		}
		of := reader{text: entry.FieldsV1.GetRawBytes(), paths: found.paths}
		switch owned, ok := of.read(m.parts); {
		case !ok:
			return nil, false
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "":
			if own = i; owned < len(found.paths) {
				return nil, false
			}
		case owned > 0:
			return nil, false
		}
	}
	entries := slices.Clone(known)
	if len(found.paths) > 0 {
		if own < 0 || updates > maxUpdaters {
			return nil, false
		}
		// It is not the time before, which may be absent.
		entries[own].Time = &metav1.Time{}
	}
	return entries, true
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
