package resource

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// credentialOwner returns the owner whose credentials go with an object. Empty: none.
func (r *Registry[T]) credentialOwner(object metav1.Object) string {
	if r.CredentialOwner == nil {
		return ""
	}
	return r.CredentialOwner.CredentialsOf(object.(T))
}

// AdmitAt refuses a verb at a subresource of an object, such as a user, at which objects of another kind are.
//
// Errors: NotFound if the caller does not see the object; Forbidden if they may not do the verb there. Source: ADR-0029.
func (r *Registry[T]) AdmitAt(ctx context.Context, caller identity.Caller, verb, subresource, name string) error {
	object, _, err := r.Read(ctx, caller, "", name)
	if err != nil || isRead(verb) {
		return err
	}
	return r.Admit(caller, verb, subresource, object)
}

func (r *Registry[T]) isCredential() bool { return r.Definition.Credentials }

// deletionTerms are how an object is deleted, if that is what a request asks for: what owns credentials has no grace period and
// waits for the end of its credentials. Source: ADR-0029.
func (r *Registry[T]) deletionTerms(asked deleteTerms) deleteTerms {
	if r.CredentialOwner != nil {
		return deleteTerms{grace: new(int64), propagation: metav1.DeletePropagationForeground}
	}
	return asked
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

// holdInvariantOnDelete is keep for the deletion of the object of a record, which is decoded only if the kind has an Invariant.
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

func (r *Registry[T]) credentialsOf(ctx context.Context, owner, after string, limit int) (page []node, last string, more bool, err error) {
	records, err := r.Store.List(ctx, store.Query{Owners: []string{owner}, After: after, Limit: limit})
	if err != nil {
		return nil, "", false, err
	}
	for _, record := range records.Records {
		last = record.Name
		each, broken := r.parse(record)
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		page = append(page, each)
	}
	return page, last, records.Remaining > 0, err
}

// deleteCredentials deletes the credentials of an object, without grace periods, as many as the run may still look at. Ended tells
// that none is left that works. Those that finalizers keep work no longer. One that cannot be read does not work either, and
// is left. Source: ADR-0029.
func (c *collection) deleteCredentials(ctx context.Context, n node) (ended bool, err error) {
	owner := n.member.credentialOwner(n.object)
	if owner == "" {
		return true, nil
	}
	for _, member := range c.graph.members {
		if !member.isCredential() {
			continue
		}
		for after, more := "", true; more; {
			var page []node
			page, after, more, err = member.credentialsOf(ctx, owner, after, pageOfDependents)
			if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				return false, err
			} else if err != nil {
				c.recordBroken(err)
			}
			for _, credential := range page {
				if credential.object.GetDeletionTimestamp() != nil && !hasGracePeriod(credential.object, member.now()) {
					continue
				}
				if c.budget == 0 {
					c.report.Unfinished = true
					return false, nil
				}
				c.budget--
				// Somebody else has written or removed it: the caller tries again.
				if err := c.deleteNode(ctx, credential, deleteTerms{grace: new(int64)}); err != nil && !errors.Is(err, store.ErrNotFound) {
					return false, err
				}
			}
		}
	}
	return true, nil
}
