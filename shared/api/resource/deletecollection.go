package resource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/resource/gc"
)

// deleteCollection removes the objects that in.Selection selects, each as Delete does, and returns them as a list: the objects
// as they were before. With a limit, these are the objects of the page that List would return. Without a limit, the objects
// are read and removed page by page, also by Next of in.Selection.Rest, and an object that is created meanwhile may be
// removed. Objects that others remove meanwhile are skipped. After each page, the dependents of its objects are removed
// as Delete does: up to a bound, and the others by the schedule. Everything that a credential led to ends with it, if that is
// asked for.
//
// Errors: the errors of List, and the first error of Delete; the objects before it are gone. Source: Spec 3; ADR-0009,
// ADR-0020.
func deleteCollection[T Object](ctx context.Context, r *Registry[T], in DeleteInput) (runtime.Object, error) {
	l, err := r.beginList(ctx, *in.Selection, in.Selection.Limit == 0)
	if err != nil {
		return nil, err
	}
	l.visit = func(ctx context.Context, items []T) error {
		var after []gc.Outcome
		if !in.DryRun {
			// Also after an error: what was deleted before it stays deleted.
			defer func() { r.collect(ctx, after...) }()
		}
		for _, object := range items {
			each := in
			each.Namespace, each.Name = object.GetNamespace(), object.GetName()
			_, outcome, err := r.deleteOne(ctx, each)
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				return err
			}
			if in.Propagation == metav1.DeletePropagationForeground && r.Lineage != nil && !in.DryRun {
				// The credentials that a credential made are deleted before the answer, however many.
				r.collect(ctx, outcome)
			} else {
				after = append(after, outcome)
			}
		}
		return nil
	}
	switch {
	case in.Selection.Limit > 0:
		return l.page(ctx)
	case in.Selection.Rest != nil && !l.reader.Done:
		return l.part(ctx, in.Selection.Rest)
	default:
		return l.whole(ctx)
	}
}
