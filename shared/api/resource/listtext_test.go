package resource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// short is a state whose pages have few objects: the first one, and those that follow.
type short struct {
	store.Store
	first, next int
}

func (s short) List(ctx context.Context, query store.Query) (store.Page, error) {
	most := s.next
	if query.After == "" {
		most = s.first
	}
	if query.Limit == 0 || query.Limit > most {
		query.Limit = most
	}
	return s.Store.List(ctx, query)
}

// A list of texts has the bytes of the list of the objects: of records whose texts are used and of others in any order, of several
// owners, of one page of the state or more, with and without a limit, and also where the page is cut because of its size. Lists
// of others that are made from the same memory do not change it.
func TestListsInText(t *testing.T) {
	t.Parallel()
	for worker := range 4 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(worker), 17))
			for range 20 {
				checkListsInText(t, random)
			}
		})
	}
}

func checkListsInText(t *testing.T, random *rand.Rand) {
	t.Helper()
	state := newStore(t)
	r := newRegistry(state, seeded(byte(random.IntN(256))))
	large := random.IntN(8) == 0
	for i := range random.IntN(30) {
		object := grantee(fmt.Sprintf("key-%02d", i))
		object.Spec.DisplayName = strings.Repeat("x", random.IntN(40))
		if large {
			object.Annotations = map[string]string{"a": strings.Repeat("x", 100_000+random.IntN(2))}
		}
		create(t, r, []identity.Caller{ana, ben}[random.IntN(2)], object)
		if random.IntN(6) > 0 {
			continue
		}
		withoutSplice(t, state, object.Name)
	}
	// kept are texts that are not released, with what they were.
	kept := map[string][]byte{}
	for range 6 {
		narrow := newRegistry(short{state, 1 + random.IntN(32), 1 + random.IntN(32)}, seeded(1))
		in := resource.ListInput{Caller: []identity.Caller{admin, ana, ben}[random.IntN(3)], Limit: random.Int64N(12)}
		for first := true; first || in.Continue != ""; first = false {
			var answer runtime.Object
			if answer, in.Continue = sameInText(t, narrow, in); random.IntN(4) > 0 {
				resource.Release(answer)
			} else {
				text, _ := resource.EncodedText(answer)
				kept[string(text)] = text
			}
		}
	}
	for was, is := range kept {
		if was != string(is) {
			t.Errorf("a list of\n%.2000s\nhas become\n%.2000s", was, is)
		}
	}
}

// sameInText returns a list of texts and its continue token. It has the bytes of the list of the objects.
func sameInText(t *testing.T, r *registry, in resource.ListInput) (answer runtime.Object, token string) {
	t.Helper()
	list := mustList(t, r, in)
	want, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	in.Text = true
	if answer, err = resource.List(t.Context(), r, in); err != nil {
		t.Fatal(err)
	}
	got, isText := resource.EncodedText(answer)
	// Two tokens of one position differ.
	sealed := []byte(`"continue":"sealed"`)
	if !isText || !bytes.Equal(continueToken.ReplaceAll(got, sealed), continueToken.ReplaceAll(want, sealed)) {
		t.Fatalf("a list of %d with the limit %d is\n%.2000s\nas text, and\n%.2000s\nas objects", len(list.Items), in.Limit, got, want)
	}
	return answer, list.Continue
}

// A list that ends before the end of a page of the state, because of its size, does not have what is left out: also if this is as
// long as what the list has of an earlier page.
func TestListsInTextAreCut(t *testing.T) {
	t.Parallel()
	state := newStore(t)
	r := newRegistry(state, seeded(1))
	const size = limits.PageBytes / 10
	for i := range 12 {
		object := grantee(fmt.Sprintf("key-%02d", i))
		object.Annotations = map[string]string{"a": strings.Repeat("x", size-limits.PageBytes/100)}
		create(t, r, ana, object)
	}
	for i := range 12 {
		// Their resource versions have two digits now.
		object := get(t, r, fmt.Sprintf("key-%02d", i))
		object.Spec.DisplayName = "x"
		if _, err := update(t, r, object); err != nil {
			t.Fatal(err)
		}
	}
	answer, token := sameInText(t, newRegistry(short{state, 1, 11}, seeded(1)), resource.ListInput{Caller: admin, Limit: 20})
	text, _ := resource.EncodedText(answer)
	var list model.OwnedAccessKeyList
	if err := json.Unmarshal(text, &list); err != nil || token == "" || len(list.Items) < 2 || len(list.Items) > 11 {
		t.Errorf("%v, the list has %d items and the token %q", err, len(list.Items), token)
	}
}

// unbounded is a state whose pages have all objects, however many bytes they have.
type unbounded struct{ store.Store }

func (u unbounded) List(ctx context.Context, query store.Query) (page store.Page, err error) {
	last, err := u.Store.List(ctx, store.Query{Limit: 1})
	page.Revision = last.Revision
	for record, broken := range store.Each(ctx, u.Store, query) {
		if broken != nil {
			return page, broken
		}
		page.Records = append(page.Records, record)
	}
	return page, err
}

// A list with objects between its texts is not taken for the text of the page, also if the commas of the objects are as long as the text
// that is left out.
func TestListsInTextWithObjects(t *testing.T) {
	t.Parallel()
	state := newStore(t)
	r := newRegistry(state, seeded(1))
	create(t, r, ana, grantee("a"))
	create(t, r, ana, grantee("z"))
	answer, _ := sameInText(t, r, resource.ListInput{Caller: admin})
	text, _ := resource.EncodedText(answer)
	last := len(text) - strings.LastIndex(string(text), `{"kind":"OwnedAccessKey",`) - len("]}")
	if last < 100 {
		t.Fatalf("the last object has %d bytes: %s", last, text)
	}
	total := 0
	for i := range last + 1 {
		object := grantee(fmt.Sprintf("m-%04d", i))
		object.Annotations = map[string]string{"a": strings.Repeat("x", (limits.PageBytes-200_000)/(last+1)-500)}
		create(t, r, ana, object)
		total += len(withoutSplice(t, state, object.Name).Object)
	}
	first := get(t, r, "a")
	record, err := state.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	// The last object is what does not fit into the page.
	first.Annotations = map[string]string{"a": strings.Repeat("x", limits.PageBytes-total-len(record.Object)-last/2)}
	if _, err := update(t, r, first); err != nil {
		t.Fatal(err)
	}
	_, token := sameInText(t, newRegistry(unbounded{state}, seeded(1)), resource.ListInput{Caller: admin, Limit: 5000})
	if token == "" {
		t.Error("the page was not cut")
	}
}

// withoutSplice makes of a record one of an older build, whose text is not used.
func withoutSplice(t *testing.T, state store.Store, name string) store.Record {
	t.Helper()
	record, err := state.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(record.Object, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "splice")
	if record.Object, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return record
}
