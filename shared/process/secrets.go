package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
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

// inSecret is the suffix of a variable that names a secret. The secret holds the value of the variable without the
// suffix.
const inSecret = "_SECRET"

// placeholders returns the values of the variables that the platform configuration names. Ok is false if a variable is
// not known. The value of NAME is in the variable NAME, or in the secret that NAME_SECRET names. A secret is fetched at
// the first use and kept. A failure is logged once, and the next lookup tries again. Source: ADR-0015.
func placeholders(lookup func(string) string, fetch func(ctx context.Context, id string) (secret.String, error), log *slog.Logger) func(name string) (string, bool) {
	var mu sync.Mutex
	fetched, failed := map[string]secret.String{}, map[string]string{}
	return func(name string) (string, bool) {
		if value := lookup(name); value != "" {
			return value, true
		}
		id := lookup(name + inSecret)
		if id == "" {
			return "", false
		}
		mu.Lock()
		defer mu.Unlock()
		if value, known := fetched[name]; known {
			return value.Reveal(), true
		}
		value, err := fetch(context.Background(), id)
		if err != nil {
			if why := err.Error(); failed[name] != why {
				failed[name] = why
				log.Error("a secret of the platform configuration cannot be read", "variable", name+inSecret, "error", why)
			}
			return "", false
		}
		fetched[name] = value
		return value.Reveal(), true
	}
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
