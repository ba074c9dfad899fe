package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// Every user may do in the state what the functions of the user need, and nothing else. Source: ADR-0016.
func TestUsers(t *testing.T) {
	t.Parallel()
	list := users(catalog.Functions)
	const password = "canary-password"
	var lines strings.Builder
	for line := range strings.Lines(string(accessControl(list))) {
		lines.WriteString(strings.TrimSuffix(line, "\n") + " >" + password + "\n")
	}
	lines.WriteString("user default on nopass ~* &* +@all\n")
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.Server(t, redistest.Argument("--aclfile", file))
	open := func(name string) *redisstore.Client {
		scheme, at, _ := strings.Cut(server.URL(), "://")
		client, err := redisstore.Open(scheme+"://"+name+":"+password+"@"+at, redisstore.Options{Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if err := client.Ping(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return client
	}
	resources := map[string]bool{"unknown": true}
	served := 0
	for _, account := range list {
		served += len(account.functions)
		for resource := range account.rights {
			resources[resource] = true
		}
	}
	if served != len(catalog.Functions) || len(list) < 3 || len(resources) < 7 {
		t.Errorf("%d of %d functions have a user, of %d, for %d resources", served, len(catalog.Functions), len(list), len(resources))
	}
	admin, err := redisstore.Open(server.URL(), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	reached := map[string]int64{}
	for resource := range resources {
		if _, err := admin.Resource(resource).Create(t.Context(), record("there")); err != nil {
			t.Fatal(err)
		}
	}
	for _, account := range list {
		client := open(account.name)
		for resource := range resources {
			changes, reads := account.rights[resource]
			for name, err := range readings(t, client.Resource(resource)) {
				expect(t, account.name+" "+name+" "+resource, err, reads)
			}
			// The state has the id of another server, so that the first write of each user stores the id of this
			// server.
			server.WroteElsewhere(resource)
			failed, revision := writings(t, client.Resource(resource), account.name)
			if changes && revision < reached[resource]+1000 {
				t.Errorf("%s cannot ask which server it writes at: revision %d after %d of %s", account.name, revision, reached[resource], resource)
			}
			reached[resource] = max(reached[resource], revision)
			for name, err := range failed {
				expect(t, account.name+" "+name+" "+resource, err, changes)
			}
		}
		expect(t, account.name+" appends audit events", client.Journal("audit").Append(t.Context(), [][]byte{[]byte("{}")}, time.Time{}), false)
	}
	auditor := open("platform-audit")
	journal := auditor.Journal("audit")
	expect(t, "the audit appends", journal.Append(t.Context(), [][]byte{[]byte("{}")}, time.Now().Add(-time.Hour)), true)
	expect(t, "the audit notes", journal.SetNote(t.Context(), "a", "b"), true)
	_, err = journal.Note(t.Context(), "a")
	expect(t, "the audit reads a note", err, true)
	_, err = auditor.Resource("ownedaccesskeys").Get(t.Context(), "there")
	expect(t, "the audit reads keys", err, false)
}

// expect checks that Redis permits an operation, or refuses it because the user lacks the right.
func expect(t *testing.T, what string, err error, permitted bool) {
	t.Helper()
	// Events that an earlier user has trimmed were looked for.
	if permitted && (err == nil || errors.Is(err, store.ErrGone)) {
		return
	}
	// The second text is the error of Redis for a command within a script.
	if !permitted && err != nil && (strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "user executing the script")) {
		return
	}
	t.Errorf("%s: %v", what, err)
}

func record(name string) store.Record {
	return store.Record{
		Name: name, Owner: "user:a", Digest: "digest-" + name, Created: time.Unix(1, 0), Expires: time.Unix(1<<31, 0), References: []string{"uid"},
		Object: []byte(`{}`), Quota: store.Quota{Objects: 1000, Bytes: 1 << 20},
	}
}

// readings reads a resource in all ways.
func readings(t *testing.T, state store.Store) map[string]error {
	t.Helper()
	failed := map[string]error{}
	_, failed["gets"] = state.Get(t.Context(), "there")
	_, failed["gets by digest"] = state.GetByDigest(t.Context(), "digest-there")
	_, _, failed["gets two"] = state.GetWith(t.Context(), "digest-there", []string{"there"})
	_, failed["lists"] = state.List(t.Context(), store.Query{Limit: 10})
	_, failed["lists owners"] = state.List(t.Context(), store.Query{Limit: 10, Owners: []string{"user:a"}})
	_, failed["finds what is due"] = state.Due(t.Context(), store.DueQuery{Until: time.Unix(1<<32, 0), Limit: 10})
	_, _, failed["reads references"] = state.References(t.Context(), 0, 10)
	_, failed["reads events"] = state.Events(t.Context(), store.Beginning, 10, 0)
	return failed
}

// writings changes a resource in all ways, and returns the last revision.
func writings(t *testing.T, state store.Store, name string) (failed map[string]error, revision int64) {
	t.Helper()
	failed = map[string]error{}
	created := record(name)
	var err error
	created.Revision, failed["creates"] = state.Create(t.Context(), created)
	created.Expires = time.Time{}
	created.Revision, err = state.Update(t.Context(), created)
	if failed["creates"] == nil {
		failed["updates"], failed["touches"] = err, state.Touch(t.Context(), created, time.Unix(5, 0), time.Unix(1<<31, 0))
		revision, failed["deletes"] = state.Delete(t.Context(), name, created.Revision)
		failed["trims"] = state.Trim(t.Context(), time.Now().Add(time.Hour))
	}
	return failed, revision
}
