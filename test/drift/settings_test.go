package drift_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/settings"
)

// settingsFile is where the settings are listed for readers.
const settingsFile = "docs/deploy.md"

var (
	settingRow  = regexp.MustCompile("(?m)^\\| `(?:PLATFORM_|--)[A-Za-z_-]+` \\|.*$")
	settingName = regexp.MustCompile(`\bPLATFORM_[A-Z]+(?:_[A-Z]+)*\b`)
)

// settingLine is the row of a setting in that document.
func settingLine(s settings.Setting) string {
	flag := "not read"
	switch {
	case s.Name == "":
		flag = ""
	case s.Flag != "":
		flag = "`--" + s.Flag + "`"
	case s.Readers&settings.Functions == 0:
		flag = "" // a command reads it
	case s.Readers&settings.Serve != 0:
		flag = "variable only"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", s.Key(), flag, s.Unit, s.Default, s.Allowed(), s.Meaning)
}

// unlisted finds settings whose row in a document differs from the program, and rows of unknown settings.
func unlisted(text string, list []settings.Setting) []string {
	want := make([]string, len(list))
	for i, s := range list {
		want[i] = settingLine(s)
	}
	var findings []string
	for i, row := range settingRow.FindAllString(text, -1) {
		if i >= len(want) || row != want[i] {
			findings = append(findings, "the row is not what the program says, in its order: "+row)
		}
	}
	for _, row := range want {
		if !strings.Contains(text, row+"\n") {
			findings = append(findings, "there is no row "+row)
		}
	}
	return findings
}

// unread finds names of settings in manifests that no function reads, and manifests that do not say which release it is.
func unread(p project, list []settings.Setting) []string {
	manifests := slices.Concat([]string{"serverless.yml", "infra/terraform/aws/functions.tf", "infra/terraform/gcp/functions.tf"},
		p.under("infra/knative/", ".yaml"))
	var findings []string
	for _, name := range slices.Concat(manifests, p.under("infra/serverless/", ".json")) {
		for _, found := range settingName.FindAllString(p[name], -1) {
			if !slices.ContainsFunc(list, func(s settings.Setting) bool { return s.Name == found && s.Readers&settings.Functions != 0 }) {
				findings = append(findings, name+" sets "+found+", which no function reads")
			}
		}
	}
	for _, name := range manifests {
		if !strings.Contains(p[name], "PLATFORM_VERSION") {
			findings = append(findings, name+" does not set PLATFORM_VERSION")
		}
	}
	return findings
}

// unknown finds names of settings in the program of the operator and in documents that are not in the list.
func unknown(p project, list []settings.Setting) []string {
	var findings []string
	for _, name := range slices.Concat(p.under("local/", ".go"), p.under("docs/", ".md"), []string{"README.md"}) {
		for _, found := range settingName.FindAllString(p[name], -1) {
			if !slices.ContainsFunc(list, func(s settings.Setting) bool { return s.Name == found }) {
				findings = append(findings, name+" names "+found+", which is no setting")
			}
		}
	}
	return findings
}

func TestSettings(t *testing.T) {
	t.Parallel()
	report(t, unknown(files(t), settings.List))
	report(t, unlisted(files(t)[settingsFile], settings.List))
	report(t, unread(files(t), settings.List))
}

func TestSettingsFinds(t *testing.T) {
	t.Parallel()
	list := []settings.Setting{
		{Name: "PLATFORM_A", Readers: settings.Functions, Unit: "text", Default: "x", Meaning: "One."},
		{Name: "PLATFORM_VERSION", Flag: "b", Readers: settings.Functions, Unit: "text", Words: []string{"c", "d"}, Meaning: "Two."},
		{Name: "PLATFORM_D", Readers: settings.Serve},
	}
	a, b := settingLine(list[0])+"\n", settingLine(list[1])+"\n"
	expect(t, unlisted(a+b, list[:2]))
	expect(t, unlisted(b+"| `PLATFORM_A` | not read | text | y |  | One. |\n| `--c` | z | | |\n", list[:2]),
		"order: | `PLATFORM_VERSION`", "order: | `PLATFORM_A` | not read | text | y", "order: | `--c`", "no row | `PLATFORM_A`")
	expect(t, unread(project{
		"serverless.yml": "PLATFORM_A: 1\nPLATFORM_VERSION: 2\n", "infra/terraform/aws/functions.tf": "PLATFORM_VERSION = PLATFORM_B, PLATFORM_D",
		"infra/terraform/gcp/functions.tf": "PLATFORM_VERSION", "infra/knative/a.yaml": "PLATFORM_A",
	}, list), "aws/functions.tf sets PLATFORM_B", "aws/functions.tf sets PLATFORM_D", "a.yaml does not set PLATFORM_VERSION")
	expect(t, unknown(project{"local/a.go": "env:\"PLATFORM_A\" PLATFORM_", "docs/b.md": "PLATFORM_C"}, list), "docs/b.md names PLATFORM_C")
}
