package drift_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/settings"
)

// settingsFile is the document that lists the settings.
const settingsFile = "docs/settings.md"

var (
	settingRow  = regexp.MustCompile("(?m)^\\| `(?:PLATFORM_|--)[A-Za-z_-]+` \\|.*$")
	settingName = regexp.MustCompile(`\bPLATFORM_[A-Z]+(?:_[A-Z]+)*\b`)
)

// settingLine is the row of a setting in that document.
func settingLine(s settings.Setting) string {
	flag := ""
	switch {
	case s.Name == "":
	case s.Flag != "":
		flag = "`--" + s.Flag + "`"
	case s.Readers&settings.Functions != 0 && s.Readers&settings.Serve == 0:
		flag = "not read"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", s.Key(), flag, s.Unit, s.Default, s.Allowed(), s.Meaning)
}

// findUnlisted finds settings whose row in a document differs from the program, and rows of unknown settings.
func findUnlisted(text string, list []settings.Setting) []string {
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

// auditStore is the variable for the placeholder in audit.dataStoreEndpoint. Deployments give it, or the name of a secret with it, to every
// function. It is not a setting: the platform configuration names it.
const auditStore = settings.DefaultConfigVariables + "AUDIT_STORE"

// namesVariable reports whether a variable that is not a setting can occur in the platform configuration.
func namesVariable(variable string) bool {
	return variable == auditStore || variable == auditStore+"_SECRET"
}

// manifests are the files that set variables of functions. Those under infra/serverless are parts of serverless.yml. The
// kustomization names the other files of its folder.
func manifests(p project) []string {
	all := slices.Concat([]string{"serverless.yml", "infra/terraform/aws/functions.tf", "infra/terraform/gcp/functions.tf"},
		p.pathsWith("infra/knative/", ".yaml"), p.pathsWith("infra/serverless/", ".json"))
	return slices.DeleteFunc(all, func(name string) bool { return name == "infra/knative/kustomization.yaml" })
}

// findUnread finds settings in manifests that no function reads, and manifests that do not name the release.
func findUnread(p project, list []settings.Setting) []string {
	var findings []string
	for _, name := range manifests(p) {
		for _, found := range settingName.FindAllString(p[name], -1) {
			if !namesVariable(found) && !slices.ContainsFunc(list, func(s settings.Setting) bool { return s.Name == found && s.Readers&settings.Functions != 0 }) {
				findings = append(findings, name+" sets "+found+", which no function reads")
			}
		}
	}
	for _, name := range manifests(p) {
		if !strings.HasPrefix(name, "infra/serverless/") && !strings.Contains(p[name], "PLATFORM_VERSION") {
			findings = append(findings, name+" does not set PLATFORM_VERSION")
		}
	}
	return findings
}

// literal matches the forms in which manifests set a variable to a value: Knative, JSON, YAML and Terraform.
var literal = regexp.MustCompile(`(?m)(?:- name: (PLATFORM_\w+)\n +value: (\S+)$|"(PLATFORM_\w+)": ?"([^"]*)"|^ +(PLATFORM_\w+): (\S+)$|(PLATFORM_\w+) += "([^"]*)")`)

// literals returns the values that a manifest gives to settings, as NAME=value. References and paths within a container are left out.
func literals(text string) map[string]bool {
	set := map[string]bool{}
	for _, groups := range literal.FindAllStringSubmatch(text, -1) {
		name, value := groups[1]+groups[3]+groups[5]+groups[7], groups[2]+groups[4]+groups[6]+groups[8]
		if !strings.Contains(value, "${") && !strings.HasSuffix(name, "_FILE") {
			set[name+"="+value] = true
		}
	}
	return set
}

// refusedValues finds the values in manifests that functions refuse.
func refusedValues(p project, list []settings.Setting) []string {
	var findings []string
	for _, name := range manifests(p) {
		for _, pair := range slices.Sorted(maps.Keys(literals(p[name]))) {
			key, value, _ := strings.Cut(pair, "=")
			if !slices.ContainsFunc(list, func(s settings.Setting) bool { return s.Name == key }) {
				continue // a finding of unread
			}
			if _, err := settings.ReadOnly(func(asked string) string { return map[string]string{key: value}[asked] }, nil, key); err != nil {
				findings = append(findings, fmt.Sprintf("%s sets %q: %v", name, value, err))
			}
		}
	}
	return findings
}

// restatement is a place in a manifest that repeats a fact of the list of settings, right after a pattern.
type restatement struct{ file, before, want string }

// restated are the places that repeat a default, or the values that are allowed.
func restated() []restatement {
	level, version := settings.Named(settings.LogLevel)[0], settings.Named(settings.Version)[0]
	window := settings.WatchWindowWithoutStreams.String()
	variable := func(name string) string { return `variable "` + name + `" \{[^}]*\n  default += ` }
	return []restatement{
		{"serverless.yml", `\n  default:\n    logLevel: `, level.Default},
		{"serverless.yml", `\n    metrics: `, settings.NoMetrics},
		{"infra/terraform/aws/variables.tf", variable("metrics"), settings.NoMetrics},
		{"serverless.yml", settings.WatchWindow + `: `, window},
		{"infra/terraform/aws/variables.tf", variable("watch_window"), window},
		{"infra/terraform/aws/variables.tf", variable("log_level"), level.Default},
		{"infra/terraform/gcp/variables.tf", variable("log_level"), level.Default},
		{"infra/terraform/aws/variables.tf", `variable "log_level" \{\n  description += "Lowest level that is logged: `, level.Allowed()},
		{"infra/terraform/gcp/variables.tf", `variable "log_level" \{\n  description += "Lowest level that is logged: `, level.Allowed()},
		{"infra/terraform/aws/variables.tf", variable("release"), version.Default},
		{"infra/terraform/gcp/variables.tf", variable("release"), version.Default},
	}
}

// findMisstated finds places that differ from the list of settings.
func findMisstated(p project) []string {
	var findings []string
	for _, place := range restated() {
		if !regexp.MustCompile(place.before + `"?` + regexp.QuoteMeta(place.want) + `[".\n]`).MatchString(p[place.file]) {
			findings = append(findings, fmt.Sprintf("%s does not have %s after %s", place.file, place.want, place.before))
		}
	}
	return findings
}

// findUnknown finds names of settings in the program of the operator and in documents that are not in the list.
func findUnknown(p project, list []settings.Setting) []string {
	var findings []string
	for _, name := range slices.Concat(p.pathsWith("local/", ".go"), p.pathsWith("docs/", ".md"), []string{"README.md"}) {
		for _, found := range settingName.FindAllString(p[name], -1) {
			if !namesVariable(found) && !slices.ContainsFunc(list, func(s settings.Setting) bool { return s.Name == found }) {
				findings = append(findings, name+" names "+found+", which is no setting")
			}
		}
	}
	return findings
}

func TestSettings(t *testing.T) {
	t.Parallel()
	report(t, findUnknown(files(t), settings.List))
	report(t, findUnlisted(files(t)[settingsFile], settings.List))
	report(t, findUnread(files(t), settings.List))
	report(t, refusedValues(files(t), settings.List))
	report(t, findMisstated(files(t)))
	// The functions that stream have the same settings in both deployments on AWS.
	const serverless, terraform = "infra/serverless/functions.json", "infra/terraform/aws/functions.tf"
	report(t, differences(serverless, literals(files(t)[serverless]), terraform, literals(files(t)[terraform])))
}

func TestSettingsFinds(t *testing.T) {
	t.Parallel()
	list := []settings.Setting{
		{Name: "PLATFORM_A", Readers: settings.Functions, Unit: "text", Default: "x", Meaning: "One."},
		{Name: "PLATFORM_VERSION", Flag: "b", Readers: settings.Functions, Unit: "text", Words: []string{"c", "d"}, Meaning: "Two."},
		{Name: "PLATFORM_D", Readers: settings.Serve},
	}
	a, b := settingLine(list[0])+"\n", settingLine(list[1])+"\n"
	expect(t, findUnlisted(a+b, list[:2]))
	expect(t, findUnlisted(b+"| `PLATFORM_A` | not read | text | y |  | One. |\n| `--c` | z | | |\n", list[:2]),
		"order: | `PLATFORM_VERSION`", "order: | `PLATFORM_A` | not read | text | y", "order: | `--c`", "no row | `PLATFORM_A`")
	expect(t, findUnread(project{
		"serverless.yml": "PLATFORM_A: 1\nPLATFORM_VERSION: 2\n", "infra/terraform/aws/functions.tf": "PLATFORM_VERSION = PLATFORM_B, PLATFORM_D",
		"infra/terraform/gcp/functions.tf": "PLATFORM_VERSION", "infra/knative/a.yaml": "PLATFORM_A",
	}, list), "aws/functions.tf sets PLATFORM_B", "aws/functions.tf sets PLATFORM_D", "a.yaml does not set PLATFORM_VERSION")
	expect(t, refusedValues(project{
		"serverless.yml":                   "    PLATFORM_LOG_LEVEL: loud\n    PLATFORM_ISSUER: ${x}\n",
		"infra/knative/a.yaml":             "            - name: PLATFORM_WATCH_WINDOW\n              value: 280\n            - name: PLATFORM_REDIS_URL_FILE\n              value: /x\n",
		"infra/serverless/a.json":          `{"PLATFORM_STREAM": "yes"}`,
		"infra/terraform/aws/functions.tf": `{ PLATFORM_PATCH_DEPTH = "5", PLATFORM_VERSION = "${x}" }`,
	}, settings.List), `serverless.yml sets "loud"`, `functions.tf sets "5"`, `a.yaml sets "280"`, `a.json sets "yes"`)
	planted := maps.Clone(files(t))
	planted["serverless.yml"] = strings.Replace(planted["serverless.yml"], "logLevel: info", "logLevel: warn", 1)
	planted["infra/terraform/aws/variables.tf"] = strings.Replace(planted["infra/terraform/aws/variables.tf"], `"10s"`, `"20s"`, 1)
	expect(t, findMisstated(planted), "serverless.yml does not have info", "aws/variables.tf does not have 10s")
	expect(t, findUnknown(project{"local/a.go": "env:\"PLATFORM_A\" PLATFORM_", "docs/b.md": "PLATFORM_C"}, list), "docs/b.md names PLATFORM_C")
}
