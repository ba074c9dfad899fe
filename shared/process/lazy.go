package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// fetchWithin bounds a request to the extension, which caches secrets in memory.
const fetchWithin = 2 * time.Second

// maxSecret bounds the response of the extension. AWS Secrets Manager stores at most 64 KiB per secret.
const maxSecret = 128 << 10

// fetcher returns a function that gets a secret from the extension. Its errors never quote the response of the extension.
func fetcher(extension settings.Extension) func(ctx context.Context, id string) (secret.String, error) {
	return func(ctx context.Context, id string) (secret.String, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		defer cancel()
		address := extension.URL + "/secretsmanager/get?secretId=" + url.QueryEscape(id)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return "", errors.New("the address of the extension is malformed")
		}
		request.Header.Set("X-Aws-Parameters-Secrets-Token", extension.Token.Reveal())
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", errors.New("the extension for parameters and secrets does not answer: is its layer attached?")
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return "", fmt.Errorf("the extension for parameters and secrets answers %d", answer.StatusCode)
		}
		var found struct{ SecretString secret.String }
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxSecret)).Decode(&found); err != nil || found.SecretString == "" {
			return "", errors.New("the secret holds no text")
		}
		return found.SecretString, nil
	}
}

// opening opens the state at the first use. It does not remember a failure: the next request tries again.
type opening struct {
	fetch   func(ctx context.Context, id string) (secret.String, error)
	id      string
	options redisstore.Options

	mu     sync.Mutex
	client *redisstore.Client
}

func (o *opening) open(ctx context.Context) (*redisstore.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.client != nil {
		return o.client, nil
	}
	text, err := o.fetch(ctx, o.id)
	if err == nil {
		o.client, err = redisstore.Open(text.Reveal(), o.options)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", store.ErrUnavailable, settings.RedisURLSecret, err)
	}
	return o.client, nil
}

// openKeyring returns a function that returns the encryption keys. If the keys are in a secret, the function fetches it at
// the first use. It does not remember a failure: the next request tries again.
func openKeyring(s settings.Settings) (func(context.Context) (*encryption.Keyring, error), error) {
	if s.Encryption.Secret == "" {
		var ring *encryption.Keyring
		if s.Encryption.Keys != "" {
			var err error
			if ring, err = encryption.Parse(s.Encryption.Keys); err != nil {
				return nil, s.Wrong(s.Encryption.KeysFrom, err)
			}
		}
		return func(context.Context) (*encryption.Keyring, error) { return ring, nil }, nil
	}
	fetch := fetcher(s.Extension)
	var mu sync.Mutex
	var ring *encryption.Keyring
	return func(ctx context.Context) (*encryption.Keyring, error) {
		mu.Lock()
		defer mu.Unlock()
		if ring != nil {
			return ring, nil
		}
		text, err := fetch(ctx, s.Encryption.Secret)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", store.ErrUnavailable, settings.EncryptionKeySecret, err)
		}
		if ring, err = encryption.Parse(text); err != nil {
			return nil, s.Wrong(settings.EncryptionKeySecret, err)
		}
		return ring, nil
	}, nil
}

// lazy is the state of a resource. It is opened at the first use.
type lazy struct {
	opening  *opening
	resource string

	mu    sync.Mutex
	state store.Store
}

func (l *lazy) get(ctx context.Context) (store.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == nil {
		client, err := l.opening.open(ctx)
		if err != nil {
			return nil, err
		}
		l.state = client.Resource(l.resource)
	}
	return l.state, nil
}

// with calls a method that returns a value, once the state is open.
func with[T any](ctx context.Context, l *lazy, do func(store.Store) (T, error)) (T, error) {
	state, err := l.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return do(state)
}

// only calls a method that returns an error alone.
func only(ctx context.Context, l *lazy, do func(store.Store) error) error {
	state, err := l.get(ctx)
	if err != nil {
		return err
	}
	return do(state)
}

func (l *lazy) Create(ctx context.Context, record store.Record) (int64, error) {
	return with(ctx, l, func(s store.Store) (int64, error) { return s.Create(ctx, record) })
}

func (l *lazy) Get(ctx context.Context, name string) (store.Record, error) {
	return with(ctx, l, func(s store.Store) (store.Record, error) { return s.Get(ctx, name) })
}

func (l *lazy) GetByDigest(ctx context.Context, digest string) (store.Record, error) {
	return with(ctx, l, func(s store.Store) (store.Record, error) { return s.GetByDigest(ctx, digest) })
}

func (l *lazy) GetWith(ctx context.Context, digest, name string) (store.Record, *store.Record, error) {
	state, err := l.get(ctx)
	if err != nil {
		return store.Record{}, nil, err
	}
	return state.GetWith(ctx, digest, name)
}

func (l *lazy) Update(ctx context.Context, record store.Record) (int64, error) {
	return with(ctx, l, func(s store.Store) (int64, error) { return s.Update(ctx, record) })
}

func (l *lazy) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	return with(ctx, l, func(s store.Store) (int64, error) { return s.Delete(ctx, name, revision) })
}

func (l *lazy) List(ctx context.Context, query store.Query) (store.Page, error) {
	return with(ctx, l, func(s store.Store) (store.Page, error) { return s.List(ctx, query) })
}

func (l *lazy) Touch(ctx context.Context, record store.Record, activity, expires time.Time) error {
	return only(ctx, l, func(s store.Store) error { return s.Touch(ctx, record, activity, expires) })
}

func (l *lazy) Due(ctx context.Context, expiredBy, createdBy time.Time, limit int) ([]store.Record, error) {
	return with(ctx, l, func(s store.Store) ([]store.Record, error) { return s.Due(ctx, expiredBy, createdBy, limit) })
}

func (l *lazy) References(ctx context.Context, from int64, limit int) ([]store.Reference, int64, error) {
	state, err := l.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	return state.References(ctx, from, limit)
}

func (l *lazy) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	return with(ctx, l, func(s store.Store) ([]store.Event, error) { return s.Events(ctx, after, limit, wait) })
}

func (l *lazy) Trim(ctx context.Context, olderThan time.Time) error {
	return only(ctx, l, func(s store.Store) error { return s.Trim(ctx, olderThan) })
}
