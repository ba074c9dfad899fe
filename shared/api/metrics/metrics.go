// Package metrics contains the Prometheus metrics of the frame and of the audit. It is separate from the frame, so that
// functions whose platform has its own metrics do not link it. Source: ADR-0001, ADR-0010.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/shared/audit"
)

// Metrics implements frame.Metrics and audit.Metrics. Label values come from the program and its configuration, never from a
// request. It is safe for concurrent use.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	runs     *prometheus.CounterVec
	watches  *prometheus.GaugeVec
	events   *prometheus.CounterVec
	configs  *prometheus.CounterVec
	revision prometheus.Gauge
	audited  *prometheus.CounterVec
	spool    *prometheus.GaugeVec
	places   *prometheus.GaugeVec
	waiting  *prometheus.GaugeVec
	refused  *prometheus.CounterVec
}

// New registers the metrics and returns them. It panics if the registry already has them.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_requests_total", Help: "Requests by function, verb and HTTP status code.",
		}, []string{"function", "verb", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "platform_request_duration_seconds", Help: "Time from the first byte of a request to the last of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"function", "verb"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_requests_in_flight", Help: "Requests that are being served.",
		}, []string{"function"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_scheduled_runs_total", Help: "Scheduled runs by function and outcome.",
		}, []string{"function", "outcome"}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_watches", Help: "Watches that are open.",
		}, []string{"function"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_watch_events_total", Help: "Events sent to watches by function and type.",
		}, []string{"function", "type"}),
		audited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_audit_events_total", Help: "Audit events by sink, level and outcome: recorded, lost, or refused with the request.",
		}, []string{"sink", "level", "outcome"}),
		spool: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_audit_spool_events", Help: "Audit events that wait for a sink.",
		}, []string{"sink"}),
		configs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_config_reloads_total", Help: "New versions of the platform configuration by result: loaded, refused or unavailable.",
		}, []string{"result"}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "platform_config_revision", Help: "Revision of the platform configuration that is in effect; of a file, when it was changed, in milliseconds.",
		}),
		places: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_places", Help: "Places of the process that are taken, by class of work.",
		}, []string{"class"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_places_waiting", Help: "Requests that wait for a place, by class of work.",
		}, []string{"class"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_refused_total", Help: "Requests that were answered with 429, by limit.",
		}, []string{"limit"}),
	}
	registry.MustRegister(m.requests, m.duration, m.inFlight, m.runs, m.watches, m.events, m.audited, m.spool, m.configs, m.revision, m.places, m.waiting, m.refused)
	return m
}

// Request counts a request that begins, and returns a function to call with its outcome when it ends.
func (m *Metrics) Request(function string) func(verb string, status int, took time.Duration) {
	gauge := m.inFlight.WithLabelValues(function)
	gauge.Inc()
	return func(verb string, status int, took time.Duration) {
		gauge.Dec()
		m.requests.WithLabelValues(function, verb, strconv.Itoa(status)).Inc()
		m.duration.WithLabelValues(function, verb).Observe(took.Seconds())
	}
}

// Watch counts a watch that begins, and returns a function to call when it ends.
func (m *Metrics) Watch(function string) func() {
	gauge := m.watches.WithLabelValues(function)
	gauge.Inc()
	return gauge.Dec
}

// Event counts an event that was sent to a watch.
func (m *Metrics) Event(function, kind string) { m.events.WithLabelValues(function, kind).Inc() }

// Configuration counts an attempt to load the configuration by its outcome, and sets the revision that is in effect.
func (m *Metrics) Configuration(outcome string, revision int64) {
	m.configs.WithLabelValues(outcome).Inc()
	m.revision.Set(float64(revision))
}

// Audited counts an audit event by its outcome at a sink.
func (m *Metrics) Audited(sink string, level audit.Level, outcome string) {
	m.audited.WithLabelValues(sink, string(level), outcome).Inc()
}

// Spool sets the number of audit events that wait for a sink.
func (m *Metrics) Spool(sink string, depth int) { m.spool.WithLabelValues(sink).Set(float64(depth)) }

// Run counts a scheduled run by its outcome.
func (m *Metrics) Run(function, outcome string) { m.runs.WithLabelValues(function, outcome).Inc() }

// Places notes how many places of a class are taken, and how many requests wait for one.
func (m *Metrics) Places(class string, taken, waiting int) {
	if taken != 0 {
		m.places.WithLabelValues(class).Add(float64(taken))
	}
	if waiting != 0 {
		m.waiting.WithLabelValues(class).Add(float64(waiting))
	}
}

// Refused counts a request that a limit refused.
func (m *Metrics) Refused(limit string) { m.refused.WithLabelValues(limit).Inc() }
