package accesskey

import (
	"bytes"
	"context"
	"fmt"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// CallersWithGroups returns the callers of the working keys whose groups come from the keys alone: keys that name groups, of subjects and of
// users and teams without an object. It reads all keys. Errors: ServiceUnavailable, or a record that cannot be read. Source: ADR-0057.
func CallersWithGroups(ctx context.Context, env *platform.Environment) ([]identity.Caller, error) {
	b := bearers(env)
	var callers []identity.Caller
	for record, err := range store.Each(ctx, b.Keys.Store, store.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("looking for access keys with groups: %w", err)
		}
		// Most records name no groups.
		if !bytes.Contains(record.Object, []byte(`"groups"`)) {
			continue
		}
		identified, err := b.identifyDigest(ctx, record.Digest, store.Ref{})
		caller := identified.Caller
		if auth.IsRefused(err) || caller.OwnerObject != nil || caller.KeyType == model.AccessKeyTypeOIDCRefreshToken {
			continue
		}
		if err != nil {
			return nil, err
		}
		callers = append(callers, caller)
	}
	return callers, nil
}
