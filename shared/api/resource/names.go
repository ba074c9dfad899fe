package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Names reports whether an object of the graph belongs to a user or a team or gives something to them, whether or not they exist: whoever
// gets the name would have that. It reads every object of the kinds that name people. Errors: those of the store.
func (g *Graph) Names(ctx context.Context, owner identity.Owner) (bool, error) {
	for _, member := range g.members {
		if named, err := member.names(ctx, owner); named || err != nil {
			return named, err
		}
	}
	return false, nil
}

// Names is Names of the graph to which the resource was joined.
func (r *Registry[T]) Names(ctx context.Context, owner identity.Owner) (bool, error) {
	return r.graph().Names(ctx, owner)
}

// names implements Member.
func (r *Registry[T]) names(ctx context.Context, owner identity.Owner) (bool, error) {
	page, err := r.Store.List(ctx, store.Query{Owners: []string{owner.String()}, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("looking for objects of %s: %w", owner, err)
	}
	if len(page.Records) > 0 || !r.Definition.NamesPeople {
		return len(page.Records) > 0, nil
	}
	// Most records do not have the name in their text. A text always has a JSON form.
	quoted, _ := json.Marshal(owner.Name)
	for record, err := range store.Each(ctx, r.Store, store.Query{}) {
		if err != nil {
			return false, fmt.Errorf("looking for objects that name %s: %w", owner, err)
		}
		if !bytes.Contains(record.Object, quoted) {
			continue
		}
		object, err := r.Parse(record)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(r.Rules.Grants(object), func(grant auth.Grant) bool { return grant.To == owner }) {
			return true, nil
		}
	}
	return false, nil
}
