package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"management.platform.sh/local/output"
)

type versionCommand struct {
	Output string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text is the version alone, json and yaml say how this program was built (${default})."`
}

// buildReport says how this program was built, for scripts and bug reports.
type buildReport struct {
	// Version is the tag, or the description of the commit by git describe. "dev": the build did not set it.
	Version string `json:"version"`
	// Commit is the hash of the commit. Empty: the build did not know it, as without a git checkout.
	Commit string `json:"commit,omitempty"`
	// CommitTime is when the commit was made, in RFC 3339. Empty if Commit is empty.
	CommitTime string `json:"commitTime,omitempty"`
	// Modified reports whether the files differed from the commit.
	Modified  bool   `json:"modified"`
	GoVersion string `json:"goVersion"`
	// Platform is the operating system and the processor, such as linux/arm64.
	Platform string `json:"platform"`
}

func (c *versionCommand) Run(line *kong.Context) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	report := reportOf(build(), info)
	return output.Write(line.Stdout, c.Output, report, func() []byte { return fmt.Appendln(nil, report.Version) })
}

// reportOf returns the report for the build information that the compiler wrote into a program.
func reportOf(version string, info *debug.BuildInfo) buildReport {
	report := buildReport{Version: version, GoVersion: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			report.Commit = setting.Value
		case "vcs.time":
			report.CommitTime = setting.Value
		case "vcs.modified":
			report.Modified = setting.Value == "true"
		}
	}
	return report
}
