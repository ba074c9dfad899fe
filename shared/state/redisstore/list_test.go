package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// many is more objects than the script of a list reads itself.
const many = 40

func name(i int) string { return fmt.Sprintf("n%03d", i) }

// TestListBetween: whatever is written between the two round trips of a page, the page shows one revision.
func TestListBetween(t *testing.T) {
	for what, write := range map[string]func(s store.Store, record store.Record) error{
		"nothing": func(store.Store, store.Record) error { return nil },
		"an update": func(s store.Store, record store.Record) error {
			record.Object = []byte(`{"changed":true}`)
			_, err := s.Update(t.Context(), record)
			return err
		},
		"an update that leaves the owner": func(s store.Store, record store.Record) error {
			record.Owner = "another"
			_, err := s.Update(t.Context(), record)
			return err
		},
		"a removal": func(s store.Store, record store.Record) error {
			_, err := s.Delete(t.Context(), record.Name, record.Revision)
			return err
		},
		"a removal and a creation": func(s store.Store, record store.Record) error {
			if _, err := s.Delete(t.Context(), record.Name, record.Revision); err != nil {
				return err
			}
			_, err := s.Create(t.Context(), record)
			return err
		},
		"a creation": func(s store.Store, record store.Record) error {
			record.Name, record.Digest = fmt.Sprint(record.Name, "-", record.Revision), ""
			_, err := s.Create(t.Context(), record)
			return err
		},
	} {
		for _, times := range []int64{1, 2, 100} {
			embedded := miniredis.RunT(t)
			url := "redis://" + embedded.Addr()
			writer, reader := open(t, url, patient).Resource("things"), open(t, url, patient).Resource("things")
			for i := range many {
				one := thing(name(i))
				one.Owner = "o"
				_, err := writer.Create(t.Context(), one)
				must(t, err)
			}
			// states are the names and revisions of the objects of the owner at each revision.
			states := map[int64]string{}
			note := func() error {
				var lines []string
				for record, err := range store.Each(t.Context(), writer, store.Query{Limit: 10}) {
					if err != nil {
						return err
					}
					if record.Owner == "o" {
						lines = append(lines, fmt.Sprintf("%s %d %s", record.Name, record.Revision, record.Object))
					}
				}
				page, err := writer.List(t.Context(), store.Query{Limit: 1})
				states[page.Revision] = strings.Join(lines, "\n")
				return err
			}
			must(t, note())
			var writes, nextName atomic.Int64
			embedded.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
				if command == "HMGET" && len(args) > many/2 && strings.HasSuffix(args[0], ":objects") && writes.Add(1) <= times {
					record, err := writer.Get(t.Context(), name(int(nextName.Add(1))))
					if err == nil {
						err = write(writer, record)
					}
					if err == nil {
						err = note()
					}
					if err != nil {
						t.Error(err)
					}
				}
				return false
			})
			for _, query := range []store.Query{{}, {Owners: []string{"o"}}} {
				writes.Store(0)
				page, err := reader.List(t.Context(), query)
				must(t, err)
				var lines []string
				for _, record := range page.Records {
					if record.Owner == "o" {
						lines = append(lines, fmt.Sprintf("%s %d %s", record.Name, record.Revision, record.Object))
					}
				}
				if want, known := states[page.Revision]; !known || strings.Join(lines, "\n") != want || page.Remaining != 0 {
					t.Errorf("%s, %d times, %+v: at revision %d the page is\n%s\nwant\n%s", what, times, query, page.Revision, strings.Join(lines, "\n"), want)
				}
				if writes.Load() == 0 {
					t.Errorf("%s: nothing was written between the round trips", what)
				}
			}
			embedded.Server().SetPreHook(nil)
		}
	}
}

// TestListOutsideScripts: Redis reads the records of a long page without a script, which costs it less.
func TestListOutsideScripts(t *testing.T) {
	url := redistest.Server(t).URL()
	s := open(t, url, redisstore.Options{}).Resource("things")
	r := raw(t, url)
	for i := range many {
		_, err := s.Create(t.Context(), thing(name(i)))
		must(t, err)
	}
	// reads counts the reads of records during a call.
	reads := func(call func()) string {
		must(t, r.ConfigResetStat(t.Context()).Err())
		call()
		info, err := r.Info(t.Context(), "commandstats").Result()
		must(t, err)
		if match := regexp.MustCompile(`cmdstat_hmget:calls=(\d+)`).FindStringSubmatch(info); match != nil {
			return match[1]
		}
		return "0"
	}
	for after, want := range map[string]int{"": many, name(many - 2): 1, name(many): 0} {
		n := reads(func() {
			page, err := s.List(t.Context(), store.Query{After: after})
			must(t, err)
			if len(page.Records) != want || page.Remaining != 0 {
				t.Errorf("%d records, %d remain, want %d", len(page.Records), page.Remaining, want)
			}
		})
		if most := map[bool]string{true: "2", false: "0"}[want > 0]; n != most {
			t.Errorf("%s reads of %d records", n, want)
		}
	}
	var names []string
	for i := range many + 2 {
		names = append(names, name(many+1-i))
	}
	if n := reads(func() {
		match, read, err := s.GetMany(t.Context(), names)
		must(t, err)
		if len(match) != many || read != len(names) {
			t.Errorf("%d of %d names have a record", len(match), read)
		}
	}); n != "2" {
		t.Errorf("%s reads of %d names", n, len(names))
	}
}

// TestRepeatedLists: a list that is repeated, by the names of the last time, is the list of a process that has no names, whatever
// others write.
func TestRepeatedLists(t *testing.T) {
	for what, url := range map[string]string{"embedded": redistest.Embedded(t), "redis": redistest.Server(t).URL()} {
		t.Run(what, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 41))
			writer, reader := open(t, url, patient).Resource("things"), open(t, url, patient).Resource("things")
			for i := range 2 * many {
				record := thing(name(i))
				record.Owner = []string{"o", "p", "o p"}[i%3]
				_, err := writer.Create(t.Context(), record)
				must(t, err)
			}
			queries := []store.Query{
				{}, {Limit: 20}, {Limit: 21}, {Owners: []string{"o"}}, {Owners: []string{"p"}}, {Owners: []string{"o", "p"}}, {Owners: []string{"o p"}},
				{Prefix: "n0"}, {After: name(20)}, {After: name(20), Limit: 30}, {Owners: []string{}}, {Owners: []string{"nobody"}}, {Reference: "uid"},
			}
			freshClient := open(t, url, patient)
			for step := range 400 {
				i := random.IntN(2*many + 10)
				record, err := writer.Get(t.Context(), name(i))
				switch change := random.IntN(12); {
				case change > 3:
					// Lists are repeated without writes between them, too.
				case err != nil && change > 0:
					record = thing(name(i))
					record.Owner, record.References = "o", []string{"uid"}
					_, err = writer.Create(t.Context(), record)
					must(t, err)
				case err != nil:
				case change == 0:
					must(t, writer.Touch(t.Context(), record, time.Unix(int64(1_800_000_000+step), 0), time.Time{}))
				case change == 1:
					record.Owner, record.References = []string{"o", "p"}[random.IntN(2)], []string{"uid"}
					_, err = writer.Update(t.Context(), record)
					must(t, err)
				default:
					_, err = writer.Delete(t.Context(), record.Name, record.Revision)
					must(t, err)
				}
				query := queries[random.IntN(len(queries))]
				for range random.IntN(4) {
					got, err := reader.List(t.Context(), query)
					must(t, err)
					want, err := freshClient.Resource("things").List(t.Context(), query)
					must(t, err)
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("step %d: %+v is\n%+v\nwant\n%+v", step, query, got, want)
					}
				}
			}
		})
	}
}

// TestRepeatedListsLookNothingUp: the names of a page are looked up again only if an object was written since, or if
// another server has made the revision, which may then stand for another write.
func TestRepeatedListsLookNothingUp(t *testing.T) {
	url := redistest.Server(t).URL()
	options, err := redis.ParseURL(url)
	must(t, err)
	raw := redis.NewClient(options)
	defer func() { _ = raw.Close() }()
	writer, reader := open(t, url, patient).Resource("things"), open(t, url, patient).Resource("things")
	for i := range many {
		_, err := writer.Create(t.Context(), thing(name(i)))
		must(t, err)
	}
	lookups := func() string {
		t.Helper()
		found := regexp.MustCompile(`cmdstat_zrange:calls=(\d+)`).FindStringSubmatch(raw.Info(t.Context(), "commandstats").Val())
		return fmt.Sprint(found)
	}
	remove := func(i int) func() {
		return func() {
			record, err := writer.Get(t.Context(), name(i))
			must(t, err)
			_, err = writer.Delete(t.Context(), record.Name, record.Revision)
			must(t, err)
		}
	}
	for _, row := range []struct {
		about string
		do    func()
		looks bool
	}{
		{"the first list", func() {}, true},
		{"the second", func() {}, false},
		{"after a use", func() {
			record, err := writer.Get(t.Context(), name(1))
			must(t, err)
			must(t, writer.Touch(t.Context(), record, time.Unix(1_800_000_000, 0), time.Time{}))
		}, false},
		{"after a write", remove(0), true},
		{"the second after a write", func() {}, false},
		{"another server", func() { must(t, raw.Set(t.Context(), "p1:{things}:server", "another", 0).Err()) }, true},
		{"a server that does not tell", func() { must(t, raw.Del(t.Context(), "p1:{things}:server").Err()) }, true},
		{"the second of that", func() {}, true},
	} {
		row.do()
		before := lookups()
		page, err := reader.List(t.Context(), store.Query{})
		must(t, err)
		if looked := lookups() != before; looked != row.looks || len(page.Records) < many-1 {
			t.Errorf("%s: looked up %v, want %v, %d records", row.about, looked, row.looks, len(page.Records))
		}
	}
}

// A page whose objects have grown since it was read is bounded as every other one.
func TestRepeatedListsAreBounded(t *testing.T) {
	url := redistest.Server(t).URL()
	state := open(t, url, patient).Resource("things")
	for i := range many {
		_, err := state.Create(t.Context(), thing(name(i)))
		must(t, err)
	}
	for range 2 {
		_, err := state.List(t.Context(), store.Query{})
		must(t, err)
	}
	for i := range many {
		one, err := state.Get(t.Context(), name(i))
		must(t, err)
		one.Object = fmt.Appendf(nil, `{"large":%q}`, strings.Repeat("x", limits.PageBytes/10))
		_, err = state.Update(t.Context(), one)
		must(t, err)
	}
	for range 2 {
		page, err := state.List(t.Context(), store.Query{})
		must(t, err)
		if len(page.Records) > 10 || page.Remaining != int64(many-len(page.Records)) {
			t.Errorf("a page has %d objects, and %d remain", len(page.Records), page.Remaining)
		}
	}
}
