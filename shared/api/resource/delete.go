package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// DeleteInput is a request to delete one object, or all objects that a list would return.
type DeleteInput struct {
	Caller          identity.Caller
	Namespace, Name string
	// Prefetched is as in GetInput. It refuses nothing: an object that it would refuse is read again.
	Prefetched map[string]store.Record
	// Selection selects the objects to delete. Nil: Name is the object to delete.
	Selection *ListInput
	// UID and ResourceVersion are preconditions; empty means none.
	UID             types.UID
	ResourceVersion string
	// GracePeriodSeconds is how long the object stays usable, from 0 to MaxGracePeriodSeconds. Nil: 0, or what an
	// earlier delete set. Source: Spec 2.2.
	GracePeriodSeconds *int64
	// Propagation is what becomes of the dependents. Empty: what the finalizers of the object say, else Background.
	// Source: ADR-0009.
	Propagation metav1.DeletionPropagation
	// DryRun does everything but the removal.
	DryRun bool
}

// Delete removes an object and returns a Status that names it. While a grace period or finalizers hold the object it is
// marked with a deletionTimestamp instead, and returned. A second request may shorten the grace period, never extend
// it. Delete begins with the dependents; the schedule finishes them.
//
// Errors: NotFound when there is no such object for the caller; Conflict when a precondition does not
// hold; 500 for a registry that only looks owners up. On any error nothing is changed. Source: Spec 2.2, 3; ADR-0009.
//
// With a selection, Delete removes all selected objects, as deleteCollection says.
func Delete[T Object](ctx context.Context, r *Registry[T], in DeleteInput) (runtime.Object, error) {
	if r.graph().OnlyLooksUp() {
		return nil, apierror.Internal(errLookupGraph)
	}
	if in.Selection != nil {
		return deleteCollection(ctx, r, in)
	}
	answer, after, err := r.deleteOne(ctx, in)
	if err == nil && !in.DryRun {
		r.collect(ctx, after)
	}
	return answer, err
}

// errLookupGraph is a fault of the program: the dependents of a deleted object would stay until the schedule finds them.
var errLookupGraph = errors.New("this registry only looks owners up: delete in the registry of package kinds")

// deleteOne is Delete without the dependents. It returns what the collector has to look at.
func (r *Registry[T]) deleteOne(ctx context.Context, in DeleteInput) (runtime.Object, gc.Outcome, error) {
	if record, known := in.Prefetched[storeName(in.Namespace, in.Name)]; known {
		object, err := r.decodeVisible(ctx, in.Caller, record, in.Name, in.Prefetched)
		if err == nil && r.checkDelete(in, object) == nil {
			answer, after, err := r.deleteAs(ctx, in, record)
			if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
				return answer, after, err
			}
		}
	}
	var answer runtime.Object
	var after gc.Outcome
	outrun := func(err error) bool { return in.ResourceVersion == "" && errors.Is(err, store.ErrConflict) }
	err := store.Retry(ctx, outrun, func() (err error) {
		answer, after, err = r.delete(ctx, in)
		return err
	})
	return answer, after, err
}

func (r *Registry[T]) delete(ctx context.Context, in DeleteInput) (runtime.Object, gc.Outcome, error) {
	object, record, err := r.Read(ctx, in.Caller, in.Namespace, in.Name)
	if err != nil {
		return nil, gc.Outcome{}, err
	}
	if err := r.checkDelete(in, object); err != nil {
		return nil, gc.Outcome{}, err
	}
	return r.deleteAs(ctx, in, record)
}

// checkDelete refuses a delete that the caller may not do, or whose preconditions do not hold.
func (r *Registry[T]) checkDelete(in DeleteInput, object T) error {
	if err := r.Admit(in.Caller, "delete", "", object); err != nil {
		return err
	}
	return r.checkPreconditions(object, in.UID, in.ResourceVersion)
}

// deleteAs deletes the object of a record that was read, unless it has been written since.
func (r *Registry[T]) deleteAs(ctx context.Context, in DeleteInput, record store.Record) (runtime.Object, gc.Outcome, error) {
	release, err := r.holdInvariantOnDelete(ctx, record)
	if err != nil {
		return nil, gc.Outcome{}, r.translate(err, in.Name)
	}
	defer release()
	terms := r.deletionTerms(gc.Terms{GracePeriodSeconds: in.GracePeriodSeconds, Propagation: in.Propagation})
	object, after, err := r.rewriteMetadata(ctx, record, in.DryRun, func(object metav1.Object) { gc.MarkDeleted(object, terms, r.Now()) })
	if err != nil {
		return nil, gc.Outcome{}, r.translate(err, in.Name)
	}
	if !after.Gone {
		return object, after, nil
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  in.Name,
			Group: r.Definition.Resource.Group,
			Kind:  r.Definition.Resource.Resource,
			UID:   object.GetUID(),
		},
	}, after, nil
}
