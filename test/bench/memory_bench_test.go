package bench

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkMemory measures the memory of Redis for an access key with its indexes, without the log of events, which
// is full when the count begins. Set the number of keys with -benchtime 100000x.
func BenchmarkMemory(b *testing.B) {
	url := redistest.Server(b).UnixURL()
	s := newServer(b, url, time.Now)
	options, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	raw := redis.NewClient(options)
	b.Cleanup(func() { raw.Close() })
	used := func() int {
		memory, err := raw.Info(b.Context(), "memory").Result()
		if err != nil {
			b.Fatal(err)
		}
		var bytes int
		_, rest, _ := strings.Cut(memory, "used_memory:")
		if _, err := fmt.Sscan(rest, &bytes); err != nil {
			b.Fatal(err)
		}
		return bytes
	}
	var next atomic.Int64
	create := func() {
		name := fmt.Sprintf("memory-%08d", next.Add(1))
		if got := s.call(http.MethodPost, collectionPath, "fieldManager=bench", objectBody(name, "A key of a pipeline")); got != http.StatusCreated {
			b.Errorf("HTTP status %d instead of %d", got, http.StatusCreated)
		}
	}
	for range redisstore.DefaultLogLength + 200 {
		create()
	}
	logs, err := raw.Keys(b.Context(), "*:log").Result()
	if err != nil || len(logs) != 1 {
		b.Fatalf("logs: %q, %v", logs, err)
	}
	log := func() int64 {
		bytes, err := raw.MemoryUsage(b.Context(), logs[0], 0).Result()
		if err != nil {
			b.Fatal(err)
		}
		return bytes
	}
	before, logBefore := used(), log()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			create()
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(used()-before-int(log()-logBefore))/float64(b.N), "B/key")
	b.ReportMetric(float64(log())/1e6, "log-MB")
}
