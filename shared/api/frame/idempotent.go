package frame

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// The header by which a client says that a request is a repetition, and the one that says that its answer is.
const (
	idempotencyKey      = "Idempotency-Key"
	idempotencyReplayed = "Idempotency-Replayed"
	// maxIdempotencyKey is the longest key.
	maxIdempotencyKey = 255
)

// openAttempts opens what was answered under an Idempotency-Key.
func openAttempts(ctx context.Context, env *platform.Environment) (*idempotency.Store, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	return &idempotency.Store{Records: env.Stores(idempotency.Resource), Keyring: ring, Now: env.Now}, nil
}

// kept is an answer as it is kept.
type kept struct {
	Status   int             `json:"status"`
	Warnings []string        `json:"warnings,omitempty"`
	Object   json.RawMessage `json:"object"`
}

// Idempotent makes an endpoint that creates something answer a request again that carries the same Idempotency-Key as one
// of the last ten minutes, by the same credential and with the same content, instead of creating a second one, as long as
// the caller may still ask for it. Another request under that key is 422; the same one, while it is being served, 409 with
// Retry-After. The function has to say that it Encrypts. Dry runs are not kept. Source: ADR-0017.
func Idempotent(endpoint Endpoint) Endpoint {
	open := endpoint.open
	endpoint.open = func(env *platform.Environment) operation {
		operate := open(env)
		return func(ctx context.Context, c *call) (*answer, error) {
			keys := c.http.Header.Values(idempotencyKey)
			if len(keys) == 0 || c.query.Has("dryRun") {
				return operate(ctx, c)
			}
			if err := checkIdempotencyKey(keys); err != nil {
				return nil, err
			}
			attempts, err := openAttempts(ctx, env)
			if err != nil {
				return nil, err
			}
			return once(ctx, c, endpoint, attempts, keys[0], operate)
		}
	}
	return endpoint
}

func checkIdempotencyKey(keys []string) error {
	refuse := func(why string) error {
		return apierror.BadRequest("the header "+idempotencyKey+" "+why, nil)
	}
	switch key := keys[0]; {
	case len(keys) > 1:
		return refuse("is given more than once")
	case key == "" || len(key) > maxIdempotencyKey:
		return refuse(fmt.Sprintf("must have 1 to %d characters", maxIdempotencyKey))
	default:
		for _, c := range []byte(key) {
			if c < ' ' || c > '~' {
				return refuse("must be printable ASCII")
			}
		}
		return nil
	}
}

// once serves a request under a key.
func once(ctx context.Context, c *call, endpoint Endpoint, attempts *idempotency.Store, key string, operate operation) (*answer, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	c.body = func() ([]byte, error) { return body, nil }
	who := fmt.Sprintf("%q %q %q", c.caller.Owner, c.caller.Key, c.caller.KeyUID)
	attempt, before, err := attempts.Begin(ctx, who, key, fingerprint(c, body))
	switch {
	case errors.Is(err, idempotency.ErrOther):
		return nil, apierror.Unprocessable("the " + idempotencyKey + " was used with another request in the last ten minutes")
	case errors.Is(err, idempotency.ErrUnderWay):
		return nil, apierror.UnderWay("the request with this " + idempotencyKey + " is being served; ask again for its answer")
	case errors.Is(err, encryption.ErrNoKey):
		return nil, apierror.BadRequest("the platform has no encryption key to keep answers with; leave the header "+idempotencyKey+" out", nil).Because(err)
	case errors.Is(err, store.ErrUnavailable):
		return nil, apierror.Unavailable().Because(err)
	case err != nil:
		return nil, fmt.Errorf("serving a request once: %w", err)
	case before != nil:
		if err := permitted(ctx, c, operate); err != nil {
			return nil, err
		}
		return again(endpoint, before)
	}
	c.random = attempt.Random
	// What becomes of the attempt is noted also when the client has gone.
	noted := context.WithoutCancel(ctx)
	finished := false
	defer func() {
		// A panic leaves it unknown what was done.
		if !finished {
			_ = attempt.Leave(noted, false)
		}
	}()
	result, err := operate(ctx, c)
	finished = true
	if err != nil {
		code := apierror.From(err).Status().Code
		_ = attempt.Leave(noted, code < http.StatusInternalServerError)
		return nil, err
	}
	if text, err := keep(result); err == nil {
		// The answer is good without being kept; whoever asks again is then given what was made.
		_ = attempt.Finish(noted, text)
	}
	return result, nil
}

// permitted asks by a dry run whether the caller may still make a request that was answered before. Other refusals, such as
// that of a name which the first attempt took, are no matter.
func permitted(ctx context.Context, c *call, operate operation) error {
	dry := *c
	dry.query = maps.Clone(c.query)
	dry.query.Set("dryRun", metav1.DryRunAll)
	_, err := operate(ctx, &dry)
	if err == nil {
		return nil
	}
	switch apierror.From(err).Status().Code {
	case http.StatusForbidden, http.StatusNotFound:
		return err
	default:
		return nil
	}
}

func keep(result *answer) ([]byte, error) {
	object, err := json.Marshal(result.object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(kept{Status: result.status, Warnings: result.warnings, Object: object})
}

// again is an answer of before.
func again(endpoint Endpoint, text []byte) (*answer, error) {
	var before kept
	object := endpoint.empty()
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, fmt.Errorf("reading a kept answer: %w", err)
	}
	if err := json.Unmarshal(before.Object, object); err != nil {
		return nil, fmt.Errorf("reading a kept answer: %w", err)
	}
	return &answer{
		status: before.Status, object: object, warnings: before.Warnings, header: http.Header{idempotencyReplayed: {"true"}},
	}, nil
}

// fingerprint is what two requests must have in common to be the same one.
func fingerprint(c *call, body []byte) string {
	query := maps.Clone(c.query)
	// They change nothing about what is made.
	delete(query, "timeout")
	delete(query, "pretty")
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", c.http.Method, c.http.URL.Path, query.Encode(), c.http.Header.Get("Content-Type"), body))
	return hex.EncodeToString(sum[:])
}
