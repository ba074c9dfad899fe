package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkWatch is what a change costs that is watched: the write itself, as its client sees it, and the time from
// its begin to the last watcher's having the event. All watchers are in this process, without a network in front, on
// a Redis on a unix socket. They ask for objects, as informers do, or for Tables, as kubectl does.
func BenchmarkWatch(b *testing.B) {
	for _, form := range []struct{ name, accept string }{
		{"objects", "application/json"},
		{"tables", "application/json;as=Table;v=v1;g=meta.k8s.io"},
	} {
		for _, watchers := range []int{0, 1, 1000} {
			b.Run(fmt.Sprintf("%s/watchers=%d", form.name, watchers), func(b *testing.B) {
				benchmarkWatch(b, form.accept, watchers)
			})
		}
	}
}

func benchmarkWatch(b *testing.B, accept string, watchers int) {
	s := newServer(b, redistest.Server(b).UnixURL(), time.Now)
	var all sync.WaitGroup
	got := make([]*counting, watchers)
	begun := make(chan struct{}, watchers)
	received := make(chan struct{}, 1)
	var waited atomic.Int64
	for i := range got {
		got[i] = &counting{header: http.Header{}, begun: begun, event: func() {
			if waited.Add(-1) == 0 {
				received <- struct{}{}
			}
		}}
		request := (&http.Request{
			Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
			URL:    &url.URL{Path: collectionPath, RawQuery: "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"},
			Header: http.Header{"Authorization": {"Bearer " + s.bearer.Reveal()}, "Accept": {accept}},
		}).WithContext(context.WithoutCancel(b.Context()))
		all.Go(func() { s.ServeHTTP(got[i], request) })
	}
	for range got {
		<-begun
	}
	b.Cleanup(func() {
		s.EndWatches()
		all.Wait()
	})
	var writes, lasts time.Duration
	serial := 0
	b.ResetTimer()
	for b.Loop() {
		serial++
		name := objectName(serial % objects)
		waited.Store(int64(watchers))
		start := time.Now()
		if status := s.call(http.MethodPut, collectionPath+"/"+name, "", objectBody(name, fmt.Sprint("Update ", serial))); status != http.StatusOK {
			b.Fatalf("HTTP status %d", status)
		}
		writes += time.Since(start)
		if watchers > 0 {
			<-received
		}
		lasts += time.Since(start)
	}
	b.ReportMetric(float64(writes.Microseconds())/float64(serial), "µs/write")
	b.ReportMetric(float64(lasts.Microseconds())/float64(serial), "µs/last-event")
}

// counting is an answer that tells when it begins and when an event has come.
type counting struct {
	header http.Header
	begun  chan<- struct{}
	event  func()
}

func (c *counting) Header() http.Header { return c.header }

func (c *counting) WriteHeader(int) {}

func (c *counting) Write(text []byte) (int, error) {
	for range bytes.Count(text, []byte("\n")) {
		c.event()
	}
	return len(text), nil
}

// FlushError also tells that the watch has begun.
func (c *counting) FlushError() error {
	select {
	case c.begun <- struct{}{}:
	default:
	}
	return nil
}
