package fieldmanager

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
)

// differing returns what differs in two objects of one kind: shallow copies of them, without the fields of their metadata, spec
// and status that are equal. The library looks at nothing else of an update, but takes its time for each field. The copies
// have the managed fields of the update, the kind, and the uid, by which the library knows a new object. Source: ADR-0028.
func differing(live, object resource.Object) (was, is resource.Object) {
	a, b := shallow(live), shallow(object)
	for i := range a.NumField() {
		if part := a.Field(i); part.Kind() == reflect.Struct && part.Type() != typeMeta {
			clearEqual(part, b.Field(i))
		}
	}
	was, is = a.Addr().Interface().(resource.Object), b.Addr().Interface().(resource.Object)
	was.SetUID(live.GetUID())
	is.SetUID(object.GetUID())
	given := object.GetManagedFields()
	if entries := live.GetManagedFields(); len(entries) > 0 {
		was.SetManagedFields(anyEntries)
		if given == nil {
			given = entries
		}
	}
	is.SetManagedFields(given)
	return was, is
}

var typeMeta = reflect.TypeFor[metav1.TypeMeta]()

// anyEntries stand for the managed fields of a live object, of which only matters that there are some.
var anyEntries = []metav1.ManagedFieldsEntry{{}}

// shallow returns a copy of the struct of an object.
func shallow(object resource.Object) reflect.Value {
	source := reflect.ValueOf(object).Elem()
	made := reflect.New(source.Type()).Elem()
	made.Set(source)
	return made
}

// clearEqual clears the fields of two structs that are equal.
func clearEqual(a, b reflect.Value) {
	for i := range a.NumField() {
		if x, y := a.Field(i), b.Field(i); equal(x, y) {
			x.SetZero()
			y.SetZero()
		}
	}
}

// equal is reflect.DeepEqual, which needs no memory for simple values.
func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return a.Equal(b)
	case reflect.Map, reflect.Pointer, reflect.Slice:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
	default:
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
