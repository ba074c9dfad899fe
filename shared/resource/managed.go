package resource

import (
	"bytes"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/fieldmanager"
	"management.platform.sh/shared/store"
)

// fieldManager is made at the first write: who only reads has no use for it.
type fieldManager struct {
	once    sync.Once
	manager *fieldmanager.Manager
	err     error
}

// fieldManager knows who set which field. Nobody owns the status, which is the server's, and what is not stored.
func (r *Registry[T]) fieldManager() (*fieldmanager.Manager, error) {
	f := &r.fields
	f.once.Do(func() {
		unowned := append([][]string{{"status"}}, r.WriteOnly...)
		f.manager, f.err = fieldmanager.New(r.GroupVersionKind(), func() fieldmanager.Object { return r.New() }, unowned...)
	})
	return f.manager, f.err
}

// own notes in the metadata of an object that is about to be written who changed what of the old one, which is empty
// for a new object.
type own[T Object] func(object, old T) error

// updatedBy gives the manager of a create, update or patch what that changes.
func (r *Registry[T]) updatedBy(manager string) own[T] {
	return func(object, old T) error {
		fields, err := r.fieldManager()
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
		return fields.Update(old, object, manager, r.Now())
	}
}

// owned is for objects in which an apply has noted it already.
func owned[T Object](T, T) error { return nil }

// empty is what a new object is compared with.
func (r *Registry[T]) empty() T {
	object := r.New()
	object.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	return object
}

// seal is Rules.Seal on the object with its new manager, whose name will be a part of it.
func (r *Registry[T]) seal(object T, stored store.Record, manager string) (Sealed[T], field.ErrorList) {
	entries := object.GetManagedFields()
	defer object.SetManagedFields(entries)
	object.SetManagedFields(append(slices.Clone(entries), metav1.ManagedFieldsEntry{Manager: manager}))
	return r.Seal(object, stored)
}

// encodeOnTime is encode for the replacement of an old object with the text known. Where the two differ in nothing but the
// times of managers, the old times stay, so that nothing is written. Source: ADR-0008.
func (r *Registry[T]) encodeOnTime(object, old T, known []byte) ([]byte, error) {
	updated, err := r.encode(object)
	entries := object.GetManagedFields()
	if err != nil || bytes.Equal(updated, known) || !fieldmanager.SameButTimes(entries, old.GetManagedFields()) {
		return updated, err
	}
	object.SetManagedFields(old.GetManagedFields())
	if again, err := r.encode(object); err != nil || bytes.Equal(again, known) {
		return again, err
	}
	object.SetManagedFields(entries)
	return updated, nil
}
