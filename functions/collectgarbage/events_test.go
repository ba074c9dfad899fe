package collectgarbage_test

import (
	"errors"
	"testing"
	"time"

	"management.platform.sh/functions/collectgarbage"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// A watch of any resource can be resumed for a day. The events of the configuration stay, because they are its history.
// Source: ADR-0007, ADR-0015.
func TestOldEvents(t *testing.T) {
	t.Parallel()
	client := redistest.Open(t, redistest.Embedded(t))
	var watched []string
	for _, kind := range platform.StoredKinds {
		watched = append(watched, kind.Resource.Resource)
	}
	for _, resource := range append(watched, "configs") {
		if _, err := client.Resource(resource).Create(t.Context(), store.Record{Name: "a", Created: born, Object: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	// Events have the time of their write, whatever the clock of the function says.
	for _, test := range []struct {
		age  time.Duration
		want error
	}{
		{23 * time.Hour, nil},
		{25 * time.Hour, store.ErrGone},
	} {
		env := &platform.Environment{Stores: client.Resource, Now: func() time.Time { return time.Now().Add(test.age) }}
		if _, err := collectgarbage.Do(t.Context(), collectgarbage.Deps{Graph: kinds.Graph(env)}); err != nil {
			t.Fatal(err)
		}
		for _, resource := range watched {
			if _, err := client.Resource(resource).Events(t.Context(), store.Beginning, 1, 0); !errors.Is(err, test.want) {
				t.Errorf("%s after %v: %v, want %v", resource, test.age, err, test.want)
			}
		}
		if _, err := client.Resource("configs").Events(t.Context(), store.Beginning, 1, 0); err != nil {
			t.Errorf("the configuration after %v: %v", test.age, err)
		}
	}
}
