package frame_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/api/runs"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

func scheduled(do func(context.Context) (int, error)) *frame.Function {
	return &frame.Function{Name: "testsweep", Schedule: frame.Scheduled(
		func(*platform.Environment) struct{} { return struct{}{} },
		func(ctx context.Context, _ struct{}) (int, error) { return do(ctx) },
		func(done int) []slog.Attr { return []slog.Attr{slog.Int("done", done)} },
	)}
}

func TestScheduledRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about   string
		f       *frame.Function
		outcome string
		failed  bool
		stack   bool
		done    any
	}{
		{"a success", scheduled(func(context.Context) (int, error) { return 3, nil }), "done", false, false, 3.0},
		{"a success that did nothing", scheduled(func(context.Context) (int, error) { return 0, nil }), "done", false, false, 0.0},
		{"an error tells what was done before", scheduled(func(context.Context) (int, error) { return 2, errors.New("lost " + hush) }), "failed", true, false, 2.0},
		{"a panic", scheduled(func(context.Context) (int, error) { panic("lost " + hush) }), "failed", true, true, nil},
		{"no schedule at all", &frame.Function{Name: "testsweep"}, "failed", true, true, nil},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := w.server.Run(t.Context(), row.f); (err != nil) != row.failed {
				t.Errorf("returned %v", err)
			}
			records := w.log.take(t)
			if len(records) != 1 {
				t.Fatalf("the log has %d lines", len(records))
			}
			record := records[0]
			level := "INFO"
			switch {
			case row.failed:
				level = "ERROR"
			case row.done == 0.0:
				level = "DEBUG"
			}
			cause, _ := record["cause"].(string)
			if record["level"] != level || record["function"] != "testsweep" || record["done"] != row.done || (cause != "") != row.failed {
				t.Errorf("logged %v", record)
			}
			if strings.Contains(cause, ".go:") != row.stack {
				t.Errorf("a stack: %v, want %v: %s", !row.stack, row.stack, cause)
			}
			if got := w.count("platform_scheduled_runs_total", map[string]string{"function": "testsweep", "outcome": row.outcome}); got != 1 {
				t.Errorf("%v runs are %s", got, row.outcome)
			}
			if got := w.count("platform_scheduled_runs_total", nil); got != 1 {
				t.Errorf("%v runs in all", got)
			}
		})
	}
}

// A run that hangs is ended by its own limit, or by the deadline of the platform.
func TestScheduledRunsEnd(t *testing.T) {
	t.Parallel()
	wait := scheduled(func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	for limit, want := range map[time.Duration]time.Duration{time.Hour: frame.MaxDuration, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			server := &frame.Server{
				Env: &platform.Environment{Log: slog.New(slog.DiscardHandler)}, Metrics: metrics.New(prometheus.NewRegistry()),
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begun := time.Now()
			if err := server.Run(ctx, wait); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("returned %v", err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("with %v it took %v, want %v", limit, took, want)
			}
		})
	}
}

// Each run is noted in the state with its outcome and what it reported, also after its time is over. A note that cannot be
// stored changes nothing about the run.
func TestRunsAreNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	notes := w.env.Stores(runs.Resource)
	w.server.Notes = func() store.Store { return notes }
	note := func() runs.Run {
		t.Helper()
		run, err := runs.Read(t.Context(), notes, "testsweep")
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	if err := w.server.Run(t.Context(), scheduled(func(context.Context) (int, error) { return 3, nil })); err != nil {
		t.Fatal(err)
	}
	first := note()
	if first.Outcome != runs.Done || first.Failures != 0 || first.Report["done"] != 3.0 || first.Version != "test" || !first.LastDone.Equal(first.Started) || first.Started.IsZero() {
		t.Errorf("after a success: %+v", first)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.server.Run(over, scheduled(func(ctx context.Context) (int, error) {
		return 2, fmt.Errorf("%w: %s", store.ErrUnavailable, hush)
	})); err == nil {
		t.Error("the run succeeded")
	}
	second := note()
	if second.Outcome != runs.Failed || second.Failures != 1 || !second.Unavailable || !second.LastDone.Equal(first.Started) || second.Report["done"] != 2.0 {
		t.Errorf("after a failure: %+v", second)
	}
	if text := fmt.Sprint(second); strings.Contains(text, "hunter2") {
		t.Errorf("the note has a secret: %s", text)
	}
	w.server.Notes = func() store.Store { return away{notes} }
	if err := w.server.Run(t.Context(), scheduled(func(context.Context) (int, error) { return 1, nil })); err != nil {
		t.Errorf("a run that cannot be noted: %v", err)
	}
}

// away is a state that cannot be reached.
type away struct{ store.Store }

func (away) Get(context.Context, string) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}
