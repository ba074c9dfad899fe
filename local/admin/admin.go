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
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// ErrDeleted means that the state had the key before, and it was deleted: it is not created again. Source: ADR-0022.
var ErrDeleted = errors.New("the first admin key was deleted")

// Ensure returns the admin key of a data folder: the given key, else the key in the file, else a new one. It makes sure that
// the state has the key, and the file keeps it for the next start. With ErrDeleted it returns the key nevertheless, which is
// refused.
func Ensure(ctx context.Context, env *platform.Environment, given secret.String, file string) (secret.String, error) {
	bearer := given
	if given != "" {
		if err := accesskey.CheckBearer(given); err != nil {
			return "", fmt.Errorf("the admin key: %w", err)
		}
	} else {
		kept, err := os.ReadFile(file)
		switch {
		case err == nil:
			bearer = secret.String(strings.TrimSpace(string(kept)))
			if err := accesskey.CheckBearer(bearer); err != nil {
				return "", fmt.Errorf("the admin key in %s: %w", file, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("reading the admin key: %w", err)
		default:
			if bearer, err = accesskey.NewBearer(env.Random); err != nil {
				return "", err
			}
		}
	}
	// The file is written first: a key that only the state has could never be used.
	if err := atomicfile.Write(file, []byte(bearer.Reveal()+"\n")); err != nil {
		return "", err
	}
	return bearer, Create(ctx, env, bearer)
}

// Create stores the admin key, unless the state already has it. Error: ErrDeleted if the state had it before.
func Create(ctx context.Context, env *platform.Environment, bearer secret.String) error {
	if err := accesskey.CheckBearer(bearer); err != nil {
		return fmt.Errorf("the admin key: %w", err)
	}
	keys, retired := kinds.AccessKeys(env).Managed(fieldmanager.New), accesskey.OpenRetired(env)
	digest := accesskey.Digest(bearer)
	_, err := keys.Store.GetByDigest(ctx, digest)
	if err == nil {
		return retired.Add(ctx, digest)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("looking up the admin key: %w", err)
	}
	if deleted, err := retired.Has(ctx, digest); err != nil {
		return err
	} else if deleted {
		return ErrDeleted
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
	// Without this key nobody could make room.
	in := resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: key, Manager: "platform", NoQuota: true}
	_, err = resource.Create(ctx, keys, in)
	if apierrors.IsAlreadyExists(err) {
		// Another data folder created the object of that name. This key gets an object beside it.
		key.Name, key.GenerateName, key.Spec.Key = "", "admin-", bearer.Reveal()
		_, err = resource.Create(ctx, keys, in)
	}
	if err != nil {
		return fmt.Errorf("creating the admin key: %w", err)
	}
	return retired.Add(ctx, digest)
}
