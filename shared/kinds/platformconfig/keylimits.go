package platformconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// FileLimits is the resource that has how the limits of a configuration file were lowered. The API does not serve it.
const FileLimits = "filelimits"

// keyLimits are the changes that lowered the limits on the life of access keys: the limit on all keys, and the limit on keys
// of logins. They are stored beside the configuration. Source: ADR-0024.
type keyLimits struct {
	Max   accesskey.Steps `json:"max,omitempty"`
	Login accesskey.Steps `json:"login,omitempty"`
}

// forConfig returns the steps that belong to the limits of a configuration. A limit without a step, which an older build
// wrote, was always in force.
func (k keyLimits) forConfig(config *model.ConfigStatus) keyLimits {
	knownSteps := func(steps accesskey.Steps, limit int64) accesskey.Steps {
		if limit > 0 && len(steps) > 0 && steps[len(steps)-1].Seconds == limit {
			return steps
		}
		return accesskey.StepsOf(limit)
	}
	limit, loginLimit := accesskey.LimitSeconds(config)
	return keyLimits{knownSteps(k.Max, limit), knownSteps(k.Login, loginLimit)}
}

// withLimits returns the steps after a change to the limits of a configuration.
func (k keyLimits) withLimits(config *model.ConfigStatus, now time.Time) keyLimits {
	limit, loginLimit := accesskey.LimitSeconds(config)
	return keyLimits{k.Max.Next(limit, now), k.Login.Next(loginLimit, now)}
}

// limits returns the limits of a configuration with these steps.
func (k keyLimits) limits(config *model.ConfigStatus) accesskey.Limits {
	limits := accesskey.LimitsOf(config)
	limits.MaxSteps, limits.LoginSteps = k.Max, k.Login
	return limits
}

// readSteps reads the steps of a file that a process has started with. If the state cannot be read, the next check tries
// again. The caller holds mu.
func (c *Current) readSteps(ctx context.Context) {
	now := c.version.Load()
	if now == nil || !now.stepsUnread {
		return
	}
	next := *now
	steps, err := c.loader.fileSteps(ctx, now)
	if err == nil {
		next.steps, next.limits, next.stepsUnread = steps, steps.limits(now.effective), false
	} else if !now.stepsUnavailable {
		c.Log.WarnContext(ctx, "the earlier limits on access keys cannot be read: until they can, existing keys have a grace period", "error", err.Error())
	}
	next.stepsUnavailable = true
	c.version.Store(&next)
}

// fileSteps returns the steps after a start with a file: the noted steps, and another step if the file lowers a limit. If no
// steps are noted, the limits of the file were always in force.
func (l loader) fileSteps(ctx context.Context, file *version) (keyLimits, error) {
	record, err := l.FileLimits.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return keyLimits{}.forConfig(file.effective), nil
	}
	if err != nil {
		return keyLimits{}, fmt.Errorf("reading the noted limits: %w", err)
	}
	var notedLimits keyLimits
	if err := json.Unmarshal(record.Object, &notedLimits); err != nil {
		return keyLimits{}, fmt.Errorf("reading the noted limits: %w", err)
	}
	return notedLimits.withLimits(file.effective, l.changeTimeAtStart(time.UnixMilli(file.revision))), nil
}

// NoteLimits stores how the limits of a file were lowered, so that processes that start with a changed file leave keys their
// grace period. It does nothing if the configuration is from the state, or if the steps are already stored. Two processes
// with different files overwrite each other. Errors: store.ErrUnavailable. Source: ADR-0024.
func (w *Writer) NoteLimits(ctx context.Context) error {
	c := w.current
	now := c.version.Load()
	if !c.FromFile() || c.FileLimits == nil || now == nil || now.stepsUnread {
		return nil
	}
	text, err := json.Marshal(now.steps)
	if err != nil {
		return fmt.Errorf("encoding the limits of a file: %w", err)
	}
	record, err := c.FileLimits.Get(ctx, Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = c.FileLimits.Create(ctx, store.Record{Name: Name, Created: c.Now(), Object: text})
	case err == nil && !bytes.Equal(record.Object, text):
		record.Object = text
		_, err = c.FileLimits.Update(ctx, record)
	}
	if err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("noting the limits of a file: %w", err)
	}
	return nil
}
