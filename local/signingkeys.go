package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// signingFlags say how tokens are signed. The defaults are those of package issuer.
type signingFlags struct {
	TokenMaxTTL   time.Duration `name:"token-max-ttl" env:"PLATFORM_TOKEN_MAX_TTL" default:"24h" help:"The longest life of a token (${default})."`
	Algorithm     string        `name:"signing-algorithm" env:"PLATFORM_SIGNING_ALGORITHM" default:"ES256" enum:"ES256,RS256" help:"How tokens are signed: ES256 or RS256 (${default})."`
	RotateEvery   time.Duration `name:"signing-rotate-every" env:"PLATFORM_SIGNING_ROTATE_EVERY" default:"168h" help:"How long a signing key signs (${default})."`
	PublishBefore time.Duration `name:"signing-publish-before" env:"PLATFORM_SIGNING_PUBLISH_BEFORE" default:"1h" help:"How long a signing key is published before it signs (${default})."`
}

func (f signingFlags) settings() frame.TokenSettings {
	return frame.TokenSettings{MaxTTL: f.TokenMaxTTL, Algorithm: f.Algorithm, RotateEvery: f.RotateEvery, PublishBefore: f.PublishBefore}
}

// check returns what is wrong with the flags, all at once.
func (f signingFlags) check() error {
	var problems []error
	if f.TokenMaxTTL < time.Minute {
		problems = append(problems, fmt.Errorf("--token-max-ttl: %s is less than a minute", f.TokenMaxTTL))
	}
	if f.PublishBefore < issuer.MinPublishBefore {
		problems = append(problems, fmt.Errorf("--signing-publish-before: %s is less than %s, for which verifiers may not ask again", f.PublishBefore, issuer.MinPublishBefore))
	}
	if f.RotateEvery < 2*f.PublishBefore {
		problems = append(problems, fmt.Errorf("--signing-rotate-every: %s is less than twice --signing-publish-before", f.RotateEvery))
	}
	return errors.Join(problems...)
}

// checkTokens returns what is wrong with the flags about tokens.
func (c *serveCommand) checkTokens() error {
	problems := []error{c.Signing.check()}
	if c.Issuer != "" {
		if err := frame.CheckIssuer(c.Issuer); err != nil {
			problems = append(problems, fmt.Errorf("--issuer: %w", err))
		}
	}
	if c.SigningKey != "" {
		if _, err := signingkey.ParsePEM(c.SigningKey); err != nil {
			problems = append(problems, fmt.Errorf("--signing-key: %w", err))
		}
	}
	return errors.Join(problems...)
}

// signingKeysCommand changes the signing keys in a Redis beside the functions, which see it within ten seconds.
type signingKeysCommand struct {
	Redis      secret.String `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State (the redis-server that a runner on this data folder has started)."`
	Data       string        `default:".platform" placeholder:"DIR" help:"Folder with encryption.key (${default})."`
	Encryption secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state (the one in the data folder)."`
	Signing    signingFlags  `embed:""`

	List   listSigningKeys   `cmd:"" help:"Print each key: kid, algorithm, state, since when and until when."`
	Rotate rotateSigningKeys `cmd:"" help:"Let the next key sign as soon as it was published long enough."`
	Taint  taintSigningKey   `cmd:"" help:"Withdraw a key at once: what it signed is refused by who asks for the keys again."`
}

type listSigningKeys struct{}

type rotateSigningKeys struct{}

type taintSigningKey struct {
	ID string `arg:"" name:"kid" help:"The key to withdraw."`
}

// Run prints the keys.
func (*listSigningKeys) Run(ctx context.Context, c *commands) error {
	return c.SigningKeys.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) { return keys.List(ctx) })
}

// Run begins a rotation and prints the keys.
func (*rotateSigningKeys) Run(ctx context.Context, c *commands) error {
	return c.SigningKeys.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Rotate(ctx, true)
		return done.Keys, err
	})
}

// Run withdraws a key and prints the keys.
func (t *taintSigningKey) Run(ctx context.Context, c *commands) error {
	return c.SigningKeys.with(ctx, func(keys *signingkey.Keys) ([]signingkey.Key, error) {
		done, err := keys.Taint(ctx, t.ID)
		return done.Keys, err
	})
}

// with does something to the keys and prints what there is then.
func (c *signingKeysCommand) with(ctx context.Context, do func(*signingkey.Keys) ([]signingkey.Key, error)) error {
	if err := c.Signing.check(); err != nil {
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
	file := filepath.Join(c.Data, "encryption.key")
	if _, err := os.Stat(file); c.Encryption == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--encryption-key: none is given, and there is no %s", file)
	}
	ring, err := openKeyring(c.Encryption, file)
	if err != nil {
		return err
	}
	client, err := openRedis(ctx, url, redisstore.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	keys, err := do(signingkey.New(client.Resource(signingkey.Resource),
		func(context.Context) (*encryption.Keyring, error) { return ring, nil }, time.Now, signingkey.Settings{
			Algorithm: c.Signing.Algorithm, RotateEvery: c.Signing.RotateEvery, PublishBefore: c.Signing.PublishBefore, MaxTTL: c.Signing.TokenMaxTTL,
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
