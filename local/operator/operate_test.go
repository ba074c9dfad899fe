package operator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/local/flags"
	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// stored returns the events in a Redis, the oldest first.
func stored(t *testing.T, url string) []audit.Event {
	t.Helper()
	reader, err := redissink.Opener.Read(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	page, more, err := reader.Page(t.Context(), audit.Range{Events: 1000, Bytes: 1 << 20})
	if err != nil || more {
		t.Fatalf("%v, more: %v", err, more)
	}
	events := make([]audit.Event, len(page))
	for i, one := range page {
		if err := json.Unmarshal(one.JSON, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(events)
	return events
}

// Each command that changes the state has events of its own: one for the command, and one for each object that it writes.
// Source: ADR-0047.
func TestCommandsAreRecorded(t *testing.T) {
	env, url := localtest.Environment(t)
	store, key := redistest.Embedded(t), encryption.Generate()
	file := filepath.Join(t.TempDir(), "config.yaml")
	localtest.Write(t, file, "audit: {enabled: true, level: 1, path: /var/log/platform, dataStoreEndpoint: '"+store+"'}\nauth: {oidc: {clientSecret: hunter2}}\n")
	run := func(about string, do func() error) {
		t.Helper()
		localtest.Stdout(t, func() {
			if err := do(); err != nil {
				t.Errorf("%s: %v", about, err)
			}
		})
	}
	run("configure", func() error {
		return (&Configure{Redis: secret.String(url), Encryption: key, File: file}).Run(t.Context())
	})
	run("bootstrap", func() error {
		return (&Bootstrap{Redis: secret.String(url), AdminKey: localtest.GivenKey, Encryption: key}).Run(t.Context())
	})
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(env).WithFieldManager(fieldmanager.New), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: localtest.Root, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "mia"}},
	}); err != nil {
		t.Fatal(err)
	}
	run("adopt, as a preview", func() error { return (&Adopt{Redis: secret.String(url), DryRun: true}).Run(t.Context()) })
	run("adopt", func() error { return (&Adopt{Redis: secret.String(url), Encryption: key}).Run(t.Context()) })
	signing := SigningKeys{Redis: secret.String(url), Encryption: key, Data: t.TempDir(), Signing: flags.Signing()}
	run("list", func() error { return (&listSigningKeys{}).Run(t.Context(), &signing) })
	run("rotate", func() error { return (&rotateSigningKeys{}).Run(t.Context(), &signing) })
	if err := (&taintSigningKey{ID: "nothing"}).Run(t.Context(), &signing); err == nil {
		t.Error("a key was withdrawn that does not exist")
	}

	var got []string
	for _, event := range stored(t, store) {
		text, _ := json.Marshal(event)
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), localtest.GivenKey.Reveal()) || strings.Contains(string(text), store) {
			t.Errorf("a secret is in %s", text)
		}
		what := ""
		if event.ObjectRef != nil {
			what = " " + event.ObjectRef.Resource + "/" + event.ObjectRef.Name
		}
		if kid := event.Annotations[model.GroupName+"/kid"]; kid != "" {
			what += " " + kid
		}
		got = append(got, strings.TrimPrefix(event.User.Username, "platform:operator:")+" "+event.Verb+what)
		if what == " users/mia" && !strings.Contains(string(event.RequestObject), `"mia"`) {
			t.Errorf("the object is %s", event.RequestObject)
		}
	}
	want := []string{
		"configure update configs/config",
		"bootstrap create ownedaccesskeys/admin", "bootstrap run",
		"adopt create users/admin", "adopt create users/mia", "adopt run",
		"signing-keys-rotate run", "signing-keys-taint run nothing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// With a policy that refuses unrecorded changes, a command changes nothing while the data store does not answer.
// Otherwise it warns if the data store does not take its events, or if the audit has only files.
func TestCommandsThatAreNotRecorded(t *testing.T) {
	const fails = "{level: Metadata, failurePolicy: Fail}"
	for about, row := range map[string]struct {
		audit, warning string
		made           int
	}{
		"files alone":        {"{enabled: true, level: 1, path: /var/log/platform}", "audit.path belongs to the servers", 1},
		"a data store fails": {"{enabled: true, level: 1, path: '-', dataStoreEndpoint: 'redis://127.0.0.1:1'}", "its data store did not take them", 1},
		"Fail":               {"{enabled: true, path: '-', dataStoreEndpoint: 'redis://127.0.0.1:1', policy: {rules: [" + fails + "]}}", "", 0},
		"no audit":           {"{}", "", 1},
	} {
		t.Run(about, func(t *testing.T) {
			env, url := localtest.Environment(t)
			file := filepath.Join(t.TempDir(), "config.yaml")
			key := encryption.Generate()
			localtest.Write(t, file, "audit: "+row.audit)
			localtest.Stdout(t, func() {
				if err := (&Configure{Redis: secret.String(url), Encryption: key, File: file}).Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
			var err error
			output := stderr(t, func() {
				localtest.Stdout(t, func() { err = (&Bootstrap{Redis: secret.String(url), Encryption: key}).Run(t.Context()) })
			})
			if keys := len(localtest.Keys(t, env)); keys != row.made || (err == nil) != (row.made == 1) {
				t.Errorf("%d keys were made: %v", keys, err)
			}
			if row.warning == "" && strings.Contains(output, "Warning") || !strings.Contains(output, row.warning) {
				t.Errorf("it says %q", output)
			}
		})
	}
}

// stderr returns what do writes to standard error.
func stderr(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = before }()
	do()
	_ = file.Close()
	return string(localtest.Read(t, file.Name()))
}
