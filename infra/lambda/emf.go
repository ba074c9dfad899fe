package lambda

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"management.platform.sh/shared/api/frame"
)

// namespace is the CloudWatch namespace of the metrics.
const namespace = "ManagementPlatform"

// emf writes metrics as log lines in the embedded metric format, from which CloudWatch makes metrics: a function opens
// no connection for them, and loses none when it is frozen. The dimension of each metric is the function, or the limit
// that refused a request. It implements frame.Metrics and is safe for concurrent use. Source: ADR-0010; the
// specification of the format by AWS.
type emf struct{ lines slog.Handler }

var _ frame.Metrics = emf{}

func newEMF(out io.Writer) emf { return emf{slog.NewJSONHandler(out, nil)} }

// metric is a metric of a line.
type metric struct {
	Name, Unit string
	value      any
}

// directive tells CloudWatch which fields of a line are metrics.
type directive struct {
	Timestamp         int64
	CloudWatchMetrics []definition
}

type definition struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

func (e emf) write(dimension, value string, properties []slog.Attr, metrics ...metric) {
	now := time.Now()
	record := slog.NewRecord(now, slog.LevelInfo, "metrics", 0)
	record.AddAttrs(slog.Any("_aws", directive{now.UnixMilli(), []definition{{namespace, [][]string{{dimension}}, metrics}}}), slog.String(dimension, value))
	record.AddAttrs(properties...)
	for _, one := range metrics {
		record.AddAttrs(slog.Any(one.Name, one.value))
	}
	// A line that cannot be written is lost, like every log line.
	_ = e.lines.Handle(context.Background(), record)
}

// count returns a metric that is 1 or 0.
func count(name string, happened bool) metric {
	value := 0
	if happened {
		value = 1
	}
	return metric{name, "Count", value}
}

// Request writes a line at the end of a request: whether it was refused or failed, and how long it took.
func (e emf) Request(function string) func(verb string, status int, took time.Duration) {
	return func(verb string, status int, took time.Duration) {
		e.write("function", function, []slog.Attr{slog.String("verb", verb), slog.Int("status", status)},
			count("Requests", true),
			count("Refusals", status >= http.StatusBadRequest && status < http.StatusInternalServerError),
			count("Failures", status >= http.StatusInternalServerError),
			metric{"Duration", "Milliseconds", float64(took.Microseconds()) / 1000})
	}
}

func (e emf) Run(function, outcome string) {
	e.write("function", function, nil, count("Runs", true), count("FailedRuns", outcome != "done"))
}

// Refused writes a line for a request that a limit refused.
func (e emf) Refused(limit string) { e.write("limit", limit, nil, count("Limited", true)) }

// Configuration writes a line if a new configuration is not in effect.
func (e emf) Configuration(outcome string, _ int64) {
	if outcome != "loaded" {
		e.write("outcome", outcome, nil, count("ConfigurationFailures", true))
	}
}

// Watch counts nothing: Lambda itself counts the invocations that run.
func (emf) Watch(string) func() { return func() {} }

// Event counts nothing.
func (emf) Event(string, string) {}

// Places counts nothing: an instance serves one request at a time.
func (emf) Places(string, int, int) {}
