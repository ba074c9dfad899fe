package resource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// narrow is a store with smaller pages, so that few objects have many of them. Others write before each page but the first.
type narrow struct {
	store.Store
	objects int
	between func()
	pages   int
}

func (n *narrow) List(ctx context.Context, query store.Query) (store.Page, error) {
	if n.pages++; n.pages > 1 && n.between != nil {
		n.between()
	}
	if query.Limit == 0 || query.Limit > n.objects {
		query.Limit = n.objects
	}
	return n.Store.List(ctx, query)
}

// flow reads a list part by part.
func flow(t testing.TB, r *registry, in resource.ListInput) (*model.OwnedAccessKeyList, error) {
	t.Helper()
	in.Rest = &resource.Rest{}
	accessKeyList, err := list(t, r, in)
	if err != nil || in.Rest.Empty == nil {
		return accessKeyList, err
	}
	if empty := in.Rest.Empty.(*model.OwnedAccessKeyList); len(empty.Items) != 0 || empty.Kind != accessKeyList.Kind || empty.ResourceVersion != accessKeyList.ResourceVersion {
		t.Errorf("the empty list is %+v", empty)
	}
	for {
		part, err := in.Rest.Next(t.Context())
		if err != nil || part == nil {
			return accessKeyList, err
		}
		next := part.(*model.OwnedAccessKeyList)
		if next.ResourceVersion != accessKeyList.ResourceVersion || next.Kind != accessKeyList.Kind {
			t.Errorf("a part is %s %q, the first one %q", next.Kind, next.ResourceVersion, accessKeyList.ResourceVersion)
		}
		accessKeyList.Items = append(accessKeyList.Items, next.Items...)
	}
}

// A list that is read in many pages shows the state at its revision, whatever is written meanwhile, and a watch from there
// misses nothing. Source: ADR-0020.
func TestListIsOneSnapshot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := open(t)
		state := r.Store
		random := newRegistry(state, seeded(7))
		number := rapid.IntRange(0, 29)
		name := func() string { return fmt.Sprintf("k%02d", number.Draw(rt, "name")) }
		label := rapid.SampledFrom([]string{"a", "b"})
		user := rapid.SampledFrom([]string{"ana", "ben"})
		write := func() {
			name := name()
			switch rapid.IntRange(0, 3).Draw(rt, "write") {
			case 0:
				if _, err := resource.Delete(t.Context(), random, resource.DeleteInput{Caller: admin, Name: name}); err != nil {
					expect(t, err, notFound)
				}
			case 1:
				body := fmt.Sprintf(`{"metadata":{"labels":{"l":%q}},"spec":{"user":%q,"description":"%d"}}`,
					label.Draw(rt, "label"), user.Draw(rt, "user"), rapid.IntRange(0, 99).Draw(rt, "text"))
				if _, err := patch(t, random, name, resource.MergePatch, body); err != nil {
					expect(t, err, notFound)
				}
			default:
				object := grantee(name)
				object.Labels = map[string]string{"l": label.Draw(rt, "label")}
				if _, err := resource.Get(t.Context(), random, resource.GetInput{Caller: admin, Name: name}); err != nil {
					create(t, random, ana, object)
				}
			}
		}
		for range rapid.IntRange(0, 40).Draw(rt, "before") {
			write()
		}
		in := resource.ListInput{Caller: admin}
		if rapid.Bool().Draw(rt, "of one owner") {
			in.Caller = ana
		}
		if rapid.Bool().Draw(rt, "selected") {
			in.Labels = selectLabels(t, "l=a")
		}
		want := mustList(t, r, in)
		slow := &narrow{Store: state, objects: rapid.IntRange(1, 7).Draw(rt, "page"), between: func() {
			for range rapid.IntRange(0, 5).Draw(rt, "between") {
				write()
			}
		}}
		r.Store = slow
		got, err := flow(t, r, in)
		limited := in
		limited.Limit = math.MaxInt64
		slow.pages = 0
		later := mustList(t, newRegistry(state, seeded(8)), in)
		page := mustList(t, r, limited)
		r.Store = state
		if err != nil {
			rt.Fatal(err)
		}
		same := func(what string, got, want *model.OwnedAccessKeyList) {
			gotText, _ := json.Marshal(got)
			wantText, _ := json.Marshal(want)
			if string(gotText) != string(wantText) {
				rt.Fatalf("%s is\n%s\nwant\n%s", what, gotText, wantText)
			}
		}
		same("the list", got, want)
		// A page of many is a snapshot as well, unless it is short.
		if page.Continue == "" {
			same("the page", page, later)
		}

		watcher := mustFollow(t, r, resource.WatchInput{Caller: in.Caller, Labels: in.Labels, ResourceVersion: got.ResourceVersion})
		cache := newCache(resource.WatchInput{Caller: in.Caller, Labels: in.Labels})
		cache.synced = true
		for i := range got.Items {
			cache.objects[got.Items[i].Name] = &got.Items[i]
		}
		cache.read(t, watcher)
		cache.equals(t, r)
	})
}

// What was removed meanwhile counts for the size of a page, and is read again when the reader comes to it.
func TestListRestoresPages(t *testing.T) {
	t.Parallel()
	r := open(t)
	const count = 24
	for i := range count {
		object := grantee(fmt.Sprintf("k%02d", i))
		object.Annotations = map[string]string{"a": strings.Repeat("x", limits.PageBytes/8)}
		create(t, r, ana, object)
	}
	want := mustList(t, r, resource.ListInput{})
	state := r.Store
	beside := newRegistry(state, seeded(9))
	slow := &narrow{Store: state, objects: 2}
	slow.between = func() {
		if slow.pages == 2 {
			for i := range count {
				if _, err := resource.Delete(t.Context(), beside, resource.DeleteInput{Caller: admin, Name: fmt.Sprintf("k%02d", i)}); err != nil {
					t.Error(err)
				}
			}
		}
	}
	r.Store = slow
	in := resource.ListInput{Caller: admin, Rest: &resource.Rest{}}
	var got []string
	part, err := resource.List(t.Context(), r, in)
	for part != nil && err == nil {
		items := part.(*model.OwnedAccessKeyList).Items
		if len(items) > 8 {
			t.Errorf("a part has %d objects", len(items))
		}
		for _, item := range items {
			got = append(got, item.Name)
		}
		part, err = in.Rest.Next(t.Context())
	}
	if err != nil || strings.Join(got, " ") != names(want) {
		t.Errorf("the list is %q, %v", got, err)
	}
}

// Once the event log does not reach back to the beginning, a list that is read as a whole begins again, and one whose parts
// may have been sent ends with an error.
func TestListBeyondTheLog(t *testing.T) {
	t.Parallel()
	r := open(t)
	populate(t, r, 10)
	state := r.Store
	beside := newRegistry(state, seeded(9))
	var trims int
	slow := &trimmed{narrow: narrow{Store: state, objects: 4}}
	slow.between = func() {
		if trims--; trims < 0 {
			return
		}
		if _, err := patch(t, beside, "k00", resource.MergePatch, fmt.Sprintf(`{"spec":{"description":"%d"}}`, trims)); err != nil {
			t.Error(err)
		}
		slow.gone = true
	}
	r.Store = slow
	trims = 1
	whole := mustList(t, r, resource.ListInput{})
	if len(whole.Items) != 10 || whole.ResourceVersion != "12" {
		t.Errorf("%d objects at %s", len(whole.Items), whole.ResourceVersion)
	}
	slow.pages, slow.gone, trims = 0, false, math.MaxInt
	if _, err := list(t, r, resource.ListInput{}); !errors.Is(err, store.ErrGone) {
		t.Errorf("a list that never ends: %v", err)
	}
	slow.pages, slow.gone = 0, false
	if got, err := flow(t, r, resource.ListInput{}); !errors.Is(err, store.ErrGone) || len(got.Items) != 4 {
		t.Errorf("the parts: %d objects, %v", len(got.Items), err)
	}
	// A page with a limit ends early, and the next request goes on.
	slow.pages, slow.gone = 0, false
	if page := mustList(t, r, resource.ListInput{Limit: 9}); len(page.Items) != 4 || page.Continue == "" {
		t.Errorf("the page has %d objects", len(page.Items))
	}
}

// trimmed is a store without an event log.
type trimmed struct {
	narrow
	gone bool
}

func (s *trimmed) List(ctx context.Context, query store.Query) (store.Page, error) {
	if query.After == "" {
		s.pages, s.gone = 0, false
	}
	return s.narrow.List(ctx, query)
}

func (s *trimmed) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	if s.gone {
		return nil, store.ErrGone
	}
	return s.narrow.Events(ctx, after, limit, wait)
}

// A page ends with the bytes of a page or after so many pages of the state, and a continue token leads on.
func TestListPagesAreBounded(t *testing.T) {
	t.Parallel()
	r := open(t)
	const count = 30
	for i := range count {
		object := grantee(fmt.Sprintf("k%02d", i))
		object.Annotations = map[string]string{"a": strings.Repeat("x", limits.PageBytes/8)}
		object.Labels = map[string]string{"last": fmt.Sprint(i == count-1)}
		create(t, r, ana, object)
	}
	page := mustList(t, r, resource.ListInput{Limit: 100})
	if len(page.Items) < 6 || len(page.Items) > 8 || page.RemainingItemCount == nil || *page.RemainingItemCount != count-int64(len(page.Items)) {
		t.Errorf("%d objects of %d bytes, %v remain", len(page.Items), limits.PageBytes/8, page.RemainingItemCount)
	}
	r.Store = &narrow{Store: r.Store, objects: 1}
	in := resource.ListInput{Limit: 100, Labels: selectLabels(t, "last=true")}
	page = mustList(t, r, in)
	if len(page.Items) != 0 || page.Continue == "" {
		t.Fatalf("after %d pages there are %d objects", limits.ListPages, len(page.Items))
	}
	in.Continue = page.Continue
	if page = mustList(t, r, in); names(page) != "k29" || page.Continue != "" {
		t.Errorf("the second page is %q", names(page))
	}
}

// Without a limit, a collection is removed page by page.
func TestDeleteCollectionInParts(t *testing.T) {
	t.Parallel()
	for _, parts := range []bool{false, true} {
		r := open(t)
		populate(t, r, 20)
		r.Store = &narrow{Store: r.Store, objects: 3}
		selection := resource.ListInput{Caller: admin, Labels: selectLabels(t, "n in (0,1)")}
		want := names(mustList(t, r, resource.ListInput{Labels: selection.Labels}))
		if parts {
			selection.Rest = &resource.Rest{}
		}
		var got []string
		add := func(part runtime.Object) {
			must(t, meta.EachListItem(part, func(item runtime.Object) error {
				got = append(got, item.(*key).Name)
				return nil
			}))
		}
		part, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Selection: &selection})
		must(t, err)
		add(part)
		for parts {
			if part, err = selection.Rest.Next(t.Context()); part == nil || err != nil {
				break
			}
			add(part)
		}
		must(t, err)
		left := mustList(t, r, resource.ListInput{})
		if strings.Join(got, " ") != want || len(left.Items) != 20-len(got) || slices.ContainsFunc(left.Items, func(k key) bool { return k.Labels["n"] != "2" }) {
			t.Errorf("removed %q, want %q; left %q", got, want, names(left))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
