package platformconfig_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// This build reads a record of the build before configurations had managedFields, with a field of a newer build, and keeps
// the parts of it that it does not change. Source: ADR-0015.
func TestOlderRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := os.ReadFile("testdata/older.json")
	if err != nil {
		t.Fatal(err)
	}
	var older struct {
		Key     secret.String     `json:"key"`
		Records []json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(text, &older); err != nil {
		t.Fatal(err)
	}
	if w.ring, err = encryption.Parse(older.Key); err != nil {
		t.Fatal(err)
	}
	state := w.client.Resource("configs")
	record := store.Record{Name: "config", Created: w.now}
	for i, object := range older.Records {
		record.Object = bytes.Replace(object, []byte(`"status": {`), []byte(`"later": {"n": 1.50}, "status": {"newer": [1],`), 1)
		if i == 0 {
			record.Revision, err = state.Create(t.Context(), record)
		} else {
			record.Revision, err = state.Update(t.Context(), record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	process := w.process("")
	config := w.get(process, true)
	if config.UID != "6ae6783f-4fbd-491b-aeb8-8b73a48ed247" || config.Generation != 2 || config.ResourceVersion != "3" || len(config.ManagedFields) != 0 {
		t.Errorf("read %+v", config.ObjectMeta)
	}
	if texts := strings.Join(reveal(config), " "); strings.Count(texts, "canary-") != 17 || strings.Contains(texts, secret.Mark) {
		t.Errorf("read %s", texts)
	}
	history, err := process.History(t.Context(), resource.GetInput{Name: "config"})
	if err != nil || len(history.Status.Revisions) != 3 || history.Status.Revisions[1].Author != "user:root" {
		t.Errorf("%+v, %v", history, err)
	}
	// A request that changes nothing writes nothing.
	again, err := w.update(process, w.get(process, false))
	if err != nil || again.ResourceVersion != "3" {
		t.Errorf("sent back: %v, %v", again, err)
	}
	// All fields belong to before-first-apply, except for the defaults: the record does not say who set them.
	_, err = w.apply(process, "ana", false, `status: {platformHost: other.example}`)
	refusal(t, err, 409, ".status.platformHost")
	applied, err := w.apply(process, "ana", false, `status: {projectNamespacePrefix: team-}`)
	if err != nil || applied.Status.ProjectNamespacePrefix != "team-" || applied.Generation != 3 || applied.UID != config.UID {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	stored, err := state.Get(t.Context(), "config")
	if err != nil || !bytes.Contains(stored.Object, []byte(`"later":{"n":1.50}`)) || !bytes.Contains(stored.Object, []byte(`"newer":[1]`)) {
		t.Errorf("%s, %v", stored.Object, err)
	}
	for _, name := range []string{`"author":"user:root"`, `"sealed":{`, `"time":"2027-03-04T05:06:07Z"`, `"auth.oidc.clientSecret":"d3c2d965.`} {
		if !bytes.Contains(stored.Object, []byte(name)) {
			t.Errorf("%s is not in %s", name, stored.Object)
		}
	}
	// Roll back to the first revision.
	rolled, err := process.Rollback(t.Context(), resource.SubresourceInput[*model.ConfigRollback]{
		Caller: admin, Name: "config", Object: &model.ConfigRollback{Spec: model.ConfigRollbackSpec{Revision: "2"}},
	})
	if err != nil || rolled.Object.Status.ResourceVersion != "5" || limit(process.Status()) != 60 {
		t.Errorf("%+v, %v", rolled, err)
	}
}

// apply applies YAML as a manager.
func (w *world) apply(s testProcess, manager string, force bool, text string) (*model.Config, error) {
	written, err := s.Patch(w.t.Context(), resource.PatchInput{
		Caller: admin, Name: "config", Type: resource.ApplyPatch, Manager: manager, Force: force, Validation: codec.Ignore,
		Patch: []byte("apiVersion: management.platform.sh/v1\nkind: Config\nmetadata: {name: config}\n" + text),
	})
	return written.Object, err
}

// owns reports whether a manager owns a field.
func owns(config *model.Config, manager, field string) bool {
	return slices.ContainsFunc(config.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`"`)
	})
}

// Server-side apply: a manager owns the fields that it applies, secrets included, and no manager owns defaults and
// conditions. Source: ADR-0008, ADR-0015.
func TestApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	const mine = "status: {platformHost: a.example, auth: {accessKeyMaxTTLSeconds: 60, oidc: {issuerUrl: 'https://a.example', clientSecret: hunter2}}}"
	config, err := w.apply(process, "ana", false, mine)
	if err != nil || config.Generation != 1 || config.UID == "" || config.ResourceVersion != "2" || !owns(config, "ana", "clientSecret") ||
		owns(config, "before-first-apply", "status") || config.Status.ProjectNamespacePrefix != "p-" {
		t.Fatalf("%+v, %v", config, err)
	}
	if text, _ := json.Marshal(config); bytes.Contains(text, []byte("hunter2")) {
		t.Errorf("the answer is %s", text)
	}
	w.now = w.now.Add(time.Hour)
	again, err := w.apply(process, "ana", false, mine)
	if err != nil || again.ResourceVersion != config.ResourceVersion {
		t.Errorf("the same again: %v, %v", again, err)
	}
	// Other managers have to force a change of a field that ana set. So they have to force a secret even if they send the
	// same one: otherwise they could guess it.
	_, err = w.apply(process, "bob", false, "status: {platformHost: b.example, projectNamespacePrefix: team-}")
	refusal(t, err, 409, ".status.platformHost")
	_, err = w.apply(process, "bob", false, "status: {auth: {oidc: {clientSecret: hunter2}}}")
	refusal(t, err, 409, ".status.auth.oidc.clientSecret")
	_, err = w.apply(process, "bob", false, "status: {auth: {oidc: {clientSecret: hunter3}}}")
	refusal(t, err, 409, ".status.auth.oidc.clientSecret")
	forced, err := w.apply(process, "bob", true, "status: {platformHost: b.example, projectNamespacePrefix: team-}")
	if err != nil || forced.Status.PlatformHost != "b.example" || owns(forced, "ana", "platformHost") || limit(&forced.Status) != 60 {
		t.Errorf("%+v, %v", forced, err)
	}
	if got := process.Status().Auth.OIDC.ClientSecret.Reveal(); got != "hunter2" {
		t.Errorf("the secret is %q", got)
	}
	// A field that its only manager no longer applies is removed.
	less, err := w.apply(process, "bob", true, "status: {platformHost: b.example, auth: {oidc: {clientSecret: hunter4}}}")
	if err != nil || less.Status.ProjectNamespacePrefix != "p-" || owns(less, "ana", "clientSecret") || !owns(less, "ana", "issuerUrl") {
		t.Errorf("%+v, %v", less, err)
	}
	if got := process.Status().Auth.OIDC.ClientSecret.Reveal(); got != "hunter4" {
		t.Errorf("the secret is %q", got)
	}
	// The manager of an update owns the fields that it changes. A secret that it sends back as a mark does not change.
	less.Status.Auth.AccessKeyMaxTTLSeconds = 70
	result, err := process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: less.DeepCopy(), Manager: "edit"})
	if err != nil || !owns(result.Object, "edit", "accessKeyMaxTTLSeconds") || owns(result.Object, "edit", "clientSecret") || owns(result.Object, "edit", "conditions") {
		t.Errorf("%+v, %v", result.Object, err)
	}
	changed := result.Object.DeepCopy()
	changed.Status.Auth.OIDC.ClientSecret = "hunter5"
	result, err = process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: changed, Manager: "edit"})
	if err != nil || !owns(result.Object, "edit", "clientSecret") || result.Object.Generation != changed.Generation+1 {
		t.Errorf("%+v, %v", result.Object, err)
	}
	// Unknown fields are refused whatever the client asks for, and so are other names, which an apply would create.
	_, err = w.apply(process, "ana", false, "status: {colour: red}")
	refusal(t, err, 422, "status.colour")
	_, err = process.Patch(t.Context(), resource.PatchInput{
		Caller: admin, Name: "other", Type: resource.ApplyPatch, Manager: "ana", Patch: []byte("apiVersion: management.platform.sh/v1\nkind: Config\nmetadata: {name: other}"),
	})
	refusal(t, err, 404)
	_, err = w.apply(w.process(filepath.Join(t.TempDir(), "config.yaml")), "ana", false, "status: {}")
	refusal(t, err, 403)
}

// The time of a condition changes when its status does, and is the same in every process. Source: ADR-0015.
func TestConditionTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	created := w.now
	times := func(s testProcess) [2]time.Time {
		config := w.get(s, false)
		return [2]time.Time{
			condition(config, platformconfig.ConditionLoaded).LastTransitionTime.UTC(), condition(config, platformconfig.ConditionResolved).LastTransitionTime.UTC(),
		}
	}
	w.mustUpdate(process, "auth: {accessKeyMaxTTLSeconds: 60}")
	w.now = w.now.Add(time.Hour)
	w.mustUpdate(process, "auth: {accessKeyMaxTTLSeconds: 61}")
	for name, process := range map[string]testProcess{"the writer": process, "another": w.process("")} {
		if got := times(process); got != [2]time.Time{created, created} {
			t.Errorf("in %s: %v", name, got)
		}
		config := w.get(process, false)
		if loaded := condition(config, platformconfig.ConditionLoaded); loaded.ObservedGeneration != 2 || !strings.Contains(loaded.Message, "revision 3") {
			t.Errorf("in %s: %+v", name, loaded)
		}
	}
	w.now = w.now.Add(time.Hour)
	w.mustUpdate(process, "auth: {oidc: {clientSecret: '${PLATFORM_SECRET_A}'}}")
	if got := times(process); got != [2]time.Time{created, w.now} {
		t.Errorf("with an absent variable: %v", got)
	}
	lacking := w.now
	w.now = w.now.Add(time.Hour)
	w.mustUpdate(process, "auth: {oidc: {clientSecret: '${PLATFORM_SECRET_B}'}}")
	if got := times(process); got != [2]time.Time{created, lacking} {
		t.Errorf("with another one: %v", got)
	}
}

// A watch shows each version once, with the default fields, the conditions and no secret. Source: ADR-0007, ADR-0015.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	writer, reader := w.process(""), w.process("")
	watcher, err := reader.Watch(t.Context(), resource.WatchInput{Caller: admin, AllowBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	next := func(wait time.Duration) []resource.WatchEvent[*model.Config] {
		t.Helper()
		events, err := watcher.Next(t.Context(), wait)
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	// The configuration exists before the first write.
	first := next(0)
	if len(first) != 2 || first[0].Type != watch.Added || first[1].Type != watch.Bookmark {
		t.Fatalf("%+v", first)
	}
	if config, err := first[0].Object(); err != nil || config.ResourceVersion != "1" || config.Name != "config" || config.Status.ProjectNamespacePrefix != "p-" {
		t.Errorf("%+v, %v", config, err)
	}
	w.mustUpdate(writer, canaried)
	w.mustUpdate(writer, "auth: {accessKeyMaxTTLSeconds: 60}")
	events := next(10 * time.Second)
	for len(events) < 2 {
		events = append(events, next(10*time.Second)...)
	}
	for i, revision := range []string{"2", "3"} {
		config, err := events[i].Object()
		if err != nil || events[i].Type != watch.Modified || config.ResourceVersion != revision || condition(config, platformconfig.ConditionLoaded).Status != metav1.ConditionTrue {
			t.Errorf("%s: %s %+v, %v", revision, events[i].Type, config, err)
		}
		if text, _ := json.Marshal(config); bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s: %s", revision, text)
		}
	}
	// A process that serves a watch has the new version in effect.
	if limit(reader.Status()) != 60 {
		t.Errorf("the cap is %d", limit(reader.Status()))
	}
	// A watch begins after a revision.
	if watcher, err = reader.Watch(t.Context(), resource.WatchInput{Caller: admin, ResourceVersion: "2"}); err != nil {
		t.Fatal(err)
	}
	if events := next(10 * time.Second); len(events) != 1 || events[0].Type != watch.Modified {
		t.Errorf("%+v", events)
	}
}

// A file is watched too. Source: ADR-0015.
func TestWatchFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 60, oidc: {clientSecret: canary}}\n")
	process := w.process(file)
	watcher, err := process.Watch(t.Context(), resource.WatchInput{Caller: admin})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified} {
		events, err := watcher.Next(t.Context(), 10*time.Second)
		if err != nil || len(events) != 1 || events[0].Type != want {
			t.Fatalf("%+v, %v", events, err)
		}
		config, err := events[0].Object()
		if err != nil || config.Status.Auth.OIDC.ClientSecret != secret.Mark {
			t.Errorf("%+v, %v", config, err)
		}
		write(t, file, "auth: {accessKeyMaxTTLSeconds: 61, oidc: {clientSecret: canary}}\n")
		later := w.now.Add(time.Minute)
		if err := os.Chtimes(file, later, later); err != nil {
			t.Fatal(err)
		}
		if err := process.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if events, err := watcher.Next(t.Context(), 0); err != nil || len(events) != 0 {
		t.Errorf("%+v, %v", events, err)
	}
	// A watch that has missed a version must begin again.
	_, err = process.Watch(t.Context(), resource.WatchInput{Caller: admin, ResourceVersion: "5"})
	if apierror.From(err).Status().Code != 410 {
		t.Error(err)
	}
}
