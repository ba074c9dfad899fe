package model

import (
	"math"
	"time"
)

// Seconds converts a wire field in whole seconds. Results are held within 0 and what a Duration can be, 292 years, so
// that a lifetime of centuries does not turn into none.
func Seconds(count int64) time.Duration {
	return time.Duration(min(max(count, 0), math.MaxInt64/int64(time.Second))) * time.Second
}
