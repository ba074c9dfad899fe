package auth_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// born is when the tests begin.
var born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// world is an authenticator with real state, and with a clock and a cap that tests change.
type world struct {
	*auth.Authenticator
	client *redisstore.Client
	keys   *accesskey.Registry
	now    time.Time
	limit  time.Duration
	log    bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	w := &world{client: client, now: born}
	clock, limit := func() time.Time { return w.now }, func() accesskey.Limits { return accesskey.Limits{Max: w.limit} }
	state := client.Resource(accesskey.Definition.Resource.Resource)
	w.keys = accesskey.NewRegistry(state, clock, rand.NewChaCha8([32]byte{3}), limit)
	w.Authenticator = &auth.Authenticator{Bearers: &accesskey.Bearers{
		Keys: w.keys, Now: clock, Limits: limit, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}}
	return w
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// create makes a key and returns its name and bearer text.
func (w *world) create(t fataler, spec model.OwnedAccessKeySpec, finalizers ...string) (string, secret.String) {
	t.Helper()
	created, err := resource.Create(context.Background(), w.keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: admin, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}, Spec: spec},
	})
	if err != nil {
		t.Fatalf("creating a key: %v", err)
	}
	return created.Object.Name, secret.String(created.Object.Spec.Key)
}

func (w *world) patch(t fataler, name, patch string) {
	t.Helper()
	if _, err := resource.Patch(context.Background(), w.keys, resource.PatchInput{
		Caller: admin, Name: name, Type: resource.MergePatch, Patch: []byte(patch),
	}); err != nil {
		t.Fatalf("patching %s: %v", name, err)
	}
}

func (w *world) remove(t fataler, name string) {
	t.Helper()
	if _, err := resource.Delete(context.Background(), w.keys, resource.DeleteInput{Caller: admin, Name: name}); err != nil {
		t.Fatalf("removing %s: %v", name, err)
	}
}

func (w *world) record(t fataler, name string) store.Record {
	t.Helper()
	record, err := w.keys.Store.Get(context.Background(), name)
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return record
}

// setTime sets the clock to a time after born.
func (w *world) setTime(d time.Duration) { w.now = born.Add(d) }

func (w *world) use(bearer secret.String) error {
	_, err := w.Bearer(context.Background(), bearer)
	return err
}

func code(err error) int32 {
	if err == nil {
		return http.StatusOK
	}
	return apierror.From(err).Status().Code
}

// silent is a store that must not be used: every other method panics.
type silent struct {
	store.Store
	t *testing.T
}

func (s silent) GetWith(context.Context, string, []string, ...store.Ref) (store.Record, store.Companions, error) {
	s.t.Error("the store was asked")
	return store.Record{}, store.Companions{}, store.ErrNotFound
}

// A text that cannot be a key is refused without a request to the state. Source: ADR-0005.
func TestMalformedNeverReachesTheStore(t *testing.T) {
	a := &auth.Authenticator{Bearers: &accesskey.Bearers{
		Keys: &accesskey.Registry{Store: silent{t: t}}, Now: func() time.Time { return born },
		Limits: func() accesskey.Limits { return accesskey.Limits{} }, Log: slog.New(slog.DiscardHandler),
	}}
	good, err := accesskey.NewBearer(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	header := func(value string) error {
		_, _, err := a.Header(context.Background(), http.Header{"Authorization": {value}}, store.Ref{})
		return err
	}
	mistyped := []byte(good.Reveal())
	mistyped[20] ^= 1
	for what, err := range map[string]error{
		"no header":             func() error { _, _, err := a.Header(context.Background(), http.Header{}, store.Ref{}); return err }(),
		"an empty header":       header(""),
		"the scheme alone":      header("Bearer"),
		"no token":              header("Bearer "),
		"only blanks":           header("Bearer    "),
		"another scheme":        header("Basic " + good.Reveal()),
		"a scheme that is ours": header("Bearers " + good.Reveal()),
		"no scheme":             header(good.Reveal()),
		"two tokens":            header("Bearer " + good.Reveal() + " " + good.Reveal()),
		"a mistyped key":        header("Bearer " + string(mistyped)),
		"a short key":           header("Bearer " + strings.Repeat("x", 31)),
		"a long key":            header("Bearer " + strings.Repeat("x", 257)),
		"a huge key":            header("Bearer " + strings.Repeat("x", 1<<20)),
		"a key of odd bytes":    header("Bearer " + strings.Repeat("\xff", 40)),
		"a JSON web token":      header("Bearer pak_.eyJhbGciOiJFUzI1NiJ9.e30.c2ln"),
		"a comma":               header("Bearer," + good.Reveal()),
	} {
		status := apierror.From(err).Status()
		if err == nil || status.Code != http.StatusUnauthorized || status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%s: %d %s", what, status.Code, status.Reason)
		}
		if err != nil && strings.Contains(err.Error(), good.Reveal()) {
			t.Errorf("%s: the error quotes the key", what)
		}
	}
}

// Source: Spec 5.1.
func TestHeader(t *testing.T) {
	w := newWorld(t)
	_, bearer := w.create(t, model.OwnedAccessKeySpec{User: "alice"})
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer   "} {
		for _, end := range []string{"", " "} {
			caller, _, err := w.Header(context.Background(), http.Header{"Authorization": {scheme + bearer.Reveal() + end}}, store.Ref{})
			if err != nil || caller.Owner.Name != "alice" {
				t.Errorf("scheme %q: %v, %v", scheme, caller.Owner, err)
			}
		}
	}
}

// The caller is the one that the key describes. Source: Spec 2.3, 2.5, 5.2; ADR-0005.
func TestCaller(t *testing.T) {
	w := newWorld(t)
	scope := &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}
	name, bearer := w.create(t, model.OwnedAccessKeySpec{Team: "dev", Groups: []string{"ops"}, Scope: scope, Type: "Other", TTLSeconds: 60})
	w.limit = 40 * time.Second
	caller, err := w.Bearer(context.Background(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	if caller.Owner != (identity.Owner{Kind: identity.Team, Name: "dev"}) || !caller.InGroup("ops") || !caller.InGroup("platform:team:dev") ||
		!caller.InGroup("platform:authenticated") || !caller.InGroup("system:authenticated") || caller.Admin() {
		t.Errorf("the caller is %v in %q", caller.Owner, caller.Groups)
	}
	if caller.Scope == nil || len(caller.Scope.Projects) != 1 || caller.Scope.Projects[0].Project != "a" {
		t.Errorf("the scope is %v", caller.Scope)
	}
	if caller.Key != name || caller.KeyUID == "" || caller.KeyType != "Other" || !caller.KeyExpires.Equal(born.Add(40*time.Second)) {
		t.Errorf("the key is %q %q %q %v", caller.Key, caller.KeyUID, caller.KeyType, caller.KeyExpires)
	}
}

// Each row is a story of one key: what happens to it, and then one request. Source: Spec 3, 5.2; ADR-0005.
func TestBearer(t *testing.T) {
	const (
		ok      = http.StatusOK
		refused = http.StatusUnauthorized
	)
	hour := model.OwnedAccessKeySpec{User: "a", TTLSeconds: 3600}
	for _, row := range []struct {
		section  string
		sentence string
		spec     model.OwnedAccessKeySpec
		happens  func(t *testing.T, w *world, name string)
		want     int32
	}{
		{"Spec 5.1", "a key authenticates", hour, nil, ok},
		{"Spec 5.2", "before its end it does", hour, func(_ *testing.T, w *world, _ string) { w.setTime(time.Hour - 1) }, ok},
		{"ADR-0005", "from the instant of its end it does not, swept or not", hour, func(_ *testing.T, w *world, _ string) { w.setTime(time.Hour) }, refused},
		{"Spec 5.2", "after its end it does not", hour, func(_ *testing.T, w *world, _ string) { w.setTime(1000 * time.Hour) }, refused},
		{"Spec 3", "a disabled key does not, at the next request", hour, func(t *testing.T, w *world, name string) {
			w.patch(t, name, `{"spec":{"disabled":true}}`)
		}, refused},
		{"Spec 3", "a key that is enabled again does", hour, func(t *testing.T, w *world, name string) {
			w.patch(t, name, `{"spec":{"disabled":true}}`)
			w.patch(t, name, `{"spec":{"disabled":false}}`)
		}, ok},
		{"Spec 3", "a removed key does not, at the next request", hour, func(t *testing.T, w *world, name string) { w.remove(t, name) }, refused},
		{"ADR-0005", "a key whose removal is pending does not", hour, func(t *testing.T, w *world, name string) {
			w.patch(t, name, `{"metadata":{"finalizers":["a.b/c"]}}`)
			w.remove(t, name)
		}, refused},
		{"Spec 5.2", "a shorter ttl bites at the next request", hour, func(t *testing.T, w *world, name string) {
			w.setTime(10 * time.Second)
			w.patch(t, name, `{"spec":{"ttl":10}}`)
		}, refused},
		{"Spec 5.2", "a longer ttl too", hour, func(t *testing.T, w *world, name string) {
			w.setTime(2 * time.Hour)
			w.patch(t, name, `{"spec":{"ttl":7201}}`)
		}, ok},
		{"ADR-0005", "a lowered cap bites at once", hour, func(_ *testing.T, w *world, _ string) {
			w.setTime(10 * time.Second)
			w.limit = 10 * time.Second
		}, refused},
		{"ADR-0005", "a cap that is not reached does not", hour, func(_ *testing.T, w *world, _ string) {
			w.setTime(10 * time.Second)
			w.limit = 11 * time.Second
		}, ok},
		{"Spec 5.2", "a key without ttl lives", model.OwnedAccessKeySpec{User: "a"}, func(_ *testing.T, w *world, _ string) { w.setTime(1 << 60) }, ok},
		{"ADR-0005", "a key without ttl ends with the cap", model.OwnedAccessKeySpec{User: "a"}, func(_ *testing.T, w *world, _ string) {
			w.setTime(time.Minute)
			w.limit = time.Minute
		}, refused},
		{"Spec 2.5", "the longest ttl", model.OwnedAccessKeySpec{User: "a", TTLSeconds: math.MaxInt64}, func(_ *testing.T, w *world, _ string) { w.setTime(1 << 60) }, ok},
		{"ADR-0005", "a clock that was set back refuses nobody", hour, func(_ *testing.T, w *world, _ string) { w.setTime(-time.Hour) }, ok},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			w := newWorld(t)
			name, bearer := w.create(t, row.spec)
			if row.happens != nil {
				row.happens(t, w, name)
			}
			err := w.use(bearer)
			if code(err) != row.want {
				t.Errorf("got %d, want %d: %v", code(err), row.want, err)
			}
			if err != nil && apierror.From(err).Status().Reason != metav1.StatusReasonUnauthorized {
				t.Errorf("the reason is %s", apierror.From(err).Status().Reason)
			}
			if strings.Contains(w.log.String(), bearer.Reveal()) || err != nil && strings.Contains(err.Error(), bearer.Reveal()) {
				t.Error("the key was logged or quoted")
			}
		})
	}
}

// Only callers that have the key learn from a 401 that it is expired or disabled. Source: ADR-0005.
func TestRefusalsThatDiffer(t *testing.T) {
	w := newWorld(t)
	_, expiredBearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: 1})
	disabledName, disabledBearer := w.create(t, model.OwnedAccessKeySpec{User: "a", Disabled: true})
	removedName, removedBearer := w.create(t, model.OwnedAccessKeySpec{User: "a"})
	pendingName, pendingBearer := w.create(t, model.OwnedAccessKeySpec{User: "a", Disabled: true}, "a.b/c")
	w.remove(t, removedName)
	w.remove(t, pendingName)
	w.setTime(time.Second)
	text := func(bearer secret.String) string {
		t.Helper()
		err := w.use(bearer)
		if code(err) != http.StatusUnauthorized {
			t.Fatalf("got %d: %v", code(err), err)
		}
		return err.Error()
	}
	unknown := text("unknown-" + secret.String(strings.Repeat("x", 40)))
	if malformed := text("pak_malformed"); malformed != unknown || text(removedBearer) != unknown || text(pendingBearer) != unknown {
		t.Errorf("malformed, removed and unknown keys differ")
	}
	if text(expiredBearer) == unknown || text(disabledBearer) == unknown || text(expiredBearer) == text(disabledBearer) {
		t.Errorf("expired and disabled keys do not differ")
	}
	w.patch(t, disabledName, `{"spec":{"ttl":1}}`)
	if text(disabledBearer) != text(expiredBearer) {
		t.Errorf("a key that is over and disabled is not over")
	}
}

// Source: Spec 2.5 (lastActivity); ADR-0005.
func TestActivity(t *testing.T) {
	const s = time.Second
	type use struct{ at, activity time.Duration }
	for _, row := range []struct {
		section  string
		sentence string
		spec     model.OwnedAccessKeySpec
		uses     []use
	}{
		{"ADR-0005", "at most once a minute", model.OwnedAccessKeySpec{User: "a"},
			[]use{{5 * s, 5 * s}, {6 * s, 5 * s}, {64 * s, 5 * s}, {65*s - 1, 5 * s}, {65 * s, 65 * s}, {100 * s, 65 * s}, {1000 * s, 1000 * s}}},
		{"ADR-0005", "to the second", model.OwnedAccessKeySpec{User: "a"}, []use{{5*s + 900*time.Millisecond, 5 * s}}},
		{"ADR-0005", "never backwards", model.OwnedAccessKeySpec{User: "a"}, []use{{500 * s, 500 * s}, {5 * s, 500 * s}, {499 * s, 500 * s}}},
		{"ADR-0005", "a short sliding ttl: once in a tenth", model.OwnedAccessKeySpec{User: "a", TTLSeconds: 30, TTLAfterLastActivity: true},
			[]use{{0, 0}, {2 * s, 0}, {3 * s, 3 * s}, {5 * s, 3 * s}, {6 * s, 6 * s}}},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			w := newWorld(t)
			name, bearer := w.create(t, row.spec)
			oldRecord := w.record(t, name)
			if !oldRecord.Activity.IsZero() {
				t.Errorf("a new key was active at %v", oldRecord.Activity)
			}
			for _, use := range row.uses {
				w.setTime(use.at)
				if err := w.use(bearer); err != nil {
					t.Fatalf("at %v: %v", use.at, err)
				}
				record := w.record(t, name)
				if !record.Activity.Equal(born.Add(use.activity)) {
					t.Errorf("at %v the last activity is %v", use.at, record.Activity.Sub(born))
				}
				if record.Revision != oldRecord.Revision || !bytes.Equal(record.Object, oldRecord.Object) {
					t.Errorf("at %v the use has written the object", use.at)
				}
			}
			page, err := w.keys.Store.List(context.Background(), store.Query{})
			if err != nil || page.Revision != oldRecord.Revision {
				t.Errorf("the revision went from %d to %d, %v", oldRecord.Revision, page.Revision, err)
			}
		})
	}
}

// A refused key is not in use. Source: Spec 2.5 (lastActivity).
func TestRefusedUseIsNoActivity(t *testing.T) {
	w := newWorld(t)
	over, overBearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: 1, TTLAfterLastActivity: true})
	off, offBearer := w.create(t, model.OwnedAccessKeySpec{User: "a", Disabled: true})
	w.setTime(time.Second)
	for name, bearer := range map[string]secret.String{over: overBearer, off: offBearer} {
		if err := w.use(bearer); err == nil || !w.record(t, name).Activity.IsZero() {
			t.Errorf("%v, activity %v", err, w.record(t, name).Activity)
		}
	}
}

// A key that somebody asks about is not in use. Source: Spec 2.5 (lastActivity).
func TestInspectionIsNoActivity(t *testing.T) {
	w := newWorld(t)
	name, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: 10, TTLAfterLastActivity: true})
	w.setTime(5 * time.Second)
	if caller, err := w.Inspect(t.Context(), bearer); err != nil || caller.Key != name || !w.record(t, name).Activity.IsZero() {
		t.Errorf("%v, %v, activity %v", caller.Key, err, w.record(t, name).Activity)
	}
	w.setTime(10 * time.Second)
	if _, err := w.Inspect(t.Context(), bearer); code(err) != http.StatusUnauthorized {
		t.Errorf("the inspection has kept the key alive: %v", err)
	}
}

// A sliding key lives as long as it is used, and its due time goes with it. Source: Spec 2.5; ADR-0005.
func TestSliding(t *testing.T) {
	const s = time.Second
	w := newWorld(t)
	name, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: 100, TTLAfterLastActivity: true})
	for _, step := range []struct{ at, expires time.Duration }{
		{90 * s, 190 * s}, {95 * s, 190 * s}, {189 * s, 289 * s}, {288 * s, 388 * s},
	} {
		w.setTime(step.at)
		if err := w.use(bearer); err != nil {
			t.Fatalf("at %v: %v", step.at, err)
		}
		if got := w.record(t, name).Expires; !got.Equal(born.Add(step.expires)) {
			t.Errorf("at %v the key is due at %v", step.at, got.Sub(born))
		}
	}
	w.limit = 300 * s
	w.setTime(299 * s)
	if err := w.use(bearer); err != nil {
		t.Errorf("refused before the cap: %v", err)
	}
	w.setTime(300 * s)
	if err := w.use(bearer); code(err) != http.StatusUnauthorized {
		t.Errorf("use moved the key beyond the cap: %v", err)
	}
	w.limit = 0
	w.setTime(388 * s)
	if err := w.use(bearer); err != nil {
		// The use at 299 was recorded.
		t.Errorf("refused though it was used: %v", err)
	}
	w.setTime(488 * s)
	if err := w.use(bearer); code(err) != http.StatusUnauthorized {
		t.Errorf("accepted a ttl after the last use: %v", err)
	}
}

// A fixed key keeps its due time however often it is used. Source: Spec 2.5.
func TestUseMovesNoFixedEnd(t *testing.T) {
	w := newWorld(t)
	name, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: 600})
	w.setTime(300 * time.Second)
	if err := w.use(bearer); err != nil {
		t.Fatal(err)
	}
	if got := w.record(t, name).Expires; !got.Equal(born.Add(600 * time.Second)) {
		t.Errorf("the key is due at %v", got)
	}
}

// A key that cannot be checked is refused. Source: ADR-0002, ADR-0005.
func TestFailsClosed(t *testing.T) {
	w := newWorld(t)
	_, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a"})
	if err := w.use(bearer); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Bearer(ctx, bearer); code(err) != http.StatusGatewayTimeout {
		t.Errorf("a request that was given up: %d %v", code(err), err)
	}
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	caller, err := w.Bearer(context.Background(), bearer)
	if status := apierror.From(err).Status(); status.Code != http.StatusServiceUnavailable || status.Reason != metav1.StatusReasonServiceUnavailable ||
		status.Details == nil || status.Details.RetryAfterSeconds < 1 {
		t.Errorf("without state: %+v", status)
	}
	if caller.Owner != (identity.Owner{}) {
		t.Errorf("without state there is a caller: %v", caller.Owner)
	}
	if strings.Contains(err.Error(), bearer.Reveal()) || strings.Contains(err.Error(), accesskey.Digest(bearer)) {
		t.Errorf("the error quotes the key: %v", err)
	}
	if err := w.use("pak_malformed"); code(err) != http.StatusUnauthorized {
		t.Errorf("what needs no state needs it: %v", err)
	}
}

// noNotes is a store whose Touch fails.
type noNotes struct{ store.Store }

func (noNotes) Touch(context.Context, store.Record, time.Time, time.Time) error {
	return store.ErrUnavailable
}

// A use that cannot be recorded still succeeds. Source: ADR-0005.
func TestUnnotedUse(t *testing.T) {
	w := newWorld(t)
	_, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a"})
	w.keys.Store = noNotes{w.keys.Store}
	if err := w.use(bearer); err != nil {
		t.Errorf("refused: %v", err)
	}
	if w.log.Len() == 0 || strings.Contains(w.log.String(), bearer.Reveal()) {
		t.Errorf("the log is %q", w.log.String())
	}
}

// Never accepted after expiry, never refused before it: keys of every kind, used at random moments under a
// cap that changes. Source: Spec 2.5, 5.2; ADR-0005.
func TestNeverEarlyNeverLate(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		second := func(label string, most int64) time.Duration {
			return time.Duration(rapid.Int64Range(0, most).Draw(t, label)) * time.Second
		}
		ttl, sliding := second("ttl", 300), rapid.Bool().Draw(t, "sliding")
		w.limit = 0
		w.setTime(0)
		_, bearer := w.create(t, model.OwnedAccessKeySpec{User: "a", TTLSeconds: int64(ttl / time.Second), TTLAfterLastActivity: sliding})

		var used time.Duration // the last accepted use, since creation
		var now time.Duration
		for range rapid.IntRange(1, 8).Draw(t, "uses") {
			now += time.Duration(rapid.Int64Range(0, 120_000).Draw(t, "pause")) * time.Millisecond
			w.limit = second("cap", 600)
			w.setTime(now)

			end, tolerance := time.Duration(math.MaxInt64), time.Duration(0)
			if ttl > 0 {
				end = ttl
				if sliding {
					// The last use counts from the recorded time: up to a minute, or a tenth of the ttl, before the use,
					// and to the second.
					end += used
					tolerance = min(time.Minute, ttl/10) + time.Second
					tolerance = min(tolerance, used)
				}
			}
			mustRefuse := now >= end || w.limit > 0 && now >= w.limit
			mustAccept := now < end-tolerance && (w.limit == 0 || now < w.limit)
			err := w.use(bearer)
			switch {
			case err == nil && mustRefuse:
				t.Fatalf("accepted %v after creation: ttl %v, sliding %v, last use %v, cap %v", now, ttl, sliding, used, w.limit)
			case err != nil && mustAccept:
				t.Fatalf("refused %v after creation: ttl %v, sliding %v, last use %v, cap %v: %v", now, ttl, sliding, used, w.limit, err)
			case err != nil && code(err) != http.StatusUnauthorized:
				t.Fatalf("not a refusal: %v", err)
			case err == nil:
				used = now
			}
		}
	})
}
