// Package doctor examines a deployment for its operator: the state, clocks, schedules, signing keys, the audit,
// providers, quotas and stored records. Each finding has an observation, a level and advice. The package changes
// nothing, prints nothing, and its findings contain no secret. Source: ADR-0039.
package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"management.platform.sh/local/state"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// Level is the severity of a finding.
type Level string

// The levels, from the least to the most severe.
const (
	// Good means that there is no problem.
	Good Level = "ok"
	// Unknown means that the check could not run from here. It does not count as a problem.
	Unknown Level = "unknown"
	// Warning means that the deployment works now, and that an operator should look at the finding.
	Warning Level = "warning"
	// Critical means that a part does not work, or that data or audit events can be lost.
	Critical Level = "critical"
)

var grave = []Level{Good, Unknown, Warning, Critical}

// Finding is one line of a report.
type Finding struct {
	// Check names the check. The name does not change: scripts may select by it.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Is describes the observation.
	Is string `json:"is"`
	// Do is the advice. Empty: nothing has to be done.
	Do string `json:"do,omitempty"`
}

// Report has all findings, in the order of the checks.
type Report struct {
	// Level is the level of the most severe finding.
	Level Level `json:"level"`
	// Version is the version of the program that examined the deployment.
	Version   string    `json:"version"`
	CheckedAt time.Time `json:"checkedAt"`
	Findings  []Finding `json:"findings"`
}

// Code returns the exit code for a report: 0 if no finding is worse than unknown, 1 for warnings, 2 for a critical
// finding.
func (r Report) Code() int { return max(slices.Index(grave, r.Level)-1, 0) }

// Deployment is the input of an examination.
type Deployment struct {
	// Settings are the settings of the deployment, as far as they are known here.
	Settings settings.Settings
	// Keyring has the keys that seal secrets in the state. Nil: they are not known here.
	Keyring *encryption.Keyring
	// Lookup returns environment variables, for placeholders of the configuration. nil: no variable is set.
	Lookup func(string) (string, bool)
	// Here reports whether this machine runs the deployment, so that its files and addresses can be tried.
	Here bool
	// Every is the interval of schedules.
	Every time.Duration
	// Most bounds the records and owners of each resource that are read.
	Most int
	// Openers are the kinds of sinks of this program.
	Openers func(*redisstore.Client) []audit.Opener
	Version string
	Now     func() time.Time
}

// examination collects findings.
type examination struct {
	Deployment
	client   *redisstore.Client
	env      *platform.Environment
	current  *platformconfig.Current
	findings []Finding
}

// Examine examines a deployment. It connects to the state; a failure to connect is a finding. An error means that the
// settings are wrong.
func Examine(ctx context.Context, d Deployment) (Report, error) {
	client, err := redisstore.Open(d.Settings.Redis.URL.Reveal(), redisstore.Options{PoolSize: d.Settings.Redis.PoolSize, Timeout: d.Settings.Redis.Timeout})
	if err != nil {
		return Report{}, d.Settings.Wrong(d.Settings.Redis.URLFrom, err)
	}
	defer func() { _ = client.Close() }()
	e := &examination{Deployment: d, client: client}
	if e.state(ctx) {
		e.open()
		for _, check := range []func(context.Context){
			e.configuration, e.schedules, e.signingKeys, e.recording, e.providers, e.contents,
		} {
			check(ctx)
		}
	}
	return e.report(), nil
}

// report returns the findings and the level of the most severe one.
func (e *examination) report() Report {
	report := Report{Level: Good, Version: e.Version, CheckedAt: e.Now().UTC().Truncate(time.Second), Findings: e.findings}
	for _, finding := range e.findings {
		if slices.Index(grave, finding.Level) > slices.Index(grave, report.Level) {
			report.Level = finding.Level
		}
	}
	return report
}

// open prepares the values that the checks need.
func (e *examination) open() {
	s := e.Settings
	s.Version = e.Version
	e.env = process.New(s, process.World{
		Stores: e.client.Resource, Log: slog.New(slog.DiscardHandler), Lookup: e.Lookup, LocalSigners: e.Here,
		Encryption: func(context.Context) (*encryption.Keyring, error) { return e.Keyring, nil },
	}).Env
	e.current = platformconfig.Open(e.env)
}

// find adds a finding. The advice follows the text, and is empty for a good finding.
func (e *examination) find(check string, level Level, do, format string, args ...any) {
	e.findings = append(e.findings, Finding{Check: check, Level: level, Is: fmt.Sprintf(format, args...), Do: do})
}

// state examines each primary. It returns false if the state cannot be reached: then nothing else can be examined.
func (e *examination) state(ctx context.Context) bool {
	nodes, err := e.client.Inspect(ctx)
	if err != nil {
		e.find("state", Critical, "start it, or mend the network, the address or the password; until then every request gets 503",
			"the Redis at %s cannot be reached: %v", state.Hosts(e.Settings.Redis.URL), err)
		return false
	}
	for _, node := range nodes {
		e.node(node)
	}
	return true
}

// slow is the duration from which on a round trip is too slow for requests, which need two.
const slow = 50 * time.Millisecond

// oldest is the first version of Redis with which the scripts and the Redis users are tested.
const oldest = 7

func (e *examination) node(n redisstore.Node) {
	name := n.Product + " " + n.Version + " at " + n.Address
	switch major := 0; {
	case !n.Primary:
		e.find("state", Critical, "give the address of the primary, or use redis-sentinel:// or redis-cluster://", "%s is a replica: it refuses every write", name)
	case n.Cluster != "" && n.Cluster != "ok":
		e.find("state", Critical, "ask it with CLUSTER NODES which primary is away, and start it or promote a replica", "%s is in a cluster with the state %s", name, n.Cluster)
	case n.Product == "redis" && parseMajor(n.Version, &major) && major < oldest:
		e.find("state", Warning, "upgrade it", "%s is older than the versions that this program is tested with, %d and later", name, oldest)
	case n.Took > slow:
		e.find("state", Warning, "bring functions and Redis into one region, or find what keeps it busy (SLOWLOG, INFO commandstats)", "%s answers in %s", name, brief(n.Took))
	default:
		e.find("state", Good, "", "%s answers in %s", name, brief(n.Took))
	}
	e.persistence(n)
	e.memory(n)
	e.replicas(n)
	e.clock(n)
}

func parseMajor(version string, major *int) bool {
	n, _ := fmt.Sscanf(version, "%d", major)
	return n == 1
}

func (e *examination) persistence(n redisstore.Node) {
	const check = "persistence"
	switch {
	case n.Unsaved:
		e.find(check, Critical, "look at its log and at the disk: it is full or broken", "the last write of %s to its disk failed: a restart loses what came after", n.Address)
	case n.AppendOnly && n.Fsync == "always":
		e.find(check, Good, "", "%s has every write on disk before it answers", n.Address)
	case n.AppendOnly && n.Replicas == 0 && n.Fsync != "":
		e.find(check, Warning, "set appendfsync always, or add a replica", "%s writes its log with appendfsync %s and has no replica: a crash of its machine can lose the last second or more", n.Address, n.Fsync)
	case n.AppendOnly:
		e.find(check, Good, "", "%s writes a log of changes, and has %d replicas", n.Address, n.Replicas)
	case n.Replicas > 0:
		e.find(check, Good, "", "%s writes no log of changes: it keeps what its memory and %d replicas hold", n.Address, n.Replicas)
	case n.Snapshots:
		e.find(check, Critical, "set appendonly yes and appendfsync always, or add a replica", "%s has only snapshots: a restart loses what came after the last one, and revoked keys can be valid again", n.Address)
	default:
		e.find(check, Critical, "set appendonly yes and appendfsync always, or add a replica", "%s writes no log of changes and has no replica: a restart loses everything", n.Address)
	}
}

// The shares of memory, in percent, from which on an operator should look at it, and from which on it is urgent.
const (
	muchMemory = 75
	mostMemory = 90
)

func (e *examination) memory(n redisstore.Node) {
	const set = "set maxmemory-policy noeviction"
	switch {
	case n.Evicted > 0:
		e.find("eviction", Critical, set+", give it more memory, and restore what is missing: deleted records of revocations let credentials live",
			"%s has removed %d keys because it was full (%s)", n.Address, n.Evicted, n.Policy)
	case n.Policy == "":
		e.find("eviction", Unknown, "", "%s does not say what it does when it is full", n.Address)
	case n.Policy != "noeviction" && n.MaxBytes > 0:
		e.find("eviction", Critical, set, "%s removes keys when it is full (%s)", n.Address, n.Policy)
	case n.Policy != "noeviction":
		e.find("eviction", Warning, set, "%s would remove keys when it is full (%s); it has no maxmemory now", n.Address, n.Policy)
	default:
		e.find("eviction", Good, "", "%s removes no keys when it is full", n.Address)
	}
	if n.MaxBytes == 0 {
		e.find("memory", Good, "", "%s uses %s, without a bound of its own", n.Address, size(n.UsedBytes))
		return
	}
	used := 100 * n.UsedBytes / n.MaxBytes
	level, do := Good, ""
	switch {
	case used >= mostMemory:
		level, do = Critical, "give it more memory now: a full Redis refuses every write"
	case used >= muchMemory:
		level, do = Warning, "give it more memory, or delete what is not needed (quotas and records below)"
	}
	e.find("memory", level, do, "%s uses %s of %s, %d %%", n.Address, size(n.UsedBytes), size(n.MaxBytes), used)
}

func (e *examination) replicas(n redisstore.Node) {
	wanted := max(e.Settings.Redis.Replicas, n.MinReplicas)
	switch {
	case n.Replicas < wanted:
		e.find("replicas", Critical, "start the replicas, or lower "+settings.RedisReplicas+" and min-replicas-to-write",
			"%s has %d replicas, and a write needs %d: every write gets 503", n.Address, n.Replicas, wanted)
	case n.Lagging > 0:
		e.find("replicas", Warning, "look at the log of the replica and at the network: a failover now would lose writes", "%d of %d replicas of %s were silent for more than ten seconds", n.Lagging, n.Replicas, n.Address)
	default:
		e.find("replicas", Good, "", "%s has %d replicas, and a write waits for %d", n.Address, n.Replicas, e.Settings.Redis.Replicas)
	}
}

// The differences of clocks from which on an operator should look at them, and from which on verifiers refuse tokens.
// The leeway of verifiers is a minute.
const (
	someSkew = time.Second
	mostSkew = 30 * time.Second
)

func (e *examination) clock(n redisstore.Node) {
	level, do := Good, ""
	ahead := n.Ahead
	word := "ahead of"
	if ahead < 0 {
		ahead, word = -ahead, "behind"
	}
	switch {
	case ahead > mostSkew+n.Took:
		level = Critical
	case ahead > someSkew+n.Took:
		level = Warning
	}
	if level != Good {
		do = "synchronize both clocks (NTP): a late clock accepts what has expired, and an early one refuses new tokens"
	}
	e.find("clock", level, do, "the clock of %s is %s %s this machine's", n.Address, brief(ahead), word)
}

// brief formats a duration with at most three digits.
func brief(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

func size(bytes int64) string {
	const unit = 1 << 10
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/unit, "KMGTPE"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}

// list joins names, and replaces the names beyond a number by their count.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
