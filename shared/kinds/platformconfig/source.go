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

// Source is the configuration of a process, kept up to date. It is safe for concurrent use. Make one with New.
type Source struct {
	Options

	// reader is the registry of reads.
	reader *resource.Registry[*model.Config]

	current atomic.Pointer[version]
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
func New(options Options) *Source {
	if options.Keyring == nil {
		options.Keyring = func(context.Context) (*encryption.Keyring, error) {
			return nil, nil //nolint:nilnil // a nil ring is one without keys
		}
	}
	if options.Lookup == nil {
		options.Lookup = func(string) (string, bool) { return "", false }
	}
	s := &Source{Options: options}
	s.reader = s.registry(records{options.Store, s}, &rules{source: s, write: &write{}})
	return s
}

func (s *Source) registry(state store.Store, r *rules) *resource.Registry[*model.Config] {
	return &resource.Registry[*model.Config]{Definition: Definition, Store: state, Now: s.Now, Random: s.Random, Strategy: resource.Strategy[*model.Config]{
		Rules: r, Visibility: r, Permissions: r, Format: r,
	}}
}

// Writer is a Source that clients write. It is safe for concurrent use.
type Writer struct {
	*Source

	newManager resource.NewFieldManager
}

// Writer returns what writes the configuration. Its writes record with newManager who set which field; nil: they record nothing.
// Source: ADR-0008, ADR-0049.
func (s *Source) Writer(newManager resource.NewFieldManager) *Writer { return &Writer{s, newManager} }

// FromFile reports whether the configuration comes from a file. Then it cannot be written through the API.
func (s *Source) FromFile() bool { return s.File != "" }

// Current returns the current configuration: with defaults, with its placeholders replaced, and with secrets in clear text.
// It is never nil and must not be changed. Before a version is loaded, it has the defaults and permits as little as possible.
func (s *Source) Current() *model.ConfigStatus {
	if now := s.current.Load(); now != nil {
		return now.effective
	}
	restrictive := &model.ConfigStatus{AuthenticateVersionEndpoint: true, DisableConfigEndpoint: true}
	setDefaults(restrictive)
	return restrictive
}

// KeyLimits returns the current limits on the life of access keys, with the changes that leave keys a grace period.
// Source: ADR-0024.
func (s *Source) KeyLimits() accesskey.Limits {
	if now := s.current.Load(); now != nil {
		return now.limits
	}
	return accesskey.LimitsOf(s.Current())
}

// Refresh checks for a new version if the last check was at least CheckEvery ago. Most calls cost nothing: one caller checks,
// and the others go on with the current version. It returns an error only if the process has no configuration at all:
// store.ErrUnavailable, or what is wrong with the only version.
func (s *Source) Refresh(ctx context.Context) error {
	if now := s.current.Load(); now == nil || now.stepsUnread && !now.stepsUnavailable {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current.Load() == nil {
			if _, err := s.load(ctx); err != nil {
				return err
			}
		}
		s.readSteps(ctx)
		return nil
	}
	age := s.Now().Sub(time.Unix(0, s.lastCheck.Load()))
	if age >= 0 && age < CheckEvery || !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	_, _ = s.load(ctx)
	s.readSteps(ctx)
	return nil
}

// Reload checks for a new version now. Errors: store.ErrUnavailable, that of a file that cannot be read, and those of
// Refresh. The log, the metrics and the conditions report an invalid new version.
func (s *Source) Reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.load(ctx)
	return err
}

// load implements Reload, under the lock. It returns the stored record, valid or not.
func (s *Source) load(ctx context.Context) (store.Record, error) {
	if s.FromFile() {
		next, err := s.loadFile()
		err = s.conclude(ctx, next, err)
		if now := s.current.Load(); now != nil {
			return now.record, err
		}
		return store.Record{}, err
	}
	record, err := s.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		record, err = initialRecord(), nil
	}
	if err != nil {
		return record, s.conclude(ctx, nil, fmt.Errorf("reading the platform configuration: %w", err))
	}
	record, trialEnded := s.recordInForce(record)
	next, err := s.versionOf(ctx, record, trialEnded)
	return record, s.conclude(ctx, next, err)
}

// conclude puts a new version into effect, or records why there is none, under the lock. A nil version means that nothing
// is new.
func (s *Source) conclude(ctx context.Context, next *version, err error) error {
	now, consequence := s.current.Load(), "the previous version stays in effect"
	if now == nil {
		consequence = "no version is in effect"
	}
	var invalid *invalidVersion
	switch {
	case errors.As(err, &invalid):
		s.refused = &refusal{invalid.revision, err.Error(), invalid.unreadable}
		s.logOnce(ctx, Refused, "platform configuration refused; "+consequence, err)
	case err != nil:
		s.logOnce(ctx, Unavailable, "the platform configuration cannot be read; "+consequence, err)
		if s.FromFile() {
			// A file that can be read again is a new version, even with the same text.
			s.fileText = nil
			s.refused = &refusal{reason: err.Error()}
		}
	case next != nil:
		s.install(ctx, next)
	}
	s.updateConditions()
	s.lastCheck.Store(s.Now().UnixNano())
	if invalid != nil && now != nil {
		return nil
	}
	return err
}

// install puts a version into effect, under the lock.
func (s *Source) install(ctx context.Context, next *version) {
	previous := s.current.Load()
	first := previous == nil
	if !first {
		next.previous = previous.record
	}
	s.current.Store(next)
	s.refused, s.lastError = nil, ""
	s.report(Loaded)
	level := slog.LevelInfo
	if first {
		level = slog.LevelDebug
	}
	s.Log.Log(ctx, level, "platform configuration loaded", "file", s.File, "revision", next.revision)
	if len(next.unresolvedFields) > 0 {
		s.Log.WarnContext(ctx, "placeholders or secrets of the platform configuration are not known here", "fields", strings.Join(next.unresolvedFields, ", "))
	}
}

// logOnce logs and counts an error, unless it is the one that was logged last.
func (s *Source) logOnce(ctx context.Context, outcome, what string, err error) {
	if text := err.Error(); text != s.lastError {
		s.lastError = text
		s.report(outcome)
		s.Log.ErrorContext(ctx, what, "error", text)
	}
}

func (s *Source) report(outcome string) {
	if s.Report == nil {
		return
	}
	var revision int64
	if now := s.current.Load(); now != nil {
		revision = now.revision
	}
	s.Report(outcome, revision)
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
func (s *Source) loadFile() (*version, error) {
	info, err := os.Stat(s.File)
	if err == nil && !info.Mode().IsRegular() {
		// Reading a pipe would block until somebody writes to it.
		err = fmt.Errorf("%s is not a regular file", s.File)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	content, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	now := s.current.Load()
	isSameText := now != nil && s.fileText != nil && bytes.Equal(content, s.fileText)
	if isSameText && !now.partial {
		return nil, nil
	}
	s.fileText = append([]byte{}, content...)
	revision := info.ModTime().UnixMilli()
	if now != nil && len(bytes.TrimSpace(content)) == 0 {
		// A file that is just being rewritten is empty too. It must not lift any limits.
		return nil, &invalidVersion{revision: revision, err: fmt.Errorf("platform configuration %s: is empty; write {} for the defaults", s.File)}
	}
	config, err := Parse(content)
	if err != nil {
		return nil, &invalidVersion{revision: revision, err: fmt.Errorf("platform configuration %s: %w", s.File, err)}
	}
	text, err := marshalConcealed(config)
	if err != nil {
		return nil, err
	}
	next, err := s.build(config, store.Record{Name: Name, Revision: revision, Object: text}, nil, nil)
	if err != nil {
		return nil, err
	}
	if isSameText && now.revision == next.revision && slices.Equal(now.unresolvedFields, next.unresolvedFields) {
		return nil, nil
	}
	switch {
	case s.FileLimits == nil && now == nil:
		next.steps = keyLimits{}.forConfig(next.effective)
	case now == nil || now.stepsUnread:
		next.stepsUnread, next.steps = true, keyLimits{}.withLimits(next.effective, s.changeTimeAtStart(info.ModTime()))
	default:
		next.steps = now.steps.withLimits(next.effective, s.changeTime(info.ModTime()))
	}
	next.limits = next.steps.limits(next.effective)
	return next, nil
}

// changeTime returns when a file has changed that this process has looked at before. It is the time that the file says, so that all
// processes agree on it. A file that says that it is older than the last look at it was moved here: the change is noticed now.
func (s *Source) changeTime(modified time.Time) time.Time {
	now := s.Now()
	if modified.After(now) || modified.UnixNano() <= s.lastCheck.Load() {
		return now
	}
	return modified
}

// changeTimeAtStart returns when a file has changed that this process starts with. It is the time that the file says, if that is not
// long ago: so the process agrees with those that saw the change. An older time may be that of an image or a mount: the change is
// noticed now.
func (s *Source) changeTimeAtStart(modified time.Time) time.Time {
	if now := s.Now(); modified.After(now) || now.Sub(modified) > recentChange {
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
func (s *Source) versionOf(ctx context.Context, record store.Record, trialEnded bool) (*version, error) {
	now := s.current.Load()
	switch {
	case now != nil && now.revision == record.Revision && now.trialEnded == trialEnded && !now.partial:
		s.refused = nil
		return nil, nil
	case now != nil && s.refused != nil && s.refused.revision == record.Revision && !trialEnded:
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
		ring, reason = s.Keyring(ctx)
	}
	closedFields, err := unseal(&config.Status, ring)
	next, err := s.build(config, record, closedFields, errors.Join(reason, err))
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
func (s *Source) installRecord(ctx context.Context, record store.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.current.Load(); now == nil || now.revision < record.Revision {
		inForce, trialEnded := s.recordInForce(record)
		next, err := s.versionOf(ctx, inForce, trialEnded)
		_ = s.conclude(ctx, next, err)
	}
}

// build returns a version. ClosedFields are those whose secrets could not be opened, and reason is why.
func (s *Source) build(config *model.Config, record store.Record, closedFields []string, reason error) (*version, error) {
	if err := validate(&config.Status, nil).ToAggregate(); err != nil {
		return nil, &invalidVersion{revision: record.Revision, err: err}
	}
	effective, unresolvedFields, err := s.effective(&config.Status)
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
func (s *Source) effective(config *model.ConfigStatus) (effective *model.ConfigStatus, unresolvedFields []string, err error) {
	effective = config.DeepCopy()
	effective.Conditions = nil
	setDefaults(effective)
	unresolvedFields = s.resolve(effective)
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
func (s *Source) Conditions() []metav1.Condition {
	if now := s.conditions.Load(); now != nil {
		return slices.Clone(*now)
	}
	return nil
}

// updateConditions updates the conditions, under the lock. The time of a condition is that of the last change of its status
// that this process saw. Before the first change, it is the creation of the object, so that all processes report the same.
// Source: ADR-0015.
func (s *Source) updateConditions() {
	now := s.current.Load()
	if now == nil {
		return
	}
	conditions, instant := s.Conditions(), metav1.NewTime(s.Now().UTC().Truncate(time.Second))
	if created := now.config.CreationTimestamp; conditions == nil && !created.IsZero() {
		instant = created
	}
	revision := strconv.FormatInt(now.revision, 10)
	loaded := metav1.Condition{Type: ConditionLoaded, Status: metav1.ConditionTrue, Reason: "Loaded", Message: "revision " + revision + " is in effect"}
	if s.refused != nil {
		loaded.Status, loaded.Reason = metav1.ConditionFalse, "Refused"
		newer := fmt.Sprintf("revision %d is refused", s.refused.revision)
		if s.refused.revision == 0 {
			loaded.Reason, newer = "Unavailable", "the file cannot be read"
		}
		loaded.Message = newer + ", and revision " + revision + " stays in effect: " + s.refused.reason
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
	s.conditions.Store(&conditions)
}
