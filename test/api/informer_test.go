package api_test

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// site is the catalog over a Redis, with the actions of a test that bypass the API.
type site struct {
	t      *testing.T
	env    *platform.Environment
	server *httptest.Server
	client dynamic.ResourceInterface
}

var keys = model.SchemeGroupVersion.WithResource("ownedaccesskeys")

func newSite(t *testing.T, redisURL string) *site {
	t.Helper()
	state := redistest.Open(t, redisURL)
	s := &site{t: t, env: &platform.Environment{
		Stores: state.Resource, Now: time.Now, Random: crand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return &model.ConfigStatus{} }, Version: "test",
	}}
	admin := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}
	admin.Spec = model.OwnedAccessKeySpec{User: "root", Groups: []string{identity.Admins}, Key: bearer}
	s.create(admin)
	api := process.NewServer(s.env)
	api.Watch = frame.WatchSettings{BookmarkEvery: 100 * time.Millisecond}
	s.server = httptest.NewServer(api.Mount(catalog.Functions...))
	t.Cleanup(func() {
		api.EndWatches()
		s.server.Close()
	})
	clients, err := dynamic.NewForConfig(&rest.Config{Host: s.server.URL, BearerToken: bearer, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.client = clients.Resource(keys)
	return s
}

var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

func (s *site) create(object *model.OwnedAccessKey) {
	s.t.Helper()
	if _, err := resource.Create(s.t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: object}); err != nil {
		s.t.Fatal(err)
	}
}

// observedEvents has the events of an informer for each object.
type observedEvents struct {
	mu sync.Mutex
	// versions are the resource versions in the order of the events. A removal is a dash.
	versions map[string][]string
	informer cache.SharedIndexInformer
}

func (s *site) inform() *observedEvents {
	s.t.Helper()
	clients, err := dynamic.NewForConfig(&rest.Config{Host: s.server.URL, BearerToken: bearer, QPS: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	i := &observedEvents{versions: map[string][]string{}}
	// What the factory of informers makes for a dynamic client, without the clients of all other kinds that it links.
	client := clients.Resource(keys)
	i.informer = cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{})
	note := func(object any, removed bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		current := object.(*unstructured.Unstructured)
		i.mu.Lock()
		defer i.mu.Unlock()
		version := current.GetResourceVersion()
		if removed {
			version = "-"
		}
		i.versions[current.GetName()] = append(i.versions[current.GetName()], version)
	}
	if _, err := i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(object, false) },
		UpdateFunc: func(_, object any) { note(object, false) },
		DeleteFunc: func(object any) { note(object, true) },
	}); err != nil {
		s.t.Fatal(err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.informer.Run(stop)
	}()
	s.t.Cleanup(func() {
		close(stop)
		<-done
	})
	await(s.t, "the informer is in sync", func() bool { return i.informer.HasSynced() })
	return i
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// state returns the content of the store: resource versions by name.
func (s *site) state() map[string]string {
	versions := map[string]string{}
	for record, err := range store.Each(s.t.Context(), kinds.AccessKeys(s.env).Store, store.Query{}) {
		if err != nil {
			return nil
		}
		versions[record.Name] = strconv.FormatInt(record.Revision, 10)
	}
	return versions
}

// waitForConvergence waits until the cache has the same objects as the store, with the same bytes as a GET.
func (i *observedEvents) waitForConvergence(t *testing.T, s *site) {
	t.Helper()
	want := s.state()
	await(t, "the cache equals the store", func() bool {
		if i.informer.GetStore() == nil || len(i.informer.GetStore().ListKeys()) != len(want) {
			return false
		}
		for name, version := range want {
			held, found, _ := i.informer.GetStore().GetByKey(name)
			if !found || held.(*unstructured.Unstructured).GetResourceVersion() != version {
				return false
			}
		}
		return true
	})
	list, err := s.client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		held, _, _ := i.informer.GetStore().GetByKey(item.GetName())
		if held == nil {
			t.Errorf("the cache lacks %q", item.GetName())
			continue
		}
		// The use of a key is not a change, but lists show it.
		got := held.(*unstructured.Unstructured).DeepCopy()
		unstructured.RemoveNestedField(got.Object, "status", "lastActivity")
		unstructured.RemoveNestedField(item.Object, "status", "lastActivity")
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(&item)
		if string(a) != string(b) {
			t.Errorf("the cache has %s, the list %s", a, b)
		}
	}
}

// checkComplete compares the events with the log: each change of each object, once and in order.
func (i *observedEvents) checkComplete(t *testing.T, changes map[string][]string) {
	t.Helper()
	await(t, "the handlers have run", func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		for name, want := range changes {
			if len(i.versions[name]) < len(want) {
				return false
			}
		}
		return true
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, want := range changes {
		if got := i.versions[name]; !slices.Equal(got, want) {
			t.Errorf("%q: told %v, happened %v", name, got, want)
		}
	}
}

// churn changes objects from several writers, and returns the changes of each object, beginning with its state before.
func (s *site) churn(changes int, meanwhile func(done int)) map[string][]string {
	s.t.Helper()
	const writers = 4
	before := s.state()
	happened := map[string][]string{}
	for name, version := range before {
		happened[name] = []string{version}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			note := func(name, version string) {
				mu.Lock()
				defer mu.Unlock()
				happened[name] = append(happened[name], version)
			}
			for i := range changes / writers {
				if w == 0 {
					meanwhile(i * writers)
				}
				// Each writer has objects of its own, so that the changes of each object are known.
				name := fmt.Sprintf("k-%04d", random.IntN(objects/writers)*writers+w)
				switch random.IntN(6) {
				case 0:
					if _, err := resource.Delete(s.t.Context(), kinds.AccessKeys(s.env), resource.DeleteInput{Caller: root, Name: name}); err == nil {
						note(name, "-")
					}
					fallthrough
				case 1:
					written, err := resource.Create(s.t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{
						Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}},
					})
					if err == nil {
						note(name, written.Object.ResourceVersion)
					}
				default:
					written, err := resource.Patch(s.t.Context(), kinds.AccessKeys(s.env), resource.PatchInput{
						Caller: root, Name: name, Type: resource.MergePatch, Patch: fmt.Appendf(nil, `{"spec":{"description":"%d of %d"}}`, i, w),
					})
					if err == nil {
						note(name, written.Object.ResourceVersion)
					}
				}
			}
		})
	}
	group.Wait()
	return happened
}

const objects = 2000

func (s *site) populate() {
	for i := range objects {
		s.create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("k-%04d", i)}})
	}
}

// client-go's informers over 2,000 objects under churn, with connections that break: each change arrives once, and
// the cache equals the store. Source: ADR-0007.
func TestInformer(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprint("WatchList=", watchList), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			s := newSite(t, redistest.Server(t).UnixURL())
			s.populate()
			i := s.inform()
			happened := s.churn(3000, func(done int) {
				if done%400 == 200 {
					s.server.CloseClientConnections()
				}
			})
			i.waitForConvergence(t, s)
			i.checkComplete(t, happened)
		})
	}
}

// If the revision of an informer is trimmed while it is disconnected, it gets an error and lists everything again.
func TestInformerComesTooLate(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprint("WatchList=", watchList), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			s := newSite(t, redistest.Embedded(t))
			var mu sync.Mutex
			expired, away := 0, false
			inner := s.server.Config.Handler
			s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				gone := away
				mu.Unlock()
				if gone {
					// Like a refused connection, this is a reason to retry and not to list again.
					w.Header().Set("Retry-After", "1")
					http.Error(w, "{}", http.StatusTooManyRequests)
					return
				}
				noted := &statusRecorder{ResponseWriter: w}
				inner.ServeHTTP(noted, r)
				mu.Lock()
				defer mu.Unlock()
				if noted.status == http.StatusGone {
					expired++
				}
			})
			for n := range 20 {
				s.create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("k-", n)}})
			}
			i := s.inform()
			// A watch that ends before its first event is a reason to list again, too.
			s.create(&model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "last"}})
			await(t, "the informer has what came last", func() bool {
				_, found, _ := i.informer.GetStore().GetByKey("last")
				return found
			})
			mu.Lock()
			away = true
			mu.Unlock()
			s.server.CloseClientConnections()
			for n := range 10 {
				if _, err := resource.Delete(t.Context(), kinds.AccessKeys(s.env), resource.DeleteInput{Caller: root, Name: fmt.Sprint("k-", n)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := kinds.AccessKeys(s.env).Store.Trim(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			away = false
			mu.Unlock()
			i.waitForConvergence(t, s)
			mu.Lock()
			defer mu.Unlock()
			if expired == 0 {
				t.Error("nobody was answered 410")
			}
		})
	}
}

// statusRecorder notes the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (n *statusRecorder) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *statusRecorder) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Redis is killed under load, again and again. Every acknowledged write survives, no revision is used twice,
// and informers reach the content of the store.
func TestInformerOfAKilledRedis(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, true)
	process := redistest.Server(t, redistest.AppendOnly())
	s := newSite(t, process.URL())
	i := s.inform()
	var mu sync.Mutex
	acknowledged := map[string]string{}
	highest := int64(0)
	var group sync.WaitGroup
	quit := make(chan struct{})
	for w := range 4 {
		group.Go(func() {
			last := int64(0)
			for n := 0; ; n++ {
				select {
				case <-quit:
					return
				case <-time.After(time.Millisecond):
				}
				name := fmt.Sprintf("k-%d-%d", w, n)
				result, err := resource.Create(t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{
					Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}},
				})
				if err != nil {
					continue
				}
				version, _ := strconv.ParseInt(result.Object.ResourceVersion, 10, 64)
				if version <= last {
					t.Errorf("revision %d after %d", version, last)
				}
				last = version
				mu.Lock()
				acknowledged[name], highest = result.Object.ResourceVersion, max(highest, version)
				mu.Unlock()
			}
		})
	}
	enough := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for range 3 {
		target := enough() + 100
		await(t, "a hundred more writes", func() bool { return enough() >= target })
		process.Kill()
		process.Restart()
	}
	target := enough() + 100
	await(t, "a hundred more writes", func() bool { return enough() >= target })
	close(quit)
	group.Wait()
	i.waitForConvergence(t, s)
	state, seen := s.state(), map[string]bool{}
	for name, version := range acknowledged {
		if state[name] != version {
			t.Errorf("%q was acknowledged at %s and is at %q", name, version, state[name])
		}
		if seen[version] {
			t.Errorf("revision %s was given out twice", version)
		}
		seen[version] = true
	}
	// Each object was reported at its revision and at no other revision. After an outage informers list again, which repeats known objects.
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, told := range i.versions {
		if told = slices.Compact(told); name != "admin" && (len(told) != 1 || told[0] != state[name]) {
			t.Errorf("%q was told at %v and is at %s", name, told, state[name])
		}
	}
}
