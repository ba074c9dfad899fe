// Package issuertest has what the tests of tokens share: an environment over an empty state with a clock that the test sets, and
// callers with keys of their own.
package issuertest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// Born is the time at which the clock of a world starts.
var Born = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// URL is the issuer of a world, and Bearer begins the bearer text of every key; the name of the key follows.
const (
	URL    = "https://platform.example/kubernetes/management"
	Bearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789" //nolint:gosec // no key of anybody
)

// Root is an admin without an access key.
var Root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// World is an environment whose clock the test sets.
type World struct {
	Env *platform.Environment
	t   testing.TB

	mu  sync.Mutex
	now time.Time
}

// New returns a world over an empty state. Its time limit is long enough for a busy machine.
func New(t testing.TB) *World {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{t: t, now: Born}
	config := &model.ConfigStatus{}
	w.Env = &platform.Environment{
		Stores: client.Resource, Now: w.Now, Random: rand.Reader,
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
		Log:        slog.New(slog.DiscardHandler),
		Config:     func() *model.ConfigStatus { return config },
		Version:    "test",
		Tokens:     settings.Tokens{Issuer: URL},
	}
	return w
}

// Now returns the time of the clock.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Pass moves the clock forward.
func (w *World) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Key stores an access key of a user and returns the caller that the key authenticates.
func (w *World) Key(name, user string, spec model.OwnedAccessKeySpec) identity.Caller {
	w.t.Helper()
	spec.User, spec.Key = user, Bearer+name
	in := resource.CreateInput[*model.OwnedAccessKey]{Caller: Root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}}
	if _, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.Env), in); err != nil {
		w.t.Fatal(err)
	}
	return w.Caller(name)
}

// User stores a user.
func (w *World) User(name string, groups ...string) {
	w.t.Helper()
	object := &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.UserSpec{Groups: groups}}
	if _, err := resource.Create(w.t.Context(), kinds.Users(w.Env), resource.CreateInput[*model.User]{Caller: Root, Object: object}); err != nil {
		w.t.Fatal(err)
	}
}

// Team stores a team.
func (w *World) Team(name string, users ...string) {
	w.t.Helper()
	object := &model.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.TeamSpec{Users: users}}
	if _, err := resource.Create(w.t.Context(), kinds.Teams(w.Env), resource.CreateInput[*model.Team]{Caller: Root, Object: object}); err != nil {
		w.t.Fatal(err)
	}
}

// Caller returns the caller that the key with a name authenticates.
func (w *World) Caller(name string) identity.Caller {
	w.t.Helper()
	caller, err := accesskey.OpenAuthenticator(w.Env).Bearer(w.t.Context(), secret.String(Bearer+name))
	if err != nil {
		w.t.Fatal(err)
	}
	return caller
}

// Change changes the access key with a name.
func (w *World) Change(name string, change func(*model.OwnedAccessKeySpec)) {
	w.t.Helper()
	key, err := resource.Get(w.t.Context(), kinds.AccessKeys(w.Env), resource.GetInput{Caller: Root, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	change(&key.Spec)
	if _, err := resource.Update(w.t.Context(), kinds.AccessKeys(w.Env), resource.UpdateInput[*model.OwnedAccessKey]{Caller: Root, Name: name, Object: key}); err != nil {
		w.t.Fatal(err)
	}
}

// Issue issues a token to a caller and returns its record, and the token in it.
func (w *World) Issue(caller identity.Caller, spec model.DirectClusterEndpointTokenSpec) *model.DirectClusterEndpointToken {
	w.t.Helper()
	written, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(w.t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{Spec: spec}})
	if err != nil {
		w.t.Fatal(err)
	}
	return written.Object
}

// Records returns the names of the stored records.
func (w *World) Records() []string {
	w.t.Helper()
	list, err := resource.List(w.t.Context(), kinds.IssuedTokens(w.Env).Registry, resource.ListInput{Caller: Root})
	if err != nil {
		w.t.Fatal(err)
	}
	names := []string{}
	for _, item := range list.(*model.DirectClusterEndpointTokenList).Items {
		names = append(names, item.Name)
	}
	return names
}

// Revoked reports whether a token is no longer accepted.
func (w *World) Revoked(id string) bool {
	w.t.Helper()
	revoked, _, err := kinds.IssuedTokens(w.Env).Revoked(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return revoked
}

// Denied returns the ids on the list of revoked tokens.
func (w *World) Denied() []string {
	w.t.Helper()
	denied, err := kinds.IssuedTokens(w.Env).Denied(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, one := range denied {
		ids = append(ids, one.ID)
	}
	return ids
}

// Sweep does what the schedule does.
func (w *World) Sweep() issuedtoken.Swept {
	w.t.Helper()
	done, err := kinds.IssuedTokens(w.Env).Sweep(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}
