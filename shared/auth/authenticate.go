package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// The texts of a 401. A caller learns that a key is expired or disabled only by holding it.
// Source: ADR-0005.
const (
	textNone     = "no bearer token"
	textInvalid  = "invalid bearer token"
	textExpired  = "access key expired"
	textDisabled = "access key disabled"
)

// Authenticator turns bearers into callers. It is safe for concurrent use.
type Authenticator struct {
	// Keys holds the access keys.
	Keys *accesskey.Registry
	// Now is the clock.
	Now func() time.Time
	// Limits are the platform's on the life of keys at this moment.
	Limits func() accesskey.Limits
	// Log takes what went wrong beside a request that succeeds.
	Log *slog.Logger
}

// Header authenticates the Authorization header of a request. The scheme is compared without regard to
// case. The access key of a name is brought along where that takes no further round trip; nil where it does, or
// where there is none. Errors are those of Bearer.
func (a *Authenticator) Header(ctx context.Context, header http.Header, name string) (identity.Caller, *store.Record, error) {
	scheme, token, ok := strings.Cut(header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return identity.Caller{}, nil, apierror.Unauthorized(textNone)
	}
	return a.authenticate(ctx, secret.String(strings.TrimSpace(token)), name)
}

// Bearer authenticates an access key. A malformed one is refused without asking the state; a valid one
// costs one round trip (two when it is new here), another one at most once a minute, to note the activity, and one for
// each object that it belongs to: when those are gone, so is the key.
//
// Errors: Unauthorized for a key that is unknown, expired or disabled; ServiceUnavailable when the state
// cannot be reached, since what cannot be checked is refused. Source: Spec 5.1, 5.2; ADR-0005.
func (a *Authenticator) Bearer(ctx context.Context, bearer secret.String) (identity.Caller, error) {
	caller, _, err := a.authenticate(ctx, bearer, "")
	return caller, err
}

func (a *Authenticator) authenticate(ctx context.Context, bearer secret.String, name string) (identity.Caller, *store.Record, error) {
	found, err := a.check(ctx, bearer, name)
	if err != nil {
		return identity.Caller{}, nil, err
	}
	a.note(ctx, found.key, found.record, a.Now())
	return found.caller, found.named, nil
}

// Again authenticates the Authorization header of a request that is still being answered. It is no use of the
// key, so that one whose end counts from its last use does not live on by it. Errors are those of Bearer.
// Source: ADR-0007.
func (a *Authenticator) Again(ctx context.Context, header http.Header) (identity.Caller, error) {
	_, token, _ := strings.Cut(header.Get("Authorization"), " ")
	found, err := a.check(ctx, secret.String(strings.TrimSpace(token)), "")
	return found.caller, err
}

// checked is whose a bearer is, by what stored key, and the key that came along.
type checked struct {
	caller identity.Caller
	record store.Record
	key    *model.OwnedAccessKey
	named  *store.Record
}

// check looks a bearer up.
func (a *Authenticator) check(ctx context.Context, bearer secret.String, name string) (checked, error) {
	refuse := func(err error) (checked, error) { return checked{}, err }
	if accesskey.CheckBearer(bearer) != nil {
		return refuse(apierror.Unauthorized(textInvalid))
	}
	record, named, err := a.Keys.Store.GetWith(ctx, accesskey.Digest(bearer), name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refuse(apierror.Unauthorized(textInvalid))
	case errors.Is(err, store.ErrUnavailable):
		return refuse(apierror.Unavailable().Because(err))
	case err != nil:
		return refuse(fmt.Errorf("looking up a bearer: %w", err))
	}
	key, err := a.Keys.Parse(record)
	if err != nil {
		return refuse(err)
	}
	until, err := accesskey.Usable(key, record.Activity, a.Limits(), a.Now())
	switch {
	case errors.Is(err, accesskey.ErrExpired):
		return refuse(apierror.Unauthorized(textExpired))
	case errors.Is(err, accesskey.ErrDisabled):
		return refuse(apierror.Unauthorized(textDisabled))
	case err != nil:
		return refuse(apierror.Unauthorized(textInvalid))
	}
	switch orphaned, err := a.Keys.Orphaned(ctx, key); {
	case errors.Is(err, store.ErrUnavailable):
		return refuse(apierror.Unavailable().Because(err))
	case err != nil:
		return refuse(fmt.Errorf("looking up what an access key belongs to: %w", err))
	case orphaned:
		return refuse(apierror.Unauthorized(textInvalid))
	}
	caller := identity.New(accesskey.OwnerOf(&key.Spec), key.Spec.Groups)
	caller.Scope = key.Spec.Scope
	caller.Key, caller.KeyUID, caller.KeyType = key.Name, string(key.UID), key.Spec.Type
	caller.KeyExpires = until
	return checked{caller: caller, record: record, key: key, named: named}, nil
}

// note writes the activity of a key where it is due. It is done before the answer, since a function may
// be frozen after it; a failure does not refuse the request.
func (a *Authenticator) note(ctx context.Context, key *model.OwnedAccessKey, record store.Record, now time.Time) {
	if !accesskey.ActivityDue(key, record.Activity, now) {
		return
	}
	activity := now.UTC().Truncate(time.Second)
	var expires time.Time
	if key.Spec.TTLAfterLastActivity {
		expires = a.Keys.Due(key, activity)
	}
	if err := a.Keys.Store.Touch(ctx, record, activity, expires); err != nil {
		a.Log.WarnContext(ctx, "noting the activity of an access key", "key", key.Name, "error", err.Error())
	}
}
