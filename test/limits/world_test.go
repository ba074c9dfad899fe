package limits_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

const (
	group       = "/apis/management.platform.sh/v1"
	keys        = group + "/ownedaccesskeys"
	tokens      = group + "/directclusterendpointtokens"
	evaluations = group + "/syncpatchevaluations"
	// own is an access key of alice that exists.
	own = keys + "/alice"
)

// patience bounds every wait.
const patience = time.Minute

// world serves the whole catalog over a real state, as a shell does.
type world struct {
	t      *testing.T
	server *httptest.Server
	// Observations of the metrics in the process.
	*observer
	// holder holds requests for objects whose names begin with "held", and lists while lists are held.
	holder *holder
	// env is the environment of the process.
	env *platform.Environment
}

// newWorld serves with some settings.
func newWorld(t *testing.T, set map[string]string) *world {
	t.Helper()
	url := redistest.Embedded(t)
	client, err := redisstore.Open(url, redisstore.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, err := settings.Read(func(name string) string {
		if name == settings.RedisURL {
			return url
		}
		return set[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Tokens.Issuer = "https://platform.example"
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, observer: newObserver(), holder: &holder{}}
	log := slog.New(slog.DiscardHandler)
	api := process.New(s, process.World{
		Stores:     func(name string) store.Store { return holdingStore{client.Resource(name), w.holder} },
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
		Log:        log, Metrics: w.observer,
	})
	w.env = api.Env
	if err := platformconfig.Open(api.Env).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	for _, user := range []string{"root", "alice", "bob", "carol", "dave"} {
		// Admins write the configuration.
		for object, groups := range map[string][]string{user: nil, user + "-admin": {identity.Admins}} {
			key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: object}}
			key.Spec = model.OwnedAccessKeySpec{User: user, Groups: groups, Key: bearer(object)}
			in := resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: key}
			if _, err := resource.Create(t.Context(), kinds.AccessKeys(api.Env), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.server = httptest.NewUnstartedServer(nil)
	w.server.Config = process.NewHTTPServer(api.Mount(catalog.Functions...), log)
	w.server.Start()
	t.Cleanup(func() {
		api.EndWatches()
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// bearer is the bearer token of the key of a name.
func bearer(object string) string { return object + "-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789" }

// send sends a request and returns the answer.
func (w *world) send(r request) answer {
	w.t.Helper()
	got, err := w.ask(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("%s %.200s: %v", r.verb(), r.path, err)
	}
	return got
}

func (w *world) ask(ctx context.Context, r request) (answer, error) {
	outgoing, err := http.NewRequestWithContext(ctx, r.verb(), w.server.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	if r.body != "" {
		outgoing.Header.Set("Content-Type", "application/json")
	}
	if r.kind != "" {
		outgoing.Header.Set("Content-Type", r.kind)
	}
	object := r.bearer
	if object == "" {
		object = "alice"
	}
	if r.bearer != anonymous {
		outgoing.Header.Set("Authorization", "Bearer "+bearer(object))
	}
	for name, value := range r.header {
		outgoing.Header.Set(name, value)
	}
	client := w.server.Client()
	if r.from != "" {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(r.from)}}
		transport := &http.Transport{DialContext: dialer.DialContext}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	got, err := client.Do(outgoing)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(text)}, err
}

// storedDigest returns a digest of the stored records. It differs after each write.
func (w *world) storedDigest() string {
	w.t.Helper()
	var all []string
	for _, path := range []string{keys, tokens, group + "/virtualclusterinstances", group + "/configs"} {
		got := w.send(request{bearer: "root-admin", path: path + "?limit=1"})
		if got.status != http.StatusOK {
			w.t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		_, version, _ := strings.Cut(got.body, `"resourceVersion":`)
		all = append(all, version[:min(len(version), 12)])
	}
	return strings.Join(all, " ")
}

// pending is a request that is under way.
type pending struct {
	leave context.CancelFunc
	got   chan answer
}

// begin sends a request without waiting for the answer.
func (w *world) begin(r request) *pending {
	ctx, leave := context.WithCancel(w.t.Context())
	p := &pending{leave: leave, got: make(chan answer, 1)}
	go func() {
		defer close(p.got)
		if got, err := w.ask(ctx, r); err == nil {
			p.got <- got
		}
	}()
	return p
}

// answer waits for the answer.
func (p *pending) answer(t *testing.T) answer {
	t.Helper()
	select {
	case got, ok := <-p.got:
		if !ok {
			t.Fatal("a request was cut off")
		}
		return got
	case <-time.After(patience):
		t.Fatal("a request is not answered")
	}
	return answer{}
}

// holder holds requests while they access the state.
type holder struct {
	mu    sync.Mutex
	lists bool
	// released is closed when all held requests may continue.
	released chan struct{}
	// deadlines receives the deadlines of the held requests. Nil: they are not recorded.
	deadlines chan time.Time
	// pages are the pages that lists have read.
	pages []page
}

// page is the size of a page.
type page struct{ records, bytes int }

// take returns the pages that lists have read since the last call.
func (h *holder) take() []page {
	h.mu.Lock()
	defer h.mu.Unlock()
	pages := h.pages
	h.pages = nil
	return pages
}

// hold begins to hold requests.
func (h *holder) hold(lists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists, h.released = lists, make(chan struct{})
}

// release lets all held requests continue.
func (h *holder) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.released)
	h.lists, h.released = false, nil
}

// wait waits while the request must be held.
func (h *holder) wait(ctx context.Context, matches bool) error {
	h.mu.Lock()
	released := h.released
	if matches && released != nil {
		end, _ := ctx.Deadline()
		select {
		case h.deadlines <- end:
		default:
		}
	}
	h.mu.Unlock()
	if !matches || released == nil {
		return nil
	}
	select {
	case <-released:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

// holdingStore is a store whose requests can be held.
type holdingStore struct {
	store.Store
	holder *holder
}

func (h holdingStore) Get(ctx context.Context, name string) (store.Record, error) {
	if err := h.holder.wait(ctx, strings.HasPrefix(name, "held")); err != nil {
		return store.Record{}, err
	}
	return h.Store.Get(ctx, name)
}

func (h holdingStore) GetByDigest(ctx context.Context, digest string) (store.Record, error) {
	record, err := h.Store.GetByDigest(ctx, digest)
	// Only a guessed bearer token is not found.
	if held := h.holder.wait(ctx, errors.Is(err, store.ErrNotFound)); held != nil {
		return store.Record{}, held
	}
	return record, err
}

func (h holdingStore) GetWith(
	ctx context.Context, digest string, names []string, refs ...store.Ref,
) (store.Record, store.Companions, error) {
	record, others, err := h.Store.GetWith(ctx, digest, names, refs...)
	if held := h.holder.wait(ctx, errors.Is(err, store.ErrNotFound)); held != nil {
		return store.Record{}, store.Companions{}, held
	}
	return record, others, err
}

func (h holdingStore) Create(ctx context.Context, record store.Record) (int64, error) {
	if err := h.holder.wait(ctx, strings.HasPrefix(record.Name, "held")); err != nil {
		return 0, err
	}
	return h.Store.Create(ctx, record)
}

func (h holdingStore) List(ctx context.Context, query store.Query) (store.Page, error) {
	h.holder.mu.Lock()
	lists := h.holder.lists
	h.holder.mu.Unlock()
	if err := h.holder.wait(ctx, lists); err != nil {
		return store.Page{}, err
	}
	records, err := h.Store.List(ctx, query)
	size := page{records: len(records.Records)}
	for _, record := range records.Records {
		size.bytes += len(record.Object)
	}
	h.holder.mu.Lock()
	defer h.holder.mu.Unlock()
	h.holder.pages = append(h.holder.pages, size)
	return records, err
}

// observer counts places as they are taken.
type observer struct {
	*metrics.Metrics
	mu             sync.Mutex
	taken, waiting map[string]int
	// changed receives a value after a change.
	changed chan struct{}
}

func newObserver() *observer {
	return &observer{Metrics: metrics.New(prometheus.NewRegistry()), taken: map[string]int{}, waiting: map[string]int{}, changed: make(chan struct{}, 1)}
}

// Places records the numbers of a class and signals the change.
func (o *observer) Places(class string, taken, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[class] += taken
	o.waiting[class] += waiting
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// waitForPlaces waits until the given numbers of requests of a class have a place and wait for a place.
func (o *observer) waitForPlaces(t *testing.T, class fairness.Class, taken, waiting int) {
	t.Helper()
	late := time.After(patience)
	for {
		o.mu.Lock()
		have, wait := o.taken[class.String()], o.waiting[class.String()]
		o.mu.Unlock()
		if have == taken && wait == waiting {
			return
		}
		select {
		case <-late:
			t.Fatalf("%d %s are under way and %d wait; want %d and %d", have, class, wait, taken, waiting)
		case <-o.changed:
		}
	}
}
