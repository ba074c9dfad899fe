package signingkey

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t *testing.T, url string) store.Store {
	t.Helper()
	client := redistest.Open(t, url)
	return client.Resource(Resource)
}

func keyring(t *testing.T, keys ...secret.String) func(context.Context) (*encryption.Keyring, error) {
	t.Helper()
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.Reveal()
	}
	made, err := encryption.Parse(secret.String(strings.Join(texts, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context) (*encryption.Keyring, error) { return made, nil }
}

func current(t *testing.T, k *Keys) *Set {
	t.Helper()
	set, err := k.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Processes that begin at once on an empty state agree on one key.
func TestRace(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	ring := keyring(t, encryption.Generate())
	const processes = 8
	ids := make([]string, processes)
	var group sync.WaitGroup
	for i := range processes {
		keys := New(open(t, url), ring, func() time.Time { return born }, settings)
		group.Go(func() {
			if set, err := keys.Current(t.Context()); err != nil {
				t.Error(err)
			} else {
				ids[i] = set.Signing.ID()
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("they sign with %q", ids)
		}
	}
	if list, err := New(open(t, url), ring, time.Now, settings).List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("there are %v, %v", list, err)
	}
}

// Events hold earlier sealed records, with private halves that are deleted elsewhere. Source: ADR-0011.
func TestRotationForgetsEvents(t *testing.T) {
	t.Parallel()
	now := &clock{now: born}
	state := open(t, redistest.Embedded(t))
	keys := New(state, keyring(t, encryption.Generate()), now.Now, settings)
	current(t, keys)
	for _, change := range []func() (Report, error){
		func() (Report, error) { return keys.Rotate(t.Context(), true) },
		func() (Report, error) { return keys.Taint(t.Context(), current(t, keys).Signing.ID()) },
	} {
		page, err := state.List(t.Context(), store.Query{})
		if err != nil {
			t.Fatal(err)
		}
		now.pass(time.Hour)
		if _, err := change(); err != nil {
			t.Fatal(err)
		}
		// Only the event of the last write is left: the request for the event before it fails.
		if events, err := state.Events(t.Context(), page.Revision-1, 10, 0); !errors.Is(err, store.ErrGone) {
			t.Errorf("%d events are left, %v", len(events), err)
		}
	}
}

// Schedules that run at once make one change.
func TestRotateRace(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	ring := keyring(t, encryption.Generate())
	now := &clock{now: born}
	var all []*Keys
	for range 4 {
		all = append(all, New(open(t, url), ring, now.Now, settings))
	}
	first := current(t, all[0]).Signing.ID()
	for _, step := range []time.Duration{23 * time.Hour, time.Hour} {
		now.pass(step)
		var group sync.WaitGroup
		for _, keys := range all {
			group.Go(func() {
				if _, err := keys.Rotate(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	list, err := all[0].List(t.Context())
	if err != nil || len(list) != 3 || list[0].ID != first || list[0].State != Retired || list[1].State != Active || list[2].State != Next {
		t.Errorf("there are %v, %v", list, err)
	}
}

// A change elsewhere is noticed within refreshAfter, and not read earlier.
func TestSeenElsewhere(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	ring := keyring(t, encryption.Generate())
	now := &clock{now: born}
	first, second := New(open(t, url), ring, now.Now, settings), New(open(t, url), ring, now.Now, settings)
	bad := current(t, first).Signing.ID()
	if done, err := second.Taint(t.Context(), bad); err != nil || len(done.Keys) != 3 || done.Keys[0].State != Tainted {
		t.Fatalf("%v, %v", done, err)
	}
	if _, err := second.Taint(t.Context(), "nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("tainting nobody: %v", err)
	}
	now.pass(refreshAfter - 1)
	if got := current(t, first); got.Signing.ID() != bad {
		t.Error("it asked before its time")
	}
	now.pass(1)
	set := current(t, first)
	if set.Signing.ID() == bad || len(set.Public.Keys) != 2 || set.Public.Keys[0].ID == bad || set.Public.Keys[1].ID == bad {
		t.Errorf("the tainted key is still in use: %v", set.Public)
	}
	// Nothing has changed: the same set again.
	now.pass(refreshAfter)
	if current(t, first) != set {
		t.Error("what has not changed was opened again")
	}
	// A clock that is set back does not keep old keys alive.
	now.pass(-time.Hour)
	if _, err := second.Taint(t.Context(), set.Signing.ID()); err != nil {
		t.Fatal(err)
	}
	if current(t, first).Signing.ID() == set.Signing.ID() {
		t.Error("a key that was tainted in the past is in use")
	}
}

// counting counts the reads of a store.
type counting struct {
	store.Store
	reads atomic.Int64
}

func (c *counting) Get(ctx context.Context, name string) (store.Record, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, name)
}

// Callers that need the latest keys have them within a second. However many callers there are, the keys are read once a
// second. Source: ADR-0022.
func TestLatest(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	ring := keyring(t, encryption.Generate())
	now := &clock{now: born}
	state := &counting{Store: open(t, url)}
	first, there := New(state, ring, now.Now, settings), New(open(t, url), ring, now.Now, settings)
	before := current(t, first)
	bad, next := before.Signing.ID(), before.Public.Keys[1].ID
	if _, err := there.Taint(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	now.pass(renewAfter - 1)
	if set, err := first.Latest(t.Context()); err != nil || set != before {
		t.Errorf("within a second they are read again (%v)", err)
	}
	now.pass(1)
	reads := state.reads.Load()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if set, err := first.Latest(t.Context()); err != nil || set.Signing.ID() != next {
				t.Errorf("the successor is not the published next key (%v)", err)
			}
		})
	}
	group.Wait()
	if reads = state.reads.Load() - reads; reads != 1 {
		t.Errorf("they are read %d times", reads)
	}
}

// The encryption key changes like every secret: the new key is added first, then the old one is removed.
func TestEncryptionKeyChanges(t *testing.T) {
	t.Parallel()
	state := open(t, redistest.Embedded(t))
	old, young := encryption.Generate(), encryption.Generate()
	openWith := func(keys ...secret.String) *Keys {
		return New(state, keyring(t, keys...), func() time.Time { return born }, settings)
	}
	id := current(t, openWith(old)).Signing.ID()
	record, err := state.Get(t.Context(), recordName)
	if err != nil || strings.Contains(string(record.Object), id) {
		t.Errorf("the state shows the ring: %s, %v", record.Object, err)
	}
	if _, err := openWith(young).Current(t.Context()); !errors.Is(err, encryption.ErrUnknownKey) {
		t.Errorf("before it was sealed anew: %v", err)
	}
	if _, err := openWith(young).Rotate(t.Context(), false); !errors.Is(err, encryption.ErrUnknownKey) {
		t.Errorf("a run that cannot open the keys: %v", err)
	}
	if again, _ := state.Get(t.Context(), recordName); again.Revision != record.Revision {
		t.Error("what could not be opened was written over")
	}
	if done, err := openWith(young, old).Rotate(t.Context(), false); err != nil || !done.Resealed {
		t.Fatal(done, err)
	}
	if got := current(t, openWith(young)).Signing.ID(); got != id {
		t.Errorf("after that the key is %s, want %s", got, id)
	}
	before, _ := state.Get(t.Context(), recordName)
	if done, err := openWith(young, old).Rotate(t.Context(), false); err != nil || done.Resealed {
		t.Fatal(done, err)
	}
	if after, _ := state.Get(t.Context(), recordName); after.Revision != before.Revision {
		t.Error("a run with nothing to do writes")
	}
	none := New(state, func(context.Context) (*encryption.Keyring, error) { return nil, nil }, time.Now, settings)
	if _, err := none.Current(t.Context()); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("without an encryption key: %v", err)
	}
}

// A writer of the state without an encryption key cannot add a signing key.
func TestForeignRing(t *testing.T) {
	t.Parallel()
	state := open(t, redistest.Embedded(t))
	good := keyring(t, encryption.Generate())
	for about, text := range map[string]string{
		"another record's": must(must(good(t.Context())).Seal([]byte("[]"), "elsewhere")),
		"no ring":          must(must(good(t.Context())).Seal([]byte("7"), place)),
		"an empty ring":    must(must(good(t.Context())).Seal([]byte("[]"), place)),
		"clear text":       "[]",
	} {
		record := store.Record{Name: recordName, Created: born, Object: []byte(`{"sealed":"` + text + `"}`)}
		revision, err := state.Create(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if set, err := New(state, good, time.Now, settings).Current(t.Context()); err == nil {
			t.Errorf("%s: %v", about, set)
		}
		if _, err := state.Delete(t.Context(), recordName, revision); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := state.Create(t.Context(), store.Record{Name: recordName, Created: born, Object: []byte("7")}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(state, good, time.Now, settings).List(t.Context()); err == nil {
		t.Error("a record that is no object is read")
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestPEM(t *testing.T) {
	t.Parallel()
	curve := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	large := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	prime := must(rsa.GenerateKey(rand.Reader, rsaBits))
	private := func(key crypto.Signer) string { return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))) }
	public := func(key crypto.Signer) string {
		return block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key.Public())))
	}
	for about, row := range map[string]struct {
		text      string
		algorithm string
		keys      int
	}{
		"one":                  {private(curve), "ES256", 1},
		"two, the first signs": {private(prime) + private(curve), "RS256", 2},
		"one that has signed":  {private(curve) + "# before\n" + public(prime), "ES256", 2},
		"SEC 1":                {block("EC PARAMETERS", []byte{6}) + block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(curve))), "ES256", 1},
		"PKCS 1":               {block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(prime)), "RS256", 1},
	} {
		keys := New(nil, nil, time.Now, Settings{PEM: secret.String(row.text)})
		set := current(t, keys)
		if set.Signing.Algorithm() != row.algorithm || len(set.Public.Keys) != row.keys || set.Public.Keys[0].ID != set.Signing.ID() {
			t.Errorf("%s: %s, %v", about, set.Signing.Algorithm(), set.Public)
		}
		if list, err := keys.List(t.Context()); err != nil || len(list) != row.keys || list[0].State != Active || list[0].Algorithm != row.algorithm {
			t.Errorf("%s: %v, %v", about, list, err)
		}
		if _, err := keys.Rotate(t.Context(), false); err != nil {
			t.Errorf("%s: the schedule: %v", about, err)
		}
		if _, err := keys.Rotate(t.Context(), true); !errors.Is(err, ErrManaged) {
			t.Errorf("%s: %v", about, err)
		}
		if _, err := keys.Taint(t.Context(), set.Signing.ID()); !errors.Is(err, ErrManaged) {
			t.Errorf("%s: %v", about, err)
		}
	}
	const hush = "aHVudGVyMg"
	for want, text := range map[string]string{
		"no PEM block":                  hush,
		"key 1: is public":              public(curve),
		"key 1: is a \"CERTIFICA":       block("CERTIFICATE", []byte(hush)),
		"key 2: the block PRIVATE KEY":  private(curve) + block("PRIVATE KEY", []byte(hush)),
		"keys 1 and 2 are the same":     private(curve) + public(curve),
		"key 1: an elliptic curve":      private(large),
		"2 PEM blocks, of which only 1": private(curve) + strings.Replace(public(prime), "-----END", "----END", 1),
		"key 2: an elliptic curve":      private(curve) + public(large),
	} {
		keys := New(nil, nil, time.Now, Settings{PEM: secret.String(text)})
		for _, err := range []error{errorOf(keys.Current(t.Context())), errorOf(keys.List(t.Context())), errorOf(keys.Rotate(t.Context(), false))} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), hush) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestDescribe(t *testing.T) {
	t.Parallel()
	key := Key{ID: "abc", Algorithm: "ES256", State: Retired, Since: born, Ends: born.Add(time.Hour)}
	if got, want := key.Describe(), "abc  ES256  retired  since 2027-03-04T05:06:07Z  until 2027-03-04T06:06:07Z"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
