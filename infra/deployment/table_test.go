package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
)

// The files in the repository are equal to what the command writes.
func TestWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, dir := range []string{"infra/terraform", "infra/serverless", "infra/redis", "infra/nginx"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{tableFile, functionsFile, rolesFile, usersFile, groupsFile, routesFile} {
		want, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the catalog says: run make gen", file)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	get := func(path, verb string) frame.Endpoint {
		return frame.Endpoint{Route: frame.Route{Method: http.MethodGet, Path: path}, Target: frame.Target{Verb: verb}}
	}
	function := &frame.Function{Name: "discoverapi", Endpoints: []frame.Endpoint{
		get("/.a", "list").AlsoAtRoot(), get("/.a", "watch"), get("/a/{name}/{rest...}", "get"),
	}}
	entries, err := table([]*frame.Function{function, {Name: "clock", Schedule: &frame.Schedule{}}})
	if err != nil {
		t.Fatal(err)
	}
	got := entries["discoverapi"]
	if want := []string{"GET /kubernetes/management/.a", "GET /.a", "GET /kubernetes/management/a/{name}/{rest+}"}; !slices.Equal(got.Routes, want) ||
		!got.Stream || !got.Fallback || got.ScheduleMinutes != 0 || got.TimeoutSeconds != gatewaySeconds {
		t.Errorf("got %+v", got)
	}
	if got := entries["clock"]; len(got.Routes) != 0 || got.ScheduleMinutes != 1 || got.TimeoutSeconds != scheduledSeconds {
		t.Errorf("got %+v", got)
	}
	for want, functions := range map[string][]*frame.Function{
		"the name must":     {function, {Name: "Two"}},
		"cannot be a route": {function, {Name: "two", Endpoints: []frame.Endpoint{get("/a/{$}", "get")}}},
		"neither a route":   {function, {Name: "two"}},
		"no function":       catalog.Functions[1:],
	} {
		if _, err := table(functions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
