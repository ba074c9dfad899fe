package platformconfig_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// guarded is a process that has the access keys, and that checks what it can reach.
type guarded struct {
	*world
	server testProcess
	keys   *accesskey.Registry
	// away are the issuers and sinks that cannot be reached.
	away map[string]bool
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{world: newWorld(t), away: map[string]bool{}}
	options := g.options("")
	options.Keys = func() *accesskey.Registry { return g.keys }
	options.Issuer = func(_ context.Context, provider *model.OIDCProvider, _ []byte) ([]string, error) {
		if g.away[provider.IssuerURL] {
			return nil, errors.New("cannot be reached")
		}
		if provider.IssuerURL == "https://bare.example" {
			return []string{"openid"}, nil
		}
		return []string{"openid", "groups"}, nil
	}
	options.Sinks = func(_ context.Context, _, next *model.ConfigAudit, path *field.Path) field.ErrorList {
		if g.away[next.Path] {
			return field.ErrorList{field.Invalid(path.Child("path"), next.Path, "cannot be opened")}
		}
		return nil
	}
	g.server = newProcess(options, fieldmanager.New)
	g.keys = accesskey.NewRegistry(g.client.Resource("ownedaccesskeys"), func() time.Time { return g.now }, rand.Reader, g.server.KeyLimits)
	if err := g.server.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// key creates an admin key of a user and returns the caller with it.
func (g *guarded) key(user string) identity.Caller {
	g.t.Helper()
	result, err := resource.Create(g.t.Context(), g.keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: admin, Object: &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"}, Spec: model.OwnedAccessKeySpec{User: user, Groups: []string{identity.Admins}},
	}})
	if err != nil {
		g.t.Fatal(err)
	}
	caller := identity.New(identity.Owner{Kind: identity.User, Name: user}, []string{identity.Admins})
	caller.Key = result.Object.Name
	return caller
}

// patch writes on behalf of a caller, with annotations, and returns the warnings.
func (g *guarded) patch(caller identity.Caller, text string, dryRun bool) (string, error) {
	written, err := g.server.Patch(g.t.Context(), resource.PatchInput{
		Caller: caller, Name: "config", Type: resource.MergePatch, Patch: []byte(text), DryRun: dryRun,
	})
	return strings.Join(written.Warnings, "\n"), err
}

const force = `"metadata":{"annotations":{"management.platform.sh/force":"true"}},`

// end returns the time at which a key ends.
func (g *guarded) end(name string) time.Time {
	g.t.Helper()
	key, err := resource.Get(g.t.Context(), g.keys, resource.GetInput{Caller: admin, Name: name})
	if err != nil {
		g.t.Fatal(err)
	}
	if key.Status.ExpirationTimestamp == nil {
		return time.Time{}
	}
	return key.Status.ExpirationTimestamp.Time
}

// A limit that would end the key of its writer is refused unless it is forced. A forced limit leaves keys a day, a warning
// names the owners that it locks out, and a raised limit gives the keys their time back. Source: ADR-0024.
func TestLoweredLimit(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	root, ana := g.key("root"), g.key("ana")
	g.now = g.now.Add(time.Hour)
	young := g.key("ana")
	g.now = g.now.Add(time.Second)
	const low = `"status":{"auth":{"accessKeyMaxTTLSeconds":1800}}}`
	for _, dryRun := range []bool{true, false} {
		_, err := g.patch(root, "{"+low, dryRun)
		refusal(t, err, 422, "status.auth.accessKeyMaxTTLSeconds")
	}
	// The youngest key is still younger than the limit.
	if warned, err := g.patch(young, "{"+low, true); err != nil || !strings.Contains(warned, "end 0 access keys now and 3 within a day") ||
		!strings.Contains(warned, young.Key) {
		t.Errorf("%q, %v", warned, err)
	}
	warned, err := g.patch(root, "{"+force+low, true)
	if err != nil || !strings.Contains(warned, "of 2 owners; no other key is left to user:root, user:ana") &&
		!strings.Contains(warned, "of 2 owners; no other key is left to user:ana, user:root") || limit(g.server.Status()) != 0 {
		t.Errorf("a dry run: %q, %v", warned, err)
	}
	changed := g.now
	if _, err := g.patch(root, "{"+force+low, false); err != nil {
		t.Fatal(err)
	}
	shown := g.get(g.server, false)
	if _, stored := shown.Annotations[model.ForceAnnotation]; stored || limit(&shown.Status) != 1800 {
		t.Errorf("stored is %+v", shown.ObjectMeta)
	}
	later := g.key("ben")
	for name, want := range map[string]time.Time{
		root.Key: changed.Add(24 * time.Hour), ana.Key: changed.Add(24 * time.Hour), young.Key: changed.Add(24 * time.Hour),
		later.Key: changed.Add(30 * time.Minute),
	} {
		if got := g.end(name); !got.Equal(want) {
			t.Errorf("%s ends at %v, want %v", name, got, want)
		}
	}
	// A write of a label and another process keep the time at which the limit was lowered.
	g.now = g.now.Add(time.Hour)
	if _, err := g.patch(root, `{"metadata":{"labels":{"a":"b"}}}`, false); err != nil {
		t.Fatal(err)
	}
	other := g.process("")
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, process := range []testProcess{g.server, other} {
		if steps := process.KeyLimits().MaxSteps; len(steps) != 1 || !steps[0].Since.Equal(changed) {
			t.Errorf("%+v", steps)
		}
	}
	done, err := accesskey.Sweep(t.Context(), g.keys, g.server.KeyLimits)
	if err != nil || done != (accesskey.Swept{}) {
		t.Errorf("the sweep during the grace period: %+v, %v", done, err)
	}
	// A raised limit helps, even if it is still below the age of the key.
	if _, err := g.patch(root, `{"status":{"auth":{"accessKeyMaxTTLSeconds":3600}}}`, false); err != nil {
		t.Error(err)
	}
	if _, err := g.patch(root, `{"status":{"auth":{"accessKeyMaxTTLSeconds":null}}}`, false); err != nil || !g.end(root.Key).IsZero() {
		t.Errorf("without a limit: %v, %v", g.end(root.Key), err)
	}
	// After the grace period, the sweep removes the ended keys.
	if _, err := g.patch(root, "{"+force+low, false); err != nil {
		t.Fatal(err)
	}
	g.now = g.now.Add(24 * time.Hour)
	if done, err := accesskey.Sweep(t.Context(), g.keys, g.server.KeyLimits); err != nil || done.Removed != 4 {
		t.Errorf("the sweep after the grace period: %+v, %v", done, err)
	}
}

// A key ends together with the keys to which it is bound, so a limit that would end one of these is refused as well. Source:
// ADR-0021, ADR-0024.
func TestLoweredLimitOfMakers(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	old := g.key("root")
	g.now = g.now.Add(time.Hour)
	bound, free := g.key("root"), g.key("root")
	bound.KeyLineage = []model.AccessKeyAncestor{{Name: old.Key, UID: "1", Bounds: true}}
	free.KeyLineage = []model.AccessKeyAncestor{{Name: old.Key, UID: "1"}}
	const low = `"status":{"auth":{"accessKeyMaxTTLSeconds":1800}}}`
	for _, dryRun := range []bool{true, false} {
		_, err := g.patch(bound, "{"+low, dryRun)
		refusal(t, err, 422, "status.auth.accessKeyMaxTTLSeconds")
	}
	if _, err := g.patch(free, "{"+low, true); err != nil {
		t.Errorf("a key that is not bound: %v", err)
	}
	if warned, err := g.patch(bound, "{"+force+low, true); err != nil || !strings.Contains(warned, "forced") {
		t.Errorf("forced: %q, %v", warned, err)
	}
}

// An address that cannot be reached is refused by the write that names it, not by a write of another field. Source:
// ADR-0024.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	root := g.key("root")
	g.away["https://away.example"], g.away["/away"] = true, true
	absent := filepath.Join(t.TempDir(), "ca.crt")
	for text, name := range map[string]string{
		`"status":{"auth":{"oidc":{"issuerUrl":"https://away.example"}}}}`:                           "status.auth.oidc.issuerUrl",
		`"status":{"auth":{"connectors":[{"id":"a","oidc":{"issuerUrl":"https://away.example"}}]}}}`: "status.auth.connectors[0].oidc.issuerUrl",
		`"status":{"auth":{"oidc":{"caFile":"` + absent + `"}}}}`:                                    "status.auth.oidc.caFile",
		`"status":{"auth":{"saml":{"ca":"` + absent + `"}}}}`:                                        "status.auth.saml.ca",
		`"status":{"audit":{"enabled":true,"path":"/away"}}}`:                                        "status.audit.path",
	} {
		for _, dryRun := range []bool{true, false} {
			_, err := g.patch(root, "{"+text, dryRun)
			refusal(t, err, 422, name)
		}
		if warned, err := g.patch(root, "{"+force+text, true); err != nil || !strings.Contains(warned, name) {
			t.Errorf("%s: %q, %v", name, warned, err)
		}
	}
	if _, err := g.patch(root, `{`+force+`"status":{"auth":{"oidc":{"issuerUrl":"https://away.example"}}}}`, false); err != nil {
		t.Fatal(err)
	}
	if warned, err := g.patch(root, `{"status":{"platformHost":"platform.example"}}`, false); err != nil || strings.Contains(warned, "issuerUrl") {
		t.Errorf("another field: %q, %v", warned, err)
	}
	// A connector without the groups scope of its issuer is doubtful.
	for text, warns := range map[string]bool{
		`"issuerUrl":"https://a.example","groupsClaim":"groups"`:                              true,
		`"issuerUrl":"https://a.example","groupsClaim":"groups","scopes":["openid","groups"]`: false,
		`"issuerUrl":"https://a.example","groupsClaim":"roles"`:                               false,
		`"issuerUrl":"https://bare.example","groupsClaim":"groups"`:                           false,
	} {
		warned, err := g.patch(root, `{"status":{"auth":{"connectors":[{"id":"a","oidc":{`+text+`}}]}}}`, true)
		if err != nil || strings.Contains(warned, "status.auth.connectors[0].oidc.scopes: does not have groups") != warns {
			t.Errorf("%s: %q, %v", text, warned, err)
		}
	}
	_, err := g.patch(root, `{"metadata":{"annotations":{"management.platform.sh/force":"yes"}}}`, false)
	refusal(t, err, 422, "metadata.annotations[management.platform.sh/force]")
}

// If a write is not confirmed, every process takes it back, and the schedule stores that. Source: ADR-0024.
func TestConfirmWithin(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	root := g.key("root")
	g.mustUpdate(g.server, "platformHost: a.example\nauth: {oidc: {clientSecret: hunter2}}")
	other := g.process("")
	const try = `{"metadata":{"annotations":{"management.platform.sh/confirm-within":"10m"}},"status":{"platformHost":"b.example","auth":null}}`
	hosts := func(want string) {
		t.Helper()
		for _, process := range []testProcess{g.server, other, g.process("")} {
			if shown := g.get(process, false); shown.Status.PlatformHost != want || process.Status().PlatformHost != want {
				t.Errorf("%q and %q, want %q", shown.Status.PlatformHost, process.Status().PlatformHost, want)
			}
		}
	}
	if _, err := g.patch(root, try, true); err != nil {
		t.Fatal(err)
	}
	hosts("a.example")
	if _, err := g.patch(root, try, false); err != nil {
		t.Fatal(err)
	}
	hosts("b.example")
	if waiting := condition(g.get(g.server, false), platformconfig.ConditionConfirmed); waiting.Reason != "Waiting" || !strings.Contains(waiting.Message, "revision 2 takes effect again at 2027-03-04T05:16:07Z") {
		t.Errorf("%+v", waiting)
	}
	// Another unconfirmed write goes back to the confirmed configuration, too.
	g.now = g.now.Add(5 * time.Minute)
	if said, err := g.patch(root, `{"status":{"platformHost":"c.example"}}`, false); err != nil || !strings.Contains(said, "are taken back after 10m unless") {
		t.Fatalf("%q, %v", said, err)
	}
	g.now = g.now.Add(10*time.Minute - time.Second)
	hosts("c.example")
	if taken, err := g.server.RevertUnconfirmed(t.Context(), admin.Owner); taken || err != nil {
		t.Errorf("too early: %v, %v", taken, err)
	}
	g.now = g.now.Add(time.Second)
	hosts("a.example")
	shown := g.get(g.server, true)
	if shown.Status.Auth.OIDC.ClientSecret != "hunter2" || shown.Annotations[model.ConfirmWithinAnnotation] != "" ||
		condition(shown, platformconfig.ConditionConfirmed).Reason != "TakenBack" || shown.UID == "" {
		t.Errorf("taken back: %+v", shown)
	}
	for i, want := range []bool{true, false} {
		if taken, err := g.server.RevertUnconfirmed(t.Context(), admin.Owner); taken != want || err != nil {
			t.Errorf("run %d: %v, %v", i, taken, err)
		}
	}
	hosts("a.example")
	stored := g.get(other, true)
	if stored.Status.Auth.OIDC.ClientSecret != "hunter2" || stored.ResourceVersion != "5" || stored.Generation != 4 ||
		condition(stored, platformconfig.ConditionConfirmed).Type != "" {
		t.Errorf("stored: %+v", stored)
	}
	history, err := g.server.History(t.Context(), resource.GetInput{Name: "config"})
	if err != nil || history.Status.Revisions[0].RolledBackTo != "2" {
		t.Errorf("%+v, %v", history, err)
	}
	// A write without the annotation is a confirmation.
	if _, err := g.patch(root, try, false); err != nil {
		t.Fatal(err)
	}
	if _, err := g.patch(root, `{"metadata":{"annotations":{"management.platform.sh/confirm-within":null}}}`, false); err != nil {
		t.Fatal(err)
	}
	g.now = g.now.Add(time.Hour)
	hosts("b.example")
	// A write after the time is over is based on the configuration in force.
	if _, err := g.patch(root, strings.Replace(try, "b.example", "d.example", 1), false); err != nil {
		t.Fatal(err)
	}
	g.now = g.now.Add(time.Hour)
	if _, err := g.patch(root, `{"status":{"workspaceSubDomain":"*.example.com"}}`, false); err != nil {
		t.Fatal(err)
	}
	hosts("b.example")
	// The first write goes back to the defaults.
	fresh := newGuarded(t)
	if _, err := fresh.patch(root, try, false); err != nil {
		t.Fatal(err)
	}
	fresh.now = fresh.now.Add(time.Hour)
	if shown := fresh.get(fresh.server, false); shown.Status.PlatformHost != "" || shown.UID == "" {
		t.Errorf("the first write: %+v", shown)
	}
	if taken, err := fresh.server.RevertUnconfirmed(t.Context(), admin.Owner); !taken || err != nil {
		t.Errorf("the first write: %v, %v", taken, err)
	}
	for _, within := range []string{"soon", "0s", "24h"} {
		_, err := g.patch(root, strings.Replace(try, "10m", within, 1), false)
		refusal(t, err, 422, "metadata.annotations[management.platform.sh/confirm-within]")
	}
}
