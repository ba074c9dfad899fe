package accesskey_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
)

// aged returns a key of a type that was created a duration after born.
func aged(created time.Duration, kind string) *model.OwnedAccessKey {
	key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: born.Add(created)}}}
	key.Spec.Type = kind
	return key
}

// A change of a limit: when, and to how many seconds.
type change struct {
	at      time.Duration
	seconds int64
}

// A lowered limit ends no key sooner than a day after the change, and lets no key live longer than without the change.
// Source: ADR-0024.
func TestGrace(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	const hours = 3600
	for _, row := range []struct {
		sentence string
		changes  []change
		created  time.Duration
		end      time.Duration
	}{
		{"a limit that was always there has no grace period", []change{{-1, hours}}, 0, hour},
		{"a key that is older than a limit has a day from the change", []change{{10 * hour, hours}}, 0, 34 * hour},
		{"a key that is made after the change has none", []change{{10 * hour, hours}}, 10 * hour, 11 * hour},
		{"a limit that ends a key later than a day changes nothing more", []change{{10 * hour, 100 * hours}}, 0, 100 * hour},
		{"the limit before it still holds", []change{{-1, 20 * hours}, {10 * hour, hours}}, 0, 20 * hour},
		{"further steps do not prolong the day", []change{{10 * hour, 3 * hours}, {20 * hour, 2 * hours}, {30 * hour, hours}}, 0, 34 * hour},
		{"a higher limit gives back", []change{{10 * hour, hours}, {11 * hour, 50 * hours}}, 0, 50 * hour},
		{"a detour prolongs nothing", []change{{10 * hour, hours}, {11 * hour, 2 * hours}, {12 * hour, hours}}, 0, 34 * hour},
		{"no limit ends nothing", []change{{10 * hour, hours}, {11 * hour, 0}}, 0, never},
		{"a new limit after none has its own day", []change{{10 * hour, hours}, {11 * hour, 0}, {12 * hour, hours}}, 0, 36 * hour},
		{"the same limit again changes nothing", []change{{10 * hour, hours}, {30 * hour, hours}}, 0, 34 * hour},
		{"after the day, the limit counts from the creation", []change{{10 * hour, hours}}, 2 * day, 2*day + hour},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var steps accesskey.Steps
			for _, change := range row.changes {
				if change.at < 0 {
					steps = accesskey.StepsOf(change.seconds)
					continue
				}
				steps = steps.Next(change.seconds, born.Add(change.at))
			}
			last := row.changes[len(row.changes)-1].seconds
			for kind, limits := range map[string]accesskey.Limits{
				model.AccessKeyTypeUser:  {Max: model.Seconds(last), MaxSteps: steps},
				model.AccessKeyTypeLogin: {Login: model.Seconds(last), LoginSteps: steps},
			} {
				if got := accesskey.Expiry(aged(row.created, kind), time.Time{}, limits); !got.Equal(after(row.end)) {
					t.Errorf("a key of type %s ends at %v, want %v", kind, got, after(row.end))
				}
			}
		})
	}
}

// Whatever the changes of a limit: a change does not end a key within a day if the key would live for that day without the
// change, and after that day no key lives longer than the limit alone allows.
func TestGraceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps accesskey.Steps
		now := time.Duration(0)
		end := func(created time.Duration, limit int64) time.Time {
			return accesskey.Expiry(aged(created, model.AccessKeyTypeUser), time.Time{}, accesskey.Limits{Max: model.Seconds(limit), MaxSteps: steps})
		}
		var limit int64
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			now += time.Duration(rapid.Int64Range(0, 40*3600).Draw(t, "pause")) * time.Second
			created := now - time.Duration(rapid.Int64Range(1, 90*3600).Draw(t, "age"))*time.Second
			before := end(created, limit)
			limit = rapid.Int64Range(0, 60*3600).Draw(t, "limit")
			steps = steps.Next(limit, born.Add(now))
			ends := end(created, limit)
			spared := born.Add(now).Add(accesskey.Grace)
			lived := before
			if before.IsZero() || before.After(spared) {
				lived = spared
			}
			switch {
			case limit == 0 && !ends.IsZero():
				t.Fatalf("without a limit the key ends at %v", ends)
			case limit > 0 && ends.IsZero():
				t.Fatal("the limit does not end the key")
			case limit > 0 && ends.Before(lived) && ends.Before(born.Add(created).Add(model.Seconds(limit))):
				t.Fatalf("the change ends the key at %v, which would have lived until %v", ends, before)
			case limit > 0 && ends.After(spared) && ends.After(born.Add(created).Add(model.Seconds(limit))):
				t.Fatalf("the key lives until %v, longer than the limit and the day allow", ends)
			}
			if fresh := end(now, limit); limit > 0 && fresh.After(born.Add(now).Add(model.Seconds(limit))) {
				t.Fatalf("a new key lives until %v", fresh)
			}
		}
	})
}
