package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"management.platform.sh/shared/state/store"
)

const (
	// leaseResource is the place of leases in the state, and scheduleLease the name of the record.
	leaseResource = "leases"
	scheduleLease = "schedules"
	// leaseTime is how long a process waits for the lease of another one that does not renew it.
	leaseTime = 45 * time.Second
)

// lease makes one of the processes with the same state run the schedules. Each looks at the lease three times in the time of the lease.
// The clocks of the processes need not agree: a process takes the lease of another one when it has seen the same record at four looks,
// by its own clock. It is not safe for concurrent use.
// Source: ADR-0050.
type lease struct {
	records store.Store
	holder  string
	time    time.Duration
	log     *slog.Logger

	// revision is the revision of the record that was seen last, and seenAt when it was seen first or written by this process.
	revision int64
	seenAt   time.Time
	held     bool
}

// leaseRecord is the stored form of a lease.
type leaseRecord struct {
	// Holder is random text that names a process.
	Holder string `json:"holder"`
}

// hold calls do while this process holds the lease. When the lease is lost, the context of do ends, and do is called again when the
// lease is back. At the end of ctx, hold waits for do, and gives the lease back.
func (l *lease) hold(ctx context.Context, do func(context.Context)) {
	end := func() {}
	ticker := time.NewTicker(l.time / 3)
	defer ticker.Stop()
	for running := false; ; {
		switch held := l.acquire(ctx); {
		case held && !running:
			end = begin(ctx, do)
		case !held && running:
			end()
		}
		running = l.held
		select {
		case <-ctx.Done():
			if running {
				end()
				l.release(context.WithoutCancel(ctx))
			}
			return
		case <-ticker.C:
		}
	}
}

// begin calls do in a goroutine. End ends its context, and waits for it.
func begin(ctx context.Context, do func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// acquire takes or renews the lease, and reports whether this process holds it. One renewal may fail: the lease is lost at the second
// failure in a row, before another process takes it. The thresholds lie between two looks, because a look takes time.
func (l *lease) acquire(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, l.time/3)
	defer cancel()
	held, err := l.write(bounded)
	if ctx.Err() != nil {
		// The process ends. It gives the lease back, if it has it.
		return l.held
	}
	if err != nil {
		l.log.Error("renewing the lease of the schedules", "error", err.Error())
		held = held || l.held && time.Since(l.seenAt) < l.time/2
	}
	if held != l.held {
		l.log.Info("lease of the schedules", "held", held)
	}
	l.held = held
	return held
}

func (l *lease) write(ctx context.Context) (bool, error) {
	record, err := l.records.Get(ctx, scheduleLease)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return false, fmt.Errorf("reading the lease: %w", err)
	}
	if !absent {
		var stored leaseRecord
		// A lease that cannot be read belongs to another process.
		_ = json.Unmarshal(record.Object, &stored)
		if record.Revision != l.revision {
			l.revision, l.seenAt = record.Revision, time.Now()
		}
		if stored.Holder != l.holder && time.Since(l.seenAt) < l.time*5/6 {
			return false, nil
		}
	}
	// A struct of a text always marshals.
	object, _ := json.Marshal(leaseRecord{Holder: l.holder})
	var revision int64
	if absent {
		revision, err = l.records.Create(ctx, store.Record{Name: scheduleLease, Created: time.Now(), Object: object})
	} else {
		record.Object = object
		revision, err = l.records.Update(ctx, record)
	}
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing the lease: %w", err)
	}
	l.revision, l.seenAt = revision, time.Now()
	// Leases have no watchers.
	if err := l.records.Trim(ctx, time.Now()); err != nil {
		return true, fmt.Errorf("trimming the events of leases: %w", err)
	}
	return true, nil
}

// release gives the lease back, so that another process takes it without waiting.
func (l *lease) release(ctx context.Context) {
	l.held = false
	if _, err := l.records.Delete(ctx, scheduleLease, l.revision); err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
		l.log.Error("giving the lease of the schedules back", "error", err.Error())
	}
}
