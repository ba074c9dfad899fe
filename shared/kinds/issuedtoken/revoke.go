package issuedtoken

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// revoking is the state of the records: whoever removes one before its end, by whatever way, puts the token on the
// list of revoked ones first. A token that is on the list and still has its record is one whose removal was broken
// off; it is done by asking again.
type revoking struct {
	store.Store
	revoked store.Store
	now     func() time.Time
}

// Delete removes a record. Errors: those of the store; on any of them the record may be on the list already.
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
		})
		if err != nil && !errors.Is(err, store.ErrExists) {
			return 0, err
		}
	}
	return s.Store.Delete(ctx, name, revision)
}

// Denial is a token that was revoked before its end.
type Denial struct {
	// ID is the claim jti.
	ID string
	// Expires is when the token is over anyway.
	Expires time.Time
}

// Denied returns the tokens that were revoked and are not over, in order of their ids. Those whose access key is
// refused are among them once Sweep has seen it.
func (r *Register) Denied(ctx context.Context) ([]Denial, error) {
	page, err := r.revoked.List(ctx, store.Query{})
	if err != nil {
		return nil, fmt.Errorf("listing revoked tokens: %w", err)
	}
	now := r.Now()
	denied := make([]Denial, 0, len(page.Records))
	for _, record := range page.Records {
		if now.Before(record.Expires) {
			denied = append(denied, Denial{ID: record.Name, Expires: record.Expires})
		}
	}
	return denied, nil
}

const (
	// sweepPage is how many records are looked at in one round trip.
	sweepPage = 500
	// eventAge is how long the events of the list are kept, which nobody watches: those of the records go with the
	// garbage.
	eventAge = 24 * time.Hour
)

// Swept counts what a run did.
type Swept struct {
	// Expired are the records of tokens that were over, Revoked those whose access key is refused, Forgotten the
	// entries of the list of revoked tokens that were over. Changed are those that somebody else removed meanwhile, Broken
	// those that cannot be read.
	Expired, Revoked, Forgotten, Changed, Broken int
}

// Sweep removes the records of tokens that are over, revokes for good the tokens whose access key is gone, over or
// disabled, and shortens the list of revoked ones. It may run late, twice at once, or not to its end. A record that
// cannot be read is left alone, and the first of them is the error at the end. Source: Spec 3; ADR-0011.
func (r *Register) Sweep(ctx context.Context) (Swept, error) {
	var done Swept
	if err := r.revoked.Trim(ctx, r.Now().Add(-eventAge)); err != nil {
		return done, fmt.Errorf("trimming the events of the list of revoked tokens: %w", err)
	}
	var broken error
	type parent struct{ name, uid string }
	usable := map[parent]bool{}
	for query := (store.Query{Limit: sweepPage}); ; {
		page, err := r.Store.List(ctx, query)
		if err != nil {
			return done, fmt.Errorf("listing tokens: %w", err)
		}
		for _, record := range page.Records {
			query.After = record.Name
			token, err := r.Parse(record)
			if err != nil {
				done.Broken++
				broken = cmp.Or(broken, err)
				continue
			}
			count := &done.Expired
			if now := r.Now(); !over(token, now) {
				of := parent{token.Status.AccessKey, token.Status.AccessKeyUID}
				good, known := usable[of]
				if !known {
					key, err := r.keys.Store.Get(ctx, of.name)
					if good, err = r.usable(ctx, key, err, of.uid, now); err != nil {
						return done, err
					}
					usable[of] = good
				}
				if good {
					continue
				}
				count = &done.Revoked
			}
			switch _, err := r.Store.Delete(ctx, record.Name, record.Revision); {
			case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
				done.Changed++
			case err != nil:
				return done, fmt.Errorf("removing the record of a token: %w", err)
			default:
				*count++
				r.Removed(ctx, token)
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 {
			break
		}
	}
	if err := r.forget(ctx, &done); err != nil {
		return done, err
	}
	return done, broken
}

// forget takes tokens that are over from the list of revoked ones.
func (r *Register) forget(ctx context.Context, done *Swept) error {
	for {
		due, err := r.revoked.Due(ctx, r.Now(), time.Time{}, sweepPage)
		if err != nil {
			return fmt.Errorf("looking for revoked tokens that are over: %w", err)
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
		if len(due) < sweepPage {
			return nil
		}
	}
}
