package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func claims(t *testing.T) list {
	t.Helper()
	l, err := parse(claimsText)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each claim quotes its document and names tests that exist. No claim of README.md and no page is left out.
func TestClaims(t *testing.T) {
	t.Parallel()
	for _, finding := range check(root, claims(t)) {
		t.Error(finding)
	}
}

// The page follows from the claims, except for the counts, which `make evidence` writes.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(root, claims(t), origin{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := form(string(page)); got != want {
		t.Errorf("%s is not what claims.yaml says: run make evidence ARGS=--form\n%s", pageFile, difference(got, want))
	}
}

func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "has   " + a[i] + "\nneeds " + b[i]
		}
	}
	return "one has more lines"
}

// project writes a small project, and returns its folder.
func project(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"README.md":                       "# It\n\nIt adds. It is\n**fast** ([how](docs/a.md)).\n\n## More\n\nNo claim.\n",
		"docs/a.md":                       "# A\n\nIt [never](b.md) fails.\n\n| Attack | Test |\n|---|---|\n| x | `sum` TestAdds, TestPasses |\n",
		"docs/b.md":                       "# B\n",
		"go.mod":                          "module example.com/it\n\ngo 1.26\n",
		"test/script/testdata/walk.txtar": "# A walk.\n",
		"sum/sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {\n" +
			"\tt.Run(\"one\", func(t *testing.T) {})\n\tt.Run(\"two\", func(t *testing.T) { t.Skip() })\n\tt.Log(\"counted: 7 vectors\")\n}\n\n" +
			"func TestPasses(t *testing.T) {}\n\nfunc TestFails(t *testing.T) { t.Run(\"deep\", func(t *testing.T) { t.Error(\"1 + 1 = 3\") }) }\n\n" +
			"func TestSkips(t *testing.T) { t.Skip() }\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestClaimsFinds(t *testing.T) {
	t.Parallel()
	got := check(project(t), list{
		Claims: []claim{
			{ID: "adds", In: "README.md", Says: "It adds.", Tests: []string{"sum TestAdds"}},
			{ID: "never", In: "docs/a.md", Says: "It never fails.", Tests: []string{"the tables of docs/a.md", "test/script/testdata/walk.txtar"}},
			{ID: "gone", In: "docs/a.md", Says: "It flies.", Tests: []string{"sum TestFlies"}},
			{ID: "gone", In: "docs/a.md", Says: "It never fails.", Tests: []string{"test/script/testdata/fly.txtar"}},
			{ID: "none", In: "docs/a.md", Says: "It never fails."},
		},
		Open:    []openClaim{{What: "Nobody has.", In: "docs/a.md", Says: "nobody"}},
		Without: map[string]string{"docs/a.md": "no reason", "docs/c.md": "there is none"},
	})
	for _, want := range []string{
		`gone: docs/a.md does not say "It flies."`, "gone: a test has vanished: sum has no TestFlies", `"gone" is the ID of another claim`,
		"gone: a test has vanished: stat ", "none: no test shows it", `open: docs/a.md does not say "nobody"`,
		"no claim has this sentence of README.md: It is fast", "docs/b.md has no claim", "docs/a.md has claims", "docs/c.md: no such file",
	} {
		if !slices.ContainsFunc(got, func(finding string) bool { return strings.Contains(finding, want) }) {
			t.Errorf("no finding says %q", want)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d findings:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// A claim is broken if its test fails, is skipped, or does not run. Other claims are counted.
func TestBrokenClaims(t *testing.T) {
	t.Parallel()
	folder := project(t)
	claims := []claim{
		{ID: "adds", Tests: []string{"the tables of docs/a.md"}},
		{ID: "fails", Tests: []string{"sum TestPasses", "sum TestFails"}},
		{ID: "skips", Tests: []string{"sum TestSkips"}},
		{ID: "vanished", Tests: []string{"sum TestVanished"}},
	}
	var tests []aTest
	for _, c := range claims {
		of, err := testsOf(folder, c)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, of...)
	}
	results, err := runTests(t.Context(), folder, "", "", tests)
	if err != nil {
		t.Fatal(err)
	}
	got := findBroken(folder, claims, results)
	want := []string{
		"fails: `sum` TestFails failed: TestFails, TestFails/deep", "skips: nothing of `sum` TestSkips passed, and 1 were skipped",
		"vanished: `sum` TestVanished failed: TestVanished did not run",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if text := passedCell([]aTest{{"sum", "TestAdds"}, {"sum", "TestPasses"}}, results); text != "2; 1 not applicable; 7 vectors" {
		t.Errorf("%q", text)
	}
}

// Results of the same commit are used again. Results of another commit, and of failures, are not.
func TestKeptResults(t *testing.T) {
	t.Parallel()
	folder, kept := project(t), t.TempDir()
	adds := []aTest{{"sum", "TestAdds"}}
	for _, row := range []struct {
		commit string
		passed int
	}{{"a", 1}, {"a", 1}, {"b", 2}} {
		found, err := runTests(t.Context(), folder, kept, row.commit, adds)
		if err != nil {
			t.Fatal(err)
		}
		if got := found[adds[0]].Passed; got != row.passed {
			t.Errorf("%d passed at %s, want %d", got, row.commit, row.passed)
		}
		source := filepath.Join(folder, "sum", "sum_test.go")
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, []byte(strings.Replace(string(text), "t.Skip() })\n\tt.Log", "})\n\tt.Log", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A changed claim has no count until its tests have run. Other claims keep their counts.
func TestFormKeepsCounts(t *testing.T) {
	t.Parallel()
	earlier := "The counts are of commit `a`.\n\n| `a` | x | t | j | 3; 1 not applicable |\n| `b` | old | t | j | 4 |\n"
	blank := "The counts are of no commit.\n\n| `a` | x | t | j | - |\n| `b` | new | t | j | - |\n"
	want := "The counts are of commit `a`.\n\n| `a` | x | t | j | 3; 1 not applicable |\n| `b` | new | t | j | - |\n"
	if got := withCounts(blank, earlier); got != want {
		t.Errorf("%s", got)
	}
	if got := form(want); got != blank {
		t.Errorf("%s", got)
	}
}

// Stories are counted by their names, together for all shapes.
func TestOutcomesOfStories(t *testing.T) {
	t.Parallel()
	results, err := outcomes(strings.NewReader(strings.Join([]string{
		`{"Action":"run","Test":"TestStories"}`, `{"Action":"run","Test":"TestStories/local"}`, `{"Action":"run","Test":"TestStories/local/a"}`,
		`{"Action":"run","Test":"TestStories/lambda/a"}`, `{"Action":"run","Test":"TestStories/local/b"}`, `{"Action":"pass","Test":"TestStories/local/a"}`,
		`{"Action":"pass","Test":"TestStories/lambda/a"}`,
	}, "\n")), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	// Story b began and did not end.
	if a, b := results["TestStories/a"], results["TestStories/b"]; len(results) != 2 || a.Passed != 2 || len(b.Failed) != 1 {
		t.Errorf("%+v", results)
	}
}

// The output of a test is shown only if the test fails.
func TestReasons(t *testing.T) {
	t.Parallel()
	var reasons strings.Builder
	if _, err := outcomes(strings.NewReader(strings.Join([]string{
		`{"Action":"output","Output":"ok\n"}`,
		`{"Action":"output","Test":"TestBad","Output":"it is wrong\n"}`, `{"Action":"output","Test":"TestGood","Output":"it is right\n"}`,
		`{"Action":"fail","Test":"TestBad"}`, `{"Action":"pass","Test":"TestGood"}`,
	}, "\n")), &reasons); err != nil {
		t.Fatal(err)
	}
	if reasons.String() != "it is wrong\n" {
		t.Errorf("shown are %q", reasons.String())
	}
}
