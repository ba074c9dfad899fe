package accesskey_test

import (
	"errors"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
)

// never means no end.
const never = time.Duration(-1)

// after returns the time that is a duration after born, and the zero time for never.
func after(d time.Duration) time.Time {
	if d == never {
		return time.Time{}
	}
	return born.Add(d)
}

func TestExpiry(t *testing.T) {
	const (
		s       = time.Second
		longest = math.MaxInt64 / s * s
	)
	for _, row := range []struct {
		section  string
		sentence string
		spec     string
		activity time.Duration
		limit    time.Duration
		own, end time.Duration
	}{
		{"Spec 2.5", "without a ttl a key does not end", `{}`, never, 0, never, never},
		{"Spec 2.5", "the ttl counts from creation", `{ttl: 60}`, never, 0, 60 * s, 60 * s},
		{"Spec 2.5", "a use does not move the end", `{ttl: 60}`, 30 * s, 0, 60 * s, 60 * s},
		{"Spec 2.5", "with ttlAfterLastActivity it counts from the last activity", `{ttl: 60, ttlAfterLastActivity: true}`, 30 * s, 0, 90 * s, 90 * s},
		{"Spec 2.5", "before the first activity it counts from creation", `{ttl: 60, ttlAfterLastActivity: true}`, never, 0, 60 * s, 60 * s},
		{"ADR-0005", "an activity before creation does not shorten it", `{ttl: 60, ttlAfterLastActivity: true}`, -30 * s, 0, 60 * s, 60 * s},
		{"Spec 2.5", "ttlAfterLastActivity without ttl has no effect", `{ttlAfterLastActivity: true}`, 30 * s, 0, never, never},
		{"Spec 5.2", "the cap ends a key without ttl", `{}`, never, 100 * s, never, 100 * s},
		{"Spec 5.2", "a cap above the ttl changes nothing", `{ttl: 60}`, never, 100 * s, 60 * s, 60 * s},
		{"Spec 5.2", "a cap below the ttl ends the key", `{ttl: 60}`, never, 10 * s, 60 * s, 10 * s},
		{"Spec 5.2", "a cap equal to the ttl changes nothing", `{ttl: 60}`, never, 60 * s, 60 * s, 60 * s},
		{"ADR-0005", "the cap counts from creation, whatever the activity", `{ttl: 60, ttlAfterLastActivity: true}`, 90 * s, 100 * s, 150 * s, 100 * s},
		{"ADR-0005", "a use within the cap moves the end", `{ttl: 60, ttlAfterLastActivity: true}`, 30 * s, 100 * s, 90 * s, 90 * s},
		{"Spec 8", "a cap of 0 means no cap", `{ttl: 60}`, never, 0, 60 * s, 60 * s},
		{"Spec 2.5", "the longest ttl does not overflow", `{ttl: 9223372036854775807}`, never, 0, longest, longest},
		{"Spec 5.2", "the longest ttl is capped", `{ttl: 9223372036854775807}`, never, 100 * s, longest, 100 * s},
		{"Spec 2.5", "a stored negative ttl means no ttl", `{ttl: -1}`, never, 0, never, never},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			k := key(t, row.spec)
			if got := accesskey.OwnExpiry(k, after(row.activity)); !got.Equal(after(row.own)) {
				t.Errorf("%s: own end is %v, want %v", row.section, got, after(row.own))
			}
			if got := accesskey.Expiry(k, after(row.activity), accesskey.Limits{Max: row.limit}); !got.Equal(after(row.end)) {
				t.Errorf("%s: end is %v, want %v", row.section, got, after(row.end))
			}
		})
	}
}

// Login keys have a limit of their own, in addition to the limit of all keys. Source: Spec 2.7, 5.2.
func TestLoginExpiry(t *testing.T) {
	for _, row := range []struct {
		sentence   string
		spec       string
		max, login time.Duration
		end        time.Duration
	}{
		{"a login key ends by it", `{type: Login}`, 0, time.Minute, time.Minute},
		{"0 disables it", `{type: Login}`, 0, 0, never},
		{"a lower cap holds", `{type: Login}`, time.Second, time.Minute, time.Second},
		{"a higher cap does not", `{type: Login}`, time.Hour, time.Minute, time.Minute},
		{"the cap alone", `{type: Login}`, time.Hour, 0, time.Hour},
		{"its own ttl is lower", `{type: Login, ttl: 1}`, 0, time.Minute, time.Second},
		{"other keys do not end by it", `{type: User}`, 0, time.Minute, never},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			limits := accesskey.Limits{Max: row.max, Login: row.login}
			if got := accesskey.Expiry(key(t, row.spec), time.Time{}, limits); !got.Equal(after(row.end)) {
				t.Errorf("end is %v, want %v", got, after(row.end))
			}
		})
	}
}

func TestExpired(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		end, now time.Duration
		want     bool
	}{
		{"Spec 2.5", "before the end a key lives", time.Minute, time.Minute - time.Nanosecond, false},
		{"ADR-0005", "from the instant of the end it is refused", time.Minute, time.Minute, true},
		{"Spec 2.5", "after the end it is refused", time.Minute, time.Hour, true},
		{"Spec 2.5", "without an end it lives", never, 1 << 60, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := accesskey.Expired(after(row.end), after(row.now)); got != row.want {
				t.Errorf("%s: expired is %v", row.section, got)
			}
		})
	}
}

// The time until which credentials issued with a key are valid. The field deleted is the end of the grace period.
func TestUsable(t *testing.T) {
	for _, row := range []struct {
		section, sentence  string
		spec               string
		deleted, now, want time.Duration
		err                error
	}{
		{"Spec 2.5", "without an end for ever", `{}`, never, time.Hour, never, nil},
		{"Spec 2.5", "until its own end", `{ttl: 60}`, never, 0, time.Minute, nil},
		{"Spec 2.5", "and not from then on", `{ttl: 60}`, never, time.Minute, time.Minute, accesskey.ErrExpired},
		{"Spec 2.2", "until the end of the grace period", `{}`, time.Minute, 0, time.Minute, nil},
		{"Spec 2.2", "until the end of the grace period, before its own", `{ttl: 120}`, time.Minute, 0, time.Minute, nil},
		{"Spec 2.2", "until its own, before that of the grace period", `{ttl: 60}`, 2 * time.Minute, 0, time.Minute, nil},
		{"Spec 2.2", "not from the end of the grace period on", `{}`, time.Minute, time.Minute, never, accesskey.ErrDeleted},
		{"Spec 3", "not while it is disabled", `{disabled: true}`, never, 0, never, accesskey.ErrDisabled},
		{"Spec 3", "nor in its grace period", `{disabled: true}`, time.Minute, 0, time.Minute, accesskey.ErrDisabled},
		{"ADR-0005", "expiry is reported before disabled", `{ttl: 60, disabled: true}`, never, time.Hour, time.Minute, accesskey.ErrExpired},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			k := key(t, row.spec)
			k.CreationTimestamp = metav1.Time{Time: born}
			if row.deleted != never {
				k.DeletionTimestamp = &metav1.Time{Time: after(row.deleted)}
			}
			until, err := accesskey.Usable(k, time.Time{}, accesskey.Limits{}, after(row.now))
			if !until.Equal(after(row.want)) || !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
				t.Errorf("%s: until %v, %v", row.section, until, err)
			}
		})
	}
}

func TestActivityDue(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		section  string
		sentence string
		spec     string
		activity time.Duration
		now      time.Duration
		want     bool
	}{
		{"Spec 2.5", "the first use is recorded", `{}`, never, 0, true},
		{"ADR-0005", "at most once a minute", `{}`, 0, time.Minute - 1, false},
		{"ADR-0005", "after a minute", `{}`, 0, time.Minute, true},
		{"ADR-0005", "a use before the last one is not recorded", `{}`, time.Hour, 0, false},
		{"ADR-0005", "a short sliding ttl: once in a tenth of it", `{ttl: 30, ttlAfterLastActivity: true}`, 0, 3000*ms - 1, false},
		{"ADR-0005", "a short sliding ttl: after a tenth of it", `{ttl: 30, ttlAfterLastActivity: true}`, 0, 3000 * ms, true},
		{"ADR-0005", "a long sliding ttl: at most once a minute", `{ttl: 86400, ttlAfterLastActivity: true}`, 0, time.Minute - 1, false},
		{"ADR-0005", "the shortest sliding ttl", `{ttl: 1, ttlAfterLastActivity: true}`, 0, 100 * ms, true},
		{"ADR-0005", "the longest sliding ttl", `{ttl: 9223372036854775807, ttlAfterLastActivity: true}`, 0, time.Minute, true},
		{"ADR-0005", "a ttl that counts from creation does not matter", `{ttl: 30}`, 0, 3000 * ms, false},
		{"ADR-0005", "sliding without ttl does not matter", `{ttlAfterLastActivity: true}`, 0, 3000 * ms, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := accesskey.ActivityDue(key(t, row.spec), after(row.activity), after(row.now)); got != row.want {
				t.Errorf("%s: due is %v", row.section, got)
			}
		})
	}
}

// Properties of the end of every key. Source: Spec 2.5, 5.2; ADR-0005.
func TestExpiryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: born}}}
		k.Spec.TTLSeconds = rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "ttl")
		k.Spec.TTLAfterLastActivity = rapid.Bool().Draw(t, "sliding")
		limit := time.Duration(rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64/int64(time.Second))).
			Draw(t, "limit")) * time.Second
		var activity time.Time
		if rapid.Bool().Draw(t, "used") {
			activity = born.Add(time.Duration(rapid.Int64Range(0, 200).Draw(t, "activity")) * time.Second)
		}
		end := accesskey.Expiry(k, activity, accesskey.Limits{Max: limit})
		switch {
		case end.IsZero() != (k.Spec.TTLSeconds == 0 && limit == 0):
			t.Fatalf("the end is %v", end)
		case end.IsZero():
			return
		case limit > 0 && end.After(born.Add(limit)):
			t.Fatalf("the end %v is after the cap", end)
		case end.Before(born):
			t.Fatalf("the end %v is before the creation", end)
		}
		if lower := limit / 2; lower > 0 && accesskey.Expiry(k, activity, accesskey.Limits{Max: lower}).After(end) {
			t.Fatalf("a lower cap makes the key live longer")
		}
		if later := activity.Add(time.Minute); !activity.IsZero() && accesskey.Expiry(k, later, accesskey.Limits{Max: limit}).Before(end) {
			t.Fatalf("a later use makes the key end earlier")
		}
	})
}
