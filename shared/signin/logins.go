// Package signin signs people in: it sends them to the connector that they choose, learns from it who they are, finds or makes their
// user, and gives an access key of the type Login to the program that asked. Before a connector has said who somebody is, nothing
// is stored: the attempt is in a sealed cookie of the browser. The key is made when the program fetches it, so that no URL, cookie
// or record has it. Source: Spec 5.4; ADR-0031.
//
// The package knows no HTTP and no protocol of a connector: the frame serves it, and package connectors has the Provider of each kind.
package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Resource is the name under which sign-ins are stored in the state. Clients cannot read it.
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

// LoginStore has the records of logins of an environment. It is safe for concurrent use.
type LoginStore struct {
	// Records is the state of logins.
	Records store.Store
}

// OpenLogins returns the records of logins of an environment.
func OpenLogins(env *platform.Environment) *LoginStore { return &LoginStore{Records: Records(env)} }

// writeLogin replaces the record of a sign-in, which gets its new revision.
func (s *LoginStore) writeLogin(ctx context.Context, record *store.Record, state storedLogin) error {
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

// markLoggedOut ends a sign-in that is stored, at whatever stage it is, and returns it.
func (s *LoginStore) markLoggedOut(ctx context.Context, record store.Record) (storedLogin, error) {
	for range maxTries {
		var login storedLogin
		if err := json.Unmarshal(record.Object, &login); err != nil {
			return login, fmt.Errorf("reading a sign-in: %w", err)
		}
		login.Stage = stageLoggedOut
		err := s.writeLogin(ctx, &record, login)
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
	return storedLogin{}, busy()
}

// The stages of a stored sign-in.
const (
	stageAuthenticated = "proven"
	stageConsented     = "confirmed"
	stageRedeemed      = "used"
	// stageLoggedOut is a sign-in that its provider has ended. It leads to no key, at whatever stage it was.
	stageLoggedOut = "ended"
)

// The stages of the request of a device.
const (
	stagePending  = "waiting"
	stageApproved = "allowed"
	stageDenied   = "denied"
)

// maxTries is how often the write of a user is tried while others write the same user.
const maxTries = 4

// storedLogin is a sign-in whose person is known, as it is stored.
type storedLogin struct {
	Stage string `json:"stage"`
	// User, UID and Generation are those of the user at the sign-in.
	User            string `json:"user"`
	UID             string `json:"uid"`
	TokenGeneration int64  `json:"generation,omitempty"`
	// Identity is who the user is at the connector.
	Identity    model.AccessKeyIdentity `json:"identity"`
	AuthRequest authRequest             `json:"client"`
	// Device is the program that waits, if this is its request.
	Device *deviceRecord `json:"device,omitempty"`
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

// loginRecordName is the name of the record of a sign-in: a state has one record, and so one person.
func loginRecordName(state string) string { return Digest("state", state) }

// codeDigest is the digest by which the state finds a code.
func codeDigest(code string) string { return Digest("code", code) }

// ownerOf is the owner of the sign-ins of a user.
func ownerOf(name string) string { return identity.Owner{Kind: identity.User, Name: name}.String() }

// isConflict tells that another request was faster.
func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
}

// deviceRecord is what is stored of a program that waits for somebody to enter its code. Source: RFC 8628.
type deviceRecord struct {
	// Host is what the program says that its computer is called. Empty: it says nothing.
	Host string `json:"host,omitempty"`
	// Address is the address from which it asked, and Asked when, in Unix seconds.
	Address     string `json:"address"`
	RequestedAt int64  `json:"asked"`
	// Interval is how many seconds there must be between two of its questions.
	Interval int64 `json:"interval"`
}

// proofSealContext is what the proof of a state is sealed for.
func proofSealContext(state string) string { return Resource + "/proof/" + loginRecordName(state) }
