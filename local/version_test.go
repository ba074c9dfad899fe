package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"
)

// Scripts read the version alone, or all of the report in either format.
func TestVersion(t *testing.T) {
	t.Parallel()
	run := func(line ...string) ([]byte, error) {
		var out, errors bytes.Buffer
		ended := false
		parsed, err := newParser(newCommands(), kong.Writers(&out, &errors), kong.Exit(func(code int) { ended = code == 0 })).Parse(line)
		if err != nil || ended {
			return out.Bytes(), err
		}
		err = parsed.Run()
		return out.Bytes(), err
	}
	for _, line := range [][]string{{"version"}, {"--version"}, {"keys", "list", "--version"}} {
		if out, err := run(line...); err != nil || string(out) != build()+"\n" {
			t.Errorf("%q: %q, %v", line, out, err)
		}
	}
	for format, decode := range map[string]func([]byte, *buildReport) error{
		"json": func(text []byte, into *buildReport) error {
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			return decoder.Decode(into)
		},
		"yaml": func(text []byte, into *buildReport) error { return yaml.UnmarshalStrict(text, into) },
	} {
		out, err := run("version", "-o", format)
		if err != nil || !bytes.HasSuffix(out, []byte("\n")) || json.Valid(out) != (format == "json") {
			t.Errorf("%s: %q, %v", format, out, err)
			continue
		}
		var got buildReport
		if err := decode(out, &got); err != nil {
			t.Errorf("%s: %q: %v", format, out, err)
		}
		if got.Version != build() || got.GoVersion != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
			t.Errorf("%s: %+v", format, got)
		}
	}
	if _, err := run("version", "-o", "xml"); err == nil {
		t.Error("an unknown format is accepted")
	}
}

// The commit is what the compiler recorded. A program that was built without a checkout does not name one.
func TestReportOf(t *testing.T) {
	t.Parallel()
	settings := []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	want := buildReport{"v1.2.3", "0123456789abcdef0123456789abcdef01234567", "2026-01-02T03:04:05Z", true, "go1.26.0", platform}
	if got := reportOf("v1.2.3", &debug.BuildInfo{GoVersion: "go1.26.0", Settings: settings}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want = buildReport{"dev", "", "", false, "go1.26.0", platform}
	if got := reportOf("dev", &debug.BuildInfo{GoVersion: "go1.26.0"}); got != want {
		t.Errorf("without a checkout: got %+v, want %+v", got, want)
	}
}
