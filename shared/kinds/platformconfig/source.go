package platformconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// CheckEvery is the minimum time between two checks for a new version while requests are served. Every function has a new
// version within five seconds. Source: ADR-0015.
const CheckEvery = 2 * time.Second

// recentChange is how long ago a file may say that it has changed for a process that starts with it. Source: ADR-0024.
const recentChange = 5 * time.Minute

// The outcomes of a check that are reported.
const (
	// Loaded: a new version is in effect.
	Loaded = "loaded"
	// Refused: a new version is bad, and the previous one stays.
	Refused = "refused"
	// Unavailable: the file or the state could not be read.
	Unavailable = "unavailable"
)

// Conditions of a Config. Source: ADR-0015.
const (
	ConditionLoaded   = "Loaded"
	ConditionResolved = "Resolved"
	// ConditionConfirmed is False while a write waits for its confirmation, and when it was taken back. Otherwise, there is no
	// such condition. Source: ADR-0024.
	ConditionConfirmed = "Confirmed"
)

// Options say where a configuration comes from.
type Options struct {
	// File is a YAML file. Empty: the state holds the configuration.
	File string
	// Store is the state of configs. It is not used if there is a file.
	Store store.Store
	// Keyring returns the keys that secrets are sealed with. nil: the process has no keys.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// FileLimits has how the limits of files were lowered, for processes that start later. nil: a process applies the limits that
	// it starts with at once. Source: ADR-0024.
	FileLimits store.Store
	// Lookup returns environment variables, for placeholders. nil: no variable is set.
	Lookup func(string) (string, bool)
	// Variables begins the names of the variables that placeholders can name. Empty: DefaultVariables.
	Variables string
	// Keys are the access keys, from which a write learns which callers it locks out. nil: it names none.
	Keys func() *accesskey.Registry
	// Sinks returns what of a new configuration of the audit cannot record events, in comparison with the earlier one, which
	// may be nil. nil: sinks are not checked. Set it before the first write.
	Sinks func(ctx context.Context, was, next *model.ConfigAudit, path *field.Path) field.ErrorList
	// Issuer returns the scopes that an issuer of tokens supports, as far as it says so, or an error if it cannot be reached. Roots is the
	// content of its caFile. nil: issuers are not checked.
	Issuer func(ctx context.Context, provider *model.OIDCProvider, roots []byte) (scopes []string, err error)
	// Now is the clock.
	Now func() time.Time
	// Random is the source of the uid.
	Random io.Reader
	// Log receives what happens to new versions.
	Log *slog.Logger
	// Report counts outcomes, with the revision in effect. nil: outcomes are not counted.
	Report func(outcome string, revision int64)
}

// Current is the configuration of a process, kept up to date. It is safe for concurrent use. Make one with New.
type Current struct {
	Options

	// reader is the registry of reads.
	reader *resource.Registry[*model.Config]

	version atomic.Pointer[version]
	// conditions are those of the current version. nil: no version is loaded.
	conditions atomic.Pointer[[]metav1.Condition]
	// lastCheck is the time of the last check, in nanoseconds since 1970.
	lastCheck atomic.Int64

	// mu is held while a version is loaded; it guards the rest.
	mu sync.Mutex
	// refused is why a newer version is not in effect. nil: the current one is the newest.
	refused *refusal
	// fileText is the text of the file at the last check, valid or not. nil: the file could not be read.
	fileText []byte
	// lastError is the last error that was logged.
	lastError string
}

// version is one version of the configuration. It is never changed.
type version struct {
	revision int64
	// record is the version as it is stored. previous is the record that it replaced in this process.
	record, previous store.Record
	// config is the version as it was written, with secrets in clear text.
	config *model.Config
	// effective is the version with defaults, and with its placeholders replaced.
	effective *model.ConfigStatus
	// unresolvedFields are the fields whose secrets or placeholders are not known here.
	unresolvedFields []string
	// partial means that secrets or placeholders are not known here. The next check tries again.
	partial bool
	// limits are those on the life of access keys, and steps are how they were lowered.
	limits accesskey.Limits
	steps  keyLimits
	// stepsUnread means that the steps of a file are not read yet. Until then, keys that exist have a grace period. asked means that the
	// state could not be read: the next check tries again.
	stepsUnread, stepsUnavailable bool
	// trial is set while the version waits for its confirmation. trialEnded means that its time is over: the version is the one
	// before it.
	trial      *trial
	trialEnded bool
}

// refusal says why a newer version is not in effect.
type refusal struct {
	// revision is that of the newer version, or 0 if its file cannot be read.
	revision int64
	reason   string
	// unreadable means that its record cannot be decoded.
	unreadable bool
}

// New returns a configuration that is not loaded yet.
func New(options Options) *Current {
	if options.Keyring == nil {
		options.Keyring = func(context.Context) (*encryption.Keyring, error) {
			return nil, nil //nolint:nilnil // a nil ring is one without keys
		}
	}
	if options.Lookup == nil {
		options.Lookup = func(string) (string, bool) { return "", false }
	}
	c := &Current{Options: options}
	c.reader = c.registry(records{options.Store, c}, &rules{current: c, write: &write{}})
	return c
}

func (c *Current) registry(state store.Store, r *rules) *resource.Registry[*model.Config] {
	return &resource.Registry[*model.Config]{Definition: Definition, Store: state, Now: c.Now, Random: c.Random, Strategy: resource.Strategy[*model.Config]{
		Rules: r, Visibility: r, Permissions: r, Format: r,
	}}
}

// Writer is a Current that clients write. It is safe for concurrent use.
type Writer struct {
	*Current

	newManager resource.NewFieldManager
}

// Writer returns what writes the configuration. Its writes record with newManager who set which field; nil: they record nothing.
// Source: ADR-0008, ADR-0049.
func (c *Current) Writer(newManager resource.NewFieldManager) *Writer { return &Writer{c, newManager} }

// FromFile reports whether the configuration comes from a file. Then it cannot be written through the API.
func (c *Current) FromFile() bool { return c.File != "" }

// Current returns the current configuration: with defaults, with its placeholders replaced, and with secrets in clear text.
// It is never nil and must not be changed. Before a version is loaded, it has the defaults and permits as little as possible.
func (c *Current) Status() *model.ConfigStatus {
	if now := c.version.Load(); now != nil {
		return now.effective
	}
	restrictive := &model.ConfigStatus{AuthenticateVersionEndpoint: true, DisableConfigEndpoint: true}
	setDefaults(restrictive)
	return restrictive
}

// KeyLimits returns the current limits on the life of access keys, with the changes that leave keys a grace period.
// Source: ADR-0024.
func (c *Current) KeyLimits() accesskey.Limits {
	if now := c.version.Load(); now != nil {
		return now.limits
	}
	return accesskey.LimitsOf(c.Status())
}

// Refresh checks for a new version if the last check was at least CheckEvery ago. Most calls cost nothing: one caller checks,
// and the others go on with the current version. It returns an error only if the process has no configuration at all:
// store.ErrUnavailable, or what is wrong with the only version.
func (c *Current) Refresh(ctx context.Context) error {
	if now := c.version.Load(); now == nil || now.stepsUnread && !now.stepsUnavailable {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.version.Load() == nil {
			if _, err := c.load(ctx); err != nil {
				return err
			}
		}
		c.readSteps(ctx)
		return nil
	}
	age := c.Now().Sub(time.Unix(0, c.lastCheck.Load()))
	if age >= 0 && age < CheckEvery || !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	_, _ = c.load(ctx)
	c.readSteps(ctx)
	return nil
}

// Reload checks for a new version now. Errors: store.ErrUnavailable, that of a file that cannot be read, and those of
// Refresh. The log, the metrics and the conditions report an invalid new version.
func (c *Current) Reload(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.load(ctx)
	return err
}

// load implements Reload, under the lock. It returns the stored record, valid or not.
func (c *Current) load(ctx context.Context) (store.Record, error) {
	if c.FromFile() {
		next, err := c.loadFile()
		err = c.conclude(ctx, next, err)
		if now := c.version.Load(); now != nil {
			return now.record, err
		}
		return store.Record{}, err
	}
	record, err := c.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		record, err = initialRecord(), nil
	}
	if err != nil {
		return record, c.conclude(ctx, nil, fmt.Errorf("reading the platform configuration: %w", err))
	}
	record, trialEnded := c.recordInForce(record)
	next, err := c.versionOf(ctx, record, trialEnded)
	return record, c.conclude(ctx, next, err)
}

// conclude puts a new version into effect, or records why there is none, under the lock. A nil version means that nothing
// is new.
func (c *Current) conclude(ctx context.Context, next *version, err error) error {
	now, consequence := c.version.Load(), "the previous version stays in effect"
	if now == nil {
		consequence = "no version is in effect"
	}
	var invalid *invalidVersion
	switch {
	case errors.As(err, &invalid):
		c.refused = &refusal{invalid.revision, err.Error(), invalid.unreadable}
		c.logOnce(ctx, Refused, "platform configuration refused; "+consequence, err)
	case err != nil:
		c.logOnce(ctx, Unavailable, "the platform configuration cannot be read; "+consequence, err)
		if c.FromFile() {
			// A file that can be read again is a new version, even with the same text.
			c.fileText = nil
			c.refused = &refusal{reason: err.Error()}
		}
	case next != nil:
		c.install(ctx, next)
	}
	c.updateConditions()
	c.lastCheck.Store(c.Now().UnixNano())
	if invalid != nil && now != nil {
		return nil
	}
	return err
}

// install puts a version into effect, under the lock.
func (c *Current) install(ctx context.Context, next *version) {
	previous := c.version.Load()
	first := previous == nil
	if !first {
		next.previous = previous.record
	}
	c.version.Store(next)
	c.refused, c.lastError = nil, ""
	c.report(Loaded)
	level := slog.LevelInfo
	if first {
		level = slog.LevelDebug
	}
	c.Log.Log(ctx, level, "platform configuration loaded", "file", c.File, "revision", next.revision)
	if len(next.unresolvedFields) > 0 {
		c.Log.WarnContext(ctx, "placeholders or secrets of the platform configuration are not known here", "fields", strings.Join(next.unresolvedFields, ", "))
	}
}

// logOnce logs and counts an error, unless it is the one that was logged last.
func (c *Current) logOnce(ctx context.Context, outcome, what string, err error) {
	if text := err.Error(); text != c.lastError {
		c.lastError = text
		c.report(outcome)
		c.Log.ErrorContext(ctx, what, "error", text)
	}
}

func (c *Current) report(outcome string) {
	if c.Report == nil {
		return
	}
	var revision int64
	if now := c.version.Load(); now != nil {
		revision = now.revision
	}
	c.Report(outcome, revision)
}

// invalidVersion is a version that may not take effect.
type invalidVersion struct {
	revision int64
	// unreadable means that its record cannot be decoded.
	unreadable bool
	err        error
}

func (b *invalidVersion) Error() string { return b.err.Error() }
func (b *invalidVersion) Unwrap() error { return b.err }

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

// initialRecord returns the record of a configuration that nobody has written yet. It exists all the same.
func initialRecord() store.Record {
	return store.Record{Name: Name, Revision: store.Beginning, Object: []byte(`{"metadata":{"name":"` + Name + `"},"status":{}}`)}
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

// installRecord puts a record into effect that this process wrote or received in an event, if it is new.
func (c *Current) installRecord(ctx context.Context, record store.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.version.Load(); now == nil || now.revision < record.Revision {
		inForce, trialEnded := c.recordInForce(record)
		next, err := c.versionOf(ctx, inForce, trialEnded)
		_ = c.conclude(ctx, next, err)
	}
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

// Conditions returns a copy of the current conditions. nil: no version is loaded.
func (c *Current) Conditions() []metav1.Condition {
	if now := c.conditions.Load(); now != nil {
		return slices.Clone(*now)
	}
	return nil
}

// updateConditions updates the conditions, under the lock. The time of a condition is that of the last change of its status
// that this process saw. Before the first change, it is the creation of the object, so that all processes report the same.
// Source: ADR-0015.
func (c *Current) updateConditions() {
	now := c.version.Load()
	if now == nil {
		return
	}
	conditions, instant := c.Conditions(), metav1.NewTime(c.Now().UTC().Truncate(time.Second))
	if created := now.config.CreationTimestamp; conditions == nil && !created.IsZero() {
		instant = created
	}
	revision := strconv.FormatInt(now.revision, 10)
	loaded := metav1.Condition{Type: ConditionLoaded, Status: metav1.ConditionTrue, Reason: "Loaded", Message: "revision " + revision + " is in effect"}
	if c.refused != nil {
		loaded.Status, loaded.Reason = metav1.ConditionFalse, "Refused"
		newer := fmt.Sprintf("revision %d is refused", c.refused.revision)
		if c.refused.revision == 0 {
			loaded.Reason, newer = "Unavailable", "the file cannot be read"
		}
		loaded.Message = newer + ", and revision " + revision + " stays in effect: " + c.refused.reason
	}
	resolved := metav1.Condition{
		Type: ConditionResolved, Status: metav1.ConditionTrue, Reason: "Resolved", Message: "all secrets and placeholders are known",
	}
	if len(now.unresolvedFields) > 0 {
		resolved.Status, resolved.Reason = metav1.ConditionFalse, "Lacking"
		resolved.Message = "not known here: " + strings.Join(now.unresolvedFields, ", ")
	}
	currentConditions := []metav1.Condition{loaded, resolved}
	if waiting := now.confirmation(); waiting != nil {
		currentConditions = append(currentConditions, *waiting)
	} else {
		meta.RemoveStatusCondition(&conditions, ConditionConfirmed)
	}
	for _, condition := range currentConditions {
		condition.ObservedGeneration, condition.LastTransitionTime = now.config.Generation, instant
		meta.SetStatusCondition(&conditions, condition)
	}
	c.conditions.Store(&conditions)
}
