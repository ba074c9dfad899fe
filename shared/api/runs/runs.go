// Package runs keeps in the state what the last run of each schedule did: when it began, how it ended, what it reported and
// whether the audit of its process kept up. The frame writes it, and operators read it with `platform doctor`. No client is
// served it. Source: ADR-0039.
//
// It stores no text of an error, because a text can quote what must not be in the state. The log has it.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/state/store"
)

// Resource is the place of the notes in the state.
const Resource = "scheduledruns"

// The outcomes of a run.
const (
	Done   = "done"
	Failed = "failed"
)

// Run is the note about the last run of a schedule. The zero value is a schedule that never ran. Source: ADR-0039.
type Run struct {
	// Started is when the run began, by the clock of its process.
	Started time.Time `json:"started"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"milliseconds"`
	// Outcome is Done or Failed.
	Outcome string `json:"outcome"`
	// Unavailable reports whether a failed run did not reach the state.
	Unavailable bool `json:"unavailable,omitempty"`
	// LastDone is when the last run began that was done. Zero: none was, since there are notes.
	LastDone time.Time `json:"lastDone,omitzero"`
	// Failures is the number of runs in a row that failed. 0: the last one was done.
	Failures int `json:"failures,omitempty"`
	// Version is the build of the process.
	Version string `json:"version,omitempty"`
	// Report is what the operation reported: texts, counts and flags by name. It is also in the log line of the run.
	Report map[string]any `json:"report,omitempty"`
	// Sinks are the sinks of the audit in the process of the run. nil: it has no audit, or nothing is recorded.
	Sinks []audit.Backlog `json:"sinks,omitempty"`
}

// Note stores the note about a run of a function, and removes the notes before it. The count of failures and the time of the
// last success go on from the note before. Now is the time of the note. Errors: the errors of the store; of two notes at once, one is
// lost with store.ErrConflict or store.ErrExists.
func Note(ctx context.Context, notes store.Store, function string, run Run, now time.Time) error {
	record, err := notes.Get(ctx, function)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return fmt.Errorf("reading the note of the last run: %w", err)
	}
	var before Run
	if !absent {
		// A note that cannot be read is replaced.
		_ = json.Unmarshal(record.Object, &before)
	}
	run.LastDone, run.Failures = run.Started, 0
	if run.Outcome != Done {
		run.LastDone, run.Failures = before.LastDone, before.Failures+1
	}
	object, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("encoding the note of a run: %w", err)
	}
	if absent {
		_, err = notes.Create(ctx, store.Record{Name: function, Created: now, Object: object})
	} else {
		record.Object = object
		_, err = notes.Update(ctx, record)
	}
	if err != nil {
		return fmt.Errorf("writing the note of a run: %w", err)
	}
	// Notes have no watchers.
	return notes.Trim(ctx, now)
}

// Read returns the note about the last run of a function, and the zero Run if there is none. Errors: the errors of the store,
// and an error for a note that cannot be read.
func Read(ctx context.Context, notes store.Store, function string) (Run, error) {
	var run Run
	record, err := notes.Get(ctx, function)
	if errors.Is(err, store.ErrNotFound) {
		return run, nil
	}
	if err != nil {
		return run, fmt.Errorf("reading the note of the last run of %s: %w", function, err)
	}
	if err := json.Unmarshal(record.Object, &run); err != nil {
		return Run{}, fmt.Errorf("reading the note of the last run of %s: %w", function, err)
	}
	return run, nil
}
