package frame

import (
	"time"

	"management.platform.sh/shared/api/fairness"
)

// Metrics counts what the frame does. Package metrics implements it for Prometheus. Implementations are safe for
// concurrent use.
type Metrics interface {
	// Request counts a request that begins, and returns a function to call with its outcome when it ends.
	Request(function string) func(verb string, status int, took time.Duration)
	// Watch counts a watch that begins, and returns a function to call when it ends.
	Watch(function string) func()
	// Event counts an event that was sent to a watch. Kind is the type of the event.
	Event(function, kind string)
	// Configuration counts an attempt to load the platform configuration by its outcome: loaded, refused or unavailable. It
	// notes the revision that is now in effect.
	Configuration(outcome string, revision int64)
	// Observer counts places in the process.
	fairness.Observer
	// Run counts a scheduled run by its outcome, done or failed.
	Run(function, outcome string)
}

// uncounted is a Metrics that counts nothing.
type uncounted struct{}

func (uncounted) Request(string) func(string, int, time.Duration) {
	return func(string, int, time.Duration) {}
}
func (uncounted) Watch(string) func()  { return func() {} }
func (uncounted) Event(string, string) {}
func (uncounted) Configuration(string, int64) {
}
func (uncounted) Run(string, string)      {}
func (uncounted) Places(string, int, int) {}
func (uncounted) Refused(string)          {}
