package contract

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// marker is the text that the transformer of the contract tests puts before each stored object.
const marker = "test!"

var podCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := example.AddToScheme(scheme); err != nil {
		panic(err)
	}
	if err := examplev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme)
}()

// bench is the storage of one contract test, on a resource of its own.
type bench struct {
	*Storage
	calls *counter
	codec *failing
	redis *redis.Client
	name  string
}

// counter counts the lists that are read from the store.
type counter struct {
	store.Store
	lists atomic.Uint64
}

func (c *counter) List(ctx context.Context, query store.Query) (store.Page, error) {
	c.lists.Add(1)
	return c.Store.List(ctx, query)
}

// failing is a codec that fails when a test says so.
type failing struct {
	runtime.Codec
	fail atomic.Bool
}

func (f *failing) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if f.fail.Load() {
		return nil, nil, fmt.Errorf("told to fail")
	}
	return f.Codec.Decode(data, defaults, into)
}

// server is one Redis with its clients.
type server struct {
	client *redisstore.Client
	redis  *redis.Client
	serial atomic.Int64
}

func newServer(t *testing.T, url string) *server {
	t.Helper()
	client, err := redisstore.Open(url, redisstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("opening store: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatalf("reading URL: %v", err)
	}
	direct := redis.NewClient(options)
	t.Cleanup(func() { direct.Close() })
	return &server{client: client, redis: direct}
}

func (s *server) bench(t *testing.T) *bench {
	t.Helper()
	name := fmt.Sprintf("pods-%d", s.serial.Add(1))
	b := &bench{
		calls: &counter{Store: s.client.Resource(name)},
		codec: &failing{Codec: apitesting.TestCodec(podCodecs, examplev1.SchemeGroupVersion)},
		redis: s.redis,
		name:  name,
	}
	b.Storage = NewStorage(b.calls, b.codec, "/pods/", func() runtime.Object { return &example.Pod{} },
		storagetesting.NewPrefixTransformer([]byte(marker), false))
	b.sweep(t)
	return b
}

// sweep removes expired objects, as the scheduled function does.
func (b *bench) sweep(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				due, _ := b.store.Due(ctx, store.DueQuery{Until: now, Limit: 100})
				for _, record := range due {
					_, _ = b.store.Delete(ctx, record.Name, record.Revision)
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); sweeper.Wait() })
}

// raiseRevision increments the revision by a write outside the objects.
func (b *bench) raiseRevision(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	name := fmt.Sprintf("elsewhere-%d", time.Now().UnixNano())
	revision, err := b.store.Create(ctx, store.Record{Name: name, Created: time.Now()})
	if err != nil {
		t.Fatalf("raising the revision: %v", err)
	}
	return revision
}

// compact trims the event log up to and including a revision, as its maximum length does otherwise. The tests rely on a write after it, which
// etcd's compaction makes to record its progress.
func (b *bench) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		t.Fatalf("reading resource version: %v", err)
	}
	log := fmt.Sprintf("p1:{%s}:log", b.name)
	if err := b.redis.XTrimMinID(ctx, log, fmt.Sprintf("%d-0", revision+1)).Err(); err != nil {
		t.Fatalf("trimming the event log: %v", err)
	}
	b.raiseRevision(ctx, t)
}

// checkStored checks that the store holds the object without resourceVersion and selfLink.
func (b *bench) checkStored(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	record, err := b.store.Get(ctx, key)
	if err != nil {
		t.Fatalf("reading %s: %v", key, err)
	}
	obj, err := runtime.Decode(b.codec, record.Object[len(marker):])
	if err != nil {
		t.Fatalf("decoding %s: %v", record.Object, err)
	}
	if pod := obj.(*example.Pod); pod.ResourceVersion != "" || pod.SelfLink != "" {
		t.Errorf("stored object has resourceVersion %q and selfLink %q", pod.ResourceVersion, pod.SelfLink)
	}
}

// checkCost checks how many objects a list read, and in how many pages. Each page is twice as long as the page before.
func (b *bench) checkCost(t *testing.T, size, objects uint64) {
	t.Helper()
	if reads := b.transformer.(*storagetesting.PrefixTransformer).GetReadsAndReset(); reads != objects {
		t.Errorf("%d objects were read, want %d", reads, objects)
	}
	pages := uint64(1)
	if size > 0 {
		for limit, sum := size, uint64(1); sum < objects; pages++ {
			limit = min(2*limit, maxPage)
			sum += limit
		}
	}
	if lists := b.calls.lists.Swap(0); lists != pages {
		t.Errorf("%d pages were read, want %d", lists, pages)
	}
}

// prefixed is a transformer that a test can exchange.
type prefixed struct{ *Storage }

func (p prefixed) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	original := p.transformer.(*storagetesting.PrefixTransformer)
	changed := *original
	p.transformer = modify(&changed)
	return func() { p.transformer = original }
}

type overridden struct{ *Storage }

func (o overridden) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	original := o.transformer
	o.transformer = modify(original)
	return func() { o.transformer = original }
}

// unreadable is a transformer that fails to read while a test says so.
type unreadable struct {
	value.Transformer
	fail atomic.Bool
}

func (u *unreadable) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	if u.fail.Load() {
		return nil, false, fmt.Errorf("told to fail")
	}
	return u.Transformer.TransformFromStorage(ctx, data, at)
}

// contractTest is one exported function of k8s.io/apiserver/pkg/storage/testing.
type contractTest struct {
	name string
	run  func(ctx context.Context, t *testing.T, b *bench)
	// notApplicable is the reason why the test is not run.
	notApplicable string
}

// plain is a test that needs only a storage.
func plain[S any](name string, run func(context.Context, *testing.T, S)) contractTest {
	return contractTest{name: name, run: func(ctx context.Context, t *testing.T, b *bench) {
		t.Helper()
		var s any = b.Storage
		if as, ok := s.(S); ok {
			run(ctx, t, as)
			return
		}
		s = prefixed{b.Storage}
		run(ctx, t, s.(S))
	}}
}

const corrupt = "unsafe deletion of objects whose encryption at rest is broken. This is an alpha feature of kube-apiserver, and " +
	"its errors are private to its etcd code"

// contractTests is every test of the package, in its order.
var contractTests = []contractTest{
	{name: "RunTestCreate", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestCreate(ctx, t, b, b.checkStored)
	}},
	plain("RunTestCreateWithTTL", storagetesting.RunTestCreateWithTTL),
	plain("RunTestCreateWithKeyExist", storagetesting.RunTestCreateWithKeyExist),
	plain("RunTestGet", storagetesting.RunTestGet),
	plain("RunTestUnconditionalDelete", storagetesting.RunTestUnconditionalDelete),
	plain("RunTestConditionalDelete", storagetesting.RunTestConditionalDelete),
	plain("RunTestDeleteWithSuggestion", storagetesting.RunTestDeleteWithSuggestion),
	plain("RunTestDeleteWithSuggestionAndConflict", storagetesting.RunTestDeleteWithSuggestionAndConflict),
	plain("RunTestDeleteWithConflict", storagetesting.RunTestDeleteWithConflict),
	plain("RunTestDeleteWithSuggestionOfDeletedObject", storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	plain("RunTestValidateDeletionWithSuggestion", storagetesting.RunTestValidateDeletionWithSuggestion),
	plain("RunTestValidateDeletionWithOnlySuggestionValid", storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	plain("RunTestPreconditionalDeleteWithSuggestion", storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	plain("RunTestPreconditionalDeleteWithOnlySuggestionPass", storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	{name: "RunTestList", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestList(ctx, t, b, b.compact, false, nil)
	}},
	{name: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, b, b.codec.fail.Store)
	}},
	{name: "RunTestDeleteExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, b *bench) {
		t.Run("transform", func(t *testing.T) {
			failing := &unreadable{Transformer: b.transformer}
			s := *b.Storage
			s.transformer = failing
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, &s, failing.fail.Store)
		})
		t.Run("decode", func(t *testing.T) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, b, b.codec.fail.Store)
		})
	}},
	{name: "RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, b)
	}},
	{name: "RunTestConsistentList", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestConsistentList(ctx, t, b, b.raiseRevision, false, true, false)
	}},
	{name: "RunTestGetListNonRecursive", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, b.raiseRevision, b)
	}},
	plain("RunTestGetListRecursivePrefix", storagetesting.RunTestGetListRecursivePrefix),
	{name: "RunTestGetListWithErrorAggregation", notApplicable: corrupt},
	{name: "RunTestGetListWithoutErrorAggregation", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, overridden{b.Storage}, fmt.Errorf("bits flipped"))
	}},
	{name: "RunTestListContinuation", run: func(ctx context.Context, t *testing.T, b *bench) {
		b.calls.lists.Store(0)
		storagetesting.RunTestListContinuation(ctx, t, b, b.checkCost)
	}},
	{name: "RunTestListPaginationRareObject", run: func(ctx context.Context, t *testing.T, b *bench) {
		b.calls.lists.Store(0)
		storagetesting.RunTestListPaginationRareObject(ctx, t, b, b.checkCost)
	}},
	{name: "RunTestListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, b *bench) {
		b.calls.lists.Store(0)
		storagetesting.RunTestListContinuationWithFilter(ctx, t, b, b.checkCost)
	}},
	{name: "RunTestListInconsistentContinuation", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, b, b.compact)
	}},
	plain("RunTestListResourceVersionMatch", storagetesting.RunTestListResourceVersionMatch),
	{name: "RunTestGuaranteedUpdate", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, prefixed{b.Storage}, b.checkStored)
	}},
	plain("RunTestGuaranteedUpdateWithTTL", storagetesting.RunTestGuaranteedUpdateWithTTL),
	plain("RunTestGuaranteedUpdateChecksStoredData", storagetesting.RunTestGuaranteedUpdateChecksStoredData),
	plain("RunTestGuaranteedUpdateWithConflict", storagetesting.RunTestGuaranteedUpdateWithConflict),
	plain("RunTestGuaranteedUpdateWithSuggestionAndConflict", storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	plain("RunTestTransformationFailure", storagetesting.RunTestTransformationFailure),
	{name: "RunTestStats", run: func(ctx context.Context, t *testing.T, b *bench) {
		for _, sizes := range []bool{false, true} {
			t.Run(fmt.Sprintf("sizes=%t", sizes), func(t *testing.T) {
				if sizes {
					if err := b.EnableResourceSizeEstimation(nil); err != nil {
						t.Fatal(err)
					}
				}
				storagetesting.RunTestStats(ctx, t, b, b.codec, b.transformer, sizes)
			})
		}
	}},
	plain("RunTestListPaging", storagetesting.RunTestListPaging),
	plain("RunTestNamespaceScopedList", storagetesting.RunTestNamespaceScopedList),
	{name: "RunTestCompactRevision", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestCompactRevision(ctx, t, b, b.raiseRevision, b.compact)
	}},
	plain("RunTestKeySchema", storagetesting.RunTestKeySchema),
	plain("RunTestWatch", storagetesting.RunTestWatch),
	{name: "RunTestWatchFromZero", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestWatchFromZero(ctx, t, b, b.compact)
	}},
	plain("RunTestDeleteTriggerWatch", storagetesting.RunTestDeleteTriggerWatch),
	plain("RunTestWatchFromNonZero", storagetesting.RunTestWatchFromNonZero),
	plain("RunTestDelayedWatchDelivery", storagetesting.RunTestDelayedWatchDelivery),
	plain("RunTestWatchError", storagetesting.RunTestWatchError),
	{name: "RunTestWatchWithUnsafeDelete", notApplicable: corrupt},
	plain("RunTestWatchContextCancel", storagetesting.RunTestWatchContextCancel),
	plain("RunTestWatcherTimeout", storagetesting.RunTestWatcherTimeout),
	plain("RunTestWatchDeleteEventObjectHaveLatestRV", storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	plain("RunTestWatchInitializationSignal", storagetesting.RunTestWatchInitializationSignal),
	{name: "RunOptionalTestProgressNotify", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, b, b.raiseRevision)
	}},
	plain("RunTestClusterScopedWatch", storagetesting.RunTestClusterScopedWatch),
	plain("RunTestNamespaceScopedWatch", storagetesting.RunTestNamespaceScopedWatch),
	{name: "RunTestWatchDispatchBookmarkEvents", run: func(ctx context.Context, t *testing.T, b *bench) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, b, true)
	}},
	plain("RunTestOptionalWatchBookmarksWithCorrectResourceVersion", storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	plain("RunSendInitialEventsBackwardCompatibility", storagetesting.RunSendInitialEventsBackwardCompatibility),
	plain("RunWatchSemantics", storagetesting.RunWatchSemantics),
	plain("RunWatchSemanticInitialEventsExtended", storagetesting.RunWatchSemanticInitialEventsExtended),
	plain("RunWatchListMatchSingle", storagetesting.RunWatchListMatchSingle),
	plain("RunWatchErrorIsBlockingFurtherEvents", storagetesting.RunWatchErrorIsBlockingFurtherEvents),
}

func TestStorage(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testStorage(t, redistest.Embedded(t)) })
	t.Run("redis-server", func(t *testing.T) { testStorage(t, redistest.Server(t).URL()) })
}

func testStorage(t *testing.T, url string) {
	s := newServer(t, url)
	for _, test := range contractTests {
		if test.notApplicable == "" {
			t.Run(test.name, func(t *testing.T) { test.run(t.Context(), t, s.bench(t)) })
		}
	}
}

// TestStorageComplete compares the table with the package: a test that the package adds must be run here, or be listed as not applicable.
func TestStorageComplete(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/apiserver/pkg/storage/testing").Output()
	if err != nil {
		t.Fatalf("finding the package: %v", err)
	}
	packages, err := parser.ParseDir(token.NewFileSet(), strings.TrimSpace(string(out)), func(info fs.FileInfo) bool {
		return filepath.Ext(info.Name()) == ".go" && !strings.HasSuffix(info.Name(), "_test.go")
	}, 0)
	if err != nil {
		t.Fatalf("parsing the package: %v", err)
	}
	var exported []string
	for _, pkg := range packages {
		for _, file := range pkg.Files {
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Run") && !strings.HasPrefix(function.Name.Name, "RunBenchmark") {
					exported = append(exported, function.Name.Name)
				}
			}
		}
	}
	listed := map[string]bool{}
	for _, test := range contractTests {
		if listed[test.name] {
			t.Errorf("%s is listed twice", test.name)
		}
		listed[test.name] = true
		if (test.run == nil) == (test.notApplicable == "") {
			t.Errorf("%s is neither run nor said not to apply, or both", test.name)
		}
	}
	for _, name := range exported {
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is listed but the package does not have it", name)
	}
}
