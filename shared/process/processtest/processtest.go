// Package processtest provides the state for tests of shells: a Redis in the test process with the access key of an admin.
// Source: ADR-0010.
package processtest

import (
	"bytes"
	"io"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// Root is the path of access keys.
const Root = frame.BasePath + "/apis/management.platform.sh/v1/ownedaccesskeys"

// Admin is the bearer token of the key "admin".
const Admin = "admin-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"

// World is a state, and an environment that uses it.
type World struct {
	// URL is the URL of the state.
	URL string
	// Env is an environment for the test itself.
	Env *platform.Environment
	t   testing.TB
}

// New starts a state, which ends with the test, and stores the key of an admin in it.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{URL: redistest.Embedded(t), t: t}
	server, err := process.Open(w.Lookup(nil), process.Shell{Log: io.Discard, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	w.Env = server.Env
	w.Key("admin", Admin)
	return w
}

// Lookup returns the lookup of a function's variables for this state. More adds variables and replaces others.
func (w *World) Lookup(more map[string]string) func(string) string {
	return func(name string) string {
		if value, ok := more[name]; ok {
			return value
		}
		switch name {
		case settings.RedisURL:
			return w.URL
		case settings.RedisTimeout:
			// The longest timeout: these tests do not measure a busy machine.
			return "20s"
		case settings.LogLevel:
			// Tests count requests and runs in the log.
			return "debug"
		default:
			return ""
		}
	}
}

// Key stores an access key of an admin.
func (w *World) Key(name, bearer string) {
	w.t.Helper()
	object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Spec = model.OwnedAccessKeySpec{User: "root", Groups: []string{identity.Admins}, Key: bearer}
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	in := resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: object}
	if _, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.Env), in); err != nil {
		w.t.Fatal(err)
	}
}

// Log is a log that can be read while it is written.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
