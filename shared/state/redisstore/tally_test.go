package redisstore_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// tallies checks the tallies of a resource against its records.
type tallies struct {
	raw      *redis.Client
	resource string
}

func (c tallies) key(part string) string { return "p1:{" + c.resource + "}:" + part }

// sizes returns the length of each record, by owner and name.
func (c tallies) sizes(t *testing.T) map[string]map[string]int {
	t.Helper()
	sizes := map[string]map[string]int{}
	for name, record := range c.raw.HGetAll(t.Context(), c.key("objects")).Val() {
		header, _, _ := strings.Cut(record, "\n")
		owner := strings.SplitN(header, " ", 7)[6]
		if sizes[owner] == nil {
			sizes[owner] = map[string]int{}
		}
		sizes[owner][name] = len(record)
	}
	return sizes
}

// tallyForm is the text of a tally: bytes, time, and during a count the bytes counted and the last name.
var tallyForm = regexp.MustCompile(`^(\d+) (\d+)(?: (\d+) (.+))?$`)

// difference returns the differences between the tallies and the records.
func (c tallies) difference(t *testing.T) string {
	t.Helper()
	sizes := c.sizes(t)
	for owner, text := range c.raw.HGetAll(t.Context(), c.key("bytes")).Val() {
		parts := tallyForm.FindStringSubmatch(text)
		if parts == nil {
			return fmt.Sprintf("the tally of %q is %q", owner, text)
		}
		if len(sizes[owner]) == 0 {
			return fmt.Sprintf("the tally of %q, who has nothing, is %q", owner, text)
		}
		total, counted := 0, 0
		for name, size := range sizes[owner] {
			total += size
			if name <= parts[4] {
				counted += size
			}
		}
		want := strconv.Itoa(total)
		if parts[2] == "0" {
			want = strconv.Itoa(counted)
		}
		if parts[1] != want || parts[4] != "" && parts[3] != strconv.Itoa(counted) {
			return fmt.Sprintf("the tally of %q is %q, there are %d bytes, %d of them counted", owner, text, total, counted)
		}
	}
	return ""
}

// TestTallies: whatever is written, also in the middle of a count, the tallies agree with the records.
func TestTallies(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		client, plain := open(t, url, redisstore.Options{}), raw(t, url)
		rapid.Check(t, func(rt *rapid.T) {
			c := tallies{plain, freshName()}
			s := client.Resource(c.resource)
			ctx := t.Context()
			name := rapid.SampledFrom([]string{"a", "a/b", "b", "b c", "ü", "z"})
			owner := rapid.SampledFrom([]string{"", "o", "o p"})
			draw := func(rt *rapid.T) store.Record {
				record := store.Record{
					Name: name.Draw(rt, "name"), Owner: owner.Draw(rt, "owner"), Created: created,
					Object: make([]byte, rapid.IntRange(0, 20).Draw(rt, "size")),
				}
				if rapid.Bool().Draw(rt, "quota") {
					record.Quota.Bytes = 600
				}
				return record
			}
			rt.Repeat(map[string]func(*rapid.T){
				"": func(rt *rapid.T) {
					if wrong := c.difference(t); wrong != "" {
						rt.Fatal(wrong)
					}
				},
				"Create": func(rt *rapid.T) { _, _ = s.Create(ctx, draw(rt)) },
				"Update": func(rt *rapid.T) {
					record := draw(rt)
					if stored, err := s.Get(ctx, record.Name); err == nil {
						record.Revision = stored.Revision
						_, _ = s.Update(ctx, record)
					}
				},
				"Delete": func(rt *rapid.T) {
					if stored, err := s.Get(ctx, name.Draw(rt, "name")); err == nil {
						_, _ = s.Delete(ctx, stored.Name, stored.Revision)
					}
				},
				"Touch": func(rt *rapid.T) {
					must(t, s.Touch(ctx, store.Record{Name: name.Draw(rt, "name")}, created, created.Add(time.Hour)))
				},
				// A count that stopped somewhere, the first one or a later one.
				"interrupt": func(rt *rapid.T) {
					sizes := c.sizes(t)
					owners := slices.Sorted(maps.Keys(sizes))
					if len(owners) == 0 {
						return
					}
					owner, lastName := rapid.SampledFrom(owners).Draw(rt, "owner"), name.Draw(rt, "last")
					total, counted := 0, 0
					for name, size := range sizes[owner] {
						total += size
						if name <= lastName {
							counted += size
						}
					}
					text := fmt.Sprintf("%d 0 %d %s", counted, counted, lastName)
					if rapid.Bool().Draw(rt, "later") {
						text = fmt.Sprintf("%d 1000 %d %s", total, counted, lastName)
					}
					must(t, plain.HSet(ctx, c.key("bytes"), owner, text).Err())
				},
			})
		})
	})
}

// TestTallyInSteps: the records of an owner that another build has written are counted 500 at each write, and again when an
// hour has passed since.
func TestTallyInSteps(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		const many, size = 1200, 100
		c := tallies{raw(t, url), "things"}
		objects, owners := map[string]any{}, []redis.Z{}
		for i := range many {
			name := fmt.Sprintf("n%04d", i)
			objects[name] = "1 2 1000 - - - o\n" + strings.Repeat("x", size-len("1 2 1000 - - - o\n"))
			owners = append(owners, redis.Z{Member: "o\x00" + name})
		}
		// "o\x01" and "p" surround the part of the index.
		owners = append(owners, redis.Z{Member: "n\x00a"}, redis.Z{Member: "p\x00a"})
		must(t, c.raw.HSet(t.Context(), c.key("objects"), objects).Err())
		must(t, c.raw.ZAdd(t.Context(), c.key("owners"), owners...).Err())
		must(t, c.raw.Set(t.Context(), c.key("rev"), 1000, 0).Err())
		s := open(t, url, redisstore.Options{}).Resource("things")
		tally := func() string { return c.raw.HGet(t.Context(), c.key("bytes"), "o").Val() }
		writes := 0
		write := func() {
			t.Helper()
			writes++
			_, err := s.Create(t.Context(), store.Record{
				Name: fmt.Sprintf("a%d", writes), Owner: "o", Created: created, Object: bytes.Repeat([]byte("y"), 10), Quota: store.Quota{Bytes: 1 << 20},
			})
			must(t, err)
			if wrong := c.difference(t); wrong != "" {
				t.Error(wrong)
			}
		}
		expect := func(what, form string) {
			t.Helper()
			if !regexp.MustCompile("^" + form + "$").MatchString(tally()) {
				t.Errorf("%s the tally is %q, want %s", what, tally(), form)
			}
		}
		write()
		expect("after a write", `(\d+) 0 \d+ n0499`)
		record, err := s.Get(t.Context(), "n1100") // not counted yet
		must(t, err)
		record.Object = nil
		_, err = s.Update(t.Context(), record)
		must(t, err)
		write()
		expect("after a second", `(\d+) 0 \d+ n0999`)
		write()
		expect("after a third", `\d{6} \d{13}`)
		complete := tally()

		// A build that knows no tallies writes.
		must(t, c.raw.HSet(t.Context(), c.key("objects"), "n0001", "1 2 1000 - - - o\n").Err())
		writes++
		_, err = s.Create(t.Context(), store.Record{Name: "a9", Owner: "o", Created: created, Quota: store.Quota{Bytes: 1 << 20}})
		must(t, err)
		if c.difference(t) == "" {
			t.Error("the tally knows of a write that nothing has told it of")
		}
		hourAgo := time.Now().Add(-time.Hour - time.Minute).UnixMilli()
		must(t, c.raw.HSet(t.Context(), c.key("bytes"), "o", fmt.Sprintf("%s %d", strings.Fields(complete)[0], hourAgo)).Err())
		for range 3 {
			_, err = s.Create(t.Context(), store.Record{Name: fmt.Sprint("b", writes), Owner: "o", Created: created, Object: []byte("{}"), Quota: store.Quota{Bytes: 1 << 20}})
			must(t, err)
			writes++
		}
		expect("after an hour and three writes", `\d{6} \d{13}`)
		if wrong := c.difference(t); wrong != "" {
			t.Error(wrong)
		}
	})
}

// TestTallyLayout: a resource has the key of tallies only if there are quotas of bytes, and an owner without records has none.
func TestTallyLayout(t *testing.T) {
	url := redistest.Server(t).URL()
	r, ctx := raw(t, url), t.Context()
	s := open(t, url, redisstore.Options{}).Resource("things")
	record := store.Record{Name: "a", Owner: "o", Created: created, Quota: store.Quota{Objects: 10}}
	var err error
	record.Revision, err = s.Create(ctx, record)
	must(t, err)
	if r.Exists(ctx, "p1:{things}:bytes").Val() != 0 {
		t.Error("a quota of objects alone makes a tally")
	}
	record.Owner, record.Object, record.Quota.Bytes = "p", []byte("{}"), 1000
	record.Revision, err = s.Update(ctx, record)
	must(t, err)
	if owners := r.HKeys(ctx, "p1:{things}:bytes").Val(); !slices.Equal(owners, []string{"p"}) {
		t.Errorf("there are tallies of %q", owners)
	}
	record.Owner = "q"
	record.Revision, err = s.Update(ctx, record)
	must(t, err)
	if owners := r.HKeys(ctx, "p1:{things}:bytes").Val(); !slices.Equal(owners, []string{"q"}) {
		t.Errorf("after a change of owner there are tallies of %q", owners)
	}
	_, err = s.Delete(ctx, "a", record.Revision)
	must(t, err)
	if keys := keysOf(t, r); len(keys) != 2 {
		t.Errorf("after removing everything there are %q", keys)
	}
}
