package arch_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// described are the documents that the API serves about itself.
const described = "functions/discoverapi/openapi/"

// sources are references to documents that users do not have.
var sources = regexp.MustCompile(`Source: |\bADR-\d|\bSpec \d`)

// citing finds served descriptions that cite documents that users do not have.
func citing(texts map[string]string) []string {
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if found := sources.FindString(texts[name]); found != "" && strings.HasPrefix(name, described) {
			findings = append(findings, fmt.Sprintf("%s: %q: users do not have that document", name, found))
		}
	}
	return findings
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	texts, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if texts[described+"v3/management.json"] == "" {
		t.Fatal("the served descriptions are not there")
	}
	report(t, citing(texts))
}

func TestDescriptionsFinds(t *testing.T) {
	t.Parallel()
	expect(t, citing(map[string]string{
		"docs/a.md":                    "Source: Spec 2.",
		described + "v3/x.json":        `{"description": "is the key. Source: history"}`,
		described + "v3/y.json":        `{"description": "is the key of Spec 2.5"}`,
		described + "v3/z.json":        `{"description": "is the key"}`,
		"functions/discoverapi/x.json": `{"description": "ADR-0001"}`,
	}), `x.json: "Source: "`, `y.json: "Spec 2"`)
}
