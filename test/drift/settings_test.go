package drift_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/infra/environment"
)

// settingsFile is where the settings of a deployed function are listed for readers.
const settingsFile = "docs/deploy.md"

var (
	settingRow  = regexp.MustCompile("(?m)^\\| `(PLATFORM_[A-Z_]+)` \\|.*$")
	settingName = regexp.MustCompile(`\bPLATFORM_[A-Z]+(?:_[A-Z]+)*\b`)
)

// unlisted finds settings whose row in a document is not what the program says of them, and rows of others.
func unlisted(text string, settings []environment.Variable) []string {
	want := make([]string, len(settings))
	for i, v := range settings {
		want[i] = fmt.Sprintf("| `%s` | %s | %s | %s |", v.Name, v.Unit, v.Default, v.Meaning)
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
func unread(p project, settings []environment.Variable) []string {
	manifests := slices.Concat([]string{"serverless.yml", "infra/terraform/aws/functions.tf", "infra/terraform/gcp/functions.tf"},
		p.under("infra/knative/", ".yaml"))
	var findings []string
	for _, name := range slices.Concat(manifests, p.under("infra/serverless/", ".json")) {
		for _, found := range settingName.FindAllString(p[name], -1) {
			if !slices.ContainsFunc(settings, func(v environment.Variable) bool { return v.Name == found }) {
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

func TestSettings(t *testing.T) {
	t.Parallel()
	report(t, unlisted(files(t)[settingsFile], environment.Variables))
	report(t, unread(files(t), environment.Variables))
}

func TestSettingsFinds(t *testing.T) {
	t.Parallel()
	settings := []environment.Variable{{Name: "PLATFORM_A", Unit: "text", Default: "x", Meaning: "One."}, {Name: "PLATFORM_VERSION", Unit: "text", Meaning: "Two."}}
	const a, b = "| `PLATFORM_A` | text | x | One. |\n", "| `PLATFORM_VERSION` | text |  | Two. |\n"
	expect(t, unlisted(a+b, settings))
	expect(t, unlisted(b+"| `PLATFORM_A` | text | y | One. |\n| `PLATFORM_C` | z | | |\n", settings),
		"order: | `PLATFORM_VERSION`", "order: | `PLATFORM_A` | text | y", "order: | `PLATFORM_C`", "no row | `PLATFORM_A`")
	expect(t, unread(project{
		"serverless.yml": "PLATFORM_A: 1\nPLATFORM_VERSION: 2\n", "infra/terraform/aws/functions.tf": "PLATFORM_VERSION = PLATFORM_B",
		"infra/terraform/gcp/functions.tf": "PLATFORM_VERSION", "infra/knative/a.yaml": "PLATFORM_A",
	}, settings), "aws/functions.tf sets PLATFORM_B", "a.yaml does not set PLATFORM_VERSION")
}
