package model

import (
	"math"
	"time"
)

// Seconds converts a wire field in whole seconds. The result is at least 0 and at most the longest Duration, 292 years, so
// that a lifetime of centuries does not overflow.
func Seconds(count int64) time.Duration {
	return time.Duration(min(max(count, 0), math.MaxInt64/int64(time.Second))) * time.Second
}
