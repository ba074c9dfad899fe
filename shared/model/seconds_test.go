package model_test

import (
	"math"
	"testing"
	"time"

	"management.platform.sh/shared/model"
)

// A number of seconds that a Duration cannot hold becomes the longest Duration, not a negative Duration.
func TestSeconds(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64 / int64(time.Second)
	for count, want := range map[int64]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 1: time.Second, most: time.Duration(most) * time.Second,
		most + 1: time.Duration(most) * time.Second, math.MaxInt64: time.Duration(most) * time.Second,
	} {
		if got := model.Seconds(count); got != want {
			t.Errorf("%d seconds are %v, want %v", count, got, want)
		}
	}
}
