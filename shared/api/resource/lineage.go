package resource

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// The index of references also has the credentials that made an object: its uids begin with boundTo for those that the object
// cannot outlive, and with madeBy for the others. A uid of Kubernetes has no colon; an owner of that form is looked up like
// any other and does not exist. Source: ADR-0021.
const (
	boundTo = "bound:"
	madeBy  = "made:"
)

// relatedAtOnce is for how many other objects relate has records at a time.
const relatedAtOnce = 100

// relate completes the status of objects that depend on other objects. Known has records of this kind that were read already.
func (r *Registry[T]) relate(ctx context.Context, objects []T, records map[string]store.Record) error {
	rules := r.Relations
	if rules == nil {
		return nil
	}
	if rules.RelatedIn() != nil {
		// An object of another kind may have the same name.
		records = nil
	}
	for len(objects) > 0 {
		var missing []string
		asked := map[string]bool{}
		n := 0
		for ; n < len(objects) && len(missing) < relatedAtOnce; n++ {
			for _, name := range rules.Related(objects[n]) {
				if _, have := records[name]; !have && !asked[name] {
					asked[name] = true
					missing = append(missing, name)
				}
			}
		}
		found, err := r.related(ctx, missing, records)
		if err != nil {
			return err
		}
		for _, object := range objects[:n] {
			rules.Relate(object, found)
		}
		objects = objects[n:]
	}
	return nil
}

// related returns the records of names, together with those that are known.
func (r *Registry[T]) related(ctx context.Context, names []string, known map[string]store.Record) (map[string]store.Record, error) {
	if len(names) == 0 {
		return known, nil
	}
	records := make(map[string]store.Record, len(names)+len(known))
	maps.Copy(records, known)
	in := r.Store
	if other := r.Relations.RelatedIn(); other != nil {
		in = other
	}
	for record, err := range store.GetEach(ctx, in, names) {
		if err != nil {
			return nil, err
		}
		records[record.Name] = record
	}
	return records, nil
}

// requiredVersion is what a create by a caller requires: that their credential is as it was when they were authenticated. What is
// not stored beside its makers requires nothing.
func (r *Registry[T]) requiredVersion(caller identity.Caller) store.Version {
	if r.Lineage == nil || caller.KeyRevision == 0 {
		return store.Version{}
	}
	return store.Version{Name: caller.Key, Revision: caller.KeyRevision}
}

// ancestors are the makers of an object.
func (r *Registry[T]) ancestors(object metav1.Object) (bounding, others []metav1.OwnerReference) {
	if r.Lineage == nil {
		return nil, nil
	}
	return r.Lineage.Ancestors(object.(T))
}

func (r *Registry[T]) hasLineage() bool {
	return r.Lineage != nil
}

// lineageReferences are the makers of an object as the store indexes them.
func (r *Registry[T]) lineageReferences(object T) []string {
	bounding, others := r.ancestors(object)
	references := make([]string, 0, len(bounding)+len(others))
	for _, maker := range bounding {
		references = append(references, boundTo+string(maker.UID))
	}
	for _, maker := range others {
		references = append(references, madeBy+string(maker.UID))
	}
	return references
}

// outlived reports whether a maker that an object cannot outlive is gone, or deleted and held by finalizers alone.
func (c *collection) outlived(ctx context.Context, n node) (bool, error) {
	bounding, _ := n.member.ancestors(n.object)
	for _, maker := range bounding {
		if c.alive[boundTo+maker.UID] {
			continue
		}
		holder, exists, err := c.graph.existingOwner(ctx, maker, n.member.ownersIn(n.object))
		if err != nil {
			return false, err
		}
		if !exists || holder.object == nil || holder.object.GetDeletionTimestamp() != nil && !hasGracePeriod(holder.object, n.member.now()) {
			return true, nil
		}
		c.alive[boundTo+maker.UID] = true
	}
	return false, nil
}

// pushBound queues the objects that cannot outlive one.
func (c *collection) pushBound(n node) {
	if n.member.hasLineage() {
		c.queue = append(c.queue, task{member: n.member, owner: boundTo + n.object.GetUID()})
	}
}

// deleteLineage deletes everything that an object made, and what that made, without grace periods. It deletes at most left objects
// and counts them down. Ended tells that nothing
// is left that works: a pass over the index found none. What the line makes meanwhile is in the index before it can be used,
// and a member that was deleted makes nothing any more (Lineage.Current). Source: ADR-0021.
func (c *collection) deleteLineage(ctx context.Context, n node, left *int) (ended bool, err error) {
	if !n.member.hasLineage() {
		return true, nil
	}
	for again := true; again; {
		again = false
		for _, prefix := range []types.UID{boundTo, madeBy} {
			for after, more := "", true; more; {
				var page []node
				page, after, more, err = n.member.dependentsOf(ctx, prefix+n.object.GetUID(), after, pageOfDependents)
				if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
					return false, err
				} else if err != nil {
					// What cannot be read does not work either.
					c.recordBroken(err)
				}
				for _, node := range page {
					if !madeWith(node, n) || node.object.GetDeletionTimestamp() != nil && !hasGracePeriod(node.object, n.member.now()) {
						continue
					}
					if *left == 0 {
						return false, nil
					}
					*left--
					again = true
					err := c.deleteNode(ctx, node, deleteTerms{grace: new(int64)})
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
func madeWith(made, maker node) bool {
	bounding, others := made.member.ancestors(made.object)
	return slices.ContainsFunc(slices.Concat(bounding, others), func(each metav1.OwnerReference) bool {
		return each.UID == maker.object.GetUID()
	})
}
