package resource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeleteCollection removes the objects that List would return for in.Selection, each as Delete does, and returns that
// list: the objects as they were before. Without a limit all selected objects are removed. Objects that others remove
// meanwhile are skipped.
//
// Errors: those of List, and the first of Delete, after which the objects before it are gone. Source: Spec 3; ADR-0009.
func DeleteCollection[T Object](ctx context.Context, r *Registry[T], in DeleteInput) (runtime.Object, error) {
	list, err := List(ctx, r, *in.Selection)
	if err != nil {
		return nil, err
	}
	var after []outcome
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(T)
		each := in
		each.Namespace, each.Name = object.GetNamespace(), object.GetName()
		_, one, err := r.deleteOne(ctx, each)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		after = append(after, one)
		return nil
	})
	if !in.DryRun {
		r.collect(ctx, after...)
	}
	return list, err
}
