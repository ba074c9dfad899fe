package resource

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// boundMetadata returns where the metadata that a client sends is larger than an object may have, and larger than the old
// object has. Old is nil for a new object. It comes before every other check: the others, and the record of owners, cost
// more than linear time. Source: ADR-0020.
func boundMetadata(object, old metav1.Object) field.ErrorList {
	if old == nil {
		old = &metav1.ObjectMeta{}
	}
	var problems field.ErrorList
	most := func(name string, found, before, limit int, kind field.ErrorType, unit string) {
		if found > limit && found > before {
			problems = append(problems, &field.Error{
				Type: kind, Field: metadataPath.Child(name).String(), BadValue: field.OmitValueType{},
				Detail: fmt.Sprintf("has %d %s; the limit is %d", found, unit, limit),
			})
		}
	}
	entries := func(name string, found, before, limit int) {
		most(name, found, before, limit, field.ErrorTypeTooMany, "entries")
	}
	most("annotations", sizeOf(object.GetAnnotations()), sizeOf(old.GetAnnotations()), limits.AnnotationBytes, field.ErrorTypeTooLong, "bytes")
	entries("labels", len(object.GetLabels()), len(old.GetLabels()), limits.Labels)
	entries("finalizers", len(object.GetFinalizers()), len(old.GetFinalizers()), limits.Finalizers)
	entries("ownerReferences", len(object.GetOwnerReferences()), len(old.GetOwnerReferences()), limits.Owners)
	entries("managedFields", len(object.GetManagedFields()), len(old.GetManagedFields()), limits.Managers)
	return problems
}

// sizeOf returns the size of the names and values of a map, in bytes.
func sizeOf(texts map[string]string) int {
	size := 0
	for name, value := range texts {
		size += len(name) + len(value)
	}
	return size
}

// boundObject refuses an object that is larger than an object may be, and larger than it was before: text is what is to be
// stored, before what is stored.
func boundObject(text, before []byte) error {
	if len(text) <= max(limits.ObjectBytes, len(before)) {
		return nil
	}
	return apierror.TooLarge(fmt.Sprintf("the object would have %d bytes; the limit is %d", len(text), limits.ObjectBytes))
}
