package drift_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const decisionsFolder = "docs/adr/"

var (
	decisionFile = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	citation     = regexp.MustCompile(`\bADR-(\d+)\b`)
	status       = regexp.MustCompile(`(?m)^Status: (?:proposed|accepted|rejected|superseded by ADR-\d{4})$`)
)

// findMisfiled finds decisions without a unique number, a title or a status. Numbers rise; a number may be missing while its decision is still
// being written.
func findMisfiled(p project) []string {
	var findings []string
	last := ""
	for _, name := range p.pathsWith(decisionsFolder, ".md") {
		number := decisionFile.FindStringSubmatch(strings.TrimPrefix(name, decisionsFolder))
		if number == nil {
			findings = append(findings, name+" is not called NNNN-subject.md")
			continue
		}
		if number[1] == last {
			findings = append(findings, fmt.Sprintf("%s has the number of another decision", name))
		}
		last = number[1]
		if !strings.HasPrefix(p[name], "# ADR-"+number[1]+": ") {
			findings = append(findings, fmt.Sprintf("%s does not begin with its number", name))
		}
		if !status.MatchString(p[name]) {
			findings = append(findings, fmt.Sprintf("%s has no Status line: proposed, accepted, rejected or superseded by another", name))
		}
	}
	return findings
}

// findMiscited finds citations of decisions that do not exist.
func findMiscited(p project) []string {
	numbers := map[string]bool{}
	for _, name := range p.pathsWith(decisionsFolder, ".md") {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, decisionsFolder), "-")
		numbers[number] = true
	}
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		number := 0
		for text := range strings.Lines(p[name]) {
			number++
			for _, cited := range citation.FindAllStringSubmatch(text, -1) {
				if !numbers[cited[1]] {
					findings = append(findings, fmt.Sprintf("%s:%d cites %s, and %s has no such decision", name, number, cited[0], decisionsFolder))
				}
			}
		}
	}
	return findings
}

// findUnlogged finds faults in the form of a changelog.
func findUnlogged(text string) []string {
	var findings []string
	if !strings.HasPrefix(text, "# Changelog\n") {
		findings = append(findings, "CHANGELOG.md does not begin with its title")
	}
	if !strings.Contains(text, "\n## Unreleased\n") {
		findings = append(findings, "CHANGELOG.md has no section Unreleased")
	} else if before, _, _ := strings.Cut(text, "\n## Unreleased\n"); strings.Contains(before, "\n## ") {
		findings = append(findings, "CHANGELOG.md has a section above Unreleased")
	}
	return findings
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	all := files(t)
	if len(all.pathsWith(decisionsFolder, ".md")) == 0 {
		t.Fatalf("%s is empty", decisionsFolder)
	}
	report(t, findMisfiled(all))
	report(t, findMiscited(all))
}

func TestDecisionsFinds(t *testing.T) {
	t.Parallel()
	// The text is in pieces, because the test reads this file as well.
	const adr = "ADR" + "-"
	planted := project{
		"docs/adr/0001-a.md":   "# " + adr + "0001: A\n\nStatus: accepted\n",
		"docs/adr/0003-c.md":   "# " + adr + "0002: C\n\nStatus: accepted\n",
		"docs/adr/0003-d.md":   "# " + adr + "0003: D\n\nStatus: maybe\n",
		"docs/adr/template.md": "# A decision\n",
		"shared/a/a.go":        "// Package a. Source: " + adr + "0001, " + adr + "0007;\n// " + adr + "9.\n",
	}
	expect(t, findMisfiled(planted), "0003-c.md does not begin", "0003-d.md has the number of another", "0003-d.md has no Status", "template.md is not called")
	expect(t, findMiscited(planted), "0003-c.md:1 cites "+adr+"0002", "shared/a/a.go:1 cites "+adr+"0007", "shared/a/a.go:2 cites "+adr+"9")
}

func TestChangelog(t *testing.T) {
	t.Parallel()
	report(t, findUnlogged(files(t)["CHANGELOG.md"]))
}

func TestChangelogFinds(t *testing.T) {
	t.Parallel()
	expect(t, findUnlogged("# Changelog\n\n## Unreleased\n\n- More.\n\n## 1.0.0\n"))
	expect(t, findUnlogged("# Changelog\n\n## 1.0.0\n\n## Unreleased\n"), "above")
	expect(t, findUnlogged("# Changes\n\n## 1.0.0\n"), "title", "Unreleased")
	expect(t, findUnlogged(""), "title", "Unreleased")
}
