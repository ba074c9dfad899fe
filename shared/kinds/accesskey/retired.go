package accesskey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// retiredResource is the resource of the list of retired texts in the state.
const retiredResource = "retiredkeys"

// Retired is the list of the texts that no new key may have, by their digests: the texts of revoked keys, of keys that an admin
// disabled, and of the first admin's key. It is safe for concurrent use. Source: ADR-0022.
type Retired struct {
	state store.Store
	now   func() time.Time
}

// OpenRetired returns the list of an environment.
//
//go:noinline
func OpenRetired(env *platform.Environment) *Retired {
	return platform.Single(env, func(env *platform.Environment) *Retired {
		return &Retired{state: env.Stores(retiredResource), now: env.Now}
	})
}

// Add puts the digest of a text on the list. The entry counts for the quota of the owner of the key that had the text. A digest
// that is already on the list stays. Errors: the store's errors, with *store.QuotaError if the quota is exhausted.
func (r *Retired) Add(ctx context.Context, digest, owner string, quota store.Quota) error {
	_, err := r.state.Create(ctx, store.Record{Name: digest, Created: r.now(), Object: []byte("{}"), Owner: owner, Quota: quota})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("retiring the text of an access key: %w", err)
	}
	return nil
}

// Has reports whether a digest is on the list. It returns the store's errors.
func (r *Retired) Has(ctx context.Context, digest string) (bool, error) {
	_, err := r.state.Get(ctx, digest)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	default:
		return false, fmt.Errorf("looking for the text of an access key among the retired ones: %w", err)
	}
}

// retiring is the store of the access keys. It creates no key with a retired text, and retires the text of a key that an admin
// disables before the key is written.
type retiring struct {
	store.Store
	retired *Retired
}

// Create implements store.Store. It returns ErrTaken for a retired text, too. A text that was drawn just now cannot be on the
// list, and looking it up would cost a round trip. Source: ADR-0022, ADR-0026.
func (s *retiring) Create(ctx context.Context, record store.Record) (int64, error) {
	if !record.Drawn {
		if retired, err := s.retired.Has(ctx, record.Digest); err != nil {
			return 0, err
		} else if retired {
			return 0, store.ErrTaken
		}
	}
	added, err := s.retire(ctx, record)
	if err != nil {
		return 0, err
	}
	revision, err := s.Store.Create(ctx, record)
	if err != nil || record.Drawn || added {
		return revision, err
	}
	return revision, s.takeBack(ctx, record, revision)
}

// takeBack removes a new key whose text was retired since Create looked at the list. A process that retires a text looks for its
// key afterwards, so either that process finds the key, or takeBack finds the retired text. Error: ErrTaken if takeBack or that
// process has removed the key.
func (s *retiring) takeBack(ctx context.Context, record store.Record, revision int64) error {
	retired, err := s.retired.Has(ctx, record.Digest)
	if err == nil && !retired {
		return nil
	}
	// If the list cannot be read, the text may be on it.
	_, removal := s.Delete(context.WithoutCancel(ctx), record.Name, revision)
	switch {
	case err != nil:
		return err
	case removal == nil, errors.Is(removal, store.ErrNotFound), errors.Is(removal, store.ErrConflict):
		return store.ErrTaken
	default:
		return fmt.Errorf("retiring the text of an access key: %w", removal)
	}
}

func (s *retiring) Update(ctx context.Context, record store.Record) (int64, error) {
	if _, err := s.retire(ctx, record); err != nil {
		return 0, err
	}
	return s.Store.Update(ctx, record)
}

// disabledMark is the name of status.disabledByAdmin in a stored object. Almost no key has it, so only objects with this text
// are decoded.
var disabledMark = []byte(`"disabledByAdmin"`)

// retire retires the text of a key that an admin disables, and reports whether it did.
func (s *retiring) retire(ctx context.Context, record store.Record) (bool, error) {
	if !bytes.Contains(record.Object, disabledMark) {
		return false, nil
	}
	var key struct {
		Status model.OwnedAccessKeyStatus `json:"status"`
	}
	if err := json.Unmarshal(record.Object, &key); err != nil {
		return false, fmt.Errorf("reading an access key: %w", err)
	}
	if !key.Status.DisabledByAdmin {
		return false, nil
	}
	// An admin can disable a key whose owner has no quota left, too.
	return true, s.retired.Add(ctx, record.Digest, record.Owner, store.Quota{})
}

// Revoker is the caller that revokes a credential for a client that has only its text. No other caller can have the name.
// Source: ADR-0022.
var Revoker = identity.New(identity.Owner{Kind: identity.Subject, Name: identity.PlatformPrefix + "revocation"}, []string{identity.Admins})

// Revoke deletes the access key with a text, also one within its grace period, and retires the text. It returns the key as it
// was, or nil if there is none. Finalizers may keep the object; the key is refused nevertheless. If the owner has as many retired
// texts as their quota admits, the text is not put on the list; its key is deleted all the same. Keys must be joined with the
// kinds that depend on access keys.
//
// It returns the store's errors. After an error the key may be as it was, and revoking it again finishes the work.
// Source: ADR-0022.
func Revoke(ctx context.Context, keys *Registry, retired *Retired, bearer secret.String) (*model.OwnedAccessKey, error) {
	digest := Digest(bearer)
	record, err := keys.Store.GetByDigest(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // no key has that text
	}
	if err != nil {
		return nil, fmt.Errorf("looking up an access key to revoke: %w", err)
	}
	key, err := keys.Parse(record)
	if err != nil {
		return nil, err
	}
	if err := retired.Add(ctx, digest, record.Owner, keys.Quota); err != nil && !errors.Is(err, store.ErrQuota) {
		return nil, err
	}
	return key, resource.Revoke(ctx, keys, Revoker, key)
}
