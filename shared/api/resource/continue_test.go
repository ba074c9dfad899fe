package resource_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// sealed is a state with some keys, and a clock for its processes.
type sealed struct {
	*registry
	stores func(string) store.Store
	now    atomic.Int64
	// reads are the requests to the state for the keys of tokens, and away makes them fail.
	reads atomic.Int64
	away  atomic.Bool
	// slow makes a request wait: it sends a value, and goes on when it has received one. Nil: no request waits.
	slow atomic.Pointer[chan struct{}]
}

// observed is the store of the keys of tokens.
type observed struct {
	store.Store
	world *sealed
}

func (o observed) Get(ctx context.Context, name string) (store.Record, error) {
	o.world.reads.Add(1)
	if slow := o.world.slow.Load(); slow != nil {
		*slow <- struct{}{}
		<-*slow
	}
	if o.world.away.Load() {
		return store.Record{}, store.ErrUnavailable
	}
	return o.Store.Get(ctx, name)
}

func newSealed(t testing.TB) *sealed {
	t.Helper()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	w := &sealed{registry: newRegistry(client.Resource("ownedaccesskeys"), seeded(1)), stores: client.Resource}
	w.now.Store(now.Unix())
	for i := range 4 {
		create(t, w.registry, ana, grantee(fmt.Sprintf("a%d", i)))
	}
	return w
}

// process returns the keys of tokens as a new process has them.
func (w *sealed) process() *continuetoken.Keys {
	return continuetoken.Open(&platform.Environment{
		Stores: func(name string) store.Store { return observed{w.stores(name), w} },
		Now:    func() time.Time { return time.Unix(w.now.Load(), 0) },
	})
}

func (w *sealed) pass(d time.Duration) { w.now.Add(int64(d / time.Second)) }

// page lists a page of one object.
func (w *sealed) page(t testing.TB, keys *continuetoken.Keys, token string) (name, next string, err error) {
	t.Helper()
	page, err := list(t, w.registry, resource.ListInput{Caller: ana, Limit: 1, Continue: token, ContinueKeys: keys})
	if err != nil {
		return "", "", err
	}
	return page.Items[0].Name, page.Continue, nil
}

// first returns the token of the first page.
func (w *sealed) first(t testing.TB, keys *continuetoken.Keys) string {
	t.Helper()
	name, token, err := w.page(t, keys, "")
	if err != nil || name != "a0" || token == "" {
		t.Fatalf("%q, %q, %v", name, token, err)
	}
	return token
}

var noToken = refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{"continue"}}

// Processes that need a key at the same time make one, and each opens the tokens of all others. Source: ADR-0025.
func TestContinueKeysAreShared(t *testing.T) {
	t.Parallel()
	w := newSealed(t)
	processes, tokens := make([]*continuetoken.Keys, 6), make([]string, 6)
	var all sync.WaitGroup
	for i := range processes {
		processes[i] = w.process()
		all.Go(func() {
			page, err := list(t, w.registry, resource.ListInput{Caller: ana, Limit: 1, ContinueKeys: processes[i]})
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			tokens[i] = page.Continue
		})
	}
	all.Wait()
	for i, keys := range append(processes, w.process()) {
		for j, token := range tokens {
			if name, _, err := w.page(t, keys, token); err != nil || name != "a1" {
				t.Errorf("process %d opens the token of process %d: %q, %v", i, j, name, err)
			}
		}
	}
}

// A key is replaced when it is old. The tokens of the one before it stay valid, older ones do not. Source: ADR-0025.
func TestContinueKeysRotate(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	w := newSealed(t)
	early, late := w.process(), w.process()
	first := w.first(t, early)
	w.pass(month)
	second := w.first(t, late)
	for about, keys := range map[string]*continuetoken.Keys{"a process that knows the old key": early, "the one that made the new one": late, "a new one": w.process()} {
		for _, token := range []string{first, second} {
			if name, _, err := w.page(t, keys, token); err != nil || name != "a1" {
				t.Errorf("%s: %q, %v", about, name, err)
			}
		}
	}
	w.pass(month)
	third := w.first(t, early)
	_, _, err := w.page(t, w.process(), first)
	expect(t, err, noToken)
	for _, token := range []string{second, third} {
		if name, _, err := w.page(t, w.process(), token); err != nil || name != "a1" {
			t.Errorf("%q, %v", name, err)
		}
	}
}

// A list without a token asks the state for no key, and one with a token rarely. Source: ADR-0025.
func TestContinueKeysCost(t *testing.T) {
	t.Parallel()
	w := newSealed(t)
	keys := w.process()
	if _, err := list(t, w.registry, resource.ListInput{Caller: ana, ContinueKeys: keys}); err != nil {
		t.Fatal(err)
	}
	if _, err := list(t, w.registry, resource.ListInput{Caller: ana, Limit: 4, ContinueKeys: keys}); err != nil {
		t.Fatal(err)
	}
	if got := w.reads.Load(); got != 0 {
		t.Errorf("lists without a token read the keys %d times", got)
	}
	token := w.first(t, keys)
	before := w.reads.Load()
	for range 3 {
		if _, _, err := w.page(t, keys, token); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.reads.Load() - before; got != 0 {
		t.Errorf("further pages read the keys %d times", got)
	}
	w.pass(time.Minute)
	w.first(t, keys)
	if got := w.reads.Load() - before; got != 1 {
		t.Errorf("after a minute the keys are read %d times", got)
	}
	// A text costs one read, whatever it names.
	for i, text := range []string{"x", "MDAwMDAwMDAuQUFBQQ", token[:len(token)-1]} {
		_, _, err := w.page(t, w.process(), text)
		expect(t, err, noToken)
		if got := w.reads.Load() - before; got > int64(i)+2 {
			t.Errorf("%q: the keys are read %d times", text, got)
		}
	}
}

// A token says nothing about the name with which its page ends, not even by its length, and no change of it is accepted.
// Source: ADR-0025.
func TestContinueTokensTellNothing(t *testing.T) {
	t.Parallel()
	w := newSealed(t)
	create(t, w.registry, ana, grantee("a0-"+strings.Repeat("long", 10)))
	keys := w.process()
	token := w.first(t, keys)
	_, next, err := w.page(t, keys, token)
	if err != nil || len(next) != len(token) || next == token {
		t.Fatalf("%q, %q, %v", token, next, err)
	}
	if again := w.first(t, keys); again == token {
		t.Error("the same position has the same token")
	}
	for i := range len(token) {
		altered := []byte(token)
		if altered[i]++; string(altered) == token {
			continue
		}
		_, _, err := w.page(t, keys, string(altered))
		expect(t, err, noToken)
	}
	_, err = list(t, w.registry, resource.ListInput{Caller: ben, Limit: 1, Continue: token, ContinueKeys: keys})
	expect(t, err, noToken)
}

// While the keys cannot be read, lists without a token are served and others are 503. Source: ADR-0025.
func TestContinueKeysAway(t *testing.T) {
	t.Parallel()
	w := newSealed(t)
	token := w.first(t, w.process())
	w.away.Store(true)
	keys := w.process()
	if page, err := list(t, w.registry, resource.ListInput{Caller: ana, ContinueKeys: keys}); err != nil || len(page.Items) != 4 {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", token} {
		_, _, err := w.page(t, keys, text)
		expect(t, err, refusal{code: 503, reason: metav1.StatusReasonServiceUnavailable})
	}
}

// A token of an unknown key, which everybody can send, makes nobody wait but the one who sent it. Source: ADR-0025.
func TestContinueKeysAreReadAside(t *testing.T) {
	t.Parallel()
	w := newSealed(t)
	keys := w.process()
	token := w.first(t, keys)
	slow := make(chan struct{})
	w.slow.Store(&slow)
	sent := make(chan error, 1)
	go func() {
		_, err := resource.List(t.Context(), w.registry, resource.ListInput{Caller: ana, Limit: 1, Continue: "MDAwMDAwMDAuQUFBQQ", ContinueKeys: keys})
		sent <- err
	}()
	<-slow
	served := make(chan error, 1)
	go func() {
		_, err := resource.List(t.Context(), w.registry, resource.ListInput{Caller: ana, Limit: 1, Continue: token, ContinueKeys: keys})
		served <- err
	}()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a list waits for a token that another caller has made up")
	}
	slow <- struct{}{}
	expect(t, <-sent, noToken)
}
