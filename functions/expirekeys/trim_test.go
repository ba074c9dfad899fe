package expirekeys_test

import (
	"errors"
	"testing"
	"time"

	"management.platform.sh/shared/store"
)

// A watch may be resumed for a day. Source: ADR-0007.
func TestOldEvents(t *testing.T) {
	w := newWorld(t)
	w.create("a", ttl(0))
	// Events are of the time that they were written at, whatever the world's clock says.
	for _, test := range []struct {
		now  time.Time
		want error
	}{
		{time.Now().Add(23 * time.Hour), nil},
		{time.Now().Add(25 * time.Hour), store.ErrGone},
	} {
		w.now = test.now
		w.run()
		if _, err := w.deps.Keys.Store.Events(t.Context(), store.Beginning, 1, 0); !errors.Is(err, test.want) {
			t.Errorf("at %v: %v, want %v", test.now, err, test.want)
		}
	}
}
