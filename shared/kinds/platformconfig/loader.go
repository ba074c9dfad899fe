package platformconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// recentChange is how long ago a file may say that it has changed for a process that starts with it. Source: ADR-0024.
const recentChange = 5 * time.Minute

// loadFile returns the version in the file, or nil if the file has not changed.
func (c *Current) loadFile() (*version, error) {
	info, err := os.Stat(c.File)
	if err == nil && !info.Mode().IsRegular() {
		// Reading a pipe would block until somebody writes to it.
		err = fmt.Errorf("%s is not a regular file", c.File)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	content, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	now := c.version.Load()
	isSameText := now != nil && c.fileText != nil && bytes.Equal(content, c.fileText)
	if isSameText && !now.partial {
		return nil, nil
	}
	c.fileText = append([]byte{}, content...)
	revision := info.ModTime().UnixMilli()
	if now != nil && len(bytes.TrimSpace(content)) == 0 {
		// A file that is just being rewritten is empty too. It must not lift any limits.
		return nil, &invalidVersion{revision: revision, err: fmt.Errorf("platform configuration %s: is empty; write {} for the defaults", c.File)}
	}
	config, err := Parse(content)
	if err != nil {
		return nil, &invalidVersion{revision: revision, err: fmt.Errorf("platform configuration %s: %w", c.File, err)}
	}
	text, err := marshalConcealed(config)
	if err != nil {
		return nil, err
	}
	next, err := c.build(config, store.Record{Name: Name, Revision: revision, Object: text}, nil, nil)
	if err != nil {
		return nil, err
	}
	if isSameText && now.revision == next.revision && slices.Equal(now.unresolvedFields, next.unresolvedFields) {
		return nil, nil
	}
	switch {
	case c.FileLimits == nil && now == nil:
		next.steps = keyLimits{}.forConfig(next.effective)
	case now == nil || now.stepsUnread:
		next.stepsUnread, next.steps = true, keyLimits{}.withLimits(next.effective, c.changeTimeAtStart(info.ModTime()))
	default:
		next.steps = now.steps.withLimits(next.effective, c.changeTime(info.ModTime()))
	}
	next.limits = next.steps.limits(next.effective)
	return next, nil
}

// changeTime returns when a file has changed that this process has looked at before. It is the time that the file says, so that all
// processes agree on it. A file that says that it is older than the last look at it was moved here: the change is noticed now.
func (c *Current) changeTime(modified time.Time) time.Time {
	now := c.Now()
	if modified.After(now) || modified.UnixNano() <= c.lastCheck.Load() {
		return now
	}
	return modified
}

// changeTimeAtStart returns when a file has changed that this process starts with. It is the time that the file says, if that is not
// long ago: so the process agrees with those that saw the change. An older time may be that of an image or a mount: the change is
// noticed now.
func (c *Current) changeTimeAtStart(modified time.Time) time.Time {
	if now := c.Now(); modified.After(now) || now.Sub(modified) > recentChange {
		return now
	}
	return modified
}

// versionOf returns the version of a record, or nil if it is the current version or the one that was refused. TrialEnded is that of
// inForce.
func (c *Current) versionOf(ctx context.Context, record store.Record, trialEnded bool) (*version, error) {
	now := c.version.Load()
	switch {
	case now != nil && now.revision == record.Revision && now.trialEnded == trialEnded && !now.partial:
		c.refused = nil
		return nil, nil
	case now != nil && c.refused != nil && c.refused.revision == record.Revision && !trialEnded:
		return nil, nil
	}
	decode := decodeRecord
	if now == nil {
		decode = decodeFirstRecord
	}
	stored, err := decode(record)
	if err != nil {
		return nil, &invalidVersion{revision: record.Revision, unreadable: true, err: err}
	}
	config := stored.config()
	var ring *encryption.Keyring
	var reason error
	if bytes.Contains(record.Object, []byte(`"sealed"`)) {
		ring, reason = c.Keyring(ctx)
	}
	closedFields, err := unseal(&config.Status, ring)
	next, err := c.build(config, record, closedFields, errors.Join(reason, err))
	if err != nil {
		return nil, err
	}
	if now != nil && now.partial && now.revision == next.revision && now.trialEnded == trialEnded && slices.Equal(now.unresolvedFields, next.unresolvedFields) {
		return nil, nil
	}
	next.trial, next.trialEnded = stored.Trial, trialEnded
	next.steps = stored.Limits.forConfig(next.effective)
	next.limits = next.steps.limits(next.effective)
	return next, nil
}

// build returns a version. ClosedFields are those whose secrets could not be opened, and reason is why.
func (c *Current) build(config *model.Config, record store.Record, closedFields []string, reason error) (*version, error) {
	if err := validate(&config.Status, nil).ToAggregate(); err != nil {
		return nil, &invalidVersion{revision: record.Revision, err: err}
	}
	effective, unresolvedFields, err := c.effective(&config.Status)
	if err != nil {
		return nil, &invalidVersion{revision: record.Revision, err: err}
	}
	if reason != nil {
		unresolvedFields = append(unresolvedFields, closedFields...)
		slices.Sort(unresolvedFields)
	}
	return &version{
		revision: record.Revision, record: record, config: config, effective: effective, unresolvedFields: unresolvedFields, partial: len(unresolvedFields) > 0,
	}, nil
}

// effective returns a status with defaults and with its placeholders replaced, and the fields whose placeholders are not
// known here. The error says what is wrong with the values of placeholders, and does not quote them.
func (c *Current) effective(config *model.ConfigStatus) (effective *model.ConfigStatus, unresolvedFields []string, err error) {
	effective = config.DeepCopy()
	effective.Conditions = nil
	setDefaults(effective)
	unresolvedFields = c.resolve(effective)
	problems := validate(effective, nil)
	for _, problem := range problems {
		problem.BadValue = field.OmitValueType{}
	}
	if len(problems) > 0 {
		return nil, nil, fmt.Errorf("with its placeholders replaced: %w", problems.ToAggregate())
	}
	return effective, unresolvedFields, nil
}
