package resource

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// AdmitAt refuses a verb at a subresource of an object, such as the access keys of a user.
//
// Errors: NotFound if the caller does not see the object; Forbidden if they may not do the verb there. Source: ADR-0029.
func (r *Registry[T]) AdmitAt(ctx context.Context, caller identity.Caller, verb, subresource, name string) error {
	object, _, err := r.Read(ctx, caller, "", name)
	if err != nil || isRead(verb) {
		return err
	}
	return r.Admit(caller, verb, subresource, object)
}

// deletionTerms returns the terms on which an object is deleted, of a request for some terms: an object that owns credentials has
// no grace period and waits for the end of its credentials. Source: ADR-0029.
func (r *Registry[T]) deletionTerms(requested gc.Terms) gc.Terms {
	if r.CredentialOwner != nil {
		return gc.Terms{GracePeriodSeconds: new(int64), Propagation: metav1.DeletePropagationForeground}
	}
	return requested
}

// keepForegroundFinalizer keeps the finalizer for which a principal waits for the end of its credentials: clients cannot remove it.
func (r *Registry[T]) keepForegroundFinalizer(object, old T) {
	if r.credentialOwner(old) == "" || old.GetDeletionTimestamp() == nil || !slices.Contains(old.GetFinalizers(), metav1.FinalizerDeleteDependents) ||
		slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return
	}
	object.SetFinalizers(append(slices.Clone(object.GetFinalizers()), metav1.FinalizerDeleteDependents))
}

// holdInvariant asks the Invariant of the kind, if it has one.
func (r *Registry[T]) holdInvariant(ctx context.Context, object, old T) (release func(), err error) {
	if r.Invariant != nil {
		return r.Invariant.Hold(ctx, object, old)
	}
	return func() {}, nil
}

// holdInvariantOnDelete is holdInvariant for the deletion of the object of a record, which is decoded only if the kind has an Invariant.
func (r *Registry[T]) holdInvariantOnDelete(ctx context.Context, record store.Record) (release func(), err error) {
	if r.Invariant == nil {
		return func() {}, nil
	}
	old, err := r.Parse(record)
	if err != nil {
		return nil, err
	}
	var none T
	return r.Invariant.Hold(ctx, none, old)
}

// checkDigest returns the error of the store for an object of that name with a digest that is no secret, and writes nothing.
func (r *Registry[T]) checkDigest(ctx context.Context, digest, name string) error {
	if r.Definition.Taken == nil || digest == "" {
		return nil
	}
	holder, err := r.Store.GetByDigest(ctx, digest)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case holder.Name != name && !r.isDeleted(holder):
		return store.ErrTaken
	default:
		return nil
	}
}
