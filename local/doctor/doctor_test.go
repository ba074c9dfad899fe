package doctor_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/functions/expirekeys"
	"management.platform.sh/local/doctor"
	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/runs"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// password is in the URL of the state of every test. No report may contain it.
const password = "hunter2-hunter2"

// patient bounds the waits for other goroutines.
const patient = 30 * time.Second

// ward is a deployment with or without a fault.
type ward struct {
	t    *testing.T
	url  string
	ring *encryption.Keyring
	s    settings.Settings
	now  func() time.Time
	here bool
}

// healthy are the arguments of a Redis without a fault.
func healthy() []redistest.Option {
	return []redistest.Option{redistest.AppendOnly(), redistest.Password(password)}
}

func admit(t *testing.T, url string) *ward {
	t.Helper()
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.ReadOnly(func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &ward{t: t, url: url, ring: ring, s: s, now: time.Now, here: true}
	w.configure("audit: {enabled: true, path: \"-\"}\n")
	return w
}

// configure gives the deployment a file with its configuration.
func (w *ward) configure(text string) {
	w.t.Helper()
	w.s.Config = filepath.Join(w.t.TempDir(), "config.yaml")
	localtest.Write(w.t, w.s.Config, text)
}

// server returns a process of the deployment with that version.
func (w *ward) server(version string) *frame.Server {
	w.t.Helper()
	s := w.s
	s.Version = version
	client := redistest.Open(w.t, w.url)
	server := process.New(s, process.World{
		Stores: client.Resource, Log: slog.New(slog.DiscardHandler),
		Encryption: func(context.Context) (*encryption.Keyring, error) { return w.ring, nil },
	})
	process.BeginAudit(server, process.Sinks{Openers: openers(client)})
	w.t.Cleanup(func() {
		// A test with a sink that refuses does not wait for it.
		over, cancel := context.WithCancel(context.Background())
		cancel()
		ended, end := context.WithDeadline(over, time.Now())
		defer end()
		process.EndAudit(ended, server)
	})
	return server
}

func openers(client *redisstore.Client) []audit.Opener {
	return []audit.Opener{audit.Output(io.Discard), filesink.Opener(redissink.NewAnchor(client), slog.New(slog.DiscardHandler)), redissink.Opener}
}

// run runs every schedule once.
func (w *ward) run(server *frame.Server) {
	w.t.Helper()
	for _, function := range catalog.Functions {
		if function.Schedule == nil {
			continue
		}
		if err := server.Run(w.t.Context(), function); err != nil {
			w.t.Fatal(err)
		}
	}
}

// examine returns the report, which must not contain a secret.
func (w *ward) examine() doctor.Report {
	w.t.Helper()
	s := w.s
	s.Redis.URL, s.Redis.URLFrom, s.Redis.Timeout = secret.String(w.url), "--redis", patient
	report, err := doctor.Examine(w.t.Context(), doctor.Deployment{
		Settings: s, Keyring: w.ring, Here: w.here, Every: time.Minute, Most: 1000, Openers: openers, Version: "test", Now: w.now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil || strings.Contains(string(text), "hunter2") {
		w.t.Errorf("%s, %v", text, err)
	}
	for _, finding := range report.Findings {
		if finding.Is == "" || finding.Check == "" || (finding.Level == doctor.Warning || finding.Level == doctor.Critical) && finding.Do == "" {
			w.t.Errorf("%+v lacks a word", finding)
		}
	}
	return report
}

// raw returns a client of the server itself.
func (w *ward) raw() *redis.Client {
	w.t.Helper()
	options, err := redis.ParseURL(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	client := redis.NewClient(options)
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// worst returns the most severe level of a check in a report, and the text of its finding.
func worst(report doctor.Report, check string) (doctor.Level, string) {
	order := []doctor.Level{"", doctor.Good, doctor.Unknown, doctor.Warning, doctor.Critical}
	var level doctor.Level
	text := ""
	for _, finding := range report.Findings {
		if finding.Check == check && slices.Index(order, finding.Level) > slices.Index(order, level) {
			level, text = finding.Level, finding.Is
		}
	}
	return level, text
}

// A deployment without a fault has none, and its report has a line about everything.
func TestHealthy(t *testing.T) {
	t.Parallel()
	w := admit(t, redistest.Server(t, healthy()...).URL())
	w.run(w.server("test"))
	report := w.examine()
	// A busy machine may make every round trip slow.
	level, text := worst(report, "state")
	slow := level == doctor.Warning && strings.Contains(text, "answers in")
	if !slow && (report.Level != doctor.Good || report.Code() != 0) {
		t.Errorf("%+v", report)
	}
	var checks []string
	for _, finding := range report.Findings {
		checks = append(checks, finding.Check)
	}
	slices.Sort(checks)
	want := []string{"audit", "clock", "configuration", "eviction", "memory", "persistence", "quotas", "records", "replicas", "schedules", "sealed", "sign-in", "signing-keys", "state"}
	if got := slices.Compact(checks); !slices.Equal(got, want) {
		t.Errorf("checks %q, want %q", got, want)
	}
}

// Each fault is real. The report names it, with its level and advice.
func TestFaults(t *testing.T) {
	t.Parallel()
	serve := func(options ...redistest.Option) func(*testing.T) string {
		return func(t *testing.T) string {
			return redistest.Server(t, append(options, redistest.Password(password))...).URL()
		}
	}
	good := serve(redistest.AppendOnly())
	later := func(d time.Duration) func(*ward) {
		return func(w *ward) {
			w.run(w.server("test"))
			w.now = func() time.Time { return time.Now().Add(d) }
		}
	}
	for _, row := range []struct {
		about string
		redis func(*testing.T) string
		fault func(*ward)
		check string
		level doctor.Level
		says  string
	}{
		{"a Redis that removes keys when it is full", serve(redistest.AppendOnly(), redistest.Argument("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")), nil, "eviction", doctor.Critical, "allkeys-lru"},
		{"one that would, without a bound", serve(redistest.AppendOnly(), redistest.Argument("--maxmemory-policy", "volatile-ttl")), nil, "eviction", doctor.Warning, "volatile-ttl"},
		{"one that has removed keys", serve(redistest.Argument("--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random")), func(w *ward) {
			r := w.raw()
			for r.Info(w.t.Context(), "stats").Val() != "" && strings.Contains(r.Info(w.t.Context(), "stats").Val(), "evicted_keys:0\r") {
				if err := r.Set(w.t.Context(), "filler-"+time.Now().String(), strings.Repeat("x", 1<<16), 0).Err(); err != nil {
					w.t.Fatal(err)
				}
			}
		}, "eviction", doctor.Critical, "has removed"},
		{"one that is nearly full", serve(redistest.AppendOnly(), redistest.Argument("--maxmemory", "500kb")), nil, "memory", doctor.Critical, "%"},
		{"one without a disk", serve(), nil, "persistence", doctor.Critical, "everything"},
		{"one with snapshots alone", serve(redistest.Argument("--save", "3600 1")), nil, "persistence", doctor.Critical, "snapshots"},
		{"one that writes once a second", serve(redistest.Argument("--appendonly", "yes", "--appendfsync", "everysec")), nil, "persistence", doctor.Warning, "everysec"},
		{"a replica", func(t *testing.T) string {
			of := redistest.Server(t, redistest.AppendOnly())
			return redistest.Replica(t, of).URL()
		}, nil, "state", doctor.Critical, "replica"},
		{"fewer replicas than a write needs", good, func(w *ward) { w.s.Redis.Replicas = 1 }, "replicas", doctor.Critical, "needs 1"},
		{"fewer replicas than the Redis wants", serve(redistest.AppendOnly(), redistest.Argument("--min-replicas-to-write", "2")), nil, "replicas", doctor.Critical, "needs 2"},
		{"a Redis that is away", func(t *testing.T) string {
			server := redistest.Server(t, healthy()...)
			server.Kill()
			return server.URL()
		}, nil, "state", doctor.Critical, "cannot be reached"},
		{"a wrong password", func(t *testing.T) string {
			return strings.Replace(redistest.Server(t, healthy()...).URL(), password, "hunter2-wrong", 1)
		}, nil, "state", doctor.Critical, "cannot be reached"},
		{"a clock that is late", func(t *testing.T) string {
			server := miniredis.RunT(t)
			server.SetTime(time.Now().Add(-time.Hour))
			return "redis://" + server.Addr()
		}, nil, "clock", doctor.Critical, "behind"},
		{"no schedule", good, nil, "schedules", doctor.Critical, "never"},
		{"schedules that are late", good, later(10 * time.Minute), "schedules", doctor.Warning, "ago"},
		{"schedules that have stopped", good, later(time.Hour), "schedules", doctor.Critical, "ago"},
		{"a process with a clock that is early", good, later(-time.Hour), "clock", doctor.Warning, "ahead"},
		{"a run that failed", good, func(w *ward) {
			server := w.server("test")
			w.run(server)
			over, cancel := context.WithCancel(w.t.Context())
			cancel()
			if err := server.Run(over, expirekeys.Function); err == nil {
				w.t.Error("a run without time succeeded")
			}
		}, "schedules", doctor.Warning, "failed 1 times"},
		{"functions of two versions", good, func(w *ward) {
			w.run(w.server("v1"))
			if err := w.server("v2").Run(w.t.Context(), expirekeys.Function); err != nil {
				w.t.Fatal(err)
			}
		}, "versions", doctor.Warning, "v1, v2"},
		{"a signing key that signs too long", good, later(169*time.Hour + time.Minute), "signing-keys", doctor.Warning, "replaced"},
		{"no signing key", good, nil, "signing-keys", doctor.Warning, "no signing keys yet"},
		{"another encryption key", good, func(w *ward) {
			w.run(w.server("test"))
			w.ring, _ = encryption.Parse(encryption.Generate())
		}, "signing-keys", doctor.Critical, "no token can be signed"},
		{"an unknown encryption key", good, func(w *ward) {
			w.run(w.server("test"))
			w.ring = nil
		}, "signing-keys", doctor.Unknown, "not known here"},
		{"secrets of an encryption key that is gone", good, func(w *ward) {
			w.run(w.server("test"))
			w.ring, _ = encryption.Parse(encryption.Generate())
		}, "sealed", doctor.Critical, "1 secrets in signingkeys"},
		{"secrets of an older encryption key", good, func(w *ward) {
			older := encryption.Generate()
			w.ring, _ = encryption.Parse(older)
			w.run(w.server("test"))
			w.ring, _ = encryption.Parse(encryption.Generate() + "," + older)
		}, "sealed", doctor.Warning, "which is an older one"},
		{"secrets, and no encryption key here", good, func(w *ward) {
			w.run(w.server("test"))
			w.ring = nil
		}, "sealed", doctor.Unknown, "the encryption key is not known here"},
		{"no audit", good, func(w *ward) { w.configure("{}\n") }, "audit", doctor.Warning, "nothing is recorded"},
		{"a sink that cannot be reached", good, func(w *ward) {
			w.configure("audit: {enabled: true, path: \"-\", dataStoreEndpoint: \"redis://:" + password + "@127.0.0.1:1\"}\n")
		}, "audit", doctor.Critical, "dataStoreEndpoint"},
		{"a sink that refuses events", good, func(w *ward) {
			w.configure("audit: {enabled: true, path: \"-\", dataStoreEndpoint: \"redis://:" + password + "@127.0.0.1:1\"}\n")
			server := w.server("test")
			trail := server.Audit.(*audit.Trail)
			for end := time.Now().Add(patient); time.Now().Before(end); {
				w.run(server)
				if slices.ContainsFunc(trail.Backlogs(), func(b audit.Backlog) bool { return !b.Failing.IsZero() }) {
					break
				}
			}
			w.run(server)
			// The configuration has a working sink again, but the process has not read it yet.
			w.configure("audit: {enabled: true, path: \"-\"}\n")
		}, "audit", doctor.Critical, "has refused every event"},
		{"a provider that cannot be reached", good, func(w *ward) {
			w.configure("audit: {enabled: true, path: \"-\"}\nauth: {oidc: {issuerUrl: \"https://127.0.0.1:1\", clientId: a, clientSecret: " + password + ", redirectURI: \"https://a.example/auth/oidc/callback\"}}\n")
		}, "sign-in", doctor.Critical, "issuerUrl"},
		{"a connector at which anybody can sign in", good, func(w *ward) {
			w.configure("audit: {enabled: true, path: \"-\"}\nauth: {saml: {ssoURL: \"https://a.example\", insecureSkipSignatureValidation: true, redirectURI: \"https://a.example/auth/saml/callback\"}}\n")
		}, "sign-in", doctor.Warning, "status.auth.saml.insecureSkipSignatureValidation"},
		{"a configuration that is wrong", good, func(w *ward) { w.configure("audit: {enabled: 7}\n") }, "configuration", doctor.Critical, "no platform configuration"},
		{"an owner who has used up a quota", good, func(w *ward) {
			w.s.Quota.Objects = 1
			makeKey(w, "ana")
		}, "quotas", doctor.Critical, "ana"},
		{"an owner who has nearly used up a quota", good, func(w *ward) {
			w.s.Quota.Objects = 5
			for range 4 {
				makeKey(w, "ana")
			}
		}, "quotas", doctor.Warning, "ana"},
		{"a record of a newer release", good, func(w *ward) {
			r := w.raw()
			r.Set(w.t.Context(), "p1:{things}:rev", 2, 0)
			r.HSet(w.t.Context(), "p1:{things}:objects", "a", "3 2 0 - - - 2 -\n{}")
		}, "records", doctor.Critical, `format "3"`},
		{"keys in another layout", good, func(w *ward) { w.raw().Set(w.t.Context(), "p2:{things}:rev", 2, 0) }, "records", doctor.Warning, "layout p2"},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := admit(t, row.redis(t))
			if row.fault != nil {
				row.fault(w)
			}
			report := w.examine()
			level, text := worst(report, row.check)
			if level != row.level || !strings.Contains(text, row.says) {
				t.Errorf("%s %q, want %s with %q", level, text, row.level, row.says)
			}
			if code := map[doctor.Level]int{doctor.Good: 0, doctor.Unknown: 0, doctor.Warning: 1, doctor.Critical: 2}[report.Level]; report.Code() != code {
				t.Errorf("the code is %d for %s", report.Code(), report.Level)
			}
		})
	}
}

// makeKey makes an access key of a user, which counts for the user's quota.
func makeKey(w *ward, user string) {
	w.t.Helper()
	env := w.server("test").Env
	if err := platformconfig.Open(env).Reload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{GenerateName: "key-"}, Spec: model.OwnedAccessKeySpec{User: user}}
	if _, err := resource.Create(w.t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{Caller: localtest.Root, Object: key}); err != nil {
		w.t.Fatal(err)
	}
}

// A fault that may only exist in this machine's place in the network is a warning.
func TestFromElsewhere(t *testing.T) {
	t.Parallel()
	w := admit(t, redistest.Server(t, healthy()...).URL())
	w.here = false
	w.configure("audit: {enabled: true, path: /var/log/platform, dataStoreEndpoint: \"redis://127.0.0.1:1\"}\n")
	report := w.examine()
	if level, _ := worst(report, "audit"); level != doctor.Warning {
		t.Errorf("%s: %+v", level, report.Findings)
	}
}

// A wrong URL is an error, and not a finding.
func TestWrongURL(t *testing.T) {
	t.Parallel()
	_, err := doctor.Examine(t.Context(), doctor.Deployment{Settings: settings.Settings{Redis: settings.Redis{URL: "mysql://hunter2", URLFrom: "--redis"}}, Now: time.Now})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "--redis") {
		t.Errorf("%v", err)
	}
}

// The count of failures and the last success go on from note to note, and a note that cannot be read is replaced.
func TestNotes(t *testing.T) {
	t.Parallel()
	notes := redistest.Open(t, redistest.Embedded(t)).Resource(runs.Resource)
	instant := time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)
	for i, step := range []struct {
		outcome  string
		failures int
		lastDone time.Time
	}{{runs.Failed, 1, time.Time{}}, {runs.Failed, 2, time.Time{}}, {runs.Done, 0, instant.Add(2 * time.Minute)}, {runs.Failed, 1, instant.Add(2 * time.Minute)}} {
		started := instant.Add(time.Duration(i) * time.Minute)
		if err := runs.Note(t.Context(), notes, "a", runs.Run{Started: started, Outcome: step.outcome}, started); err != nil {
			t.Fatal(err)
		}
		read, err := runs.Read(t.Context(), notes, "a")
		if err != nil || read.Failures != step.failures || !read.LastDone.Equal(step.lastDone) || !read.Started.Equal(started) {
			t.Errorf("%d: %+v, %v", i, read, err)
		}
	}
	if read, err := runs.Read(t.Context(), notes, "b"); err != nil || !read.Started.IsZero() {
		t.Errorf("without a note: %+v, %v", read, err)
	}
}
