package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// pages reads a list page by page and fails the test if a page contradicts the contract.
func pages(t *testing.T, s store.Store, query store.Query) []string {
	t.Helper()
	var all []string
	total := int64(-1)
	for {
		page := list(t, s, query)
		if query.Limit > 0 && len(page.Records) > query.Limit {
			t.Fatalf("a page of %d holds %d records", query.Limit, len(page.Records))
		}
		all = append(all, names(page.Records)...)
		if total < 0 {
			total = int64(len(page.Records)) + page.Remaining
		}
		if left := total - int64(len(all)); page.Remaining != left {
			t.Fatalf("after %d of %d records, Remaining is %d", len(all), total, page.Remaining)
		}
		if page.Remaining == 0 {
			return all
		}
		if len(page.Records) == 0 {
			t.Fatalf("an empty page with %d remaining", page.Remaining)
		}
		query.After = all[len(all)-1]
	}
}

// awkward are names in byte order that sort around each other's prefixes.
var awkward = []string{
	"A", "a", "a b", "a!", "a-b/", "a-b/x", "a.b/x", "a/", "a/a", "a/b", "a/b/c", "a/~", "a0", "a0/x", "aa", "b", "b/a", "ä", "ä/x", "\xf4\x8f\xbf\xbfz", "\xff",
}

func fill(t *testing.T, s store.Store, owner func(i int) string) {
	t.Helper()
	// They are not created in the order of the list.
	for i := range awkward {
		j := i * 8 % len(awkward)
		record := object(awkward[j])
		record.Owner = owner(j)
		create(t, s, record)
	}
}

func testListOrder(t *testing.T, open Open) {
	s := open(t)
	fill(t, s, func(int) string { return "" })
	for _, limit := range []int{0, 1, 2, 3, 7, 20, 21, 22, 1000} {
		if got := pages(t, s, store.Query{Limit: limit}); !slices.Equal(got, awkward) {
			t.Errorf("limit %d: %q, want %q", limit, got, awkward)
		}
	}
	// After may name an object that does not exist.
	for _, after := range []string{"", "Z", "a/aa", "a/b", "zzz", "\xff", "\xff\xff"} {
		want := slices.DeleteFunc(slices.Clone(awkward), func(name string) bool { return name <= after })
		if got := pages(t, s, store.Query{After: after, Limit: 4}); !slices.Equal(got, want) {
			t.Errorf("after %q: %q, want %q", after, got, want)
		}
	}
	page := list(t, s, store.Query{Limit: 5})
	for _, record := range page.Records {
		want := object(record.Name)
		want.Revision = record.Revision
		expect(t, "a listed record", record, want)
		if record.Revision <= start || record.Revision > page.Revision {
			t.Errorf("%q has revision %d on a page of revision %d", record.Name, record.Revision, page.Revision)
		}
	}
	if page.Revision != start+int64(len(awkward)) {
		t.Errorf("the page's revision is %d, want %d", page.Revision, start+int64(len(awkward)))
	}
}

func testListPrefix(t *testing.T, open Open) {
	s := open(t)
	fill(t, s, func(i int) string { return []string{"o1", "o2", "o1 "}[i%3] })
	owners := []string{"o2", "o1 ", "o1"}
	for _, prefix := range []string{"", "a", "a/", "a-b/", "a.b/", "a/b", "a/b/", "a0", "b/", "c/", "ä", "\xf4", "\xff", "\xff\xff", "a/~~"} {
		for _, after := range []string{"", "A", "a", "a/", "a/a", "a/z", "a0", "zz"} {
			want := slices.DeleteFunc(slices.Clone(awkward), func(name string) bool {
				return !strings.HasPrefix(name, prefix) || name <= after
			})
			for _, limit := range []int{0, 1, 3} {
				if got := pages(t, s, store.Query{Prefix: prefix, After: after, Limit: limit}); !slices.Equal(got, want) {
					t.Errorf("prefix %q after %q limit %d: %q, want %q", prefix, after, limit, got, want)
				}
				if got := pages(t, s, store.Query{Prefix: prefix, After: after, Limit: limit, Owners: owners}); !slices.Equal(got, want) {
					t.Errorf("of all owners, prefix %q after %q limit %d: %q, want %q", prefix, after, limit, got, want)
				}
			}
		}
	}
}

func testListOwners(t *testing.T, open Open) {
	s := open(t)
	// One owner is a prefix of another, one is empty, and one has a blank.
	all := []string{"", "o", "o1", "o 1"}
	fill(t, s, func(i int) string { return all[i%len(all)] })
	for _, owners := range [][]string{
		{}, {""}, {"o"}, {"o1"}, {"o 1"}, {"", "o"}, {"o1", "o"}, {"o", "o"}, {"absent"}, {"absent", "o 1"},
		{"o", "o1", "", "o 1"}, {"\x00"}, {"o\x00a"}, {"o\n"}, {"*"}, {"o%"},
	} {
		want := slices.DeleteFunc(slices.Clone(awkward), func(name string) bool {
			return !slices.Contains(owners, all[slices.Index(awkward, name)%len(all)])
		})
		for _, limit := range []int{0, 1, 2, 5, 100} {
			got := pages(t, s, store.Query{Owners: owners, Limit: limit})
			if !slices.Equal(got, want) {
				t.Errorf("owners %q limit %d: %q, want %q", owners, limit, got, want)
			}
		}
	}
	if page := list(t, s, store.Query{Owners: []string{}}); page.Revision != start+int64(len(awkward)) {
		t.Errorf("the revision of the page of no owners is %d, want %d", page.Revision, start+int64(len(awkward)))
	}
}

// testListMany lists more names than fit on any stack.
func testListMany(t *testing.T, open Open) {
	s := open(t)
	const many = 2500
	var want, odd []string
	for i := range many {
		record := store.Record{Name: fmt.Sprintf("n%04d", i), Owner: fmt.Sprint("o", i%2), Created: epoch, Object: []byte("{}")}
		create(t, s, record)
		want = append(want, record.Name)
		if i%2 == 1 {
			odd = append(odd, record.Name)
		}
	}
	for _, limit := range []int{0, many, 99} {
		if got := pages(t, s, store.Query{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("limit %d: %d names, want all %d in order", limit, len(got), many)
		}
		if got := pages(t, s, store.Query{Limit: limit, Owners: []string{"o1"}}); !slices.Equal(got, odd) {
			t.Errorf("of one owner, limit %d: %d names, want %d in order", limit, len(got), len(odd))
		}
		if got := pages(t, s, store.Query{Limit: limit, Owners: []string{"o1", "o0"}, Prefix: "n"}); !slices.Equal(got, want) {
			t.Errorf("of two owners, limit %d: %d names, want all %d in order", limit, len(got), many)
		}
	}
	for _, limit := range []int{0, many} {
		page := list(t, s, store.Query{Limit: limit})
		if len(page.Records) != limits.PageObjects || page.Remaining != many-limits.PageObjects {
			t.Errorf("a page of %d holds %d objects, and %d remain", limit, len(page.Records), page.Remaining)
		}
		due, err := s.Due(t.Context(), store.DueQuery{ByCreated: true, Until: timeAt(0), Limit: limit})
		if err != nil || len(due) != limits.PageObjects {
			t.Errorf("limit %d: %d are due (%v), want %d", limit, len(due), err, limits.PageObjects)
		}
	}
	var each []string
	for record, err := range store.Each(t.Context(), s, store.Query{Owners: []string{"o1"}}) {
		if err != nil {
			t.Fatal(err)
		}
		each = append(each, record.Name)
	}
	if !slices.Equal(each, odd) {
		t.Errorf("Each returns %d names, want %d in order", len(each), len(odd))
	}
}

// testListLarge tests that a page ends where its records have the bytes of a page, and holds at least one.
func testListLarge(t *testing.T, open Open) {
	s := open(t)
	var want []string
	for i, size := range []int{limits.PageBytes / 2, limits.PageBytes/2 - 1000, limits.PageBytes/2 + 2000, 2 * limits.PageBytes, 10, 10} {
		record := object(fmt.Sprint("n", i))
		record.Object, record.Owner, record.Expires = bytes.Repeat([]byte("x"), size), fmt.Sprint("o", i%2), timeAt(i)
		record.References = []string{"u"}
		create(t, s, record)
		want = append(want, record.Name)
	}
	for _, query := range []store.Query{{}, {Limit: 4}, {Owners: []string{"o0", "o1"}}, {Reference: "u"}} {
		if got := pages(t, s, query); !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", query, got, want)
		}
		for after, count := range map[string]int{"": 2, "n0": 1, "n1": 1, "n2": 1, "n3": 2} {
			query.After = after
			if page := list(t, s, query); len(page.Records) != count {
				t.Errorf("%+v: %q, want %d names", query, names(page.Records), count)
			}
		}
	}
	for skip, count := range []int{2, 1, 1, 1, 2, 1, 0} {
		due, err := s.Due(t.Context(), store.DueQuery{Until: timeAt(10), Skip: skip})
		if err != nil || !slices.Equal(names(due), want[skip:skip+count]) {
			t.Errorf("after %d, %q are due (%v), want %d", skip, names(due), err, count)
		}
	}
}

// testListAlike tests that the names of several owners are in byte order, however long their common prefix is.
func testListAlike(t *testing.T, open Open) {
	const start = "pipeline-of-a-team-"
	s, random := open(t), rand.New(rand.NewPCG(1, 2))
	var want []string
	for len(want) < 120 {
		name := []byte(start[:random.IntN(len(start))+1])
		for range random.IntN(10) {
			name = append(name, []string{"-", ".", "0", "a", "z", "é", "ÿ"}[random.IntN(7)]...)
		}
		if slices.Contains(want, string(name)) {
			continue
		}
		want = append(want, string(name))
		record := object(string(name))
		record.Owner = fmt.Sprint("o", random.IntN(4))
		create(t, s, record)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 7, 100, 500} {
		if got := pages(t, s, store.Query{Owners: []string{"o0", "o1", "o2", "o3"}, Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	long := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !strings.HasPrefix(name, start[:12]) })
	if got := pages(t, s, store.Query{Owners: []string{"o0", "o1", "o2", "o3"}, Prefix: start[:12]}); !slices.Equal(got, long) {
		t.Errorf("with a prefix: %q, want %q", got, long)
	}
}

// testListManyOwners tests that a page of many owners equals a page of all owners.
func testListManyOwners(t *testing.T, open Open) {
	s := open(t)
	const many, owners = 700, 100
	var want, all []string
	for i := range many {
		// Some owners have many objects and most have few.
		record := store.Record{Name: fmt.Sprintf("n%03d", i*11%many), Owner: fmt.Sprint("o", i%owners), Created: epoch, Object: []byte("{}")}
		if i%2 == 0 {
			record.Owner = fmt.Sprint("o", i%3)
		}
		create(t, s, record)
		want = append(want, record.Name)
	}
	slices.Sort(want)
	for i := range owners {
		all = append(all, fmt.Sprint("o", i))
	}
	for _, limit := range []int{0, 150, 300} {
		if got := pages(t, s, store.Query{Owners: all, Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("limit %d: %d names, want %d in order", limit, len(got), len(want))
		}
	}
}

// testListSnapshot lists while another goroutine writes. In the first half, each write adds the next object, so that
// after r writes the first r objects exist. In the second half each write removes one.
func testListSnapshot(t *testing.T, open Open) {
	s := open(t)
	const half = 150
	name := func(i int) string { return fmt.Sprintf("n%03d", i) }
	done := make(chan error, 1)
	go func() {
		for i := range half {
			if _, err := s.Create(t.Context(), store.Record{Name: name(i), Owner: fmt.Sprint(i % 3), Created: epoch}); err != nil {
				done <- err
				return
			}
		}
		for i := range half {
			if _, err := s.Delete(t.Context(), name(i), start+int64(i+1)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := 0; ; i++ {
		query := store.Query{Limit: []int{0, 7}[i%2]}
		if i%3 == 0 {
			query.Owners = []string{"0", "1", "2"}
		}
		page := list(t, s, query)
		first, last := 0, int(page.Revision-start)
		if last > half {
			first, last = last-half, half
		}
		if count := len(page.Records) + int(page.Remaining); count != last-first {
			t.Fatalf("at revision %d there are %d objects, want %d", page.Revision, count, last-first)
		}
		for j, record := range page.Records {
			if record.Name != name(first+j) {
				t.Fatalf("at revision %d the object %d is %q, want %q", page.Revision, j, record.Name, name(first+j))
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if page.Revision == start+2*half {
				return
			}
			done <- nil
		default:
		}
	}
}

// testListLargeMany tests that a page of many large records has as many of them as its bytes allow, however they are
// read.
func testListLargeMany(t *testing.T, open Open) {
	s := open(t)
	const many, size = 40, 40 << 10
	var want []string
	for i := range many {
		record := object(fmt.Sprintf("n%02d", i))
		record.Object, record.Owner = bytes.Repeat([]byte("x"), size), fmt.Sprint("o", i%2)
		create(t, s, record)
		want = append(want, record.Name)
	}
	for _, query := range []store.Query{{}, {Owners: []string{"o0", "o1"}}} {
		if got := pages(t, s, query); !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", query, got, want)
		}
		page := list(t, s, query)
		// A record has a few bytes besides the object.
		if n := len(page.Records); n*size > limits.PageBytes || (n+1)*(size+1000) < limits.PageBytes {
			t.Errorf("%+v: a page has %d records of %d bytes", query, n, size)
		}
	}
	var each []string
	for record, err := range store.GetEach(t.Context(), s, want) {
		if err != nil {
			t.Fatal(err)
		}
		each = append(each, record.Name)
	}
	if !slices.Equal(each, want) {
		t.Errorf("GetEach: %q, want %q", each, want)
	}
	found, read, err := s.GetMany(t.Context(), want)
	if err != nil || len(found) != read || read*size > limits.PageBytes || (read+1)*(size+1000) < limits.PageBytes {
		t.Errorf("GetMany: %d of %d records of %d bytes, %v", len(found), read, size, err)
	}
}
