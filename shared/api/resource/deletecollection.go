package resource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeleteCollection removes the objects that in.Selection selects, each as Delete does, and returns them as a list: the objects
// as they were before. With a limit, these are the objects of the page that List would return. Without a limit, the objects
// are read and removed page by page, also by Next of in.Selection.Rest, and an object that is created meanwhile may be
// removed. Objects that others remove meanwhile are skipped. The dependents of the objects of the first page are removed as
// Delete does, those of the others by the schedule. Everything that a credential led to ends with it, if that is asked for.
//
// Errors: those of List, and the first of Delete, after which the objects before it are gone. Source: Spec 3; ADR-0009,
// ADR-0020.
func DeleteCollection[T Object](ctx context.Context, r *Registry[T], in DeleteInput) (runtime.Object, error) {
	l, err := r.begin(ctx, *in.Selection, in.Selection.Limit == 0)
	if err != nil {
		return nil, err
	}
	// The outcomes of the first page.
	var after []outcome
	pages := 0
	l.end = func(ctx context.Context) {
		if !in.DryRun {
			r.collect(ctx, after...)
		}
		after = nil
	}
	l.visit = func(ctx context.Context, items []T) error {
		pages++
		for _, object := range items {
			each := in
			each.Namespace, each.Name = object.GetNamespace(), object.GetName()
			_, one, err := r.deleteOne(ctx, each)
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				l.end(ctx)
				return err
			}
			switch {
			case in.Propagation == metav1.DeletePropagationForeground && r.makes() && !in.DryRun:
				// What a credential led to ends before the answer, on whatever page it is.
				r.collect(ctx, one)
			case pages == 1:
				after = append(after, one)
			}
		}
		return nil
	}
	switch {
	case in.Selection.Limit > 0:
		return l.page(ctx)
	case in.Selection.Rest != nil && !l.walk.done:
		return l.part(ctx, in.Selection.Rest)
	default:
		return l.whole(ctx)
	}
}
