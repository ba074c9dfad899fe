package fastpath

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
)

// Difference returns shallow copies of two objects of one kind, without the fields of their metadata, spec and status that are
// equal: the library needs time for each field of an update and ignores equal ones. The copies keep the managed fields of the
// update, the kind, and the uid, which is empty for a new object.
func Difference(live, object resource.Object) (was, is resource.Object) {
	if !enabled {
		return live, object
	}
	a, b := shallow(live), shallow(object)
	for i := range a.NumField() {
		if field := a.Field(i); field.Kind() == reflect.Struct && field.Type() != typeMeta {
			clearEqual(field, b.Field(i))
		}
	}
	was, is = a.Addr().Interface().(resource.Object), b.Addr().Interface().(resource.Object)
	was.SetUID(live.GetUID())
	is.SetUID(object.GetUID())
	requested := object.GetManagedFields()
	if entries := live.GetManagedFields(); len(entries) > 0 {
		was.SetManagedFields(anyEntries)
		if requested == nil {
			requested = entries
		}
	}
	is.SetManagedFields(requested)
	return was, is
}

var typeMeta = reflect.TypeFor[metav1.TypeMeta]()

// anyEntries stand for the managed fields of a live object: the library asks only whether there are any.
var anyEntries = []metav1.ManagedFieldsEntry{{}}

// shallow returns a copy of the struct of an object.
func shallow(object resource.Object) reflect.Value {
	source := reflect.ValueOf(object).Elem()
	result := reflect.New(source.Type()).Elem()
	result.Set(source)
	return result
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
