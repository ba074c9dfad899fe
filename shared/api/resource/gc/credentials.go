package gc

import (
	"context"
	"errors"

	"management.platform.sh/shared/state/store"
)

// deleteCredentials deletes the credentials of an object, such as a user, without grace periods, as many as the budget permits.
// Ended reports whether no credential works any more. A credential that finalizers hold does not work, and neither does a
// credential that cannot be read, which is left. Source: ADR-0029.
func (c *collection) deleteCredentials(ctx context.Context, n Node) (ended bool, err error) {
	owner := n.Member.CredentialOwner(n.Object)
	if owner == "" {
		return true, nil
	}
	for _, member := range c.graph.members {
		if !member.IsCredential() {
			continue
		}
		for read := (page{more: true}); read.more; {
			read, err = readPage(ctx, member, store.Query{Owners: []string{owner}, After: read.last})
			if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				return false, err
			} else if err != nil {
				c.recordBroken(err)
			}
			for _, credential := range read.nodes {
				if credential.Object.GetDeletionTimestamp() != nil && !HasGracePeriod(credential.Object, member.Now()) {
					continue
				}
				if c.budget == 0 {
					c.report.Unfinished = true
					return false, nil
				}
				c.budget--
				// On a conflict, another writer has changed it: the collection tries again.
				if err := c.deleteNode(ctx, credential, Terms{GracePeriodSeconds: new(int64)}); err != nil && !errors.Is(err, store.ErrNotFound) {
					return false, err
				}
			}
		}
	}
	return true, nil
}
