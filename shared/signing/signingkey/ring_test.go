package signingkey

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/signing/token"
)

var (
	born     = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)
	settings = Settings{Algorithm: token.ES256, RotateEvery: 24 * time.Hour, PublishBefore: time.Hour, MaxTTL: 3 * time.Hour}
)

// states are the keys by order of birth: "a" is the first one that the test saw.
func states(r ring, names map[string]string) string {
	var parts []string
	for _, k := range r {
		if names[k.ID] == "" {
			names[k.ID] = string(rune('a' + len(names)))
		}
		parts = append(parts, names[k.ID]+" "+string(k.State))
	}
	return strings.Join(parts, ", ")
}

// A ring under a test clock, step by step. Each step runs twice, and the second time changes nothing.
func TestAdvance(t *testing.T) {
	t.Parallel()
	faster := settings
	faster.MaxTTL = time.Hour
	other := settings
	other.Algorithm = token.RS256
	type step struct {
		at       time.Duration
		settings Settings
		hurry    bool
		want     string
	}
	for about, steps := range map[string][]step{
		"on time": {
			{0, settings, false, "a active, b next"},
			{24*time.Hour - 1, settings, false, "a active, b next"},
			{24 * time.Hour, settings, false, "a retired, b active, c next"},
			{27*time.Hour + slack - 1, settings, false, "a retired, b active, c next"},
			{27*time.Hour + slack, settings, false, "b active, c next"},
			{48*time.Hour - 1, settings, false, "b active, c next"},
			{48 * time.Hour, settings, false, "b retired, c active, d next"},
		},
		"a month late: the next one was published all the time": {
			{0, settings, false, "a active, b next"},
			{30 * 24 * time.Hour, settings, false, "a retired, b active, c next"},
			{60 * 24 * time.Hour, settings, false, "b retired, c active, d next"},
		},
		"a lower maximum does not shorten earlier tokens": {
			{0, settings, false, "a active, b next"},
			{23 * time.Hour, faster, false, "a active, b next"},
			{24 * time.Hour, faster, false, "a retired, b active, c next"},
			{27*time.Hour + slack - 1, faster, false, "a retired, b active, c next"},
			{27*time.Hour + slack, faster, false, "b active, c next"},
		},
		"in a hurry before the next one was published long enough": {
			{0, settings, false, "a active, b next"},
			{time.Minute, settings, true, "a active, b next"},
			{time.Hour - 1, settings, false, "a active, b next"},
			{time.Hour, settings, false, "a retired, b active, c next"},
			{3 * time.Hour, settings, false, "a retired, b active, c next"},
		},
		"in a hurry": {
			{0, settings, false, "a active, b next"},
			{2 * time.Hour, settings, true, "a retired, b active, c next"},
		},
		"another algorithm": {
			{0, settings, false, "a active, b next"},
			{time.Minute, other, false, "a active, c next"},
			{2 * time.Minute, settings, false, "a active, d next"},
			{3 * time.Minute, other, false, "a active, e next"},
			{2 * time.Hour, other, false, "a retired, e active, f next"},
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			var r ring
			names := map[string]string{}
			for _, s := range steps {
				for range 2 {
					after, err := r.advance(born.Add(s.at), s.settings, s.hurry)
					if err != nil {
						t.Fatal(err)
					}
					if got := states(after, names); got != s.want {
						t.Fatalf("after %s: %s, want %s", s.at, got, s.want)
					}
					r = after
				}
				if again, err := r.advance(born.Add(s.at), s.settings, s.hurry); err != nil || !reflect.DeepEqual(again, r) {
					t.Errorf("after %s: once more is not the same (%v)", s.at, err)
				}
				if _, err := r.set(); err != nil {
					t.Error(err)
				}
				for _, k := range r {
					if signs := k.State == Active || k.State == Next; signs != (len(k.Private) > 0) {
						t.Errorf("after %s: the key %s is %s and has a private half: %v", s.at, names[k.ID], k.State, !signs)
					}
				}
			}
		})
	}
}

func TestTaint(t *testing.T) {
	t.Parallel()
	advance := func(r ring, at time.Duration) ring {
		t.Helper()
		after, err := r.advance(born.Add(at), settings, false)
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	young := advance(nil, 0)
	changed := advance(young, 24*time.Hour)
	for about, row := range map[string]struct {
		ring ring
		of   State
		want string
	}{
		"the active one": {young, Active, "a tainted, b active, c next"},
		"the active one of an earlier build, which has no next one": {young[:1], Active, "a tainted, b active, c next"},
		"the next one":  {young, Next, "a active, b tainted, c next"},
		"a retired one": {changed, Retired, "a tainted, b active, c next"},
	} {
		names := map[string]string{}
		states(row.ring, names)
		id := row.ring.firstIn(row.of).ID
		instant := row.ring[len(row.ring)-1].Since
		got, ok, err := row.ring.taint(id, instant, settings)
		if err != nil || !ok || states(got, names) != row.want {
			t.Errorf("%s: %s, %v, %v, want %s", about, states(got, names), ok, err, row.want)
			continue
		}
		set, err := got.set()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range set.Public.Keys {
			if key.ID == id {
				t.Errorf("%s: it is still published", about)
			}
		}
		if k := got.firstIn(Tainted); len(k.Private)+len(k.Public) > 0 {
			t.Errorf("%s: its halves are still there", about)
		}
		if again, ok, err := got.taint(id, instant, settings); err != nil || !ok || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: once more is not the same (%v)", about, err)
		}
		if row.ring.firstIn(row.of).ID != id {
			t.Errorf("%s: the ring before was changed", about)
		}
	}
	// After two of them an hour apart, the active key was published before it signed.
	twice, _, err := young.taint(young[0].ID, born.Add(time.Hour), settings)
	if err == nil {
		twice, _, err = twice.taint(young[1].ID, born.Add(2*time.Hour), settings)
	}
	if names := map[string]string{}; err != nil || states(twice, names) != "a tainted, b tainted, c active, d next" {
		t.Errorf("two in a row: %s, %v", states(twice, names), err)
	}
	if _, ok, err := young.taint("nobody", born, settings); ok || err != nil {
		t.Errorf("an unknown one: %v, %v", ok, err)
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{token.ES256, token.RS256} {
		made, err := generate(algorithm)
		if err != nil || made.Algorithm != algorithm || len(made.ID) != 43 {
			t.Errorf("%s: %+v, %v", algorithm, made.Key, err)
		}
	}
	if _, err := generate("HS256"); err == nil {
		t.Error("made a key for HS256")
	}
	if _, err := (ring{}).set(); err == nil {
		t.Error("an empty ring signs")
	}
	broken, err := ring(nil).advance(born, settings, false)
	if err != nil {
		t.Fatal(err)
	}
	broken[0].Private = broken[0].Private[:10]
	if _, err := broken.set(); err == nil || strings.Contains(err.Error(), string(broken[0].Private)) {
		t.Errorf("half a key signs: %v", err)
	}
}
