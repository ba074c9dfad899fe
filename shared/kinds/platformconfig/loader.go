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

// recentChange is the longest time since a file changed for which a process that starts with the file trusts its
// modification time. Source: ADR-0024.
const recentChange = 5 * time.Minute

// loader makes versions from a file or from the state. It keeps nothing of what it reads: what a process has loaded before
// is in a snapshot. It is safe for concurrent use.
type loader struct{ *Options }

// snapshot is what a process has loaded when it checks for a new version.
type snapshot struct {
	// version is the version in effect. Nil: none.
	version *version
	// refusal says why a newer version is not in effect. Nil: the version is the newest.
	refusal *refusal
	// checked is the time of the last check, in nanoseconds since 1970. 0: there was none.
	checked int64
}

// fileText returns the text that the file had at the last check. Nil: the file could not be read.
func (s snapshot) fileText() []byte {
	switch {
	case s.refusal != nil:
		return s.refusal.fileText
	case s.version != nil:
		return s.version.fileText
	default:
		return nil
	}
}

// load returns the new version in the file or in the state. It returns the version of the snapshot if that is the newest
// one, and nil if there is nothing that the snapshot does not know. Record is the record in force, even if it is refused;
// a file that is refused has none.
//
// Errors: a refusal; store.ErrUnavailable; the error of a file that cannot be read.
func (l loader) load(ctx context.Context, known snapshot) (record store.Record, next *version, err error) {
	if l.FromFile() {
		next, err := l.loadFile(known)
		return store.Record{}, next, err
	}
	record, err = l.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		record, err = initialRecord(), nil
	}
	if err != nil {
		return record, nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	return l.loadRecord(ctx, known, record)
}

// loadFile is load for a file.
func (l loader) loadFile(known snapshot) (*version, error) {
	info, err := os.Stat(l.File)
	if err == nil && !info.Mode().IsRegular() {
		// Reading a pipe would block until another process writes to it.
		err = fmt.Errorf("%s is not a regular file", l.File)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	content, err := os.ReadFile(l.File)
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	now, lastText := known.version, known.fileText()
	isSameText := now != nil && lastText != nil && bytes.Equal(content, lastText)
	if isSameText && len(now.unresolvedFields) == 0 {
		return nil, nil
	}
	next, err := l.parseFile(content, info.ModTime().UnixMilli(), now == nil)
	if err != nil {
		return nil, err
	}
	if isSameText && now.revision == next.revision && slices.Equal(now.unresolvedFields, next.unresolvedFields) {
		return nil, nil
	}
	switch {
	case l.FileLimits == nil && now == nil:
		next.steps = keyLimits{}.forConfig(next.effective)
	case now == nil || now.stepsUnread:
		next.stepsUnread, next.steps = true, keyLimits{}.withLimits(next.effective, l.changeTimeAtStart(info.ModTime()))
	default:
		next.steps = now.steps.withLimits(next.effective, l.changeTime(info.ModTime(), known.checked))
	}
	next.limits = next.steps.limits(next.effective)
	return next, nil
}

// parseFile returns the version with the content of the file, without its limits. First reports whether no version is in
// effect yet.
func (l loader) parseFile(content []byte, revision int64, first bool) (*version, error) {
	text := bytes.Clone(content)
	refuse := func(err error) error { return &refusal{revision: revision, fileText: text, err: err} }
	if !first && len(bytes.TrimSpace(content)) == 0 {
		// A file that an editor is writing again is empty for a moment. It must not lift any limits.
		return nil, refuse(fmt.Errorf("platform configuration %s: is empty; write {} for the defaults", l.File))
	}
	config, err := Parse(content)
	if err != nil {
		return nil, refuse(fmt.Errorf("platform configuration %s: %w", l.File, err))
	}
	object, err := marshalConcealed(config)
	if err != nil {
		return nil, err
	}
	next, err := l.build(config, store.Record{Name: Name, Revision: revision, Object: object})
	if err != nil {
		return nil, refuse(err)
	}
	next.fileText = text
	return next, nil
}

// changeTime returns when a file changed that this process has read before. It is the file's modification time, so that all
// processes agree on it. A file with a modification time before the last check was moved to its place: the change is then
// the present.
func (l loader) changeTime(modified time.Time, checked int64) time.Time {
	now := l.Now()
	if modified.After(now) || modified.UnixNano() <= checked {
		return now
	}
	return modified
}

// changeTimeAtStart returns when a file changed that this process starts with. It is the file's modification time if that is
// recent, so that the process agrees with the processes that saw the change. An older time may be the time of an image or a
// mount: the change is then the present.
func (l loader) changeTimeAtStart(modified time.Time) time.Time {
	if now := l.Now(); modified.After(now) || now.Sub(modified) > recentChange {
		return now
	}
	return modified
}

// loadRecord is load for a record that the state has, or had when it sent an event.
func (l loader) loadRecord(ctx context.Context, known snapshot, stored store.Record) (record store.Record, next *version, err error) {
	record, trialEnded := l.recordInForce(stored)
	now := known.version
	switch isRevision := now != nil && now.revision == record.Revision && now.trialEnded == trialEnded; {
	case isRevision && len(now.unresolvedFields) == 0:
		return record, now, nil
	case now != nil && known.refusal != nil && known.refusal.revision == record.Revision && !trialEnded:
		return record, nil, nil
	default:
		next, err = l.decode(ctx, record, trialEnded, now == nil)
		if err == nil && isRevision && slices.Equal(now.unresolvedFields, next.unresolvedFields) {
			next = nil
		}
		return record, next, err
	}
}

// decode returns the version of a record. First reports whether no version is in effect yet. Errors: a refusal.
func (l loader) decode(ctx context.Context, record store.Record, trialEnded, first bool) (*version, error) {
	decode := decodeRecord
	if first {
		decode = decodeFirstRecord
	}
	stored, err := decode(record)
	if err != nil {
		return nil, &refusal{revision: record.Revision, undecodable: true, err: err}
	}
	config := stored.config()
	var ring *encryption.Keyring
	var noKeys error
	if bytes.Contains(record.Object, []byte(`"sealed"`)) {
		ring, noKeys = l.Keyring(ctx)
	}
	closedFields, unsealErr := unseal(&config.Status, ring)
	next, err := l.build(config, record)
	if err != nil {
		return nil, &refusal{revision: record.Revision, err: err}
	}
	if noKeys != nil || unsealErr != nil {
		next.unresolvedFields = append(next.unresolvedFields, closedFields...)
		slices.Sort(next.unresolvedFields)
	}
	next.trial, next.trialEnded = stored.Trial, trialEnded
	next.steps = stored.Limits.forConfig(next.effective)
	next.limits = next.steps.limits(next.effective)
	return next, nil
}

// build returns the version of a configuration, without its limits. Errors: the rules that the configuration breaks, as it
// is written or with its placeholders replaced.
func (l loader) build(config *model.Config, record store.Record) (*version, error) {
	if err := validate(&config.Status, nil).ToAggregate(); err != nil {
		return nil, err
	}
	effective, unresolvedFields, err := l.effective(&config.Status)
	if err != nil {
		return nil, err
	}
	return &version{revision: record.Revision, record: record, config: config, effective: effective, unresolvedFields: unresolvedFields}, nil
}

// effective returns a status with defaults and with its placeholders replaced, and the fields with placeholders that are not
// known to this process. The error says what is wrong with the values of placeholders, and does not quote them.
func (l loader) effective(config *model.ConfigStatus) (effective *model.ConfigStatus, unresolvedFields []string, err error) {
	effective = config.DeepCopy()
	effective.Conditions = nil
	setDefaults(effective)
	unresolvedFields = l.resolve(effective)
	problems := validate(effective, nil)
	for _, problem := range problems {
		problem.BadValue = field.OmitValueType{}
	}
	if len(problems) > 0 {
		return nil, nil, fmt.Errorf("with its placeholders replaced: %w", problems.ToAggregate())
	}
	return effective, unresolvedFields, nil
}
