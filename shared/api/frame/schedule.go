package frame

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"management.platform.sh/shared/api/runs"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Scheduled binds an operation to a schedule. Report returns log attributes that say what a run did: counts, which are 0 if
// it did nothing, and flags, which are false if it did nothing.
func Scheduled[D, O any](open func(*platform.Environment) D, do func(context.Context, D) (O, error), report func(O) []slog.Attr) *Schedule {
	return &Schedule{open: func(env *platform.Environment) func(context.Context) ([]slog.Attr, error) {
		deps := open(env)
		return func(ctx context.Context) ([]slog.Attr, error) {
			outcome, err := do(ctx, deps)
			return report(outcome), err
		}
	}}
}

// Run does the scheduled work of a function once, within the deadline of ctx and at most for MaxDuration. It counts, logs
// and notes the run, and turns a panic into an error. It logs a run that did nothing at debug level. Errors: the errors of the operation,
// or why there is no configuration or no record of the run.
func (s *Server) Run(ctx context.Context, f *Function) (err error) {
	started, name := time.Now(), f.Name
	ctx, cancel := context.WithTimeout(ctx, MaxDuration)
	defer cancel()
	ctx, span := s.tracer().Start(ctx, name)
	defer span.End()
	var attrs []slog.Attr
	// The configuration decides what is recorded.
	refreshed := s.refresh(ctx)
	ctx, recorded, err := s.scheduled(ctx, name, started)
	defer func() {
		stage := audit.ResponseComplete
		if problem := recover(); problem != nil {
			stage = audit.Panic
			err = fmt.Errorf("panic: %v\n%s", problem, debug.Stack())
		}
		if unrecorded := recorded.concludeRun(stage, attrs, err); err == nil {
			err = unrecorded
		}
		outcome, level, reported := runs.Done, slog.LevelDebug, attrs
		switch {
		case err != nil:
			outcome, level = runs.Failed, slog.LevelError
			attrs = append(attrs, slog.String("cause", err.Error()))
		case slices.ContainsFunc(attrs, counts):
			level = slog.LevelInfo
		}
		s.metrics().Run(name, outcome)
		s.recordRun(ctx, name, started, reported, err)
		attrs = append(attrs, slog.String("function", name), slog.Float64("ms", float64(time.Since(started).Microseconds())/1000))
		s.Env.Log.LogAttrs(ctx, level, "scheduled run", attrs...)
	}()
	if err == nil {
		err = refreshed
	}
	if err != nil {
		return err
	}
	attrs, err = f.Schedule.open(s.Env)(ctx)
	return err
}

// recordRun stores the note about a run, also if its time is over. The schedule goes on without the note.
func (s *Server) recordRun(ctx context.Context, name string, started time.Time, reported []slog.Attr, err error) {
	if s.Notes == nil {
		return
	}
	run := runs.Run{
		Started: started.UTC(), Milliseconds: time.Since(started).Milliseconds(), Outcome: runs.Done, Version: s.Env.Version,
	}
	if err != nil {
		run.Outcome, run.Unavailable = runs.Failed, errors.Is(err, store.ErrUnavailable)
	}
	for _, attr := range reported {
		switch attr.Value.Kind() {
		case slog.KindInt64, slog.KindBool, slog.KindString:
			if run.Report == nil {
				run.Report = map[string]any{}
			}
			run.Report[attr.Key] = attr.Value.Any()
		default:
			// Groups and times are in the log.
		}
	}
	if recording, ok := s.Audit.(interface{ Backlogs() []audit.Backlog }); ok {
		run.Sinks = recording.Backlogs()
	}
	if err := runs.Note(context.WithoutCancel(ctx), s.Notes(), name, run, time.Now()); err != nil {
		s.Env.Log.WarnContext(ctx, "the run is not noted", "function", name, "error", err.Error())
	}
}

// counts reports whether an attribute of a report says that something was done.
func counts(attr slog.Attr) bool {
	switch value := attr.Value; value.Kind() {
	case slog.KindInt64:
		return value.Int64() != 0
	case slog.KindBool:
		return value.Bool()
	default:
		return false
	}
}
