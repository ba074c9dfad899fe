package resource

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Row returns a row of a Table with these cells, and with as much of the object as the client asks for.
func Row(object Object, include metav1.IncludeObjectPolicy, cells ...any) metav1.TableRow {
	row := metav1.TableRow{Cells: cells}
	switch include {
	case metav1.IncludeObject:
		row.Object.Object = object
	case metav1.IncludeMetadata:
		metadata := meta.AsPartialObjectMetadata(object)
		metadata.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		row.Object.Object = metadata
	case metav1.IncludeNone:
	}
	return row
}

// Age is the cell of a Table for the time since an object was created, as kubectl prints it.
func Age(object metav1.Object, now time.Time) string {
	created := object.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// Expires is the cell of a Table for the time until an object expires. Nil: it never does.
func Expires(end *metav1.Time, now time.Time) string {
	switch {
	case end == nil:
		return "never"
	case !now.Before(end.Time):
		return "expired"
	default:
		return "in " + duration.HumanDuration(end.Sub(now))
	}
}
