package opensession

import (
	"testing"
	"time"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
)

// A session lasts as long as its key. Source: ADR-0030.
func TestDo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deps := open(&platform.Environment{Now: func() time.Time { return now }})
	for _, row := range []struct {
		about    string
		bearer   secret.String
		end      time.Time
		lifetime time.Duration
	}{
		{"a key without an end", "b", time.Time{}, 0},
		{"a key that ends in an hour", "b", now.Add(time.Hour), time.Hour},
		{"a key that has ended since it was accepted", "b", now.Add(-time.Minute), time.Second},
		{"the end of a session", "", time.Time{}, 0},
	} {
		got, err := Do(t.Context(), deps, Input{Bearer: row.bearer, Caller: identity.Caller{KeyExpires: row.end}})
		if err != nil || got != (Output{Bearer: row.bearer, Lifetime: row.lifetime}) {
			t.Errorf("%s: %v, %v", row.about, got.Lifetime, err)
		}
	}
}
