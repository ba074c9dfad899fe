package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"management.platform.sh/local/flags"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// SigningKeys lists and changes the signing keys in a Redis. Running functions see a change within ten seconds.
// NewSigningKeys makes the command.
type SigningKeys struct {
	Redis      secret.String  `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State. Absent: the redis-server of the running platform serve on the data folder."`
	Data       string         `default:".platform" placeholder:"DIR" help:"Data folder of platform serve, which holds encryption.key (${default})."`
	Encryption secret.String  `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state, 32 bytes in base64. Absent: the one in the data folder."`
	Signing    flags.Settings `embed:""`

	List   listSigningKeys   `cmd:"" help:"Print each key: its kid, algorithm and state, and from when until when it is in that state."`
	Rotate rotateSigningKeys `cmd:"" help:"Make the next key sign as soon as it has been published long enough."`
	Taint  taintSigningKey   `cmd:"" help:"Withdraw a key immediately. Verifiers refuse its tokens from their next fetch of the keys on."`

	Version string `kong:"-"`
}

// NewSigningKeys returns the command with its flags.
func NewSigningKeys() SigningKeys { return SigningKeys{Signing: flags.Signing()} }

type listSigningKeys struct{}

// readState runs a command that only reads the state.
func readState(ctx context.Context, s settings.Settings, do func(context.Context, *redisstore.Client) error) error {
	client, err := state.Connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return do(ctx, client)
}

type rotateSigningKeys struct{}

type taintSigningKey struct {
	ID string `arg:"" name:"kid" help:"The kid of the key to withdraw, as list prints it."`
}

func (*listSigningKeys) Run(ctx context.Context, c *SigningKeys) error {
	return c.withKeys(ctx, "", func(ctx context.Context, keys *signingkey.Keys) ([]signingkey.Key, error) { return keys.List(ctx) })
}

func (*rotateSigningKeys) Run(ctx context.Context, c *SigningKeys) error {
	return c.withKeys(ctx, "signing-keys-rotate", func(ctx context.Context, keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Rotate(ctx, true)
		return done.Keys, err
	})
}

func (t *taintSigningKey) Run(ctx context.Context, c *SigningKeys) error {
	return c.withKeys(ctx, "signing-keys-taint", func(ctx context.Context, keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Taint(ctx, t.ID)
		return done.Keys, err
	}, slog.String("kid", t.ID))
}

// stateURL returns the given URL, else the URL of the redis-server that the runner starts on a data folder. Here reports
// whether it is the latter.
func stateURL(given secret.String, data string) (url secret.String, here bool, err error) {
	if given != "" {
		return given, false, nil
	}
	socket, err := filepath.Abs(filepath.Join(data, "redis", "redis.sock"))
	if err != nil {
		return "", false, fmt.Errorf("--data: %w", err)
	}
	if _, err := os.Stat(socket); err != nil {
		return "", false, fmt.Errorf("--redis: missing, and no runner has a redis-server in %s", data)
	}
	return secret.String("unix://" + socket), true, nil
}

// withKeys calls do with the keys of the state, and prints the keys that do returns. Command is the name of a command
// that changes the keys; empty: the command changes nothing.
func (c *SigningKeys) withKeys(
	ctx context.Context, command string, do func(context.Context, *signingkey.Keys) ([]signingkey.Key, error), attributes ...slog.Attr,
) error {
	s, err := c.Signing.Read()
	if err != nil {
		return err
	}
	url, _, err := stateURL(c.Redis, c.Data)
	if err != nil {
		return err
	}
	s.Redis.URL, s.Redis.URLFrom = url, "--redis"
	s.Encryption.Keys, s.Encryption.KeysFrom, s.Runner.Data = c.Encryption, "--encryption-key", c.Data
	file := state.KeyFile(c.Data)
	if _, err := os.Stat(file); c.Encryption == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--encryption-key: missing, and there is no file %s", file)
	}
	ring, err := state.OpenKeyring(s)
	if err != nil {
		return err
	}
	var keys []signingkey.Key
	work := func(ctx context.Context, client *redisstore.Client) (err error) {
		keys, err = do(ctx, signingkey.New(client.Resource(signingkey.Resource),
			func(context.Context) (*encryption.Keyring, error) { return ring, nil }, time.Now, signingkey.Settings{
				Algorithm: s.Tokens.Algorithm, RotateEvery: s.Tokens.RotateEvery, PublishBefore: s.Tokens.PublishBefore, MaxTTL: s.Tokens.MaxTTL,
			}))
		return err
	}
	if command == "" {
		err = readState(ctx, s, work)
	} else {
		o := operation{name: command, attributes: attributes, version: c.Version, state: s, keyring: ring}
		err = o.run(ctx, func(ctx context.Context, client *redisstore.Client, _ *platform.Environment) error {
			return work(ctx, client)
		})
	}
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
