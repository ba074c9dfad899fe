package accesskey

import (
	"time"

	"management.platform.sh/shared/model"
)

// Grace is the shortest time that a key lives after a change that lowers a limit on its life. Without this period, one wrong
// number would end every key at once. Source: ADR-0024.
const Grace = 24 * time.Hour

// maxSteps bounds the steps of a limit. If there are more steps within Grace, the oldest step is dropped, which has the highest
// limit.
const maxSteps = 8

// Step is a limit on the life of keys, and the time at which it came into force.
type Step struct {
	// Seconds is the limit, counted from the creation of a key. It is above 0.
	Seconds int64 `json:"seconds"`
	// Since is the time of the change. Zero: the limit was always in force, and no key has a grace period.
	Since time.Time `json:"since,omitzero"`
}

// Steps are the changes that lowered a limit: each step is lower and later than the step before it, and the last step is the
// current limit. Empty: there is no limit.
type Steps []Step

func (s Step) limit() time.Duration { return model.Seconds(s.Seconds) }

// isInForce reports whether the grace period of a step is over.
func (s Step) isInForce(now time.Time) bool { return !now.Before(s.Since.Add(Grace)) }

// end returns the time at which a step ends a key that was created at a time. A key that is older than the step has the grace
// period.
func (s Step) end(created time.Time) time.Time {
	end := created.Add(s.limit())
	if spared := s.Since.Add(Grace); !s.Since.IsZero() && created.Before(s.Since) && end.Before(spared) {
		return spared
	}
	return end
}

// Next returns the steps after a change of the limit to a number of seconds; 0 or less is no limit. The steps do not change.
// A higher limit keeps the time from which a lower limit was in force. Otherwise a raised and then lowered limit would give keys
// another grace period.
func (s Steps) Next(limit int64, now time.Time) Steps {
	if limit <= 0 {
		return nil
	}
	if len(s) > 0 && s[len(s)-1].Seconds == limit {
		return s
	}
	// The times of keys are whole seconds.
	next := Step{Seconds: limit, Since: now.Truncate(time.Second)}
	var steps Steps
	for _, step := range s {
		switch {
		case step.Seconds <= limit:
			if step.Since.Before(next.Since) {
				next.Since = step.Since
			}
		case step.isInForce(now):
			// This step ends every key that the steps before it end.
			steps = Steps{step}
		default:
			steps = append(steps, step)
		}
	}
	if len(steps) == maxSteps {
		steps = steps[1:]
	}
	return append(steps, next)
}

// StepsOf returns the steps of a limit that was always in force; 0 or less is no limit.
func StepsOf(limit int64) Steps { return Steps(nil).Next(limit, time.Time{}) }

// end returns the time at which a limit ends a key that was created at a time. The zero time means never.
func (s Steps) end(created time.Time) time.Time {
	var first time.Time
	for _, step := range s {
		if end := step.end(created); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// endOf returns the time at which a limit with these steps ends a key. Without steps, the limit was always in force.
func (s Steps) endOf(key *model.OwnedAccessKey, limit time.Duration) time.Time {
	switch created := key.CreationTimestamp.Time; {
	case limit <= 0:
		return time.Time{}
	case len(s) == 0:
		return created.Add(limit)
	default:
		return s.end(created)
	}
}

// lowestInForce returns the lowest limit whose grace period is over. 0 means that there is none.
func (s Steps) lowestInForce(now time.Time) time.Duration {
	var lowest time.Duration
	for _, step := range s {
		if step.isInForce(now) {
			lowest = step.limit()
		}
	}
	return lowest
}

// inForce returns the limit on all keys whose grace period is over at a time. 0 means that there is none.
func (l Limits) inForce(now time.Time) time.Duration {
	if len(l.MaxSteps) == 0 {
		return l.Max
	}
	return l.MaxSteps.lowestInForce(now)
}
