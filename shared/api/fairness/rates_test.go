package fairness

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// refusals counts refusals by limit.
type refusals struct {
	unobserved
	mu sync.Mutex
	by map[string]int
}

func (r *refusals) Refused(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[limit]++
}

// A name may have a burst, then its rate. Others have their own.
func TestRate(t *testing.T) {
	t.Parallel()
	counted := &refusals{by: map[string]int{}}
	r := NewRate("failed authentications", 5, counted)
	now := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	taken := func(name string) (n int) {
		for r.Take(name, "this address", now) == nil {
			n++
		}
		return n
	}
	if got, want := taken("a"), 5*limits.RateBurst; got != want {
		t.Errorf("a burst has %d, want %d", got, want)
	}
	status := apierror.From(r.Take("a", "this address", now)).Status()
	if want := "too many failed authentications of this address: the limit is 5 a second"; status.Code != 429 || status.Message != want || status.Details.RetryAfterSeconds != 1 {
		t.Errorf("%+v", status)
	}
	if n := counted.by["rate of failed authentications"]; n != 2 {
		t.Errorf("%d refusals are counted: %v", n, counted.by)
	}
	if err := r.Take("b", "this address", now); err != nil {
		t.Errorf("another name: %v", err)
	}
	for range 3 {
		now = now.Add(time.Second)
		if got := taken("a"); got != 5 {
			t.Errorf("a second later there are %d more, want 5", got)
		}
	}
	now = now.Add(time.Hour)
	if got, want := taken("a"), 5*limits.RateBurst; got != want {
		t.Errorf("after an hour a burst has %d, want %d", got, want)
	}
}

func TestNoRate(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if err := NewRate("requests", 0, nil).Take("a", "a", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

// However many names there are, a bounded number is remembered, and takers at the same time share a bucket.
func TestRateIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	r := NewRate("requests", 1, nil)
	for i := range limits.RateNames + 100 {
		_ = r.Take(fmt.Sprint(i), "", now)
	}
	if n := r.buckets.Len(); n != limits.RateNames {
		t.Errorf("%d buckets", n)
	}
	var group sync.WaitGroup
	var taken atomic.Int64
	for range 10 * limits.RateBurst {
		group.Go(func() {
			if r.Take("together", "", now) == nil {
				taken.Add(1)
			}
		})
	}
	group.Wait()
	if taken.Load() != limits.RateBurst {
		t.Errorf("%d were taken at the same time, want %d", taken.Load(), limits.RateBurst)
	}
}
