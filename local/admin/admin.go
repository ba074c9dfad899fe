// Package admin creates the first admin key. Every other key is created through the API, with an existing key.
// Source: ADR-0006.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// ErrDeleted means that the key was deleted from the state: it is not created again. Source: ADR-0022.
var ErrDeleted = errors.New("the first admin key was deleted")

// ErrPresent means that the platform has an admin already. A start then makes no key unless one is given.
var ErrPresent = errors.New("the platform has an admin already")

// Operate changes the state on behalf of a command, and records the change; see frame.Server.Operate.
type Operate func(ctx context.Context, do func(context.Context) error) error

// Keeper keeps the first admin key for the next start.
type Keeper interface {
	// Read returns the key. Error: fs.ErrNotExist if none is kept.
	Read(ctx context.Context) (secret.String, error)
	// Write keeps a key.
	Write(ctx context.Context, bearer secret.String) error
	// Remove removes the key.
	Remove(ctx context.Context) error
	// String says where the key is, for errors.
	String() string
}

// File is a file that keeps the key. The empty path keeps none.
type File string

func (f File) Read(context.Context) (secret.String, error) {
	kept, err := os.ReadFile(string(f))
	return secret.String(strings.TrimSpace(string(kept))), err
}

func (f File) Write(_ context.Context, bearer secret.String) error {
	if f == "" {
		return nil
	}
	return atomicfile.Write(string(f), []byte(bearer.Reveal()+"\n"))
}

func (f File) Remove(context.Context) error { return os.Remove(string(f)) }

func (f File) String() string { return string(f) }

// Ensure returns the first admin key: the given key, else the key that the keeper has, else a new one. It makes sure
// that the state has the key, and that the keeper keeps it for the next start. Without a keeper, the key must be given. If the state has
// an admin already, only a given key is stored.
//
// Errors: ErrDeleted with the key, which is refused; ErrPresent without a key if the keeper has no key that the state
// knows.
func Ensure(ctx context.Context, env *platform.Environment, operate Operate, given secret.String, keeper Keeper) (secret.String, error) {
	bearer := given
	if given != "" {
		if err := accesskey.CheckBearer(given); err != nil {
			return "", fmt.Errorf("the admin key: %w", err)
		}
	} else {
		kept, err := keeper.Read(ctx)
		switch {
		case err == nil:
			bearer = kept
			if err := accesskey.CheckBearer(bearer); err != nil {
				return "", fmt.Errorf("the admin key in %s: %w", keeper, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("reading the admin key: %w", err)
		default:
			if bearer, err = accesskey.NewBearer(env.Random); err != nil {
				return "", err
			}
		}
	}
	stored, err := isStored(ctx, env, bearer)
	if errors.Is(err, ErrDeleted) {
		return bearer, errors.Join(keeper.Write(ctx, bearer), err)
	}
	if err == nil && !stored && given == "" {
		err = requireNoAdmin(ctx, env)
	}
	if err != nil {
		return "", err
	}
	// The keeper comes first: a key that only the state has could never be used.
	if err := keeper.Write(ctx, bearer); err != nil {
		return "", err
	}
	if stored {
		return bearer, Create(ctx, env, bearer)
	}
	err = operate(ctx, func(ctx context.Context) error { return create(ctx, env, bearer, given == "") })
	if errors.Is(err, ErrPresent) {
		return "", errors.Join(keeper.Remove(ctx), err)
	}
	if err != nil && given != "" {
		// Another process that was given the same key may have stored it meanwhile.
		if stored, failed := isStored(ctx, env, bearer); failed == nil && stored {
			return bearer, Create(ctx, env, bearer)
		}
	}
	return bearer, err
}

func requireNoAdmin(ctx context.Context, env *platform.Environment) error {
	present, err := lastadmin.Open(env).HasAdmin(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("looking for an admin: %w", err)
	case present:
		return ErrPresent
	default:
		return nil
	}
}

// isStored reports whether the state has the admin key. Error: ErrDeleted if it had the key before.
func isStored(ctx context.Context, env *platform.Environment, bearer secret.String) (bool, error) {
	if err := accesskey.CheckBearer(bearer); err != nil {
		return false, fmt.Errorf("the admin key: %w", err)
	}
	digest := accesskey.Digest(bearer)
	_, err := kinds.AccessKeys(env).Store.GetByDigest(ctx, digest)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("looking up the admin key: %w", err)
	}
	deleted, err := accesskey.OpenRetired(env).Has(ctx, digest)
	if err == nil && deleted {
		err = ErrDeleted
	}
	return false, err
}

// Create stores the admin key, unless the state already has it. Error: ErrDeleted if the key was deleted from the
// state.
func Create(ctx context.Context, env *platform.Environment, bearer secret.String) error {
	return create(ctx, env, bearer, false)
}

// create is Create. With OnlyIfNoAdmin, it refuses the key with ErrPresent if another process has made an admin in the
// meantime.
func create(ctx context.Context, env *platform.Environment, bearer secret.String, onlyIfNoAdmin bool) error {
	stored, err := isStored(ctx, env, bearer)
	if err != nil {
		return err
	}
	keys, retired := kinds.AccessKeys(env).WithFieldManager(fieldmanager.New), accesskey.OpenRetired(env)
	digest := accesskey.Digest(bearer)
	if stored {
		return retired.Add(ctx, digest, "", store.Quota{})
	}
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: "First admin key",
			User:        "admin",
			Groups:      []string{identity.Admins},
			Type:        model.AccessKeyTypeUser,
			Key:         bearer.Reveal(),
		},
	}
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	// No quota applies: without this key no caller could delete objects to make room.
	in := resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: key, Manager: "platform", NoQuota: true}
	_, err = resource.Create(ctx, keys, in)
	if apierrors.IsAlreadyExists(err) {
		if onlyIfNoAdmin {
			if err := requireNoAdmin(ctx, env); err != nil {
				return err
			}
		}
		// The object of that name has another key. This key gets a second object.
		key.Name, key.GenerateName, key.Spec.Key = "", "admin-", bearer.Reveal()
		_, err = resource.Create(ctx, keys, in)
	}
	if err != nil {
		return fmt.Errorf("creating the admin key: %w", err)
	}
	return retired.Add(ctx, digest, "", store.Quota{})
}
