// Package fieldmanager tracks who set which field of an object (managedFields), and merges server-side apply into it.
// The rules are the rules of Kubernetes, from apimachinery; this package gives them the schemas of the kinds, which are generated
// from the model, and a clock. Source: Spec 2.2; ADR-0008.
//
// It stores nothing, knows no verbs, and decides nothing about what a field may hold. Only functions that create,
// update and patch import it: its libraries are large and slow down the start of a process.
package fieldmanager

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"management.platform.sh/shared/api/fieldmanager/fastpath"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

//go:embed schemas
var schemas embed.FS

// types are the parsed schemas of a kind and of its parts.
type types struct {
	schemas   map[string]*spec.Schema
	converter managedfields.TypeConverter
}

// converter does not validate stored objects, which are Go structs: they have the fields and the types of their schemas, because
// these are made from the structs. Their lists with keys may have duplicates, which the library permits; it validates what must
// have none, such as an object to apply. Source: ADR-0028.
type converter struct {
	managedfields.TypeConverter
	kind schema.GroupVersionKind
	// like is an empty object of the kind.
	like *typed.TypedValue
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c *converter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	_, isTree := object.(*unstructured.Unstructured)
	if isTree || !slices.Contains(options, typed.AllowDuplicates) || object.GetObjectKind().GroupVersionKind() != c.kind {
		return c.TypeConverter.ObjectToTyped(object, options...)
	}
	value, err := smdvalue.NewValueReflect(object)
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", c.kind.Kind, err)
	}
	return typed.AsTypedUnvalidated(value, c.like.Schema(), c.like.TypeRef()), nil //nolint:staticcheck // validating costs half of a write, and the struct has the types of its schema
}

// parsed are the types of the kinds that this process has written.
var parsed sync.Map

// parseTypes reads the schemas of a kind, once in a process. They are a file for each kind, because parsing takes a large part
// of the first write.
func parseTypes(kind string) (*types, error) {
	if known, ok := parsed.Load(kind); ok {
		return known.(*types), nil
	}
	text, err := schemas.ReadFile("schemas/" + kind + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", kind, err)
	}
	read := &types{}
	if err := json.Unmarshal(text, &read.schemas); err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", kind, err)
	}
	if read.converter, err = managedfields.NewTypeConverter(read.schemas, false); err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", kind, err)
	}
	known, _ := parsed.LoadOrStore(kind, read)
	return known.(*types), nil
}

// Manager keeps the managedFields of one kind. It implements resource.FieldManager.
type Manager struct {
	kind  schema.GroupVersionKind
	types *types
	one   kindOnly
	// root is the name of the schema of the kind.
	root string
	// subresource is the one whose writes are recorded; empty: the object itself.
	subresource string
	// part is the field of which clients own the fields below.
	part   string
	fields *managedfields.FieldManager
	// fast computes the entries of common writes. Nil for a subresource: the library computes all.
	fast *fastpath.Fields
}

// New returns the manager of a kind. It is a resource.NewFieldManager; a kind without a schema is an error.
// Source: ADR-0008.
func New(kind schema.GroupVersionKind, empty func() resource.Object, subresource string, unowned ...[]string) (resource.FieldManager, error) {
	types, err := parseTypes(kind.Kind)
	if err != nil {
		return nil, err
	}
	one := kindOnly{kind: kind, empty: empty}
	m := &Manager{kind: kind, types: types, one: one, root: rootOf(types.schemas, kind), subresource: subresource, part: cmp.Or(subresource, "spec")}
	if m.root == "" {
		return nil, fmt.Errorf("the schemas have no %s", kind)
	}
	ignored := fieldpath.NewSet()
	for _, path := range unowned {
		names := make([]any, len(path))
		for i, name := range path {
			names[i] = name
		}
		made, err := fieldpath.MakePath(names...)
		if err != nil {
			return nil, fmt.Errorf("the path %q: %w", path, err)
		}
		ignored.Insert(made)
	}
	if status := fieldpath.MakePathOrDie("status"); subresource == "" && !ignored.Has(status) {
		m.part = "status"
	}
	considered := fieldpath.NewExcludeSetFilter(ignored)
	if subresource != "" {
		considered = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie(subresource))
	}
	object, err := one.New(kind)
	if err != nil {
		return nil, err
	}
	like, err := types.converter.ObjectToTyped(object)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", kind.Kind, err)
	}
	if subresource == "" {
		m.fast = fastpath.New(kind, reflect.TypeOf(object).Elem(), types.schemas[m.root], m.resolve, unowned)
	}
	unvalidated := &converter{TypeConverter: types.converter, kind: kind, like: like}
	m.fields, err = managedfields.NewDefaultFieldManager(unvalidated, one, one, one, kind, kind.GroupVersion(), subresource,
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): considered})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// rootOf is the name of the schema of a kind; empty when there is none.
func rootOf(schemas map[string]*spec.Schema, kind schema.GroupVersionKind) string {
	for name, candidate := range schemas {
		kinds, _ := candidate.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, each := range kinds {
			gvk, _ := each.(map[string]any)
			if gvk["group"] == kind.Group && gvk["version"] == kind.Version && gvk["kind"] == kind.Kind {
				return name
			}
		}
	}
	return ""
}

// Update implements resource.FieldManager.
func (m *Manager) Update(live, object resource.Object, manager string, now time.Time) error {
	before := object.GetManagedFields()
	// A write of a subresource cannot ask for other entries.
	if before == nil || m.subresource != "" {
		before = live.GetManagedFields()
	}
	if m.fast != nil {
		if entries, ok := m.fast.Update(live, object, manager); ok {
			object.SetManagedFields(onTime(entries, before, manager, metav1.ManagedFieldsOperationUpdate, now))
			return nil
		}
	}
	was, is := live, object
	if m.subresource == "" {
		was, is = fastpath.Difference(live, object)
	}
	updated, err := m.fields.Update(was, is, manager)
	if err != nil {
		return fmt.Errorf("noting who changed what: %w", err)
	}
	written, err := meta.Accessor(updated)
	if err != nil {
		return err
	}
	object.SetManagedFields(onTime(written.GetManagedFields(), before, manager, metav1.ManagedFieldsOperationUpdate, now))
	return nil
}

// Apply implements resource.FieldManager.
func (m *Manager) Apply(live resource.Object, applied map[string]any, manager string, force bool, now time.Time) (runtime.Object, error) {
	if m.fast != nil {
		if merged, ok := m.fast.Apply(live, applied, manager); ok {
			merged.SetManagedFields(onTime(merged.GetManagedFields(), live.GetManagedFields(), manager, metav1.ManagedFieldsOperationApply, now))
			return merged, nil
		}
	}
	configuration := &unstructured.Unstructured{Object: applied}
	merged, err := m.fields.Apply(live, configuration, manager, force)
	if err != nil {
		return nil, m.refusal(err, configuration)
	}
	object, err := meta.Accessor(merged)
	if err != nil {
		return nil, err
	}
	if m.gaveUp(live.GetManagedFields(), object.GetManagedFields(), manager) {
		if merged, err = m.keepUnowned(live, merged); err != nil {
			return nil, err
		}
		if object, err = meta.Accessor(merged); err != nil {
			return nil, err
		}
	}
	object.SetManagedFields(onTime(object.GetManagedFields(), live.GetManagedFields(), manager, metav1.ManagedFieldsOperationApply, now))
	return merged, nil
}

// gaveUp reports whether a manager that applies owns less than before. Only then the merge drops anything.
func (m *Manager) gaveUp(before, after []metav1.ManagedFieldsEntry, manager string) bool {
	owned := func(entries []metav1.ManagedFieldsEntry) *metav1.FieldsV1 {
		for i := range entries {
			entry := &entries[i]
			if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == m.subresource {
				return entry.FieldsV1
			}
		}
		return nil
	}
	had, has := owned(before), owned(after)
	switch {
	case had == nil:
		return false
	case has == nil:
		return true
	case bytes.Equal(had.GetRawBytes(), has.GetRawBytes()):
		return false
	}
	var sets [2]fieldpath.Set
	for i, fields := range []*metav1.FieldsV1{had, has} {
		if err := sets[i].FromJSON(bytes.NewReader(fields.GetRawBytes())); err != nil {
			return true
		}
	}
	return !sets[0].Difference(&sets[1]).Empty()
}

// keepUnowned restores fields that the merge dropped although they had no owner. The library drops the whole part when a manager
// stops owning its last field there: a scope would vanish silently, and the key would become wider. Source: ADR-0008.
func (m *Manager) keepUnowned(live resource.Object, merged runtime.Object) (runtime.Object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("reading the stored object: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
	if err != nil {
		return nil, fmt.Errorf("reading the merged object: %w", err)
	}
	accessor, err := meta.Accessor(merged)
	if err != nil {
		return nil, err
	}
	// Fields that are owned now stay as they were applied, even when they are zero and so not written.
	entries := append(slices.Clone(live.GetManagedFields()), accessor.GetManagedFields()...)
	had, _ := before[m.part].(map[string]any)
	has, _ := after[m.part].(map[string]any)
	if has == nil {
		has = map[string]any{}
		after[m.part] = has
	}
	changed := false
	for name, value := range had {
		if _, still := has[name]; still {
			continue
		}
		if rest := unownedOf(value, ownedBelow(entries, m.part, name)); rest != nil {
			has[name], changed = rest, true
		}
	}
	if !changed {
		return merged, nil
	}
	return m.one.read(after)
}

// ownedBelow returns what the entries own of a field of the part. It is empty if neither the field nor anything below it has an
// owner.
func ownedBelow(entries []metav1.ManagedFieldsEntry, part, name string) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err == nil {
			all = all.Union(set)
		}
	}
	field := fieldpath.PathElement{FieldName: &name}
	within := all.WithPrefix(fieldpath.PathElement{FieldName: &part})
	below := within.WithPrefix(field)
	if within.Members.Has(field) {
		below.Members.Insert(field)
	}
	return below
}

// unownedOf returns the part of a field's value that has no owner: all of it if the owned set is empty, the unowned items of a
// list with keys, and otherwise nil.
func unownedOf(value any, owned *fieldpath.Set) any {
	if owned.Empty() {
		return value
	}
	items, _ := value.([]any)
	rest := slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		fields, keyed := item.(map[string]any)
		found := !keyed
		look := func(element fieldpath.PathElement) {
			found = found || element.Key == nil || !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
				return !smdvalue.Equals(key.Value, smdvalue.NewValueInterface(fields[key.Name]))
			})
		}
		owned.Members.Iterate(look)
		owned.Children.Iterate(look)
		return found
	})
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// refusal is the answer to an error of an apply.
func (m *Manager) refusal(err error, applied *unstructured.Unstructured) error {
	if status := (*apierrors.StatusError)(nil); errors.As(err, &status) {
		if status.ErrStatus.Details != nil {
			// The library returns them in the random order of a map.
			slices.SortFunc(status.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int {
				return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Field, b.Field))
			})
		}
		return apierror.FromStatusError(status)
	}
	// The library has one type of error for bad input and for its own faults.
	if _, malformed := m.types.converter.ObjectToTyped(applied); malformed != nil {
		return apierror.BadRequest("the object to apply is malformed: "+malformed.Error(), nil).Because(err)
	}
	return fmt.Errorf("applying as %q: %w", applied.GetName(), err)
}

// onTime sets the times of entries: an entry that was there before keeps its time, unless the manager of this operation
// changed it. They are in the library's order. The library would use a clock of its own, and sets no time where an
// apply only takes co-ownership of unchanged values.
func onTime(
	entries, before []metav1.ManagedFieldsEntry, manager string, operation metav1.ManagedFieldsOperationType, now time.Time,
) []metav1.ManagedFieldsEntry {
	stamp := &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	for i := range entries {
		entry := &entries[i]
		at := slices.IndexFunc(before, func(known metav1.ManagedFieldsEntry) bool { return fastpath.SameManager(&known, entry) })
		switch {
		case at < 0:
			entry.Time = stamp
		case !before[at].Time.Equal(entry.Time),
			entry.Manager == manager && entry.Operation == operation && !fastpath.SameFields(&before[at], entry):
			entry.Time = stamp
		}
	}
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	return entries
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// Requested implements resource.FieldManager. [] and [{}] ask to forget all owners. Source: ADR-0008.
func (*Manager) Requested(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	switch {
	case entries == nil:
		return nil
	case len(entries) == 0, len(entries) == 1 && entries[0] == (metav1.ManagedFieldsEntry{}):
		return []metav1.ManagedFieldsEntry{}
	case managedfields.ValidateManagedFields(entries) != nil:
		return nil
	}
	plain := slices.Clone(entries)
	for i := range plain {
		plain[i].FieldsV1 = unescaped(plain[i].FieldsV1)
	}
	return plain
}

// unescaped writes escaped names plainly, so that a search for a text in an object finds it.
func unescaped(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil || !bytes.ContainsRune(fields.GetRawBytes(), '\\') {
		return fields
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(fields.GetRawBytes())); err != nil {
		return fields
	}
	text, err := set.ToJSON()
	if err != nil {
		return fields
	}
	return metav1.NewFieldsV1(string(text))
}

// Prune implements resource.FieldManager.
func (m *Manager) Prune(applied map[string]any) { m.prune(applied, m.types.schemas[m.root]) }

func (m *Manager) prune(value any, s *spec.Schema) {
	if s = m.resolve(s); s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			property, known := s.Properties[name]
			switch {
			case known:
				m.prune(field, &property)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				m.prune(field, s.AdditionalProperties.Schema)
			case len(s.Properties) > 0:
				delete(value, name)
			}
		}
	case []any:
		if s.Items != nil {
			for _, item := range value {
				m.prune(item, s.Items.Schema)
			}
		}
	}
}

// resolve follows a reference.
func (m *Manager) resolve(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	reference := s.Ref.String()
	if reference == "" && len(s.AllOf) == 1 {
		reference = s.AllOf[0].Ref.String()
	}
	if reference == "" {
		return s
	}
	return m.types.schemas[reference[strings.LastIndexByte(reference, '/')+1:]]
}

// kindOnly stands in for the scheme that the library asks for: it makes, converts and defaults objects of one kind,
// with one version and no defaults.
type kindOnly struct {
	kind  schema.GroupVersionKind
	empty func() resource.Object
}

// New implements runtime.ObjectCreater.
func (k kindOnly) New(schema.GroupVersionKind) (runtime.Object, error) {
	object := k.empty()
	object.GetObjectKind().SetGroupVersionKind(k.kind)
	return object, nil
}

// Default implements runtime.ObjectDefaulter.
func (kindOnly) Default(runtime.Object) {}

// ConvertToVersion implements runtime.ObjectConvertor. Entries of versions that are not served are dropped: nothing
// converts to them.
func (k kindOnly) ConvertToVersion(in runtime.Object, version runtime.GroupVersioner) (runtime.Object, error) {
	if kind, ok := version.KindForGroupVersionKinds([]schema.GroupVersionKind{k.kind}); !ok || kind != k.kind {
		return nil, runtime.NewNotRegisteredGVKErrForTarget("fieldmanager", k.kind, version)
	}
	merged, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	return k.read(merged.Object)
}

// read makes an object from its fields.
func (k kindOnly) read(fields map[string]any) (runtime.Object, error) {
	object := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return nil, fmt.Errorf("reading the merged object: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(k.kind)
	return object, nil
}

// Convert implements runtime.ObjectConvertor. The library does not use it.
func (kindOnly) Convert(any, any, any) error { return errors.ErrUnsupported }

// ConvertFieldLabel implements runtime.ObjectConvertor. The library does not use it.
func (kindOnly) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.ErrUnsupported
}
