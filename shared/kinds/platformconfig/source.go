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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// CheckEvery is the least time between two looks for a new version while requests come, so that every function has
// one within five seconds. Source: ADR-0015.
const CheckEvery = 2 * time.Second

// Outcomes of a look that found something to tell.
const (
	// Loaded: a new version is in effect.
	Loaded = "loaded"
	// Refused: a new version is bad, and the one before stays.
	Refused = "refused"
	// Unavailable: it could not be looked.
	Unavailable = "unavailable"
)

// Conditions of a Config. Source: ADR-0015.
const (
	ConditionLoaded   = "Loaded"
	ConditionResolved = "Resolved"
)

// Options are where a configuration comes from.
type Options struct {
	// File is a YAML file. Empty: the state holds the configuration.
	File string
	// Store is the state of configs. Not used where there is a file.
	Store store.Store
	// Keyring returns the keys that secrets are sealed with. nil: there are none.
	Keyring func(context.Context) (*encryption.Keyring, error)
	// Lookup returns environment variables, for placeholders. nil: there are none.
	Lookup func(string) (string, bool)
	// Now is the clock.
	Now func() time.Time
	// Random is where the uid comes from.
	Random io.Reader
	// Log takes what happens to new versions.
	Log *slog.Logger
	// Report counts outcomes, with the revision in effect. nil: nobody does.
	Report func(outcome string, revision int64)
}

// Source is the configuration of a process, kept up to date. It is safe for concurrent use. Make one with New.
type Source struct {
	Options

	current atomic.Pointer[version]
	refused atomic.Pointer[refusal]
	// checked is when it was looked last, in nanoseconds.
	checked atomic.Int64

	// mu is held while it is looked; it guards the rest.
	mu sync.Mutex
	// seen is the text of the file that was looked at last, good or bad, nil where it could not be read; complained is
	// what was logged last.
	seen []byte
	// bad is the revision that was refused last, and not replaced since.
	bad        int64
	complained string
}

// version is one version of the configuration. It is never changed.
type version struct {
	revision int64
	// written is as it was written, secrets in clear.
	written *model.Config
	// effective is with defaults and without placeholders.
	effective *model.ConfigStatus
	// lacking are the texts that are not known here, and since when.
	lacking []string
	// partial tells that secrets could not be opened, which may be otherwise at the next look.
	partial bool
	since   time.Time
}

// refusal is why a newer version is not in effect.
type refusal struct {
	// revision is that of the newer version, 0 where its file cannot be read.
	revision int64
	why      string
	since    time.Time
}

// New returns a configuration that was not looked at yet.
func New(options Options) *Source {
	if options.Keyring == nil {
		options.Keyring = func(context.Context) (*encryption.Keyring, error) {
			return nil, nil //nolint:nilnil // a nil ring is one without keys
		}
	}
	if options.Lookup == nil {
		options.Lookup = func(string) (string, bool) { return "", false }
	}
	return &Source{Options: options}
}

// FromFile tells whether a file holds the configuration, which nobody can then write through the API.
func (s *Source) FromFile() bool { return s.File != "" }

// Current is the configuration of this moment: with defaults, placeholders replaced, secrets in clear. It is never
// nil and not to be changed. Before the first look it is that of nothing but defaults, with everything closed that
// can be.
func (s *Source) Current() *model.ConfigStatus {
	if now := s.current.Load(); now != nil {
		return now.effective
	}
	closed := &model.ConfigStatus{AuthenticateVersionEndpoint: true, DisableConfigEndpoint: true}
	setDefaults(closed)
	return closed
}

// Refresh looks for a new version where that was not done for a while; most calls cost nothing, and while one
// looks others go on with what there is. The error is for a process that has no configuration at all:
// store.ErrUnavailable, or what is wrong with the only version there is.
func (s *Source) Refresh(ctx context.Context) error {
	if s.current.Load() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current.Load() != nil {
			return nil
		}
		return s.look(ctx)
	}
	age := s.Now().Sub(time.Unix(0, s.checked.Load()))
	if age >= 0 && age < CheckEvery || !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	_ = s.look(ctx)
	return nil
}

// Reload looks for a new version now. The error is store.ErrUnavailable, that of a file that cannot be read, or that of
// Refresh; a bad new version is told of by the log, the metrics and the conditions.
func (s *Source) Reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(ctx)
}

// look does what Reload says, under the lock.
func (s *Source) look(ctx context.Context) error {
	var next *version
	var err error
	if s.FromFile() {
		next, err = s.lookAtFile()
	} else {
		next, err = s.lookAtState(ctx)
	}
	now, stays := s.current.Load(), "the one before stays"
	if now == nil {
		stays = "there is none before it"
	}
	var bad *badVersion
	switch {
	case errors.As(err, &bad):
		s.bad = bad.revision
		s.complain(ctx, Refused, "platform configuration refused; "+stays, err)
		s.refuse(bad.revision, err)
	case err != nil:
		s.complain(ctx, Unavailable, "the platform configuration cannot be read; "+stays, err)
		if s.FromFile() {
			// What comes back is news, even if it is what there was.
			s.seen = nil
			s.refuse(0, err)
		}
	case next != nil:
		s.install(ctx, next)
	}
	s.checked.Store(s.Now().UnixNano())
	if bad != nil && now != nil {
		return nil
	}
	return err
}

// refuse notes why the version in effect is not the newest, under the lock.
func (s *Source) refuse(revision int64, why error) {
	if old := s.refused.Load(); old == nil || old.why != why.Error() {
		s.refused.Store(&refusal{revision: revision, why: why.Error(), since: s.Now()})
	}
}

// install puts a version into effect, under the lock.
func (s *Source) install(ctx context.Context, next *version) {
	first := s.current.Load() == nil
	s.current.Store(next)
	s.refused.Store(nil)
	s.bad, s.complained = 0, ""
	s.report(Loaded)
	level := slog.LevelInfo
	if first {
		level = slog.LevelDebug
	}
	s.Log.Log(ctx, level, "platform configuration loaded", "file", s.File, "revision", next.revision)
	if len(next.lacking) > 0 {
		s.Log.WarnContext(ctx, "texts of the platform configuration are not known here", "fields", strings.Join(next.lacking, ", "))
	}
}

// complain logs what was not logged just before, and counts it.
func (s *Source) complain(ctx context.Context, outcome, what string, err error) {
	if text := err.Error(); text != s.complained {
		s.complained = text
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

// badVersion is a version that may not take effect.
type badVersion struct {
	revision int64
	err      error
}

func (b *badVersion) Error() string { return b.err.Error() }
func (b *badVersion) Unwrap() error { return b.err }

// lookAtFile returns the version in the file, nil when it was looked at before.
func (s *Source) lookAtFile() (*version, error) {
	about, err := os.Stat(s.File)
	if err == nil && !about.Mode().IsRegular() {
		// Reading a pipe would wait for whoever writes to it.
		err = fmt.Errorf("%s is no regular file", s.File)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	content, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	if s.current.Load() != nil && s.seen != nil && bytes.Equal(content, s.seen) {
		return nil, nil
	}
	s.seen = append([]byte{}, content...)
	revision := about.ModTime().UnixMilli()
	if s.current.Load() != nil && len(bytes.TrimSpace(content)) == 0 {
		// So is a file that is being written anew. It does not lift what was limited.
		return nil, &badVersion{revision, fmt.Errorf("platform configuration %s: is empty; {} stands for the defaults", s.File)}
	}
	config, err := Parse(content)
	if err != nil {
		return nil, &badVersion{revision, fmt.Errorf("platform configuration %s: %w", s.File, err)}
	}
	return s.build(config, revision, nil, nil)
}

// lookAtState returns the version in the state, nil when it is the one in effect, or the one that was refused.
func (s *Source) lookAtState(ctx context.Context) (*version, error) {
	now := s.current.Load()
	record, err := s.Store.Get(ctx, Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if now != nil && now.revision == store.Beginning {
			return nil, nil
		}
		return s.build(&model.Config{}, store.Beginning, nil, nil)
	case err != nil:
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	case now != nil && s.bad == record.Revision:
		return nil, nil
	case now != nil && now.revision == record.Revision && !now.partial:
		s.bad = 0
		s.refused.Store(nil)
		return nil, nil
	}
	next, err := s.fromRecord(ctx, record)
	if err == nil && now != nil && now.partial && now.revision == next.revision && slices.Equal(now.lacking, next.lacking) {
		return nil, nil
	}
	return next, err
}

// fromRecord makes the version of a record.
func (s *Source) fromRecord(ctx context.Context, record store.Record) (*version, error) {
	held, err := read(record)
	if err != nil {
		return nil, &badVersion{record.Revision, err}
	}
	var ring *encryption.Keyring
	var reason error
	if len(held.Sealed) > 0 {
		ring, reason = s.Keyring(ctx)
	}
	config, closed, err := held.unseal(ring)
	return s.build(config, record.Revision, closed, errors.Join(reason, err))
}

// build makes a version. Closed are the secrets that could not be opened, and why.
func (s *Source) build(config *model.Config, revision int64, closed []string, why error) (*version, error) {
	if err := validate(&config.Status, nil).ToAggregate(); err != nil {
		return nil, &badVersion{revision, err}
	}
	effective := config.Status.DeepCopy()
	effective.Conditions = nil
	setDefaults(effective)
	lacking := resolve(effective, s.Lookup)
	// What placeholders stand for is judged now, and not quoted.
	if problems := validate(effective, nil); len(problems) > 0 {
		for _, problem := range problems {
			problem.BadValue = field.OmitValueType{}
		}
		return nil, &badVersion{revision, fmt.Errorf("with its placeholders replaced: %w", problems.ToAggregate())}
	}
	if why != nil {
		lacking = append(lacking, closed...)
		slices.Sort(lacking)
	}
	return &version{
		revision: revision, written: config, effective: effective, lacking: lacking, partial: len(closed) > 0, since: s.Now(),
	}, nil
}

// show is a version as the API shows it: with defaults, placeholders as they were written, secrets in clear only
// where they are asked for.
func (s *Source) show(v *version, reveal bool) *model.Config {
	config := v.written.DeepCopy()
	config.SetGroupVersionKind(Definition.GroupVersionKind())
	config.Name = Name
	config.ResourceVersion = strconv.FormatInt(v.revision, 10)
	setDefaults(&config.Status)
	if !reveal {
		conceal(&config.Status)
	}
	config.Status.Conditions = s.conditions(v)
	return config
}

func (s *Source) conditions(v *version) []metav1.Condition {
	loaded := metav1.Condition{
		Type: ConditionLoaded, Status: metav1.ConditionTrue, Reason: "Loaded",
		Message: "revision " + strconv.FormatInt(v.revision, 10) + " is in effect", LastTransitionTime: metav1.NewTime(v.since.UTC()),
	}
	if refused := s.refused.Load(); refused != nil {
		loaded.Status, loaded.Reason = metav1.ConditionFalse, "Refused"
		newer := fmt.Sprintf("revision %d is refused", refused.revision)
		if refused.revision == 0 {
			loaded.Reason, newer = "Unavailable", "the file cannot be read"
		}
		loaded.Message = fmt.Sprintf("%s, and revision %d stays in effect: %s", newer, v.revision, refused.why)
		loaded.LastTransitionTime = metav1.NewTime(refused.since.UTC())
	}
	resolved := metav1.Condition{
		Type: ConditionResolved, Status: metav1.ConditionTrue, Reason: "Resolved", LastTransitionTime: metav1.NewTime(v.since.UTC()),
		Message: "all secrets and placeholders have their text",
	}
	if len(v.lacking) > 0 {
		resolved.Status, resolved.Reason = metav1.ConditionFalse, "Lacking"
		resolved.Message = "not known here: " + strings.Join(v.lacking, ", ")
	}
	for _, one := range []*metav1.Condition{&loaded, &resolved} {
		one.ObservedGeneration = v.written.Generation
	}
	return []metav1.Condition{loaded, resolved}
}
