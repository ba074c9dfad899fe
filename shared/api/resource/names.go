package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Names returns those of some users and teams to which objects of the graph give something besides what belongs to them, whether or not
// they exist: whoever gets the name would have that. It reads every object of the kinds that name people, once. Errors: those of the
// store.
func (g *Graph) Names(ctx context.Context, owners ...identity.Owner) (map[identity.Owner]bool, error) {
	named := map[identity.Owner]bool{}
	// A name always has a JSON form.
	quoted := make([][]byte, len(owners))
	for i, owner := range owners {
		quoted[i], _ = json.Marshal(owner.Name)
	}
	for _, member := range g.members {
		if err := member.grantedOwners(ctx, owners, quoted, named); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// Names is Names of the graph to which the resource was joined.
func (r *Registry[T]) Names(ctx context.Context, owners ...identity.Owner) (map[identity.Owner]bool, error) {
	return r.graph().Names(ctx, owners...)
}

// grantedOwners implements Member.
func (r *Registry[T]) grantedOwners(ctx context.Context, owners []identity.Owner, quoted [][]byte, named map[identity.Owner]bool) error {
	if !r.Definition.NamesPeople {
		return nil
	}
	for record, err := range store.Each(ctx, r.Store, store.Query{}) {
		if err != nil {
			return fmt.Errorf("looking for %s that name people: %w", r.Definition.GroupResource(), err)
		}
		// Most records have none of the names in their text.
		if !slices.ContainsFunc(quoted, func(name []byte) bool { return bytes.Contains(record.Object, name) }) {
			continue
		}
		object, err := r.Parse(record)
		if err != nil {
			return err
		}
		for _, grant := range r.Rules.Grants(object) {
			if slices.Contains(owners, grant.To) {
				named[grant.To] = true
			}
		}
	}
	return nil
}
