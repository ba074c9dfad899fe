package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/identity"
	"management.platform.sh/shared/store"
)

// DeleteInput is a request to remove one object.
type DeleteInput struct {
	Caller          identity.Caller
	Namespace, Name string
	// UID and ResourceVersion are preconditions; empty means none.
	UID             types.UID
	ResourceVersion string
	// DryRun does everything but the removal.
	DryRun bool
}

// Delete removes an object and returns a Status that names it. While the object has finalizers it is
// marked with a deletionTimestamp instead, and returned; the update that takes the last finalizer away
// removes it.
//
// Errors: NotFound when there is no such object for the caller; Conflict when a precondition does not
// hold. On any error nothing is changed. Source: Spec 2.2, 3.
func Delete[T Object](ctx context.Context, r *Registry[T], in DeleteInput) (runtime.Object, error) {
	for attempt := 1; ; attempt++ {
		answer, err := r.delete(ctx, in)
		if in.ResourceVersion != "" || !errors.Is(err, store.ErrConflict) || attempt == maxConflicts {
			return answer, err
		}
	}
}

func (r *Registry[T]) delete(ctx context.Context, in DeleteInput) (runtime.Object, error) {
	object, record, err := r.read(ctx, in.Caller, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	if err := r.checkPreconditions(object, in.UID, in.ResourceVersion); err != nil {
		return nil, err
	}
	if len(object.GetFinalizers()) > 0 {
		return r.markDeleted(ctx, object, record, in.DryRun)
	}
	if !in.DryRun {
		if _, err := r.Store.Delete(ctx, record.Name, record.Revision); err != nil {
			return nil, r.translate(err, in.Name)
		}
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  in.Name,
			Group: r.Resource.Group,
			Kind:  r.Resource.Resource,
			UID:   object.GetUID(),
		},
	}, nil
}

// markDeleted notes that deletion was asked for, once.
func (r *Registry[T]) markDeleted(ctx context.Context, object T, record store.Record, dryRun bool) (runtime.Object, error) {
	if object.GetDeletionTimestamp() != nil {
		return object, nil
	}
	known, err := r.encode(object)
	if err != nil {
		return nil, err
	}
	now, immediately := metav1.Time{Time: r.Now().UTC().Truncate(1e9)}, int64(0)
	object.SetDeletionTimestamp(&now)
	object.SetDeletionGracePeriodSeconds(&immediately)
	object.SetGeneration(object.GetGeneration() + 1)
	updated, err := r.encode(object)
	if err != nil {
		return nil, err
	}
	next := record
	if next.Object, err = keepUnknown(record.Object, known, updated); err != nil {
		return nil, err
	}
	if !dryRun {
		if next.Revision, err = r.Store.Update(ctx, next); err != nil {
			return nil, r.translate(err, object.GetName())
		}
	}
	r.stamp(object, next)
	return object, nil
}
