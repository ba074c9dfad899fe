package platformconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// CheckEvery is the minimum time between two checks for a new version while requests are served. Every function has a new
// version within five seconds. Source: ADR-0015.
const CheckEvery = 2 * time.Second

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

// Conditions returns a copy of the current conditions. nil: no version is loaded.
func (c *Current) Conditions() []metav1.Condition {
	if now := c.conditions.Load(); now != nil {
		return slices.Clone(*now)
	}
	return nil
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
