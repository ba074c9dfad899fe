package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/runs"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

func (e *examination) configuration(ctx context.Context) {
	const check = "configuration"
	if err := e.current.Reload(ctx); err != nil {
		e.find(check, Critical, "write a valid one with platform configure", "no platform configuration is in effect: %v", err)
		return
	}
	for _, condition := range e.current.Conditions() {
		if condition.Status != metav1.ConditionFalse {
			continue
		}
		switch condition.Type {
		case platformconfig.ConditionResolved:
			e.find(check, Unknown, "give the encryption key and the variables of the functions to examine them", "%s", condition.Message)
		case platformconfig.ConditionConfirmed:
			e.find(check, Warning, "confirm the change, or wait until it is taken back", "%s", condition.Message)
		default:
			e.find(check, Critical, "write a valid one: kubectl edit config config, or platform configure", "%s", condition.Message)
			return
		}
	}
	from := "the state"
	if e.current.FromFile() {
		from = e.Settings.Config
	}
	e.find(check, Good, "", "the platform configuration in %s is in effect", from)
}

// A schedule is late, or has stopped, after this many intervals without a successful run.
const (
	lateAfter    = 3
	stoppedAfter = 15
)

// early is how far the clock of a process may be ahead before its note seems to come from the future.
const early = 5 * time.Second

// schedules examines the time and the result of each schedule's last run.
func (e *examination) schedules(ctx context.Context) {
	const check = "schedules"
	notes, now := e.client.Resource(runs.Resource), e.Now()
	versions := map[string]bool{}
	for _, function := range catalog.Functions {
		if function.Schedule == nil {
			continue
		}
		run, err := runs.Read(ctx, notes, function.Name)
		if err != nil {
			e.find(check, Critical, "", "%v", err)
			continue
		}
		if run.Started.IsZero() {
			e.find(check, Critical, "start the schedule: the rule of EventBridge, the job of Cloud Scheduler, the PingSource, or platform serve; "+
				"a release before this one notes no runs", "%s has never run", function.Name)
			continue
		}
		versions[run.Version] = true
		e.schedule(check, function.Name, run, now)
		e.backlogs(function.Name, run.Sinks)
	}
	if len(versions) > 1 {
		var names []string
		for version := range versions {
			names = append(names, version)
		}
		slices.Sort(names)
		e.find("versions", Warning, "deploy the functions that are left behind", "schedules run functions of %d versions: %s", len(names), strings.Join(names, ", "))
	}
}

func (e *examination) schedule(check, name string, run runs.Run, now time.Time) {
	if run.Started.Sub(now) > early {
		e.find("clock", Warning, "synchronize both clocks (NTP)", "the clock of %s is %s ahead of this machine's", name, brief(run.Started.Sub(now)))
	}
	since := "never, since runs are noted"
	level, do := Good, ""
	age := now.Sub(run.LastDone)
	if !run.LastDone.IsZero() {
		since = brief(max(age, 0)) + " ago"
	}
	const why = "read the log lines \"scheduled run\" of the function: cause says why"
	switch {
	case run.Failures > 0 && run.Unavailable:
		do = why + "; it did not reach the state"
	case run.Failures > 0:
		do = why
	}
	switch {
	case run.LastDone.IsZero() || age > stoppedAfter*e.Every:
		level = Critical
		do = cmp.Or(do, "start the schedule again: the rule of EventBridge, the job of Cloud Scheduler, the PingSource, or platform serve")
	case run.Failures > 0 || age > lateAfter*e.Every:
		level = Warning
		do = cmp.Or(do, "look whether the schedule is paused or throttled")
	}
	text := fmt.Sprintf("%s was done %s and took %d ms", name, since, run.Milliseconds)
	if run.Failures > 0 {
		text = fmt.Sprintf("%s was done %s; it has failed %d times since", name, since, run.Failures)
	}
	if step, ok := run.Report["failed"].(string); ok && step != "" {
		text += ", at the step " + step
	}
	e.find(check, level, do, "%s", text)
}

// waits is the number of waiting events from which on a sink is behind.
const waits = 1000

// backlogs examines the notes of a run's process about its audit.
func (e *examination) backlogs(function string, sinks []audit.Backlog) {
	const check = "audit"
	for _, sink := range sinks {
		switch {
		case sink.Unusable:
			e.find(check, Critical, "mend audit.path or audit.dataStoreEndpoint", "%s cannot open a sink of the audit, which gets no event", function)
		case !sink.Failing.IsZero():
			e.find(check, Critical, "mend the sink; the log lines \"audit events\" of the function say why it fails",
				"the sink %s of %s has refused every event since %s; %d wait and %d are lost", sink.Sink, function, sink.Failing.Format(time.RFC3339), sink.Waiting, sink.Lost)
		case sink.Lost > 0:
			e.find(check, Warning, "find the time of the loss in the log lines \"audit events\" of the function, and give the sink more room", "the sink %s of %s works, and %d events were lost since its process began", sink.Sink, function, sink.Lost)
		case sink.Waiting >= waits:
			e.find(check, Warning, "make the sink faster, or record less", "%d events wait for the sink %s of %s", sink.Waiting, sink.Sink, function)
		}
	}
}

func (e *examination) signingKeys(ctx context.Context) {
	const check = "signing-keys"
	tokens := e.Settings.Tokens
	keys := signingkey.New(e.client.Resource(signingkey.Resource), e.env.Keyring, e.Now, signingkey.Settings{
		Algorithm: tokens.Algorithm, RotateEvery: tokens.RotateEvery, PublishBefore: tokens.PublishBefore, MaxTTL: tokens.MaxTTL, PEM: tokens.SigningKeys,
	})
	if e.Keyring == nil && tokens.SigningKeys == "" {
		e.find(check, Unknown, "give the encryption key with --encryption-key to examine them", "the signing keys are sealed, and the encryption key is not known here")
		return
	}
	all, err := keys.List(ctx)
	switch {
	case err != nil:
		e.find(check, Critical, "give the functions the encryption key that sealed them, behind the new one; without it, remove p1:{signingkeys}:* and every token ends", "no token can be signed: %v", err)
		return
	case len(all) == 0:
		e.find(check, Warning, "start the schedule rotatesigningkeys", "there are no signing keys yet: the first token waits until they are made")
		return
	case tokens.SigningKeys != "":
		e.find(check, Good, "", "the operator gives %d signing keys, and %s signs", len(all), all[0].ID)
		return
	}
	next := slices.IndexFunc(all, func(k signingkey.Key) bool { return k.State == signingkey.Next })
	active := slices.IndexFunc(all, func(k signingkey.Key) bool { return k.State == signingkey.Active })
	const rotate = "start the schedule rotatesigningkeys, or call platform signing-keys rotate"
	if active < 0 {
		e.find(check, Critical, rotate, "no signing key is active")
		return
	}
	age := e.Now().Sub(all[active].Since)
	text := fmt.Sprintf("%s has signed for %s of %s", all[active].ID, brief(age), brief(tokens.RotateEvery))
	switch {
	case age > tokens.RotateEvery+tokens.PublishBefore:
		e.find(check, Warning, rotate, "%s: it should have been replaced", text)
	case next < 0:
		e.find(check, Warning, rotate, "%s, and no next key is published: if it is tainted, verifiers do not know its successor", text)
	case all[active].Algorithm != tokens.Algorithm:
		e.find(check, Warning, rotate, "%s with %s, and the setting says %s", text, all[active].Algorithm, tokens.Algorithm)
	default:
		e.find(check, Good, "", "%s, and the next key is published", text)
	}
}

// recording examines whether the audit records, and whether its sinks can be reached from here.
func (e *examination) recording(ctx context.Context) {
	const check = "audit"
	config := e.current.Status().Audit
	if config == nil || !config.Enabled {
		e.find(check, Warning, "add a block audit to the platform configuration", "nothing is recorded: nobody can say later who did what")
		return
	}
	next := *config
	if !e.Here && next.Path != "" && next.Path != "-" {
		e.find(check, Unknown, "", "audit.path is a folder of the functions, which cannot be tried from here; the lines about schedules say whether it works")
		next.Path = ""
	}
	problems := audit.Checker(e.Openers(e.client))(ctx, nil, &next, field.NewPath("audit"))
	for _, problem := range problems {
		e.find(check, e.unreachableLevel(), e.adviceFromHere("mend it, or name another one: events wait in the memory of processes and are lost with them"), "%s: %s", problem.Field, problem.Detail)
	}
	if len(problems) == 0 {
		e.find(check, Good, "", "events are recorded, and the sinks that can be tried from here work")
	}
}

// unreachableLevel returns the level of a failure to reach a system from here.
func (e *examination) unreachableLevel() Level {
	if e.Here {
		return Critical
	}
	return Warning
}

// adviceFromHere adds to the advice that this machine may be the wrong place to try it.
func (e *examination) adviceFromHere(do string) string {
	if e.Here {
		return do
	}
	return "try it from the network of the functions; if it is so there too, " + do
}

// providers examines whether the providers for signing in can be reached from here.
func (e *examination) providers(ctx context.Context) {
	const check = "sign-in"
	tried, problems, warnings := e.current.Writer(nil).CheckReachable(ctx)
	for _, problem := range problems {
		e.find(check, e.unreachableLevel(), e.adviceFromHere("mend the address, the certificates or the network: nobody can sign in there"), "%s: %s", problem.Field, problem.Detail)
	}
	for _, warning := range warnings {
		e.find(check, Warning, "mend the field: not everybody who is meant can sign in there, or others can", "%s", warning)
	}
	switch {
	case len(warnings) > 0:
	case len(tried) == 0:
		e.find(check, Good, "", "the platform configuration names no provider or file that must be reached")
	case len(problems) == 0:
		e.find(check, Good, "", "%s can be reached from here", list(tried))
	}
}

// muchOfQuota is the share of a quota, in percent, from which on an operator should look at it.
const muchOfQuota = 80

// contents examines quotas and the formats of records.
func (e *examination) contents(ctx context.Context) {
	contents, err := e.client.Contents(ctx, e.Most)
	if err != nil {
		level := Critical
		if !errors.Is(err, store.ErrUnavailable) {
			level = Unknown
		}
		e.find("records", level, "", "the records cannot be looked at: %v", err)
		return
	}
	e.quotas(contents)
	e.encryptionKeys(contents)
	var objects int64
	looked := 0
	good := true
	for _, resource := range contents {
		objects, looked = objects+resource.Objects, looked+resource.Looked
		if resource.Layout != redisstore.Layout {
			good = false
			e.find("records", Warning, "examine it with a release that knows it, or remove it if it was left behind", "%s has keys in the layout %s; this program knows %s", resource.Resource, resource.Layout, redisstore.Layout)
			continue
		}
		for format, count := range resource.Formats {
			if redisstore.Reads(format) {
				continue
			}
			good = false
			e.find("records", Critical, "a newer release wrote them: deploy it again, or restore a snapshot from before it", "%d of %d records of %s have the format %q, which this program cannot read", count, resource.Looked, resource.Resource, format)
		}
	}
	if good {
		e.find("records", Good, "", "%d of %d records were looked at, and this program reads all of them", looked, objects)
	}
}

// encryptionKeys examines which keys seal the secrets in the records.
func (e *examination) encryptionKeys(found []redisstore.Contents) {
	const check = "sealed"
	all, good := 0, true
	for _, resource := range found {
		for _, id := range slices.Sorted(maps.Keys(resource.Sealed)) {
			count := resource.Sealed[id]
			all += count
			switch text := fmt.Sprintf("%d secrets in %s are sealed with the encryption key %s", count, resource.Resource, id); {
			case e.Keyring == nil:
			case !e.Keyring.Knows(id + "."):
				good = false
				e.find(check, Critical, "put that key behind the present one, or set these secrets anew", "%s, which is not among the keys here", text)
			case e.Keyring.Stale(id + "."):
				good = false
				e.find(check, Warning, "write them again, as docs/operate.md says, and remove that key when none is left", "%s, which is an older one", text)
			}
		}
	}
	switch {
	case e.Keyring == nil && all > 0:
		e.find(check, Unknown, "give the encryption key with --encryption-key to examine them", "%d secrets are sealed, and the encryption key is not known here", all)
	case good:
		e.find(check, Good, "", "all %d secrets that were found are sealed with the present encryption key", all)
	}
}

// quotas examines which owners will soon reach a quota.
func (e *examination) quotas(found []redisstore.Contents) {
	const check = "quotas"
	owners, good := 0, true
	quota := e.Settings.Quota
	for _, resource := range found {
		var nearly, over []string
		owners += len(resource.Owners)
		for _, one := range resource.Owners {
			used := max(share(one.Objects, int64(quota.Objects)), share(one.Bytes, quota.Bytes))
			text := fmt.Sprintf("%s (%d objects, %s)", cmp.Or(one.Owner, "objects without an owner"), one.Objects, size(one.Bytes))
			switch {
			case used >= 100:
				over = append(over, text)
			case used >= muchOfQuota:
				nearly = append(nearly, text)
			}
		}
		slices.Sort(nearly)
		slices.Sort(over)
		if len(over) > 0 {
			e.find(check, Critical, "let them delete what they do not need, or raise "+settings.QuotaObjects+" or "+settings.QuotaBytes, "writes of %s are refused with 429 for %s", resource.Resource, list(over))
		}
		if len(nearly) > 0 {
			e.find(check, Warning, "ask them why, before their writes are refused", "%s of %s above %d %% of a quota", list(nearly), resource.Resource, muchOfQuota)
		}
		good = good && len(nearly)+len(over) == 0
	}
	if good {
		e.find(check, Good, "", "%d owners were looked at, and all are below %d %% of their quotas", owners, muchOfQuota)
	}
}

// share returns the used part of a bound, in percent. Without a bound it is 0.
func share(used, bound int64) int64 {
	if bound <= 0 {
		return 0
	}
	return used * 100 / bound
}
