package flags

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"management.platform.sh/shared/settings"
)

// parse reads a command line that has flags of some settings.
func parse(t *testing.T, variables map[string]string, line ...string) Settings {
	t.Helper()
	command := struct{ Settings }{ForSettings(settings.TokenMaxTTL, settings.PatchInProcess, settings.RedisURL)}
	command.Getenv = func(name string) string { return variables[name] }
	parser, err := kong.New(&command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(line); err != nil {
		t.Fatal(err)
	}
	return command.Settings
}

// A setting is called by what the operator wrote: the flag or the variable.
func TestCalled(t *testing.T) {
	for _, s := range settings.List {
		if s.Name != "" {
			t.Setenv(s.Name, "")
		}
	}
	for _, row := range []struct {
		variables     map[string]string
		line          []string
		value, called string
	}{
		{nil, nil, "", settings.TokenMaxTTL},
		{map[string]string{settings.TokenMaxTTL: "1h"}, nil, "1h", settings.TokenMaxTTL},
		{map[string]string{settings.TokenMaxTTL: "1h"}, []string{"--token-max-ttl=2h"}, "2h", "--token-max-ttl"},
		{nil, []string{"--token-max-ttl", "2h"}, "2h", "--token-max-ttl"},
	} {
		flags := parse(t, row.variables, row.line...)
		if value, called := flags.Lookup(settings.TokenMaxTTL), flags.InputName(settings.TokenMaxTTL); value != row.value || called != row.called {
			t.Errorf("%v %v: %q by %s", row.variables, row.line, value, called)
		}
	}
	if flags := parse(t, map[string]string{settings.LogLevel: "warn"}, "--patch-in-process"); flags.Lookup(settings.PatchInProcess) != "true" ||
		flags.Lookup(settings.LogLevel) != "warn" || flags.Lookup(settings.Listen) != "" {
		t.Errorf("%+v", flags)
	}
}

// Help says what a setting is for, which values are allowed and what the default is.
func TestHelp(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		settings.TokenMaxTTL:    " From 1m to 8784h. Default: 24h.",
		settings.Edition:        " Use enterprise or community. Default: enterprise.",
		settings.PatchInProcess: ".",
		settings.RedisURL:       ".",
	} {
		setting := settings.Named(key)[0]
		if got := Help(setting); got != strings.TrimSuffix(setting.Meaning, ".")+"."+strings.TrimPrefix(want, ".") {
			t.Errorf("%s: %s", key, got)
		}
	}
}
