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

// CheckEvery is the minimum time between two checks for a new version while a process serves requests. Every function has a
// new version within five seconds. Source: ADR-0015.
const CheckEvery = 2 * time.Second

// The outcomes of a check that are counted.
const (
	// outcomeLoaded means that a new version is in effect.
	outcomeLoaded = "loaded"
	// outcomeRefused means that a new version is invalid, and that the previous version stays in effect.
	outcomeRefused = "refused"
	// outcomeUnavailable means that the file or the state could not be read.
	outcomeUnavailable = "unavailable"
)

// Conditions of a Config. Source: ADR-0015.
const (
	ConditionLoaded   = "Loaded"
	ConditionResolved = "Resolved"
	// ConditionConfirmed is False while a write waits for its confirmation, and after the write was taken back. Otherwise,
	// the Config does not have this condition. Source: ADR-0024.
	ConditionConfirmed = "Confirmed"
)

// Current is the version of the configuration that is in effect in a process, with its conditions. It stays in effect until
// a loader has a newer version that is valid. It is safe for concurrent use. Make one with New.
type Current struct {
	Options

	loader loader
	// reader is the registry of reads.
	reader *resource.Registry[*model.Config]

	// mu is held from the beginning of a check until its result is in effect, so that versions take effect in the order in
	// which they were read. It guards refusal and lastError. A goroutine that stores version, conditions or lastCheck holds
	// it too. One that only loads them does not: during a slow check, requests continue with the version in effect.
	mu sync.Mutex
	// refusal says why a newer version is not in effect. Nil: the current version is the newest.
	refusal *refusal
	// lastError is the last error that was logged.
	lastError string

	// version is the version in effect. Nil: no version is loaded.
	version atomic.Pointer[version]
	// conditions are the conditions of the version. Nil: no version is loaded.
	conditions atomic.Pointer[[]metav1.Condition]
	// lastCheck is the time of the last check, in nanoseconds since 1970.
	lastCheck atomic.Int64
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
	c.loader = loader{&c.Options}
	c.reader = c.registry(records{options.Store, c}, &rules{current: c, write: &write{}})
	return c
}

func (c *Current) registry(state store.Store, r *rules) *resource.Registry[*model.Config] {
	return &resource.Registry[*model.Config]{Definition: Definition, Store: state, Now: c.Now, Random: c.Random, Strategy: resource.Strategy[*model.Config]{
		Rules: r, Visibility: r, Permissions: r, Format: r,
	}}
}

// Status returns the configuration in effect: with defaults, with its placeholders replaced, and with secrets in clear text.
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

// Conditions returns a copy of the current conditions. Nil: no version is loaded.
func (c *Current) Conditions() []metav1.Condition {
	if conditions := c.conditions.Load(); conditions != nil {
		return slices.Clone(*conditions)
	}
	return nil
}

// Refresh checks for a new version if the last check was at least CheckEvery ago. Most calls cost nothing: one caller checks,
// and the other callers continue with the current version. It returns an error only if the process has no configuration:
// store.ErrUnavailable, or what is wrong with the only version.
func (c *Current) Refresh(ctx context.Context) error {
	if now := c.version.Load(); now == nil || now.stepsUnread && !now.stepsUnavailable {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.version.Load() == nil {
			if _, err := c.check(ctx); err != nil {
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
	_, _ = c.check(ctx)
	c.readSteps(ctx)
	return nil
}

// Reload checks for a new version now. Errors: store.ErrUnavailable, the error of a file that cannot be read, and the errors
// of Refresh. The log, the metrics and the conditions report an invalid new version.
func (c *Current) Reload(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.check(ctx)
	return err
}

// check is Reload for callers that hold mu. It returns the record of the state, valid or not.
func (c *Current) check(ctx context.Context) (store.Record, error) {
	record, next, err := c.loader.load(ctx, c.snapshot())
	return record, c.conclude(ctx, next, err)
}

// snapshot returns what is loaded. The caller holds mu.
func (c *Current) snapshot() snapshot {
	return snapshot{version: c.version.Load(), refusal: c.refusal, checked: c.lastCheck.Load()}
}

// installRecord puts a record into effect that this process wrote or received in an event, if it is new.
func (c *Current) installRecord(ctx context.Context, stored store.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.version.Load(); now == nil || now.revision < stored.Revision {
		_, next, err := c.loader.loadRecord(ctx, c.snapshot(), stored)
		_ = c.conclude(ctx, next, err)
	}
}

// conclude takes the result of a check: it puts a new version into effect, or records why there is none. Next is the current
// version if that is the newest, and nil if the check found nothing new. The caller holds mu.
func (c *Current) conclude(ctx context.Context, next *version, err error) error {
	now, consequence := c.version.Load(), "the previous version stays in effect"
	if now == nil {
		consequence = "no version is in effect"
	}
	var invalid *refusal
	switch {
	case errors.As(err, &invalid):
		c.refusal = invalid
		c.logOnce(ctx, outcomeRefused, "platform configuration refused; "+consequence, err)
	case err != nil:
		c.logOnce(ctx, outcomeUnavailable, "the platform configuration cannot be read; "+consequence, err)
		if c.FromFile() {
			c.refusal = fileRefusal(err)
		}
	case next != nil && next == now:
		c.refusal = nil
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

// install puts a version into effect. The caller holds mu.
func (c *Current) install(ctx context.Context, next *version) {
	previous := c.version.Load()
	first := previous == nil
	if !first {
		next.previous = previous.record
	}
	c.version.Store(next)
	c.refusal, c.lastError = nil, ""
	c.report(outcomeLoaded)
	level := slog.LevelInfo
	if first {
		level = slog.LevelDebug
	}
	c.Log.Log(ctx, level, "platform configuration loaded", "file", c.File, "revision", next.revision)
	if len(next.unresolvedFields) > 0 {
		c.Log.WarnContext(ctx, "placeholders or secrets of the platform configuration are not known here", "fields", strings.Join(next.unresolvedFields, ", "))
	}
}

// updateConditions updates the conditions. The time of a condition is the last change of its status that this process saw.
// Before the first change, it is the creation of the object, so that all processes report the same. The caller holds mu.
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
	if c.refusal != nil {
		loaded.Status, loaded.Reason = metav1.ConditionFalse, "Refused"
		newer := fmt.Sprintf("revision %d is refused", c.refusal.revision)
		if c.refusal.revision == 0 {
			loaded.Reason, newer = "Unavailable", "the file cannot be read"
		}
		loaded.Message = newer + ", and revision " + revision + " stays in effect: " + c.refusal.Error()
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

// logOnce logs and counts an error, unless it was the last error. The caller holds mu.
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
