package gc

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/state/store"
)

// The index of references also has the credentials that made an object: the uids of credentials that the object cannot outlive
// begin with boundTo, and the uids of the others with madeBy. A uid of Kubernetes has no colon; an owner of that form is looked up
// like any other and does not exist. Source: ADR-0021.
const (
	boundTo = "bound:"
	madeBy  = "made:"
)

// References returns the uids by which the store indexes an object: the uids of its owners and, with a prefix, of the credentials
// that made it.
func References(object metav1.Object, bounding, others []metav1.OwnerReference) []string {
	var references []string
	for _, owner := range object.GetOwnerReferences() {
		if !slices.Contains(references, string(owner.UID)) {
			references = append(references, string(owner.UID))
		}
	}
	for _, maker := range bounding {
		references = append(references, boundTo+string(maker.UID))
	}
	for _, maker := range others {
		references = append(references, madeBy+string(maker.UID))
	}
	return references
}

// outlived reports whether a maker that an object cannot outlive is gone, or deleted and held by finalizers alone.
func (c *collection) outlived(ctx context.Context, n Node) (bool, error) {
	bounding, _ := n.Member.Ancestors(n.Object)
	for _, maker := range bounding {
		if c.alive[boundTo+maker.UID] {
			continue
		}
		holder, exists, err := c.graph.ExistingOwner(ctx, maker, n.Member.OwnerNamespace(n.Object))
		if err != nil {
			return false, err
		}
		if !exists || holder.Object == nil || holder.Object.GetDeletionTimestamp() != nil && !HasGracePeriod(holder.Object, n.Member.Now()) {
			return true, nil
		}
		c.alive[boundTo+maker.UID] = true
	}
	return false, nil
}

// pushBound queues the objects that cannot outlive one.
func (c *collection) pushBound(n Node) {
	if n.Member.HasLineage() {
		c.queue = append(c.queue, task{member: n.Member, owner: boundTo + n.Object.GetUID()})
	}
}

// deleteLineage deletes all credentials that a credential made, and all that those made, without grace periods. It deletes at
// most as many objects as steps says, and counts them down. Ended reports whether no credential of the lineage works any more: a
// pass over the index found none. A credential that is made meanwhile is in the index before it can be used, and a deleted
// credential makes no others (resource.Lineage.Current). Source: ADR-0021.
func (c *collection) deleteLineage(ctx context.Context, n Node, steps *int) (ended bool, err error) {
	if !n.Member.HasLineage() {
		return true, nil
	}
	for again := true; again; {
		again = false
		for _, prefix := range []types.UID{boundTo, madeBy} {
			for read := (page{more: true}); read.more; {
				read, err = dependentsOf(ctx, n.Member, prefix+n.Object.GetUID(), read.last)
				if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
					return false, err
				} else if err != nil {
					// A credential that cannot be read does not work either.
					c.recordBroken(err)
				}
				for _, credential := range read.nodes {
					if !madeWith(credential, n) || credential.Object.GetDeletionTimestamp() != nil && !HasGracePeriod(credential.Object, n.Member.Now()) {
						continue
					}
					if *steps == 0 {
						return false, nil
					}
					*steps--
					again = true
					err := c.deleteNode(ctx, credential, Terms{GracePeriodSeconds: new(int64)})
					// The next pass looks at what others have changed.
					if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
						return false, err
					}
				}
			}
		}
	}
	return true, nil
}

// madeWith reports whether one object is among those that made another.
func madeWith(made, maker Node) bool {
	bounding, others := made.Member.Ancestors(made.Object)
	return slices.ContainsFunc(slices.Concat(bounding, others), func(each metav1.OwnerReference) bool {
		return each.UID == maker.Object.GetUID()
	})
}
