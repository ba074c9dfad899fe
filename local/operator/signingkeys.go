package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"management.platform.sh/local/flags"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/state/encryption"
)

// SigningKeys changes the signing keys in a Redis beside the functions, which see it within ten seconds. Make it with
// NewSigningKeys.
type SigningKeys struct {
	Redis      secret.String  `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State (the redis-server that a runner on this data folder has started)."`
	Data       string         `default:".platform" placeholder:"DIR" help:"Folder with encryption.key (${default})."`
	Encryption secret.String  `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state (the one in the data folder)."`
	Signing    flags.Settings `embed:""`

	List   listSigningKeys   `cmd:"" help:"Print each key: kid, algorithm, state, since when and until when."`
	Rotate rotateSigningKeys `cmd:"" help:"Let the next key sign as soon as it was published long enough."`
	Taint  taintSigningKey   `cmd:"" help:"Withdraw a key at once: what it signed is refused by who asks for the keys again."`
}

// NewSigningKeys returns the command with its flags.
func NewSigningKeys() SigningKeys { return SigningKeys{Signing: flags.Signing()} }

type listSigningKeys struct{}

type rotateSigningKeys struct{}

type taintSigningKey struct {
	ID string `arg:"" name:"kid" help:"The key to withdraw."`
}

// Run prints the keys.
func (*listSigningKeys) Run(ctx context.Context, c *SigningKeys) error {
	return c.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) { return keys.List(ctx) })
}

// Run begins a rotation and prints the keys.
func (*rotateSigningKeys) Run(ctx context.Context, c *SigningKeys) error {
	return c.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Rotate(ctx, true)
		return done.Keys, err
	})
}

// Run withdraws a key and prints the keys.
func (t *taintSigningKey) Run(ctx context.Context, c *SigningKeys) error {
	return c.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Taint(ctx, t.ID)
		return done.Keys, err
	})
}

// with does something to the keys and prints what there is then.
func (c *SigningKeys) with(ctx context.Context, do func(*signingkey.Keys) ([]signingkey.Key, error)) error {
	s, err := c.Signing.Read()
	if err != nil {
		return err
	}
	url := c.Redis
	if url == "" {
		socket, err := filepath.Abs(filepath.Join(c.Data, "redis", "redis.sock"))
		if err != nil {
			return fmt.Errorf("the data folder: %w", err)
		}
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("--redis: none is given, and no runner has a redis-server in %s", c.Data)
		}
		url = secret.String("unix://" + socket)
	}
	s.Redis.URL, s.Redis.URLFrom = url, "--redis"
	s.Encryption.Keys, s.Encryption.KeysFrom, s.Runner.Data = c.Encryption, "--encryption-key", c.Data
	file := state.KeyFile(c.Data)
	if _, err := os.Stat(file); c.Encryption == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--encryption-key: none is given, and there is no %s", file)
	}
	ring, err := state.OpenKeyring(s)
	if err != nil {
		return err
	}
	client, err := state.Connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	keys, err := do(signingkey.New(client.Resource(signingkey.Resource),
		func(context.Context) (*encryption.Keyring, error) { return ring, nil }, time.Now, signingkey.Settings{
			Algorithm: s.Tokens.Algorithm, RotateEvery: s.Tokens.RotateEvery, PublishBefore: s.Tokens.PublishBefore, MaxTTL: s.Tokens.MaxTTL,
		}))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := fmt.Println(key.Describe()); err != nil {
			return fmt.Errorf("printing the keys: %w", err)
		}
	}
	return nil
}
