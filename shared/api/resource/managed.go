package resource

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/state/store"
)

// FieldManager knows who set which field of the objects of one kind. Implementations are safe for concurrent use.
// Package fieldmanager implements it. It is handed in, so that functions that only read do not link it.
type FieldManager interface {
	// Requested interprets the managedFields that a client sends: nil where they are empty or cannot be read, empty and
	// not nil where they ask to forget all owners.
	Requested(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
	// Update records in object which fields the named manager changed against live. Live is empty for a new object. The
	// managedFields of object are the entries that the writer asks for; nil means the entries of live.
	Update(live, object Object, manager string, now time.Time) error
	// Apply merges what a manager applies into live and returns the result, which is not live. Live is empty for a
	// new object. Applied has only known fields (see Prune) and is Apply's to keep.
	//
	// Errors: Conflict with a cause for each field that another manager owns, unless force takes them over;
	// BadRequest when applied is not an object of the kind.
	Apply(live Object, applied map[string]any, manager string, force bool, now time.Time) (runtime.Object, error)
	// Prune removes the fields that the kind does not have from an object to apply.
	Prune(applied map[string]any)
}

// status is the subresource, and the field, that is written separately.
const status = "status"

// NewFieldManager makes the FieldManager of a kind. Empty makes an empty object of it. Subresource is the one by which it
// is written, which is the field of that name and the only one that is owned there; empty means the object itself.
// Unowned are paths of fields that have no owner, with all fields below them.
type NewFieldManager func(kind schema.GroupVersionKind, empty func() Object, subresource string, unowned ...[]string) (FieldManager, error)

// fieldManagers are the field managers of a registry and of its copies. Each is made at the first write.
type fieldManagers struct {
	object, status func() (FieldManager, error)
}

// WithFieldManager returns a registry whose writes record who set which field. Without it nothing is recorded, and an apply is
// an error: what the platform writes itself belongs to no manager. Every function that stores what a client wrote uses it.
// Source: ADR-0008, ADR-0049.
func (r *Registry[T]) WithFieldManager(newManager NewFieldManager) *Registry[T] {
	definition := r.Definition
	empty := func() Object { return definition.New() }
	// Fields that are not stored, and a status that clients cannot write, have no owners.
	unowned := append([][]string{{status}}, definition.WriteOnly...)
	if definition.WritesStatus {
		unowned[0] = []string{status, "conditions"}
	}
	copied := r.clone()
	copied.fields = &fieldManagers{
		object: sync.OnceValues(func() (FieldManager, error) { return newManager(definition.GroupVersionKind(), empty, "", unowned...) }),
		status: sync.OnceValues(func() (FieldManager, error) { return newManager(definition.GroupVersionKind(), empty, status) }),
	}
	return copied
}

// fieldManager returns the manager of the status, or of everything else; nil for a registry that records no owners.
func (r *Registry[T]) fieldManager(ofStatus bool) (FieldManager, error) {
	switch {
	case r.fields == nil:
		return nil, nil //nolint:nilnil // the registry records no owners
	case ofStatus:
		return r.fields.status()
	default:
		return r.fields.object()
	}
}

// requestManagedFields leaves in a replacement the managedFields that its writer may ask for.
func (r *Registry[T]) requestManagedFields(object, old T, ofStatus bool) error {
	fields, err := r.fieldManager(ofStatus)
	switch {
	case err != nil:
		return err
	case fields == nil:
		object.SetManagedFields(old.GetManagedFields())
	default:
		object.SetManagedFields(fields.Requested(object.GetManagedFields()))
	}
	return nil
}

// ownerRecorder records in the metadata of an object, before it is written, who changed which fields of the old one. The old one
// is empty for a new object.
type ownerRecorder[T Object] func(object, old T) error

// updatedBy makes the manager of a create, update or patch the owner of the fields that it changes, in the status or in
// everything else.
func (r *Registry[T]) updatedBy(manager string, ofStatus bool) ownerRecorder[T] {
	return func(object, old T) error {
		fields, err := r.fieldManager(ofStatus)
		if err != nil || fields == nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
		return fields.Update(old, object, manager, r.Now())
	}
}

// keepOwners is for objects in which an apply has recorded the owners already.
func keepOwners[T Object](T, T) error { return nil }

// emptyObject is what a new object is compared with.
func (r *Registry[T]) emptyObject() T {
	object := r.Definition.New()
	object.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	return object
}

// seal is Rules.Seal on the object with its new manager, whose name becomes a part of the object.
func (r *Registry[T]) seal(object T, stored store.Record, manager string) (Sealed[T], field.ErrorList) {
	entries := object.GetManagedFields()
	defer object.SetManagedFields(entries)
	object.SetManagedFields(append(slices.Clone(entries), metav1.ManagedFieldsEntry{Manager: manager}))
	return r.Rules.Seal(object, stored)
}

// encodeOnTime is encode for the replacement of an old object with the text known. Where the two differ in nothing but the
// times of managers, the old times stay, so that nothing is written. Source: ADR-0008.
func (r *Registry[T]) encodeOnTime(object, old T, text []byte) ([]byte, error) {
	updated, err := r.encodeBare(object)
	if err != nil || bytes.Equal(updated, text) || differ(updated, text, func(name string) bool { return name == "metadata" }) {
		return updated, err
	}
	entries := object.GetManagedFields()
	if !sameButTimes(entries, old.GetManagedFields()) {
		return updated, nil
	}
	object.SetManagedFields(old.GetManagedFields())
	if again, err := r.encodeBare(object); err != nil || bytes.Equal(again, text) {
		return again, err
	}
	object.SetManagedFields(entries)
	return updated, nil
}

// sameButTimes reports whether entries say the same of everything but times.
func sameButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return equality.Semantic.DeepEqual(a, b)
	})
}
