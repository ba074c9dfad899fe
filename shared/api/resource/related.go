package resource

import (
	"context"
	"maps"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// relatedAtOnce is for how many related objects relate keeps records at a time.
const relatedAtOnce = 100

// relate completes the status of objects that depend on other objects. Records are records of this kind that were read already.
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
		requested := map[string]bool{}
		n := 0
		for ; n < len(objects) && len(missing) < relatedAtOnce; n++ {
			for _, name := range rules.Related(objects[n]) {
				if _, have := records[name]; !have && !requested[name] {
					requested[name] = true
					missing = append(missing, name)
				}
			}
		}
		complete, err := r.related(ctx, missing, records)
		if err != nil {
			return err
		}
		for _, object := range objects[:n] {
			rules.Relate(object, complete)
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

// requiredVersion is what a create by a caller requires: that their credential is as it was when they were authenticated. A kind
// without a lineage, whose objects are not stored beside access keys, requires nothing.
func (r *Registry[T]) requiredVersion(caller identity.Caller) store.Version {
	if r.Lineage == nil || caller.KeyRevision == 0 {
		return store.Version{}
	}
	return store.Version{Name: caller.Key, Revision: caller.KeyRevision}
}
