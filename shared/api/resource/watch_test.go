package resource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

type watcher = resource.Watcher[*key]

// follow begins a watch as an admin, unless another caller is given.
func follow(t testing.TB, r *registry, in resource.WatchInput) (*watcher, error) {
	t.Helper()
	if in.Caller.Owner == (identity.Owner{}) {
		in.Caller = admin
	}
	return resource.Watch(t.Context(), r, in)
}

func mustFollow(t testing.TB, r *registry, in resource.WatchInput) *watcher {
	t.Helper()
	w, err := follow(t, r, in)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// said returns an event in the form that tests compare: type, name, resource version.
func said(t testing.TB, event resource.WatchEvent[*key]) string {
	t.Helper()
	object, err := event.Object()
	if err != nil {
		t.Fatal(err)
	}
	if object.Kind != "OwnedAccessKey" || object.APIVersion != "management.platform.sh/v1" || object.Spec.Key != "" {
		t.Errorf("an event shows %+v", object)
	}
	text := fmt.Sprintf("%s %s %s", event.Type, object.Name, object.ResourceVersion)
	if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		text += " end"
	}
	return text
}

// told returns the events that a watcher has without waiting.
func told(t testing.TB, w *watcher) string {
	t.Helper()
	var all []string
	for {
		events, err := w.Next(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return strings.Join(all, ", ")
		}
		for _, event := range events {
			all = append(all, said(t, event))
		}
	}
}

func tells(t testing.TB, what string, w *watcher, want string) {
	t.Helper()
	if got := told(t, w); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

var (
	expired  = refusal{code: 410, reason: metav1.StatusReasonExpired}
	tooLarge = refusal{code: 504, reason: metav1.StatusReasonTimeout, fields: []string{""}}

	yes, no = true, false
)

func label(t testing.TB, r *registry, name, value string) {
	t.Helper()
	if _, err := patch(t, r, name, resource.MergePatch, fmt.Sprintf(`{"metadata":{"labels":{"a":%q}}}`, value)); err != nil {
		t.Fatal(err)
	}
}

// Where a watch begins. Source: Spec 2.2; ADR-0007.
func TestWatchBegins(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("b"))
	create(t, r, ana, grantee("a"))
	label(t, r, "b", "1") // at 4
	for _, test := range []struct {
		version string
		send    *bool
		marks   bool
		want    string
		fails   refusal
	}{
		{version: "", want: "ADDED a 3, ADDED b 4"},
		{version: "0", want: "ADDED a 3, ADDED b 4"},
		{version: "", marks: true, want: "ADDED a 3, ADDED b 4, BOOKMARK  4 end"},
		{version: "2", want: "ADDED a 3, MODIFIED b 4"},
		{version: "4", want: ""},
		{version: "4", marks: true, want: ""},
		{version: "", send: &yes, want: "ADDED a 3, ADDED b 4"},
		{version: "", send: &yes, marks: true, want: "ADDED a 3, ADDED b 4, BOOKMARK  4 end"},
		{version: "0", send: &yes, marks: true, want: "ADDED a 3, ADDED b 4, BOOKMARK  4 end"},
		{version: "2", send: &yes, marks: true, want: "ADDED a 3, ADDED b 4, BOOKMARK  4 end"},
		{version: "4", send: &yes, marks: true, want: "ADDED a 3, ADDED b 4, BOOKMARK  4 end"},
		{version: "", send: &no, marks: true, want: ""},
		{version: "0", send: &no, want: ""},
		{version: "3", send: &no, want: "MODIFIED b 4"},
		{version: "5", fails: expired},
		{version: "5", send: &no, fails: expired},
		{version: "9223372036854775807", fails: expired},
		{version: "5", send: &yes, fails: tooLarge},
		{version: "x", fails: badVersion},
		{version: "-1", fails: badVersion},
		{version: "01", fails: badVersion},
		{version: "1.0", fails: badVersion},
		{version: " 1", fails: badVersion},
		{version: "9223372036854775808", fails: badVersion},
		{version: "x", send: &yes, fails: badVersion},
	} {
		w, err := follow(t, r, resource.WatchInput{ResourceVersion: test.version, SendInitialEvents: test.send, AllowBookmarks: test.marks})
		expect(t, err, test.fails)
		if err == nil {
			tells(t, fmt.Sprintf("%+v", test), w, test.want)
		}
	}
	_, err := follow(t, r, resource.WatchInput{Fields: selectFields(t, "spec.key=x")})
	expect(t, err, refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{"fieldSelector"}})
}

var badVersion = refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{"resourceVersion"}}

// Changes that move objects in and out of a selection. Source: ADR-0007.
func TestWatchSelects(t *testing.T) {
	t.Parallel()
	r := open(t)
	all := mustFollow(t, r, resource.WatchInput{})
	labelled := mustFollow(t, r, resource.WatchInput{Labels: selectLabels(t, "a=1")})
	anas := mustFollow(t, r, resource.WatchInput{Caller: ana})
	bens := mustFollow(t, r, resource.WatchInput{Caller: ben})
	byName := mustFollow(t, r, resource.WatchInput{Fields: selectFields(t, "metadata.name=x,spec.user!=ben")})
	nowhere := mustFollow(t, r, resource.WatchInput{Namespace: "there"})
	step := func(what string, wantAll, wantLabelled, wantAna, wantBen, wantName string) {
		t.Helper()
		tells(t, what+", all", all, wantAll)
		tells(t, what+", by label", labelled, wantLabelled)
		tells(t, what+", ana", anas, wantAna)
		tells(t, what+", ben", bens, wantBen)
		tells(t, what+", by name", byName, wantName)
		tells(t, what+", in a namespace", nowhere, "")
	}
	step("nothing", "", "", "", "", "")
	create(t, r, ana, grantee("x"))
	step("created", "ADDED x 2", "", "ADDED x 2", "", "ADDED x 2")
	label(t, r, "x", "1")
	step("labelled", "MODIFIED x 3", "ADDED x 3", "MODIFIED x 3", "", "MODIFIED x 3")
	if _, err := patch(t, r, "x", resource.MergePatch, `{"spec":{"description":"d"}}`); err != nil {
		t.Fatal(err)
	}
	step("changed", "MODIFIED x 4", "MODIFIED x 4", "MODIFIED x 4", "", "MODIFIED x 4")
	label(t, r, "x", "2")
	step("labelled otherwise", "MODIFIED x 5", "DELETED x 5", "MODIFIED x 5", "", "MODIFIED x 5")
	if _, err := patch(t, r, "x", resource.MergePatch, `{"spec":{"user":"ben"}}`); err != nil {
		t.Fatal(err)
	}
	step("given away", "MODIFIED x 6", "", "DELETED x 6", "ADDED x 6", "DELETED x 6")
	label(t, r, "x", "1")
	step("of another", "MODIFIED x 7", "ADDED x 7", "", "MODIFIED x 7", "")
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Name: "x"}); err != nil {
		t.Fatal(err)
	}
	step("deleted", "DELETED x 8", "DELETED x 8", "", "DELETED x 8", "")
	create(t, r, ben, grantee("y"))
	step("another", "ADDED y 9", "", "", "ADDED y 9", "")
}

// An object that leaves the selection is shown as it was last seen, not as it is now.
func TestWatchShowsTheLastSeen(t *testing.T) {
	t.Parallel()
	r := open(t)
	given := grantee("x")
	given.Labels = map[string]string{"a": "1"}
	given.Spec.Description = "ana's"
	create(t, r, ana, given)
	anas := mustFollow(t, r, resource.WatchInput{Caller: ana, ResourceVersion: "2"})
	labelled := mustFollow(t, r, resource.WatchInput{Labels: selectLabels(t, "a=1"), ResourceVersion: "2"})
	if _, err := patch(t, r, "x", resource.MergePatch, `{"metadata":{"labels":{"a":"2"}},"spec":{"user":"ben","description":"ben's secret"}}`); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*watcher{anas, labelled} {
		events, err := w.Next(t.Context(), 0)
		if err != nil || len(events) != 1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		object, err := events[0].Object()
		if err != nil || events[0].Type != watch.Deleted || object.ResourceVersion != "3" ||
			object.Spec.Description != "ana's" || object.Labels["a"] != "1" || object.Spec.User != "ana" {
			t.Errorf("%s %+v, %v", events[0].Type, object, err)
		}
	}
}

func TestWatchBookmarks(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i := range 600 {
		create(t, r, ana, grantee(fmt.Sprintf("k-%03d", i)))
	}
	bens := mustFollow(t, r, resource.WatchInput{Caller: ben, ResourceVersion: "1", AllowBookmarks: true})
	for range 3 {
		if events, err := bens.Next(t.Context(), 0); err != nil || len(events) != 0 {
			t.Fatalf("ben sees %d events, %v", len(events), err)
		}
	}
	mark, ok := bens.Bookmark()
	if !ok || said(t, mark) != "BOOKMARK  601" {
		t.Errorf("after events of others: %v", ok)
	}
	w := mustFollow(t, r, resource.WatchInput{AllowBookmarks: true})
	for i := 0; ; i++ {
		if mark, ok := w.Bookmark(); ok {
			t.Fatalf("%q before the present state was shown", said(t, mark))
		}
		events, err := w.Next(t.Context(), 0)
		if err != nil || len(events) == 0 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		if said(t, events[len(events)-1]) == "BOOKMARK  601 end" {
			break
		}
	}
	if mark, ok := w.Bookmark(); !ok || said(t, mark) != "BOOKMARK  601" {
		t.Errorf("after it: %v", ok)
	}
	if _, ok := mustFollow(t, r, resource.WatchInput{ResourceVersion: "1"}).Bookmark(); ok {
		t.Error("a bookmark that was not asked for")
	}
}

func TestWatchFallsBehind(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("x"))
	w := mustFollow(t, r, resource.WatchInput{})
	tells(t, "at first", w, "ADDED x 2")
	label(t, r, "x", "1")
	label(t, r, "x", "2")
	if err := r.Store.Trim(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Next(t.Context(), 0)
	expect(t, err, expired)
	_, err = follow(t, r, resource.WatchInput{ResourceVersion: "3"})
	expect(t, err, expired)
	w = mustFollow(t, r, resource.WatchInput{ResourceVersion: "4"})
	tells(t, "at the end of an empty log", w, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// unreachable is a state that cannot be reached.
type unreachable struct{ store.Store }

func (unreachable) Events(context.Context, int64, int, time.Duration) ([]store.Event, error) {
	return nil, store.ErrUnavailable
}

func (unreachable) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, store.ErrUnavailable
}

func TestWatchWithoutState(t *testing.T) {
	t.Parallel()
	r := open(t)
	w := mustFollow(t, r, resource.WatchInput{})
	r.Store = unreachable{r.Store}
	gone := refusal{code: 503, reason: metav1.StatusReasonServiceUnavailable}
	_, err := w.Next(t.Context(), time.Hour)
	expect(t, err, gone)
	for _, version := range []string{"", "0", "1"} {
		_, err := follow(t, r, resource.WatchInput{ResourceVersion: version})
		expect(t, err, gone)
	}
}

// A watch reports records that cannot be read.
func TestWatchBrokenRecord(t *testing.T) {
	t.Parallel()
	r := open(t)
	w := mustFollow(t, r, resource.WatchInput{Labels: selectLabels(t, "a")})
	if _, err := r.Store.Create(t.Context(), store.Record{Name: "x", Created: now, Object: []byte(`{"spec":{"ttl":"long"}}`)}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Next(t.Context(), 0)
	expect(t, err, internal)
	_, err = follow(t, r, resource.WatchInput{Labels: selectLabels(t, "a")})
	expect(t, err, internal)
}

// Watchers of the same form share the encoded text. Other forms have their own.
func TestWatchShares(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("x"))
	watchers := []*watcher{
		mustFollow(t, r, resource.WatchInput{ResourceVersion: "2"}),
		mustFollow(t, r, resource.WatchInput{ResourceVersion: "2", Labels: selectLabels(t, "a=1")}),
		mustFollow(t, r, resource.WatchInput{ResourceVersion: "2", Caller: ana}),
	}
	made := map[string]int{}
	var group sync.WaitGroup
	events := make(chan resource.WatchEvent[*key], len(watchers))
	for _, w := range watchers {
		group.Go(func() {
			got, err := w.Next(t.Context(), 30*time.Second)
			if err != nil || len(got) != 1 {
				t.Errorf("%d events, %v", len(got), err)
				return
			}
			events <- got[0]
		})
	}
	// All of them wait in this process.
	label(t, r, "x", "1")
	group.Wait()
	close(events)
	kinds := ""
	for event := range events {
		kinds += " " + string(event.Type)
		for _, form := range []string{"a", "b"} {
			text, err := event.Encoded(form, func(object *key) ([]byte, error) {
				made[form]++
				return fmt.Appendf(nil, "%s of %s", form, object.Name), nil
			})
			if err != nil || string(text) != form+" of x" {
				t.Errorf("%q, %v", text, err)
			}
		}
	}
	if strings.Count(kinds, "ADDED") != 1 || strings.Count(kinds, "MODIFIED") != 2 {
		t.Errorf("the watchers saw%s", kinds)
	}
	// Watchers that started before the feed had the event read it themselves.
	if made["a"] > len(watchers) || made["a"] != made["b"] {
		t.Errorf("encoded %v", made)
	}
}

// churning lets another writer write between two pages.
type churning struct {
	store.Store
	between func(page int)
	pages   int
}

func (c *churning) List(ctx context.Context, query store.Query) (store.Page, error) {
	page, err := c.Store.List(ctx, query)
	c.pages++
	c.between(c.pages)
	return page, err
}

// The present state is one snapshot, whatever is written while its pages are read: before, on and after the
// last page that was read.
func TestWatchSnapshot(t *testing.T) {
	t.Parallel()
	r := open(t)
	const objects = 1200
	for i := range objects {
		given := grantee(fmt.Sprintf("k-%04d", i))
		given.Labels = map[string]string{"a": strconv.Itoa(i % 2)}
		create(t, r, ana, given)
	}
	state := r.Store
	random := 1
	for round, in := range []resource.WatchInput{
		{AllowBookmarks: true},
		{AllowBookmarks: true, Labels: selectLabels(t, "a=1")},
		{AllowBookmarks: true, Caller: ana},
		{AllowBookmarks: true, Caller: ben},
	} {
		// Writes bypass the churning store.
		beside := newRegistry(state, seeded(byte(round+2)))
		r.Store = &churning{Store: state, between: func(page int) {
			if page > 4 {
				return
			}
			for i := range 40 {
				random = random * 48271 % 2147483647
				name := fmt.Sprintf("k-%04d", random%objects)
				switch i % 5 {
				case 0:
					if _, err := resource.Delete(t.Context(), beside, resource.DeleteInput{Caller: admin, Name: name}); err != nil {
						expect(t, err, notFound)
					}
				case 1:
					create(t, beside, ana, grantee(fmt.Sprintf("%s-%d-%d-%d", name, round, page, i)))
				case 2:
					if _, err := patch(t, beside, name, resource.MergePatch, fmt.Sprintf(`{"spec":{"user":%q}}`, []string{"ana", "ben"}[page%2])); err != nil {
						expect(t, err, notFound)
					}
				default:
					if _, err := patch(t, beside, name, resource.MergePatch, fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}},"spec":{"description":"%d"}}`, random%2, random)); err != nil {
						expect(t, err, notFound)
					}
				}
			}
		}}
		w := mustFollow(t, r, in)
		r.Store = state
		cache := newCache(in)
		for !cache.synced {
			cache.read(t, w)
		}
		// Events after the snapshot follow it.
		cache.read(t, w)
		cache.equals(t, r)
	}
}

// cache is a client that applies all events, and notices impossible ones.
type cache struct {
	in      resource.WatchInput
	objects map[string]*key
	version int64
	synced  bool
}

func newCache(in resource.WatchInput) *cache { return &cache{in: in, objects: map[string]*key{}} }

func (c *cache) read(t testing.TB, w *watcher) {
	t.Helper()
	events, err := w.Next(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		c.apply(t, event)
	}
}

func (c *cache) apply(t testing.TB, event resource.WatchEvent[*key]) {
	t.Helper()
	object, err := event.Object()
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(object.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, known := c.objects[object.Name]
	if event.Type != watch.Bookmark && known != (event.Type != watch.Added) {
		t.Errorf("%s of %q, which is known: %v", event.Type, object.Name, known)
	}
	// The present state comes in the order of names.
	if c.synced && (version < c.version || version == c.version && event.Type != watch.Bookmark) {
		t.Errorf("%s %q of %d after %d", event.Type, object.Name, version, c.version)
	}
	switch event.Type {
	case watch.Bookmark:
		c.synced = true
	case watch.Deleted:
		delete(c.objects, object.Name)
	default:
		c.objects[object.Name] = object
	}
	if c.synced {
		c.version = version
	}
}

// equals compares the cache with a list of the same query.
func (c *cache) equals(t testing.TB, r *registry) {
	t.Helper()
	in := resource.ListInput{Caller: c.in.Caller, Labels: c.in.Labels, Fields: c.in.Fields}
	items := mustList(t, r, in).Items
	if len(items) != len(c.objects) {
		t.Errorf("the cache has %d objects, the list %d", len(c.objects), len(items))
	}
	for i := range items {
		held := c.objects[items[i].Name]
		if held == nil {
			t.Errorf("the cache lacks %q", items[i].Name)
			continue
		}
		got, _ := json.Marshal(held)
		want, _ := json.Marshal(&items[i])
		if string(got) != string(want) {
			t.Errorf("the cache has\n%s, the list\n%s", got, want)
		}
	}
}

// With random writes, a watcher that is interrupted and resumed at random always reaches the state of a list, and sees
// each change once.
func TestWatchConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := open(t)
		caller := rapid.SampledFrom([]identity.Caller{admin, ana, ben}).Draw(rt, "caller")
		in := resource.WatchInput{Caller: caller, AllowBookmarks: true}
		if rapid.Bool().Draw(rt, "by label") {
			in.Labels = selectLabels(t, rapid.SampledFrom([]string{"a=1", "a!=1", "a in (1,2)", "!a"}).Draw(rt, "labels"))
		}
		if rapid.Bool().Draw(rt, "by field") {
			in.Fields = selectFields(t, rapid.SampledFrom([]string{"metadata.name=x", "spec.user=ana", "spec.user!=ana"}).Draw(rt, "fields"))
		}
		c := newCache(in)
		w := mustFollow(t, r, in)
		name := rapid.SampledFrom([]string{"x", "y", "z"})
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				given := grantee(name.Draw(rt, "name"))
				if value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(rt, "label"); value != "" {
					given.Labels = map[string]string{"a": value}
				}
				_, _ = resource.Create(t.Context(), r, resource.CreateInput[*key]{
					Caller: rapid.SampledFrom([]identity.Caller{ana, ben}).Draw(rt, "owner"), Object: given,
				})
			},
			"change": func(rt *rapid.T) {
				document := rapid.SampledFrom([]string{
					`{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2"}}}`, `{"metadata":{"labels":null}}`,
					`{"spec":{"user":"ana"}}`, `{"spec":{"user":"ben"}}`, `{"spec":{"description":"x"}}`, `{"spec":{"description":"y"}}`,
				}).Draw(rt, "document")
				_, _ = patch(t, r, name.Draw(rt, "name"), resource.MergePatch, document)
			},
			"delete": func(rt *rapid.T) {
				_, _ = resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Name: name.Draw(rt, "name")})
			},
			"read": func(*rapid.T) { c.read(t, w) },
			"resume": func(rt *rapid.T) {
				if !c.synced {
					return
				}
				watchInput := in
				watchInput.ResourceVersion = strconv.FormatInt(c.version, 10)
				if mark, ok := w.Bookmark(); ok && rapid.Bool().Draw(rt, "from a bookmark") {
					c.apply(t, mark)
					watchInput.ResourceVersion = strconv.FormatInt(c.version, 10)
				}
				w = mustFollow(t, r, watchInput)
			},
		})
		for range 3 {
			c.read(t, w)
		}
		c.equals(t, r)
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}
