package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// Run makes the first admin key in a Redis and prints it: the only time that it can be seen.
func (c *bootstrapCommand) Run(ctx context.Context) error {
	client, err := openRedis(ctx, c.Redis, redisstore.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	bearer := c.AdminKey
	if bearer == "" {
		if bearer, err = accesskey.NewBearer(rand.Reader); err != nil {
			return err
		}
	}
	env := newEnvironment(client, slog.New(slog.DiscardHandler), "", nil, prometheus.NewRegistry())
	if err := createAdmin(ctx, env, bearer); err != nil {
		return err
	}
	// A key that is there already is left as it is, which may be no admin's.
	caller, err := env.Authenticator().Bearer(ctx, bearer)
	if err != nil {
		return fmt.Errorf("--admin-key: the key is there already: %w", err)
	}
	if !caller.Admin() || caller.Scope != nil {
		return fmt.Errorf("--admin-key: the key is there already, of %s, and not one of an admin without a scope", caller.Owner)
	}
	if _, err := fmt.Println(bearer.Reveal()); err != nil {
		return fmt.Errorf("printing the admin key: %w", err)
	}
	return nil
}

// ensureAdmin returns the admin key of this data folder and sees to it that the state knows it: the given
// one, else the one in the file, else a new one. The file keeps it for the next start.
func ensureAdmin(ctx context.Context, env *frame.Environment, given secret.String, file string) (secret.String, error) {
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
	// The file first: a key in the state that nobody has written down could never be used.
	if err := writeFile(file, []byte(bearer.Reveal()+"\n")); err != nil {
		return "", err
	}
	return bearer, createAdmin(ctx, env, bearer)
}

// openKeyring returns the given encryption keys, else those in the file, else a new one, which the file keeps.
func openKeyring(given secret.String, file string) (*encryption.Keyring, error) {
	if given != "" {
		ring, err := encryption.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("--encryption-key: %w", err)
		}
		return ring, nil
	}
	kept, err := os.ReadFile(file)
	key := secret.String(strings.TrimSpace(string(kept)))
	if errors.Is(err, fs.ErrNotExist) {
		key = encryption.Generate()
		err = writeFile(file, []byte(key.Reveal()+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("the encryption key: %w", err)
	}
	ring, err := encryption.Parse(key)
	if err != nil {
		return nil, fmt.Errorf("the encryption key in %s: %w", file, err)
	}
	return ring, nil
}

// createAdmin stores the admin key unless the state has it already.
func createAdmin(ctx context.Context, env *frame.Environment, bearer secret.String) error {
	if err := accesskey.CheckBearer(bearer); err != nil {
		return fmt.Errorf("the admin key: %w", err)
	}
	keys := env.AccessKeys().Managed(fieldmanager.New)
	_, err := keys.Store.GetByDigest(ctx, accesskey.Digest(bearer))
	if err == nil {
		return nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("looking for the admin key: %w", err)
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
	_, err = resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: key, Manager: "local"})
	if apierrors.IsAlreadyExists(err) {
		// Another data folder made the object of that name: this one's key stands beside it.
		key.Name, key.GenerateName, key.Spec.Key = "", "admin-", bearer.Reveal()
		_, err = resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: key, Manager: "local"})
	}
	if err != nil {
		return fmt.Errorf("creating the admin key: %w", err)
	}
	return nil
}

// writeKubeconfig writes a kubeconfig with one cluster, user and context.
func writeKubeconfig(file, server string, authority []byte, bearer secret.String) error {
	const name = "platform"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: bearer.Reveal()}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return writeFile(file, text)
}

// writeFile replaces a file as a whole, readable by its owner alone.
func writeFile(file string, content []byte) error {
	temporary := file + ".new"
	// One that was left behind would keep its mode, or lead elsewhere.
	_ = os.Remove(temporary)
	err := os.WriteFile(temporary, content, 0o600) //nolint:gosec // the path is the operator's own --data
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
