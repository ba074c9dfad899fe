package issuedtoken

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// revoking is the store of the records. If a record is removed before its token expires, whatever the verb, revoking first puts
// the token on the list of revoked tokens. If a removal breaks off, a token can be on the list and still have its record;
// removing the record again finishes the work.
type revoking struct {
	store.Store
	revoked store.Store
	now     func() time.Time
	// quota bounds how many revoked tokens of an owner are on the list. A token leaves the list after it has expired.
	quota func() store.Quota
}

// Delete removes a record. It returns the store's errors; after an error the token may already be on the list. A store.QuotaError
// says that too many tokens of the owner are on the list; deleting the token's access key ends the token nevertheless.
func (s *revoking) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	record, err := s.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	var token model.DirectClusterEndpointToken
	if err := json.Unmarshal(record.Object, &token); err != nil {
		return 0, fmt.Errorf("reading the record %q of a token: %w", name, err)
	}
	if now := s.now(); record.Revision == revision && !over(&token, now) {
		_, err := s.revoked.Create(ctx, store.Record{
			Name: record.Digest, Created: now, Expires: token.Status.ExpirationTimestamp.Time, Object: []byte("{}"),
			Owner: OwnerOf(&token.Status).String(), Quota: s.quota(),
		})
		if err != nil && !errors.Is(err, store.ErrExists) {
			return 0, err
		}
	}
	return s.Store.Delete(ctx, name, revision)
}

// Denial is a token that was revoked before it expired.
type Denial struct {
	// ID is the claim jti.
	ID string
	// Expires is when the token expires.
	Expires time.Time
}

// Denied returns the tokens that were revoked and have not expired, in the order of their ids. A token whose access key is
// refused is on the list after the next Sweep.
func (r *Register) Denied(ctx context.Context) ([]Denial, error) {
	now := r.Now()
	denied := []Denial{}
	for record, err := range store.Each(ctx, r.revoked, store.Query{}) {
		if err != nil {
			return nil, fmt.Errorf("listing revoked tokens: %w", err)
		}
		if now.Before(record.Expires) {
			denied = append(denied, Denial{ID: record.Name, Expires: record.Expires})
		}
	}
	return denied, nil
}

// eventAge is how long the events of the list are kept. No process watches these events. The garbage collector trims the events
// of the records.
const eventAge = 24 * time.Hour

// Swept has the counts of a run.
type Swept struct {
	// Expired counts the removed records of expired tokens. Revoked counts the tokens that were revoked because their access key
	// is refused, or gives less than the token has. Forgotten counts the removed list entries of expired tokens. Changed counts
	// the records that another request changed or removed meanwhile. Broken counts the records that cannot be read.
	Expired, Revoked, Forgotten, Changed, Broken int
}

// Sweep removes the records of expired tokens, and expired tokens from the list of revoked tokens. It revokes a token for good if
// its access key, or a key to which the access key is bound, is deleted, expired or disabled, if the token's scope is wider than
// the current scopes of these keys, or if the token names a group that its key no longer gives: verifiers that do not ask the
// platform apply the scope and the groups with which a token was signed. Sweep may run late, twice at once, or not to its end. It
// skips records that cannot be read, and returns the first such error at the end. Source: Spec 3; ADR-0011.
func (r *Register) Sweep(ctx context.Context) (Swept, error) {
	var done Swept
	if err := r.revoked.Trim(ctx, r.Now().Add(-eventAge)); err != nil {
		return done, fmt.Errorf("trimming the events of the list of revoked tokens: %w", err)
	}
	var broken error
	type parent struct{ name, uid string }
	type holder struct {
		usable  bool
		present accesskey.Present
	}
	holders := map[parent]holder{}
	for record, err := range store.Each(ctx, r.Store, store.Query{}) {
		if err != nil {
			return done, fmt.Errorf("listing tokens: %w", err)
		}
		token, err := r.Parse(record)
		if err != nil {
			done.Broken++
			broken = cmp.Or(broken, err)
			continue
		}
		count := &done.Expired
		if now := r.Now(); !over(token, now) {
			// All tokens of a key have the same lineage.
			id := parent{token.Status.AccessKey, token.Status.AccessKeyUID}
			keys, known := holders[id]
			if !known {
				records, err := r.readKeys(ctx, keyNames(token))
				if err != nil {
					return done, err
				}
				if keys.usable, keys.present, err = r.usable(ctx, lineageOf(token), records, now); err != nil {
					return done, err
				}
				holders[id] = keys
			}
			if keys.usable && !exceeds(token, keys.present) {
				continue
			}
			count = &done.Revoked
		}
		switch _, err := r.sweeping.Delete(ctx, record.Name, record.Revision); {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
			done.Changed++
		case err != nil:
			return done, fmt.Errorf("removing the record of a token: %w", err)
		default:
			*count++
			r.Removed(ctx, token)
		}
	}
	if err := r.forget(ctx, &done); err != nil {
		return done, err
	}
	return done, broken
}

// exceeds reports whether a token was signed with more than its keys have: with a scope that one of their scopes does not cover,
// or with a group that its access key does not give.
func exceeds(token *model.DirectClusterEndpointToken, present accesskey.Present) bool {
	if slices.ContainsFunc(token.Status.Groups, func(group string) bool { return !slices.Contains(present.Groups, group) }) {
		return true
	}
	return slices.ContainsFunc(present.Scopes, func(s *model.Scope) bool {
		return len(scope.Exceeds(token.Spec.Scope, s, field.NewPath("spec", "scope"))) > 0
	})
}

// forget removes expired tokens from the list of revoked tokens.
func (r *Register) forget(ctx context.Context, done *Swept) error {
	for {
		due, err := r.revoked.Due(ctx, store.DueQuery{Until: r.Now()})
		if err != nil {
			return fmt.Errorf("looking for expired tokens on the list of revoked ones: %w", err)
		}
		for _, record := range due {
			switch _, err := r.revoked.Delete(ctx, record.Name, record.Revision); {
			case errors.Is(err, store.ErrNotFound):
			case err != nil:
				return fmt.Errorf("forgetting a revoked token: %w", err)
			default:
				done.Forgotten++
			}
		}
		if len(due) == 0 {
			return nil
		}
	}
}
