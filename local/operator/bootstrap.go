// Package operator has the commands with which an operator of a deployment works on its state directly, without the
// API: on the first admin key, the platform configuration, the signing keys and the audit log. It serves no requests.
// Source: ADR-0006, ADR-0011, ADR-0015, ADR-0016.
package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/local/admin"
	"management.platform.sh/local/authority"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// Bootstrap creates the first admin key of a deployment.
type Bootstrap struct {
	Redis    secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"The Redis that holds the state: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss://, rediss-cluster:// or rediss-sentinel://, or unix://."`
	AdminKey secret.String `env:"PLATFORM_ADMIN_KEY" placeholder:"KEY" help:"The admin key to store. Absent: a new one is generated. The key is printed in both cases."`
	// KubernetesSecret is the name of a Secret. Empty: the key is printed.
	KubernetesSecret string        `placeholder:"NAME" help:"Keep the key in this Secret of a Kubernetes cluster, as the entry key, in place of printing it. The cluster and the namespace are those of the kubeconfig or, without one, of the pod. If the platform has an admin already, no key is made."`
	TLSAuthority     bool          `name:"tls-authority" help:"Make the platform's own certificate authority in the state as well, for processes without a certificate, and add its certificate to the Secret as ca.crt."`
	Encryption       secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals the address of the audit's data store, and the key of --tls-authority, 32 bytes in base64. Absent: the audit has no event of the command if the address is sealed."`

	Version string `kong:"-"`
}

// Run creates the first admin key in a Redis, and prints it or keeps it in a Secret. It cannot be read later.
func (c *Bootstrap) Run(ctx context.Context) error {
	switch {
	case c.KubernetesSecret != "" && c.AdminKey != "":
		return errors.New("--kubernetes-secret: has the admin key; leave --admin-key and PLATFORM_ADMIN_KEY out")
	case c.TLSAuthority && c.Encryption == "":
		return errors.New("--tls-authority: needs --encryption-key, which seals the key of the authority")
	case c.TLSAuthority && c.KubernetesSecret == "":
		return errors.New("--tls-authority: needs --kubernetes-secret, which keeps the certificate of the authority")
	}
	if c.KubernetesSecret != "" {
		return c.keepInSecret(ctx)
	}
	bearer := c.AdminKey
	if bearer == "" {
		var err error
		if bearer, err = accesskey.NewBearer(rand.Reader); err != nil {
			return err
		}
	}
	ring, err := keyring(c.Encryption)
	if err != nil {
		return err
	}
	o := operation{name: "bootstrap", version: c.Version, state: redisAt(c.Redis), keyring: ring}
	stored := false
	err = o.run(ctx, func(ctx context.Context, _ *redisstore.Client, env *platform.Environment) error {
		if err := admin.Create(ctx, env, bearer); errors.Is(err, admin.ErrDeleted) {
			return fmt.Errorf("--admin-key: %w, and is not created again; leave the flag out to create another key", err)
		} else if err != nil {
			return err
		}
		// An existing key stays as it is, and it may not be an admin's.
		caller, err := accesskey.OpenAuthenticator(env).Bearer(ctx, bearer)
		if err != nil {
			return fmt.Errorf("--admin-key: the key exists already and is refused: %w", err)
		}
		if !caller.Admin() || len(caller.Scopes()) > 0 {
			return fmt.Errorf("--admin-key: the key exists already, belongs to %s and is not an admin key without a scope", caller.Owner)
		}
		stored = true
		return nil
	})
	if !stored {
		return err
	}
	// The key is stored, even if the audit has no event of it.
	if _, err := fmt.Println(bearer.Reveal()); err != nil {
		return fmt.Errorf("printing the admin key: %w", err)
	}
	return err
}

// keepInSecret makes sure that the platform has an admin, and that the Secret has the key of the first one. It is safe to repeat.
func (c *Bootstrap) keepInSecret(ctx context.Context) error {
	ring, err := keyring(c.Encryption)
	if err != nil {
		return err
	}
	o := operation{name: "bootstrap", version: c.Version, state: redisAt(c.Redis), keyring: ring}
	report := ""
	err = o.run(ctx, func(ctx context.Context, _ *redisstore.Client, env *platform.Environment) error {
		var certificate []byte
		if c.TLSAuthority {
			own, err := authority.OpenShared(ctx, env, time.Now())
			if err != nil {
				return err
			}
			certificate = own.PEM
		}
		keeper, err := openKubernetesSecret(c.KubernetesSecret, certificate)
		if err != nil {
			return err
		}
		unrecorded := func(ctx context.Context, do func(context.Context) error) error { return do(ctx) }
		switch _, err := admin.Ensure(ctx, env, unrecorded, "", keeper); {
		case errors.Is(err, admin.ErrPresent):
			report = "The platform has an admin already. No admin key was made."
		case errors.Is(err, admin.ErrDeleted):
			report = fmt.Sprintf("The key in %s was deleted from the platform, and is not created again. For another key, delete the Secret and run this command again.", keeper)
		case err != nil:
			return err
		default:
			report = fmt.Sprintf("The admin key is in %s:\n  kubectl -n %s get secret %s -o jsonpath='{.data.%s}' | base64 -d", keeper, keeper.namespace, keeper.name, adminKeyEntry)
		}
		return nil
	})
	if report != "" {
		_, _ = fmt.Println(report)
	}
	return err
}

// keyring returns the keys of the flag --encryption-key. Nil: the flag is not set.
func keyring(given secret.String) (*encryption.Keyring, error) {
	if given == "" {
		return nil, nil //nolint:nilnil // a command without a key works, but for what is sealed
	}
	ring, err := encryption.Parse(given)
	if err != nil {
		return nil, fmt.Errorf("--encryption-key: %w", err)
	}
	return ring, nil
}

// redisAt returns the settings of a command whose flag --redis is the URL of the state.
func redisAt(url secret.String) settings.Settings {
	s := settings.Default()
	s.Redis.URL, s.Redis.URLFrom = url, "--redis"
	return s
}
