package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// queuedRecord is a record that waits for a sink.
type queuedRecord struct {
	record   *Record
	decision Decision
	// done is closed when the outcome is known; it is nil if no request waits. err is the outcome.
	done chan struct{}
	err  error
	// settled is true when the outcome is known. A record whose request gave up leaves the spool without being counted
	// again.
	settled bool
	// mark is true for an event about the log itself, which is not counted.
	mark bool
}

// spool is the queue of one sink and the goroutine that empties it.
type spool struct {
	name    string
	sink    Sink
	log     *slog.Logger
	metrics Metrics

	mu      sync.Mutex
	waiting []*queuedRecord
	bytes   int
	ending  bool
	// used is true once there was a record. held counts the changes of the configuration that still record here.
	used bool
	held int
	// failing is the time since which every attempt has failed; zero if the last one succeeded. lost counts the events
	// that the sink did not store.
	failing time.Time
	lost    int
	// full is true if there was no room for the last record, which was logged.
	full bool
	// wake signals new records, look tells drain to check its conditions again, and quit tells run to end. gone is
	// closed when the goroutine has ended.
	wake chan struct{}
	look chan struct{}
	quit chan struct{}
	gone chan struct{}
}

func newSpool(name string, sink Sink, options Options) *spool {
	s := &spool{
		name: name, sink: sink, log: options.Log, metrics: options.Metrics,
		wake: make(chan struct{}, 1), look: make(chan struct{}, 1), quit: make(chan struct{}), gone: make(chan struct{}),
	}
	go s.run()
	return s
}

var errFull = errors.New("the spool is full")

// enqueue adds a record if there is room.
func (s *spool) enqueue(record *Record, decision Decision, waits bool) *queuedRecord {
	e := &queuedRecord{record: record, decision: decision}
	if waits {
		e.done = make(chan struct{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	switch {
	case s.ending:
		s.settle(e, errClosed)
	case len(s.waiting) >= MaxSpoolEvents || s.bytes+len(record.JSON) > MaxSpoolBytes:
		s.settle(e, errFull)
		if !s.full {
			s.full = true
			s.log.Error("audit events are lost or refused", "sink", s.name, "error", errFull.Error())
		}
	default:
		s.full = false
		s.add(e)
	}
	return e
}

// add puts a record at the end of the queue. The lock must be held.
func (s *spool) add(e *queuedRecord) {
	s.waiting = append(s.waiting, e)
	s.bytes += len(e.record.JSON)
	s.metrics.Spool(s.name, len(s.waiting))
	signal(s.wake)
}

// signal wakes the receiver of a channel, unless a signal is already waiting there.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// note adds an event about the log itself if there are records before it. There is always room for it.
func (s *spool) note(mark *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used && !s.ending {
		s.add(&queuedRecord{record: mark, decision: Decision{Level: Metadata}, mark: true})
	}
}

// hold keeps the spool open until release, or reports that it is closing.
func (s *spool) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.held++
	return true
}

// release ends a hold.
func (s *spool) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	signal(s.look)
}

// settle notifies the waiting request, and counts the outcome. The lock must be held.
func (s *spool) settle(e *queuedRecord, err error) {
	if e.settled {
		return
	}
	e.settled, e.err = true, err
	what := "recorded"
	if err != nil {
		what = outcome(e.decision)
	}
	if !e.mark {
		s.metrics.Audited(s.name, e.decision.Level, what)
		if err != nil {
			s.lost++
		}
	}
	if e.done != nil {
		close(e.done)
	}
}

// giveUp ends the wait for a record and returns its outcome, as far as it is known. A record that refuses its request
// leaves the spool. Other records stay, and are counted when their outcome is known.
func (s *spool) giveUp(e *queuedRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.settled && e.decision.Fail {
		s.settle(e, fmt.Errorf("after %s: %w", WaitAtMost, context.DeadlineExceeded))
	}
	return e.err
}

// run empties the spool until quit is closed.
func (s *spool) run() {
	defer close(s.gone)
	pause := firstPause
	for {
		batch, durable := s.next()
		if len(batch) == 0 {
			select {
			case <-s.wake:
				continue
			case <-s.quit:
				return
			}
		}
		err := s.write(batch, durable)
		s.recordOutcome(batch, err)
		if err == nil {
			pause = firstPause
			continue
		}
		s.log.Error("audit events could not be recorded", "sink", s.name, "events", len(batch), "error", err.Error())
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.quit:
			timer.Stop()
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// next returns the records to write next, and removes the records whose requests gave up.
func (s *spool) next() (batch []*queuedRecord, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.waiting[:0]
	for _, e := range s.waiting {
		if e.settled {
			s.bytes -= len(e.record.JSON)
			continue
		}
		rest = append(rest, e)
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
	size := 0
	for _, e := range s.waiting {
		if size += len(e.record.JSON); len(batch) == maxBatch || size > maxBatchBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, e)
		durable = durable || e.decision.Fail || e.decision.waits
	}
	s.metrics.Spool(s.name, len(s.waiting))
	return batch, durable
}

func (s *spool) write(batch []*queuedRecord, durable bool) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	records := make([]*Record, len(batch))
	for i, e := range batch {
		records[i] = e.record
	}
	return s.sink.Write(ctx, records, durable)
}

// recordOutcome records the outcome of a batch. On failure, records that refuse their requests are settled immediately, and the
// others wait for the next attempt.
func (s *spool) recordOutcome(batch []*queuedRecord, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.failing = time.Time{}
	case s.failing.IsZero():
		s.failing = time.Now().UTC()
	}
	for _, e := range batch {
		if err == nil || e.decision.Fail {
			s.settle(e, err)
		}
	}
	signal(s.look)
}

// conclude makes a record the last one of the spool, unless there is none or nothing was recorded there. It returns
// false while the spool is held, which force ignores.
func (s *spool) conclude(last func() *Record, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held > 0 && !force {
		return false
	}
	s.ending = true
	if s.used && last != nil {
		s.add(&queuedRecord{record: last(), decision: Decision{Level: Metadata}, mark: true})
	}
	return true
}

// isEmpty reports whether no record waits.
func (s *spool) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.waiting, func(e *queuedRecord) bool { return !e.settled })
}

// drain waits until the spool is no longer held, adds the last record, empties the spool and closes the sink. All of
// this must end within the given time. It must be called once.
func (s *spool) drain(within time.Duration, last func() *Record) {
	end := time.NewTimer(within)
	defer end.Stop()
	concluded, over := s.conclude(last, false), false
	for !over && (!concluded || !s.isEmpty()) {
		select {
		case <-s.look:
		case <-end.C:
			over = true
		}
		concluded = concluded || s.conclude(last, over)
	}
	close(s.quit)
	<-s.gone
	s.mu.Lock()
	lost := 0
	for _, e := range s.waiting {
		if !e.settled {
			lost++
			s.settle(e, errClosed)
		}
	}
	s.waiting = nil
	s.metrics.Spool(s.name, 0)
	s.mu.Unlock()
	if lost > 0 {
		s.log.Error("audit events are lost", "sink", s.name, "events", lost)
	}
	if err := s.sink.Close(); err != nil {
		s.log.Error("closing an audit sink", "sink", s.name, "error", err.Error())
	}
}
