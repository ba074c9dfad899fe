// Package logins has the two forms of a login. Until the person is known, nothing is stored: the attempt is in a sealed cookie of the
// browser. Then the login has a record until its key is issued. No URL, cookie or record has the key. Source: Spec 5.4; ADR-0031.
package logins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/store"
)

// Resource is the name of stored logins in the state. Clients cannot read it.
const Resource = "logins"

// Records returns the state of sign-ins.
func Records(env *platform.Environment) store.Store { return env.Stores(Resource) }

// FailuresResource is the name under which wrong passwords, and codes of devices, are counted in the state. Clients cannot read it.
const FailuresResource = "passwordfailures"

// Failures returns the state of the counts of attempts. Each expires with its latest entry. Source: ADR-0032.
func Failures(env *platform.Environment) store.Store { return env.Stores(FailuresResource) }

// Throttle returns what counts attempts in that state. Text is what a caller reads above a limit.
func Throttle(env *platform.Environment, text string) *throttle.Throttle {
	return &throttle.Throttle{Records: Failures(env), Now: env.Now, Text: text}
}

// Store has the records of logins of an environment. It is safe for concurrent use.
type Store struct {
	// Records is the state of logins.
	Records store.Store
}

// Open returns the records of logins of an environment.
func Open(env *platform.Environment) *Store { return &Store{Records: Records(env)} }

// Update replaces the record of a login, which gets its new revision.
func (s *Store) Update(ctx context.Context, record *store.Record, state Login) error {
	var err error
	if record.Object, err = json.Marshal(state); err != nil {
		return fmt.Errorf("encoding a sign-in: %w", err)
	}
	record.References = state.LogoutNames
	revision, err := s.Records.Update(ctx, *record)
	if err != nil {
		return fmt.Errorf("storing a sign-in: %w", err)
	}
	record.Revision = revision
	return nil
}

// MarkLoggedOut ends a stored login at any stage, and returns it.
func (s *Store) MarkLoggedOut(ctx context.Context, record store.Record) (Login, error) {
	for range MaxTries {
		var login Login
		if err := json.Unmarshal(record.Object, &login); err != nil {
			return login, fmt.Errorf("reading a sign-in: %w", err)
		}
		login.Stage = StageLoggedOut
		err := s.Update(ctx, &record, login)
		if !errors.Is(err, store.ErrConflict) {
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return login, err
		}
		if record, err = s.Records.Get(ctx, record.Name); errors.Is(err, store.ErrNotFound) {
			return login, nil
		} else if err != nil {
			return login, fmt.Errorf("reading a sign-in: %w", err)
		}
	}
	return Login{}, refusal.Busy()
}

// The stages of a stored sign-in.
const (
	StageAuthenticated = "proven"
	StageConsented     = "confirmed"
	StageRedeemed      = "used"
	// StageLoggedOut is a sign-in that its provider has ended. It leads to no key, at whatever stage it was.
	StageLoggedOut = "ended"
)

// The stages of the request of a device.
const (
	StagePending  = "waiting"
	StageApproved = "allowed"
	StageDenied   = "denied"
)

// MaxTries is how often the write of a user is tried while others write the same user.
const MaxTries = 4

// Login is a stored login whose person is known.
type Login struct {
	Stage string `json:"stage"`
	// User, UID and Generation are the name, uid and token generation of the user at the sign-in.
	User            string `json:"user"`
	UID             string `json:"uid"`
	TokenGeneration int64  `json:"generation,omitempty"`
	// Identity is who the user is at the connector.
	Identity    model.AccessKeyIdentity `json:"identity"`
	AuthRequest AuthRequest             `json:"client"`
	// Device is the program that waits, if this is its request.
	Device *Device `json:"device,omitempty"`
	// SealedSession is the Session of the provider, sealed for the user. Empty: there is none.
	SealedSession string `json:"session,omitempty"`
	// LogoutNames are the names by which the provider may end the sign-in.
	LogoutNames []string `json:"logout,omitempty"`
	// CodeExpires is when the code expires, in Unix seconds. 0: there is none yet.
	CodeExpires int64 `json:"ends,omitempty"`
	// SessionEnds is when the session at the connector ends, and with it the key, in Unix seconds. 0: it does not say.
	SessionEnds int64 `json:"sessionEnds,omitempty"`
	// Key is the key that the sign-in gave. Nil: it gave none.
	Key *model.AccessKeyReference `json:"key,omitempty"`
	// SealedProof is a sealed proof, at the stage posted, or the sealed report of a trial, at the stage tried. There is no user then.
	SealedProof string `json:"proof,omitempty"`
}

// RecordName is the name of the record of a login. A state has one record, and so one person.
func RecordName(state string) string { return digest.Sum("state", state) }

// CodeDigest is the digest by which a stored authorization code is found.
func CodeDigest(code string) string { return digest.Sum("code", code) }

// OwnerName is the owner of the sign-ins of a user.
func OwnerName(name string) string { return identity.Owner{Kind: identity.User, Name: name}.String() }

// IsConflict reports whether another request has changed or removed a record first.
func IsConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
}

// Device is the stored device authorization request of a program. Source: RFC 8628.
type Device struct {
	// Host is what the program says that its computer is called. Empty: it says nothing.
	Host string `json:"host,omitempty"`
	// Address is the address from which it asked, and Asked when, in Unix seconds.
	Address     string `json:"address"`
	RequestedAt int64  `json:"asked"`
	// Interval is how many seconds there must be between two of its questions.
	Interval int64 `json:"interval"`
}

// ProofSealContext is what the proof of a state is sealed for.
func ProofSealContext(state string) string { return Resource + "/proof/" + RecordName(state) }
