package token

import (
	"context"
	"slices"
	"strings"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Sweeper is the caller that deletes the oldest login keys, and keys that were not delivered.
var Sweeper = identity.New(identity.Owner{Kind: identity.Subject, Name: "exchangetoken"}, []string{identity.Admins})

// deleteOldestKeys deletes the oldest login keys of a user beyond the limit, but not the newest one, which has a given name. A key that
// cannot be deleted now is deleted at the next login. Source: ADR-0032.
func (e *Endpoint) deleteOldestKeys(ctx context.Context, owner identity.Owner, newest string) {
	var logins []*model.OwnedAccessKey
	for record, err := range store.Each(ctx, e.loginKeys.Store, store.Query{Owners: []string{owner.String()}}) {
		if err != nil {
			e.env.Log.ErrorContext(ctx, "looking for old keys of sign-ins", "error", err)
			return
		}
		key, err := e.loginKeys.Decode(record)
		// What a refresh key made ends with it.
		independent := err == nil && len(accesskey.Bounding(key.Status.Lineage)) == 0
		if independent && accesskey.IsSignInType(key.Spec.Type) && key.Name != newest && key.DeletionTimestamp == nil {
			logins = append(logins, key)
		}
	}
	slices.SortFunc(logins, func(a, b *model.OwnedAccessKey) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, key := range logins[:max(0, len(logins)+1-limits.LoginKeys)] {
		if _, err := resource.Delete(ctx, e.keys, resource.DeleteInput{Caller: Sweeper, Name: key.Name, UID: key.UID}); err != nil {
			e.env.Log.ErrorContext(ctx, "deleting an old key of a sign-in", "key", key.Name, "error", err)
			return
		}
	}
}
