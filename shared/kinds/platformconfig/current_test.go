package platformconfig_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// world is a state, and processes that have their configuration from the state or from a file.
type world struct {
	t         *testing.T
	client    *redisstore.Client
	ring      *encryption.Keyring
	now       time.Time
	log       bytes.Buffer
	handler   slog.Handler // all processes share it, because it writes to log under its lock
	reports   sync.Mutex
	outcomes  []string
	variables map[string]string
	closed    bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOf(t, redistest.Embedded(t))
}

// worldOf returns a world whose state is at a URL.
func worldOf(t *testing.T, url string) *world {
	t.Helper()
	client := redistest.Open(t, url)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: client, ring: ring, now: time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC), variables: map[string]string{}}
	w.handler = slog.NewTextHandler(&w.log, nil)
	return w
}

// testProcess is a process that reads the configuration and writes it.
type testProcess struct {
	*platformconfig.Current
	*platformconfig.Writer
}

func newProcess(options platformconfig.Options, newManager resource.NewFieldManager) testProcess {
	current := platformconfig.New(options)
	return testProcess{current, current.Writer(newManager)}
}

// process returns a new process that reads a file. Empty: it reads the state.
func (w *world) process(file string) testProcess {
	return newProcess(w.options(file), fieldmanager.New)
}

func (w *world) options(file string) platformconfig.Options {
	return platformconfig.Options{
		File: file, Store: w.client.Resource("configs"), FileLimits: w.client.Resource(platformconfig.FileLimits),
		Keyring: func(context.Context) (*encryption.Keyring, error) { return w.ring, nil },
		Lookup: func(name string) (string, bool) {
			value, ok := w.variables[name]
			return value, ok
		},
		Now: func() time.Time { return w.now }, Random: rand.Reader, Log: slog.New(w.handler),
		Report: func(outcome string, _ int64) {
			w.reports.Lock()
			defer w.reports.Unlock()
			w.outcomes = append(w.outcomes, outcome)
		},
	}
}

// mustUpdate replaces the configuration through a process with a text in YAML.
func (w *world) mustUpdate(s testProcess, text string) *model.Config {
	w.t.Helper()
	config, err := platformconfig.Parse([]byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	written, err := s.Update(w.t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: config})
	if err != nil {
		w.t.Fatal(err)
	}
	return written.Object
}

func (w *world) get(s testProcess, reveal bool) *model.Config {
	w.t.Helper()
	config, err := s.Get(w.t.Context(), resource.GetInput{Caller: admin, Name: "config", Reveal: reveal})
	if err != nil {
		w.t.Fatal(err)
	}
	return config
}

func condition(config *model.Config, name string) metav1.Condition {
	for _, one := range config.Status.Conditions {
		if one.Type == name {
			return one
		}
	}
	return metav1.Condition{}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A process that starts with a file that lowers a limit leaves keys their grace period, like a process that was running.
// Source: ADR-0024.
func TestFileLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	start := func(seconds int) testProcess {
		t.Helper()
		write(t, file, fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}\n", seconds))
		process := w.process(file)
		if err := process.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return process
	}
	steps := func(process testProcess) string {
		var words []string
		for _, step := range process.KeyLimits().MaxSteps {
			since := "always"
			if !step.Since.IsZero() {
				since = step.Since.Format("15:04")
			}
			words = append(words, fmt.Sprintf("%d since %s", step.Seconds, since))
		}
		return strings.Join(words, ", ")
	}
	for _, step := range []struct {
		seconds int
		noted   bool
		want    string
	}{
		{90, false, "90 since always"},
		{60, true, "60 since always"},
		{60, false, "60 since always"},
		{30, false, "60 since always, 30 since 05:09"},
		{30, true, "60 since always, 30 since 05:10"},
		{30, true, "60 since always, 30 since 05:10"},
		{20, true, "60 since always, 30 since 05:10, 20 since 05:12"},
		{60, true, "60 since always"},
	} {
		process := start(step.seconds)
		if got := steps(process); got != step.want {
			t.Errorf("%d: %s, want %s", step.seconds, got, step.want)
		}
		if step.noted {
			if err := process.NoteLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.now = w.now.Add(time.Minute)
	}
	// While the state cannot be read, a new process ends no existing key. It tries to read the state again.
	broken := w.options(file)
	broken.FileLimits = closed{w.client.Resource(platformconfig.FileLimits), &w.closed}
	w.closed = true
	process := newProcess(broken, nil)
	for range 2 {
		if err := process.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := steps(process); got != "60 since 05:14" {
			t.Errorf("without the state: %s", got)
		}
		if err := process.NoteLimits(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.closed = false
	w.now = w.now.Add(time.Minute)
	if err := process.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := steps(process); got != "60 since always" {
		t.Errorf("with the state again: %s", got)
	}
}

// Processes that notice a changed file one after the other agree on when it changed: a key that was made in between has the
// same end in all processes. A file with a modification time before the last check has changed now. Source: ADR-0024.
func TestFileChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 90}\n")
	processes := []testProcess{w.process(file), w.process(file)}
	began := w.now
	for _, process := range processes {
		if err := process.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		seconds        int
		modified, want time.Duration
	}{
		{60, time.Minute, time.Minute},
		{30, -time.Hour, 0},
		{20, 24 * time.Hour, 0},
	} {
		write(t, file, fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}\n", step.seconds))
		modified := began.Add(step.modified)
		if err := os.Chtimes(file, modified, modified); err != nil {
			t.Fatal(err)
		}
		for _, process := range processes {
			w.now = w.now.Add(2 * time.Minute)
			if err := process.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps := process.KeyLimits().MaxSteps
			want := w.now
			if step.want > 0 {
				want = began.Add(step.want)
			}
			if last := steps[len(steps)-1]; last.Seconds != int64(step.seconds) || !last.Since.Equal(want.Truncate(time.Second)) {
				t.Errorf("%d: %d since %s, want %s", step.seconds, last.Seconds, last.Since, want)
			}
		}
	}
}

// A process that starts soon after a file has changed trusts the modification time of the file, before and after it has read
// the noted limits. So it agrees with the processes that saw the change. It ignores a time that is long ago or in the
// future. Source: ADR-0024.
func TestFileChangedBeforeStart(t *testing.T) {
	t.Parallel()
	for ago, wantAgo := range map[time.Duration]time.Duration{
		0: 0, time.Minute: time.Minute, 5 * time.Minute: 5 * time.Minute, 5*time.Minute + time.Second: 0, 1000 * time.Hour: 0, -time.Hour: 0,
	} {
		w := newWorld(t)
		file := filepath.Join(t.TempDir(), "config.yaml")
		write(t, file, "auth: {accessKeyMaxTTLSeconds: 90}\n")
		first := w.process(file)
		if err := errors.Join(first.Refresh(t.Context()), first.NoteLimits(t.Context())); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(2000 * time.Hour)
		write(t, file, "auth: {accessKeyMaxTTLSeconds: 60}\n")
		if err := os.Chtimes(file, w.now.Add(-ago), w.now.Add(-ago)); err != nil {
			t.Fatal(err)
		}
		options := w.options(file)
		options.FileLimits = closed{w.client.Resource(platformconfig.FileLimits), &w.closed}
		process := platformconfig.New(options)
		for _, w.closed = range []bool{true, false} {
			if err := process.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps := process.KeyLimits().MaxSteps
			if last := steps[len(steps)-1]; last.Seconds != 60 || !last.Since.Equal(w.now.Add(-wantAgo).Truncate(time.Second)) {
				t.Errorf("%s ago, without the state: %t: %d since %s, now is %s", ago, w.closed, last.Seconds, last.Since, w.now)
			}
		}
	}
}

// closed is a store that cannot be read while it is closed.
type closed struct {
	store.Store
	now *bool
}

func (c closed) Get(ctx context.Context, name string) (store.Record, error) {
	if *c.now {
		return store.Record{}, store.ErrUnavailable
	}
	return c.Store.Get(ctx, name)
}

// A new version of a file takes effect, an invalid version never does, and neither is logged twice. Source: ADR-0015.
func TestFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 60}\n")
	process := w.process(file)
	for i, step := range []struct {
		sentence string
		text     string
		// outcome is the counted outcome. Empty: none is counted.
		outcome string
		limit   int64
	}{
		{"the first", "auth: {accessKeyMaxTTLSeconds: 60}\n", "loaded", 60},
		{"the same", "auth: {accessKeyMaxTTLSeconds: 60}\n", "", 60},
		{"another one", "auth: {accessKeyMaxTTLSeconds: 61}\n", "loaded", 61},
		{"a bad one", "auth: {accessKeyMaxTTLSeconds: -5}\n", "refused", 61},
		{"the same bad one", "auth: {accessKeyMaxTTLSeconds: -5}\n", "", 61},
		{"another bad one", "auth: {\n", "refused", 61},
		{"one with an unknown field", "auth: {accessKeyMaxTTLSeconds: 62}\ncolour: red\n", "refused", 61},
		{"one whose placeholder is bad", "audit: {dataStoreEndpoint: '${PLATFORM_SECRET_STORE}'}", "refused", 61},
		{"the one in effect", "auth: {accessKeyMaxTTLSeconds: 61}\n", "loaded", 61},
		{"a good one", "auth: {accessKeyMaxTTLSeconds: 63}\n", "loaded", 63},
		{"a whole Config", "kind: Config\nstatus: {auth: {accessKeyMaxTTLSeconds: 64}}\n", "loaded", 64},
		{"an emptied one", "", "refused", 64},
		{"one that is no object", "- a\n", "refused", 64},
		{"one without fields", "# nothing\n", "loaded", 0},
	} {
		w.variables["PLATFORM_SECRET_STORE"] = "http://secret.example"
		write(t, file, step.text)
		w.outcomes = nil
		w.log.Reset()
		if err := process.Reload(t.Context()); err != nil {
			t.Errorf("%s: %v", step.sentence, err)
		}
		if got := strings.Join(w.outcomes, " "); got != step.outcome || limit(process.Status()) != step.limit {
			t.Errorf("%s: counted %q, cap %d", step.sentence, got, limit(process.Status()))
		}
		if refused := strings.Contains(w.log.String(), "refused"); refused != (step.outcome == "refused") {
			t.Errorf("%s: the log says %s", step.sentence, &w.log)
		}
		if strings.Contains(w.log.String(), "secret.example") {
			t.Errorf("%s: the log quotes what a placeholder stands for: %s", step.sentence, &w.log)
		}
		shown := w.get(process, false)
		loaded := condition(shown, platformconfig.ConditionLoaded)
		if bad := step.outcome == "refused" || i == 4; (loaded.Status == metav1.ConditionFalse) != bad || loaded.Reason == "" || loaded.Message == "" || loaded.LastTransitionTime.IsZero() {
			t.Errorf("%s: the condition is %+v", step.sentence, loaded)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.outcomes = nil
	for range 2 {
		if err := process.Reload(t.Context()); err == nil {
			t.Error("a file that is gone is no error")
		}
	}
	if strings.Join(w.outcomes, " ") != "unavailable" || limit(process.Status()) != 0 {
		t.Errorf("a file that is gone: %q", w.outcomes)
	}
	if loaded := condition(w.get(process, false), platformconfig.ConditionLoaded); loaded.Status != metav1.ConditionFalse || loaded.Reason != "Unavailable" {
		t.Errorf("a file that is gone: the condition is %+v", loaded)
	}
	write(t, file, "# nothing\n")
	if loaded := condition(w.get(process, false), platformconfig.ConditionLoaded); loaded.Status != metav1.ConditionTrue {
		t.Errorf("a file that is back, as it was: the condition is %+v", loaded)
	}
	_, err := process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: &model.Config{}})
	refusal(t, err, 403)
	if history, err := process.History(t.Context(), resource.GetInput{Name: "config"}); err != nil || len(history.Status.Revisions) != 0 {
		t.Errorf("%v, %v", history, err)
	}
}

// If the first version is invalid or absent, the process has no configuration, and permits as little as possible.
func TestNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := filepath.Join(t.TempDir(), "config.yaml")
	write(t, bad, "auth: {accessKeyMaxTTLSeconds: -5, oidc: {clientSecret: hunter2}}\n")
	for _, file := range []string{bad, filepath.Join(t.TempDir(), "absent")} {
		process := w.process(file)
		for range 2 {
			err := process.Refresh(t.Context())
			if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error is %v", err)
			}
		}
		if now := process.Status(); now == nil || !now.AuthenticateVersionEndpoint || !now.DisableConfigEndpoint {
			t.Errorf("it is open: %+v", now)
		}
	}
}

// broken is a state that cannot be reached while it is away.
type broken struct {
	store.Store
	away bool
	gets int
}

func (b *broken) Get(ctx context.Context, name string) (store.Record, error) {
	b.gets++
	if b.away {
		return store.Record{}, store.ErrUnavailable
	}
	return b.Store.Get(ctx, name)
}

// A version that one process writes is in effect in the other processes within CheckEvery. Each of them reads the state
// once. A state that cannot be reached changes nothing. Source: ADR-0015.
func TestState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := &broken{Store: w.client.Resource("configs"), away: true}
	options := w.options("")
	options.Store = state
	reader, writer := newProcess(options, nil), w.process("")
	if err := reader.Refresh(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a process without any configuration: %v", err)
	}
	state.away = false
	refresh := func() {
		t.Helper()
		if err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	if now := reader.Status(); now.ProjectNamespacePrefix != "p-" || *now.Auth.LoginAccessKeyTTLSeconds != 20*24*3600 || now.AuthenticateVersionEndpoint {
		t.Errorf("where nothing was written: %+v", now)
	}
	state.gets = 0
	refresh()
	w.mustUpdate(writer, "auth: {accessKeyMaxTTLSeconds: 60}")
	if limit(writer.Status()) != 60 {
		t.Error("it is not in effect where it was written")
	}
	w.now = w.now.Add(platformconfig.CheckEvery - 1)
	refresh()
	if limit(reader.Status()) != 0 || state.gets != 0 {
		t.Errorf("the cap is %d at once, after %d looks", limit(reader.Status()), state.gets)
	}
	w.now = w.now.Add(1)
	for range 3 {
		refresh()
	}
	if limit(reader.Status()) != 60 || state.gets != 1 {
		t.Errorf("the cap is %d after a while and %d looks", limit(reader.Status()), state.gets)
	}
	state.away = true
	w.now = w.now.Add(time.Hour)
	for range 3 {
		refresh()
	}
	if limit(reader.Status()) != 60 || state.gets != 2 {
		t.Errorf("while the state is away the cap is %d, after %d looks", limit(reader.Status()), state.gets)
	}
	if _, err := reader.Get(t.Context(), resource.GetInput{Name: "config"}); err == nil {
		t.Error("a reader is told of an old version as of the latest")
	}

	// An invalid version that another build or an operator has put there is refused.
	state.away = false
	record, err := state.Get(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	good := record.Object
	record.Object = bytes.Replace(good, []byte(`"accessKeyMaxTTLSeconds":60`), []byte(`"accessKeyMaxTTLSeconds":-1`), 1)
	if record.Revision, err = state.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	w.outcomes = nil
	for range 2 {
		w.now = w.now.Add(time.Minute)
		refresh()
	}
	shown := w.get(reader, false)
	if got := condition(shown, platformconfig.ConditionLoaded); limit(reader.Status()) != 60 || got.Status != metav1.ConditionFalse ||
		!strings.Contains(got.Message, "accessKeyMaxTTLSeconds") || strings.Join(w.outcomes, " ") != "refused" {
		t.Errorf("cap %d, condition %+v, counted %q", limit(reader.Status()), got, w.outcomes)
	}
	if err := w.process("").Refresh(t.Context()); err == nil {
		t.Error("a new process takes the bad one")
	}
	// A write corrects it.
	w.mustUpdate(reader, "auth: {accessKeyMaxTTLSeconds: 70}")
	if got := condition(w.get(reader, false), platformconfig.ConditionLoaded); got.Status != metav1.ConditionTrue {
		t.Errorf("afterwards: %+v", got)
	}
}

// Readers continue while a process checks for a new version.
func TestCurrentIsSafe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 1}\n")
	process := w.process(file)
	if err := process.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for last := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				_ = process.Refresh(context.Background())
				now := limit(process.Status())
				if now < last {
					t.Errorf("the cap went from %d to %d", last, now)
					return
				}
				last = now
			}
		})
	}
	for i := range 50 {
		// A rename is one step, so that no process reads half a file.
		write(t, file+".new", fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}\n", i+2))
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
		if err := process.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
}

// Placeholders are replaced where the configuration is used, and nowhere else. Source: ADR-0015, ADR-0024.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.variables["PLATFORM_SECRET_OIDC"], w.variables["HOME"], w.variables["PLATFORM_REDIS_URL"] = "hunter2", "/root", "redis://hunter3"
	w.mustUpdate(process, "auth: {oidc: {clientSecret: 'x${PLATFORM_SECRET_OIDC}y'}, clustermanager: {bearerToken: '${PLATFORM_SECRET_ABSENT}'}}\n"+
		"uiSettings: {legalTemplate: '$${SECRET} $SECRET ${}'}\nsecretsStore: {enabled: true}")
	now := process.Status()
	if now.Auth.OIDC.ClientSecret.Reveal() != "xhunter2y" || now.Auth.ClusterManager.BearerToken.Reveal() != "${PLATFORM_SECRET_ABSENT}" ||
		now.UISettings.LegalTemplate != "${SECRET} $SECRET ${}" {
		t.Errorf("in effect are %+v, %q", now, now.Auth.OIDC.ClientSecret.Reveal())
	}
	shown := w.get(process, true)
	if shown.Status.Auth.OIDC.ClientSecret.Reveal() != "x${PLATFORM_SECRET_OIDC}y" || shown.Status.SecretsStore.Address != "${SECRETS_STORE_ADDR}" {
		t.Errorf("shown are %+v", shown.Status)
	}
	resolved := condition(shown, platformconfig.ConditionResolved)
	for _, field := range []string{"auth.clustermanager.bearerToken (PLATFORM_SECRET_ABSENT)", "secretsStore.address (SECRETS_STORE_ADDR)"} {
		if resolved.Status != metav1.ConditionFalse || !strings.Contains(resolved.Message, field) {
			t.Errorf("the condition is %+v", resolved)
		}
	}
	record, err := w.client.Resource("configs").Get(t.Context(), "config")
	if err != nil || bytes.Contains(record.Object, []byte("hunter2")) {
		t.Errorf("stored is %s, %v", record.Object, err)
	}
	for text, field := range map[string]string{
		"auth: {oidc: {clientSecret: '${HOME}'}}":                                      "status.auth.oidc.clientSecret",
		"auth: {oidc: {clientSecret: '${PLATFORM_REDIS_URL}'}}":                        "status.auth.oidc.clientSecret",
		"auth: {oidc: {clientSecret: '${platform_secret_oidc}'}}":                      "status.auth.oidc.clientSecret",
		"auth: {oidc: {issuerUrl: 'https://${PLATFORM_SECRET_OIDC}'}}":                 "status.auth.oidc.issuerUrl",
		"auth: {customHttpHeaders: {X-A: '${PLATFORM_SECRET_OIDC}'}}":                  "status.auth.customHttpHeaders[X-A]",
		"uiSettings: {legalTemplate: 'a ${PLATFORM_SECRET_OIDC}'}":                     "status.uiSettings.legalTemplate",
		"projectNamespacePrefix: '${PLATFORM_SECRET_OIDC}'":                            "status.projectNamespacePrefix",
		"apps: {repositories: [{url: 'https://a:${PLATFORM_SECRET_OIDC}@b.example'}]}": "status.apps.repositories[0].url",
		"secretsStore: {address: 'https://${SECRETS_STORE_ADDR}'}":                     "status.secretsStore.address",
	} {
		config, err := platformconfig.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.update(process, config)
		refusal(t, err, 422, field)
	}
	// If an older build wrote a version with such a placeholder, the version is in effect without the value.
	record.Object = bytes.Replace(record.Object, []byte(`"$${SECRET} $SECRET ${}"`), []byte(`"${HOME} ${PLATFORM_SECRET_OIDC}"`), 1)
	if record.Revision, err = w.client.Resource("configs").Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	old := w.process("")
	resolved = condition(w.get(old, false), platformconfig.ConditionResolved)
	if old.Status().UISettings.LegalTemplate != "${HOME} ${PLATFORM_SECRET_OIDC}" || resolved.Status != metav1.ConditionFalse ||
		!strings.Contains(resolved.Message, "uiSettings.legalTemplate (HOME is not allowed)") {
		t.Errorf("of an older build: %+v, %+v", old.Status().UISettings, resolved)
	}
}

// A placeholder alone is no secret: processes without the key can read it in fields whose destination cannot be changed. A
// process finds a variable that is set later. Source: ADR-0015.
func TestPlaceholderWithoutKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const placed, other = "${PLATFORM_SECRET_AUDIT_STORE}", "${PLATFORM_SECRET_OIDC}"
	w.variables["PLATFORM_SECRET_OIDC"] = "hunter2"
	rich, ring := w.process(""), w.ring
	text := "auth: {oidc: {issuerUrl: 'https://a.example', clientSecret: '" + other + "'}}\naudit: {dataStoreEndpoint: '%s'}"
	w.mustUpdate(rich, fmt.Sprintf(text, placed))
	record := func() store.Record {
		found, err := w.client.Resource("configs").Get(t.Context(), "config")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	change := func(from, to string) {
		changed := record()
		if changed.Object = bytes.Replace(changed.Object, []byte(from), []byte(to), 1); bytes.Contains(changed.Object, []byte(from)) {
			t.Fatalf("%s is still there: %s", from, changed.Object)
		}
		if _, err := w.client.Resource("configs").Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
	}
	if text := record().Object; !bytes.Contains(text, []byte(placed)) || bytes.Contains(text, []byte(other)) {
		t.Errorf("stored is %s", text)
	}
	w.ring = nil
	poor := w.process("")
	endpoint := func(want string) {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		if err := poor.Refresh(t.Context()); err != nil || poor.Status().Audit.DataStoreEndpoint.Reveal() != want || poor.Status().Auth.OIDC.ClientSecret != secret.Mark {
			t.Errorf("in effect are %q and %q, want %q: %v", poor.Status().Audit.DataStoreEndpoint.Reveal(), poor.Status().Auth.OIDC.ClientSecret.Reveal(), want, err)
		}
	}
	endpoint(placed)
	w.variables["PLATFORM_SECRET_AUDIT_STORE"] = "redis://:hunter3@a.example"
	endpoint("redis://:hunter3@a.example")
	if shown := w.get(poor, false); shown.Status.Audit.DataStoreEndpoint.Reveal() != secret.Mark {
		t.Errorf("shown is %+v", shown.Status.Audit)
	}

	// The mark of the placeholder keeps it. With another text beside it, it is sealed.
	w.ring = ring
	shown := w.get(rich, false)
	shown.Status.PlatformHost = "a.example"
	if _, err := w.update(rich, shown); err != nil || !bytes.Contains(record().Object, []byte(placed)) {
		t.Errorf("stored is %s, %v", record().Object, err)
	}
	for _, beside := range []string{"redis://:" + placed + "@a.example", placed + placed, "redis://a.example/$" + placed} {
		w.variables["PLATFORM_SECRET_AUDIT_STORE"] = "redis://a.example"
		if w.mustUpdate(rich, fmt.Sprintf(text, beside)); bytes.Contains(record().Object, []byte("PLATFORM_SECRET")) {
			t.Errorf("stored is %s", record().Object)
		}
	}
	if w.mustUpdate(rich, fmt.Sprintf(text+"\noidc: {clients: [{clientId: a, clientSecret: '$${PLATFORM_SECRET_TEXT}'}]}", "redis://a.example")); bytes.Contains(record().Object, []byte("PLATFORM_SECRET")) {
		t.Errorf("stored is %s", record().Object)
	}
	w.ring = nil
	endpoint(secret.Mark)

	// A placeholder that an earlier build sealed is stored in clear when it is written again.
	w.ring = ring
	sealed, err := ring.Seal([]byte(placed), "configs/config/audit.dataStoreEndpoint")
	if err != nil {
		t.Fatal(err)
	}
	w.mustUpdate(rich, fmt.Sprintf(text, placed))
	change(placed, sealed)
	w.ring = nil
	endpoint(secret.Mark)
	w.ring = ring
	w.mustUpdate(rich, fmt.Sprintf(text, placed))
	w.ring = nil
	endpoint("redis://a.example")

	// An attacker who can write the state, and has no key, cannot have a value sent to another place.
	found := regexp.MustCompile(`"auth.oidc.clientSecret":"([^"]+)"`).FindSubmatch(record().Object)
	change(string(found[1]), other)
	w.ring = ring
	if endpoint("redis://a.example"); w.get(w.process(""), true).Status.Auth.OIDC.ClientSecret.Reveal() != secret.Mark {
		t.Error("a placeholder in clear counts where another field says where it is sent")
	}
}

// A process with a file finds a variable that is set later, too. The file stays the same version.
func TestFilePlaceholder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 60}\naudit: {dataStoreEndpoint: '${PLATFORM_SECRET_AUDIT_STORE}'}\n")
	process := w.process(file)
	for _, want := range []string{"${PLATFORM_SECRET_AUDIT_STORE}", "redis://a.example"} {
		for range 3 {
			if err := process.Reload(t.Context()); err != nil || process.Status().Audit.DataStoreEndpoint.Reveal() != want || limit(process.Status()) != 60 {
				t.Errorf("in effect is %q, want %q: %v", process.Status().Audit.DataStoreEndpoint.Reveal(), want, err)
			}
		}
		w.variables["PLATFORM_SECRET_AUDIT_STORE"] = "redis://a.example"
	}
	if got := strings.Join(w.outcomes, " "); got != "loaded loaded" {
		t.Errorf("counted %q", got)
	}
}

// A process without the key has everything but the secrets. It has the secrets when it gets the key.
func TestSecretsWithoutKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustUpdate(w.process(""), canaried+"platformHost: platform.example")
	w.mustUpdate(w.process(""), "auth: {accessKeyMaxTTLSeconds: 60, oidc: {clientSecret: hunter2}}\napps: {repositories: [{name: a, url: 'https://ana:hunter2@charts.example'}]}")
	ring := w.ring
	w.ring = nil
	poor := w.process("")
	shown := w.get(poor, true)
	if limit(poor.Status()) != 60 || poor.Status().Auth.OIDC.ClientSecret != secret.Mark || strings.Contains(poor.Status().Apps.Repositories[0].URL, "hunter2") {
		t.Errorf("in effect are %+v", poor.Status().Auth)
	}
	if got := condition(shown, platformconfig.ConditionResolved); got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "auth.oidc.clientSecret") {
		t.Errorf("the condition is %+v", got)
	}
	config := &model.Config{}
	config.Status.Auth = &model.ConfigAuth{Password: &model.PasswordAuth{Disabled: true}}
	config.Status.Auth.ClusterManager = &model.ClusterManagerProvider{BearerToken: "hunter3"}
	if _, err := poor.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: config}); err == nil {
		t.Error("a process without the key wrote a secret")
	}
	w.ring = ring
	w.now = w.now.Add(time.Minute)
	if err := poor.Refresh(t.Context()); err != nil || poor.Status().Auth.OIDC.ClientSecret.Reveal() != "hunter2" {
		t.Errorf("with the key: %+v, %v", poor.Status().Auth, err)
	}
}
