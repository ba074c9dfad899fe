package resource

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Revoke deletes an object at once, also one that a grace period keeps, because its credential was given back. An object that
// is gone, or whose name another one has, needs nothing. Finalizers may keep the object. Errors: the errors of Delete.
// Source: ADR-0022.
func Revoke[T Object](ctx context.Context, r *Registry[T], by identity.Caller, object T) error {
	_, err := Delete(ctx, r, DeleteInput{
		Caller: by, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), GracePeriodSeconds: new(int64(0)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
