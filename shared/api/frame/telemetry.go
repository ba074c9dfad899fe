package frame

import "time"

// Metrics counts what the frame does. Package metrics does it for Prometheus. Implementations are safe for
// concurrent use.
type Metrics interface {
	// Request counts a request in and returns what counts it out.
	Request(function string) func(verb string, status int, took time.Duration)
	// Watch counts a watch in and returns what counts it out.
	Watch(function string) func()
	// Event counts an event that was sent to a watch, by its type.
	Event(function, kind string)
	// Configuration counts what became of a new version of the platform configuration, loaded, refused or
	// unavailable, and notes the revision that is in effect now.
	Configuration(outcome string, revision int64)
	// Run counts a scheduled run by its outcome, done or failed.
	Run(function, outcome string)
}

// uncounted is a Metrics for where nobody asks.
type uncounted struct{}

func (uncounted) Request(string) func(string, int, time.Duration) {
	return func(string, int, time.Duration) {}
}
func (uncounted) Watch(string) func()  { return func() {} }
func (uncounted) Event(string, string) {}
func (uncounted) Configuration(string, int64) {
}
func (uncounted) Run(string, string) {}
