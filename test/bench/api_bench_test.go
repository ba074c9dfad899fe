package bench

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkAPI is whole requests through the mounted catalog, authentication and all, without a network in
// front: on the embedded Redis, and on a real one on a unix socket without persistence. The network's part,
// and the ratio to bare handlers, is what test/load measures.
func BenchmarkAPI(b *testing.B) {
	b.Run("redis", func(b *testing.B) { benchmarkAPI(b, redistest.Server(b).UnixURL()) })
	b.Run("embedded", func(b *testing.B) { benchmarkAPI(b, redistest.Embedded(b)) })
}

func benchmarkAPI(b *testing.B, redisURL string) {
	s := newServer(b, redisURL, time.Now)
	var serial atomic.Int64
	page := "limit=" + strconv.Itoa(objects)
	for _, operation := range []struct {
		name   string
		expect int
		ask    func(i int64) int
	}{
		{"Get", http.StatusOK, func(i int64) int {
			return s.call(http.MethodGet, collectionPath+"/"+objectName(int(i)%objects), "", nil)
		}},
		{"List500", http.StatusOK, func(int64) int {
			return s.call(http.MethodGet, collectionPath, page, nil)
		}},
		// Every update changes something. Goroutines hardly ever meet on one of so many objects.
		{"Update", http.StatusOK, func(i int64) int {
			name := objectName(int(i) % objects)
			return s.call(http.MethodPut, collectionPath+"/"+name, "", objectBody(name, fmt.Sprint("Update ", serial.Add(1))))
		}},
		// Last, since it leaves its objects behind, in order of names after those of a page.
		{"Create", http.StatusCreated, func(int64) int {
			return s.call(http.MethodPost, collectionPath, "", objectBody(fmt.Sprint("new-", serial.Add(1)), "New"))
		}},
	} {
		for _, parallel := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/parallel=%d", operation.name, parallel), func(b *testing.B) {
				b.ReportAllocs()
				var next atomic.Int64
				step := func() {
					if got := operation.ask(next.Add(1)); got != operation.expect {
						b.Errorf("HTTP status %d instead of %d", got, operation.expect)
					}
				}
				if parallel == 1 {
					for b.Loop() {
						step()
					}
					return
				}
				b.SetParallelism(parallel)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						step()
					}
				})
			})
		}
	}
}
