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

// The texts of a 401. Only callers that have the key learn why it does not work: that it is expired or disabled, or
// that it ended with its owner or with another key, which is not named. Source: ADR-0005, ADR-0029.
const (
	textNone     = "no bearer token"
	textInvalid  = "invalid bearer token"
	textExpired  = "access key expired"
	textDisabled = "access key disabled"
	textBound    = "a key that this access key was made with no longer works"

	textOwnerDisabled = "the owner of this access key is disabled"
	textOwnerGone     = "the owner of this access key no longer exists"
	textSignedOut     = "the owner of this access key has signed out everywhere"

	textRule = "the trust rule that made this access key no longer permits it"
)

// The reasons for which Bearers refuses a bearer.
var (
	// ErrUnknown means that the bearer does not exist, or is refused for a reason without an error of its own.
	ErrUnknown = errors.New("the bearer is unknown")
	// ErrExpired means that the lifetime of the bearer has ended.
	ErrExpired = errors.New("the bearer is expired")
	// ErrDisabled means that its owner has disabled the bearer.
	ErrDisabled = errors.New("the bearer is disabled")
	// ErrBound means that the bearer is bound to another one, which no longer works. Source: ADR-0021.
	ErrBound = errors.New("the bearer is bound to one that has ended")
	// ErrOwnerDisabled means that the user or team of the bearer is disabled. Source: ADR-0029.
	ErrOwnerDisabled = errors.New("the owner of the bearer is disabled")
	// ErrOwnerGone means that the user or team of the bearer no longer exists. Source: ADR-0029.
	ErrOwnerGone = errors.New("the owner of the bearer is gone")
	// ErrSignedOut means that the user of the bearer has ended all credentials. Source: ADR-0029.
	ErrSignedOut = errors.New("the owner of the bearer has signed out")
	// ErrRule means that the trust rule that made the bearer is gone or disabled, or names another owner. Source:
	// ADR-0036.
	ErrRule = errors.New("the trust rule of the bearer no longer permits it")
)

// Bearers identifies bearers. Package accesskey implements it for access keys. Implementations are safe for concurrent use.
type Bearers interface {
	// Identify returns the caller of a bearer. It refuses a malformed bearer without a request to the state.
	// Ahead is an object to read in the same round trip if possible; the zero value: none.
	//
	// Errors: ErrUnknown, ErrExpired, ErrDisabled, ErrBound, ErrOwnerDisabled, ErrOwnerGone, ErrSignedOut and ErrRule; store.ErrUnavailable if the state cannot be reached; other errors
	// if a stored record cannot be read.
	Identify(ctx context.Context, bearer secret.String, ahead store.Ref) (Identified, error)
}

// Identified is the result for a valid bearer.
type Identified struct {
	// Caller is the caller of the bearer.
	Caller identity.Caller
	// Prefetched are the records of the resource of ahead that were read together with the record of the bearer, by
	// name: the object of ahead, and for an access key the records of its lineage. A missing record was not read or
	// does not exist.
	Prefetched map[string]store.Record
	// Used records that the bearer is used. It logs its errors.
	Used func(context.Context)
}

// Authenticator turns bearers into callers. It is safe for concurrent use.
type Authenticator struct {
	Bearers Bearers
}

// Header authenticates the Authorization header of a request. The case of the scheme does not matter. Ahead is passed
// to Bearers.Identify, and the returned records are the prefetched ones. It returns the errors of Bearer.
func (a *Authenticator) Header(ctx context.Context, header http.Header, ahead store.Ref) (identity.Caller, map[string]store.Record, error) {
	scheme, token, ok := strings.Cut(header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return identity.Caller{}, nil, apierror.Unauthorized(textNone)
	}
	return a.authenticate(ctx, secret.String(strings.TrimSpace(token)), ahead)
}

// Bearer authenticates a bearer, which counts as a use of it.
//
// Errors: Unauthorized for a bearer that is unknown, expired, disabled or ended with another; ServiceUnavailable if the state cannot be
// reached, because a bearer that cannot be checked is refused. Source: Spec 5.1, 5.2; ADR-0005.
func (a *Authenticator) Bearer(ctx context.Context, bearer secret.String) (identity.Caller, error) {
	caller, _, err := a.authenticate(ctx, bearer, store.Ref{})
	return caller, err
}

func (a *Authenticator) authenticate(ctx context.Context, bearer secret.String, ahead store.Ref) (identity.Caller, map[string]store.Record, error) {
	found, err := a.Bearers.Identify(ctx, bearer, ahead)
	if err != nil {
		return identity.Caller{}, nil, refuse(err)
	}
	found.Used(ctx)
	return found.Caller, found.Prefetched, nil
}

// Reauthenticate authenticates the Authorization header of a request that is still being answered. It does not count as a use,
// so that a key that expires some time after its last use is not kept alive. It returns the errors of Bearer. Source:
// ADR-0007.
func (a *Authenticator) Reauthenticate(ctx context.Context, header http.Header) (identity.Caller, error) {
	_, token, _ := strings.Cut(header.Get("Authorization"), " ")
	return a.Inspect(ctx, secret.String(strings.TrimSpace(token)))
}

// Inspect returns the caller of a bearer that somebody else asks about. It does not count as a use: the last activity of a key
// that was found still says when it was last used. It returns the errors of Bearer.
func (a *Authenticator) Inspect(ctx context.Context, bearer secret.String) (identity.Caller, error) {
	found, err := a.Bearers.Identify(ctx, bearer, store.Ref{})
	if err != nil {
		return identity.Caller{}, refuse(err)
	}
	return found.Caller, nil
}

// refusals are the errors of Bearers that say that a bearer does not work, with their texts for the client.
var refusals = []struct {
	err  error
	text string
}{
	{ErrUnknown, textInvalid}, {ErrExpired, textExpired}, {ErrDisabled, textDisabled}, {ErrBound, textBound}, {ErrOwnerDisabled, textOwnerDisabled},
	{ErrOwnerGone, textOwnerGone}, {ErrSignedOut, textSignedOut}, {ErrRule, textRule},
}

// IsRefused reports whether an error of Bearers says that a bearer does not work.
func IsRefused(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			return true
		}
	}
	return false
}

// refuse returns the API error for an error of Bearers.
func refuse(err error) error {
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			return apierror.Unauthorized(refusal.text)
		}
	}
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return fmt.Errorf("authenticating a bearer: %w", err)
}
