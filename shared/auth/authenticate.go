package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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

// Why a bearer is refused, as Bearers tells it.
var (
	// ErrUnknown: there is no such bearer, or it is gone for another reason than the others here.
	ErrUnknown = errors.New("the bearer is unknown")
	// ErrExpired: its lifetime has ended.
	ErrExpired = errors.New("the bearer is expired")
	// ErrDisabled: its owner has disabled it.
	ErrDisabled = errors.New("the bearer is disabled")
)

// Bearers knows whose a bearer is. Package accesskey does for access keys. Implementations are safe for concurrent use.
type Bearers interface {
	// Identify returns whose a bearer is. A malformed bearer is refused without asking the state. Prefetch names an access
	// key that is read in the same round trip where that is possible; empty: none.
	//
	// Errors: ErrUnknown, ErrExpired and ErrDisabled; store.ErrUnavailable when the state cannot be reached; others for
	// what is stored and cannot be read.
	Identify(ctx context.Context, bearer secret.String, prefetch string) (Identified, error)
}

// Identified is a bearer that is good.
type Identified struct {
	// Caller is whose it is.
	Caller identity.Caller
	// Prefetched is the record of the access key to prefetch; nil where it was not read or does not exist.
	Prefetched *store.Record
	// Used notes that the bearer is used. It does not fail: what goes wrong is logged.
	Used func(context.Context)
}

// Authenticator turns bearers into callers. It is safe for concurrent use.
type Authenticator struct {
	// Bearers knows whose a bearer is.
	Bearers Bearers
}

// Header authenticates the Authorization header of a request. The scheme is compared without regard to case. Prefetch is
// that of Bearers.Identify, and the record what comes of it. Errors are those of Bearer.
func (a *Authenticator) Header(ctx context.Context, header http.Header, prefetch string) (identity.Caller, *store.Record, error) {
	scheme, token, ok := strings.Cut(header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return identity.Caller{}, nil, apierror.Unauthorized(textNone)
	}
	return a.authenticate(ctx, secret.String(strings.TrimSpace(token)), prefetch)
}

// Bearer authenticates a bearer, which counts as a use of it.
//
// Errors: Unauthorized for one that is unknown, expired or disabled; ServiceUnavailable when the state cannot be reached,
// since what cannot be checked is refused. Source: Spec 5.1, 5.2; ADR-0005.
func (a *Authenticator) Bearer(ctx context.Context, bearer secret.String) (identity.Caller, error) {
	caller, _, err := a.authenticate(ctx, bearer, "")
	return caller, err
}

func (a *Authenticator) authenticate(ctx context.Context, bearer secret.String, prefetch string) (identity.Caller, *store.Record, error) {
	found, err := a.Bearers.Identify(ctx, bearer, prefetch)
	if err != nil {
		return identity.Caller{}, nil, refuse(err)
	}
	found.Used(ctx)
	return found.Caller, found.Prefetched, nil
}

// Again authenticates the Authorization header of a request that is still being answered. It does not count as a use: a
// key whose end counts from its last use must not live on by it. Errors are those of Bearer. Source: ADR-0007.
func (a *Authenticator) Again(ctx context.Context, header http.Header) (identity.Caller, error) {
	_, token, _ := strings.Cut(header.Get("Authorization"), " ")
	found, err := a.Bearers.Identify(ctx, secret.String(strings.TrimSpace(token)), "")
	if err != nil {
		return identity.Caller{}, refuse(err)
	}
	return found.Caller, nil
}

// refuse returns the answer for an error of Bearers.
func refuse(err error) error {
	switch {
	case errors.Is(err, ErrUnknown):
		return apierror.Unauthorized(textInvalid)
	case errors.Is(err, ErrExpired):
		return apierror.Unauthorized(textExpired)
	case errors.Is(err, ErrDisabled):
		return apierror.Unauthorized(textDisabled)
	case errors.Is(err, store.ErrUnavailable):
		return apierror.Unavailable().Because(err)
	default:
		return fmt.Errorf("authenticating a bearer: %w", err)
	}
}
