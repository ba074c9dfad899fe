package fairness

import (
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// Rates are the token buckets of a process. A rate that is nil has no bound. Source: ADR-0020.
type Rates struct {
	// Callers bounds the requests of each caller.
	Callers *Rate
	// Anonymous bounds the requests without a credential, for each address.
	Anonymous *Rate
	// Failures bounds the credentials that are refused, for each address.
	Failures *Rate
}

// Rate is a token bucket for each name. A bucket holds what comes in limits.RateBurst seconds. It is safe for concurrent use.
type Rate struct {
	of        string
	perSecond int
	observer  Observer
	// buckets has the buckets of the names that were seen last. A name that is forgotten begins with a full bucket.
	buckets *lru.Cache[string, *rate.Limiter]
}

// NewRate returns a rate of so many events per second for each name. Of says what is counted, in the plural, for messages and
// metrics. It returns nil, which is no bound, if perSecond is 0. Observer may be nil.
func NewRate(of string, perSecond int, observer Observer) *Rate {
	if perSecond == 0 {
		return nil
	}
	if observer == nil {
		observer = unobserved{}
	}
	// Only a size below one is an error.
	buckets, _ := lru.New[string, *rate.Limiter](limits.RateNames)
	return &Rate{of: of, perSecond: perSecond, observer: observer, buckets: buckets}
}

// Take takes a token from the bucket of a name. Label is what a message calls it.
//
// Errors: TooManyRequests (429) with the name of the limit when the bucket is empty.
func (r *Rate) Take(name, label string, now time.Time) error {
	if r == nil {
		return nil
	}
	bucket, known := r.buckets.Get(name)
	if !known {
		bucket = rate.NewLimiter(rate.Limit(r.perSecond), r.perSecond*limits.RateBurst)
		if other, added, _ := r.buckets.PeekOrAdd(name, bucket); added {
			bucket = other
		}
	}
	if bucket.AllowN(now, 1) {
		return nil
	}
	r.observer.Refused("rate of " + r.of)
	return apierror.TooMany(fmt.Sprintf("too many %s of %s: the limit is %d a second", r.of, label, r.perSecond), 1)
}
