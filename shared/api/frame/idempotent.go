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

// Headers of repeated requests.
const (
	// idempotencyKey is the header in which a client names a request, so that the server recognizes its repetitions.
	idempotencyKey = "Idempotency-Key"
	// idempotencyReplayed is the header that marks a response as a repetition.
	idempotencyReplayed = "Idempotency-Replayed"
	// maxIdempotencyKey is the maximum length of a key.
	maxIdempotencyKey = 255
)

// openAttempts opens the stored responses to requests of an owner with an Idempotency-Key.
func openAttempts(ctx context.Context, env *platform.Environment, records store.Store, owner string) (*idempotency.Store, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	return &idempotency.Store{Records: records, Keyring: ring, Now: env.Now, Owner: owner, Quota: env.Quota}, nil
}

// storedResponse is a response in the form in which it is stored.
type storedResponse struct {
	Status   int             `json:"status"`
	Warnings []string        `json:"warnings,omitempty"`
	Object   json.RawMessage `json:"object"`
}

// Idempotent makes an endpoint that creates objects recognize repeated requests. A repeated request has the same
// Idempotency-Key, credential and content as a request of the last ten minutes. The endpoint repeats the first response
// instead of creating a second object, as long as the caller is still allowed to make the request. Another request with
// that key is answered with 422. The same request, while the first one is still being served, is answered with 409 and
// Retry-After. The function must set Encrypts. Responses to dry runs are not stored. Source: ADR-0017.
func Idempotent(endpoint Endpoint) Endpoint {
	open := endpoint.open
	endpoint.open = func(env *platform.Environment) operation {
		operate, records := open(env), env.Stores(idempotency.Resource)
		return func(ctx context.Context, c *call) (*answer, error) {
			keys := c.http.Header.Values(idempotencyKey)
			if len(keys) == 0 || c.query.Has("dryRun") {
				return operate(ctx, c)
			}
			if err := checkIdempotencyKey(keys); err != nil {
				return nil, err
			}
			attempts, err := openAttempts(ctx, env, records, c.caller.Owner.String())
			if err != nil {
				return nil, err
			}
			return serveIdempotent(ctx, c, endpoint, attempts, keys[0], operate)
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

// serveIdempotent serves a request that has an Idempotency-Key.
func serveIdempotent(ctx context.Context, c *call, endpoint Endpoint, attempts *idempotency.Store, key string, operate operation) (*answer, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	c.body = func() ([]byte, error) { return body, nil }
	who := fmt.Sprintf("%q %q %q", c.caller.Owner, c.caller.Key, c.caller.KeyUID)
	attempt, before, err := attempts.Begin(ctx, who, key, fingerprint(c, body))
	var over *store.QuotaError
	switch {
	case errors.As(err, &over):
		return nil, apierror.TooMany(over.TextFor("responses to requests with an "+idempotencyKey), 1).Because(err)
	case errors.Is(err, idempotency.ErrOther):
		return nil, apierror.Unprocessable("the " + idempotencyKey + " has been used for another request in the last ten minutes")
	case errors.Is(err, idempotency.ErrUnderWay):
		return nil, apierror.InProgress("the request with this " + idempotencyKey + " is still being served: repeat it later to get its response")
	case errors.Is(err, encryption.ErrNoKey):
		return nil, apierror.BadRequest("the platform has no encryption key to store responses with: leave out the header "+idempotencyKey, nil).Because(err)
	case errors.Is(err, store.ErrUnavailable):
		return nil, apierror.Unavailable().Because(err)
	case err != nil:
		return nil, fmt.Errorf("serving a request once: %w", err)
	case before != nil:
		if err := permitted(ctx, c, operate); err != nil {
			return nil, err
		}
		return replay(endpoint, before)
	}
	c.random = attempt.Random
	// The outcome of the attempt is stored even if the client has disconnected.
	noting := context.WithoutCancel(ctx)
	finished := false
	defer func() {
		// After a panic, it is not known what the operation did.
		if !finished {
			_ = attempt.Leave(noting, false)
		}
	}()
	result, err := operate(ctx, c)
	finished = true
	if err != nil {
		code := apierror.From(err).Status().Code
		_ = attempt.Leave(noting, code < http.StatusInternalServerError)
		return nil, err
	}
	if text, err := encodeResponse(result); err == nil {
		// The response is valid even if it cannot be stored: a repeated request then gets the object that this one created.
		_ = attempt.Finish(noting, text)
	}
	return result, nil
}

// permitted returns an error if the caller is no longer allowed to make a request that has already been answered. It finds
// out by a dry run. It ignores other refusals, such as the one because the first attempt has taken the name.
func permitted(ctx context.Context, c *call, operate operation) error {
	dry := *c
	dry.query = maps.Clone(c.query)
	dry.query.Set("dryRun", metav1.DryRunAll)
	_, err := operate(store.ReadOnly(ctx), &dry)
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

// encodeResponse encodes an answer to be stored.
func encodeResponse(result *answer) ([]byte, error) {
	object, err := json.Marshal(result.object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedResponse{Status: result.status, Warnings: result.warnings, Object: object})
}

// replay returns a stored response as the answer.
func replay(endpoint Endpoint, text []byte) (*answer, error) {
	var before storedResponse
	object := endpoint.empty()
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, fmt.Errorf("reading a stored response: %w", err)
	}
	if err := json.Unmarshal(before.Object, object); err != nil {
		return nil, fmt.Errorf("reading a stored response: %w", err)
	}
	return &answer{
		status: before.Status, object: object, warnings: before.Warnings, header: http.Header{idempotencyReplayed: {"true"}},
	}, nil
}

// fingerprint returns the same text for two requests if they have the same content: one is then a repetition of the other.
func fingerprint(c *call, body []byte) string {
	query := maps.Clone(c.query)
	// These parameters do not change what is created.
	delete(query, "timeout")
	delete(query, "pretty")
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", c.http.Method, c.http.URL.Path, query.Encode(), c.http.Header.Get("Content-Type"), body))
	return hex.EncodeToString(sum[:])
}
