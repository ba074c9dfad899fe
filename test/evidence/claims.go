package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// list is claims.yaml: the claims of the documents, and the tests that show them.
type list struct {
	Claims []claim `json:"claims"`
	// Open are statements that no test shows.
	Open []openClaim `json:"open"`
	// Without are the pages that make no claim of their own, with the reason.
	Without map[string]string `json:"without"`
}

// claim is a statement of a document, in its own words, and the tests that show it.
type claim struct {
	// ID names the claim on the command line.
	ID string `json:"id"`
	// In is the document, and Says are its words. The test fails if the document no longer contains the words.
	In   string `json:"in"`
	Says string `json:"says"`
	// Tests are stories (test/script/testdata/NAME.txtar), functions (PACKAGE TestName), or, alone, "the tables of PAGE" for all
	// tests that the last columns of the tables of the document name.
	Tests []string `json:"tests"`
	// Judge is the independent judge: a public suite, or a program from another project. Empty: only the code of this project.
	Judge string `json:"judge"`
}

// openClaim is a statement that was never run, and the place where the documents say so.
type openClaim struct {
	What string `json:"what"`
	In   string `json:"in"`
	Says string `json:"says"`
}

//go:embed claims.yaml
var claimsText []byte

func parse(text []byte) (list, error) {
	var l list
	err := yaml.UnmarshalStrict(text, &l)
	return l, err
}

// aTest is a test function of a package, or a story.
type aTest struct{ folder, name string }

const (
	storiesFolder = "test/script"
	storiesTest   = "TestStories"
)

// story returns the name of the story. Empty: the test is a test function.
func (t aTest) story() string {
	if name, ok := strings.CutPrefix(t.name, storiesTest+"/"); ok {
		return name
	}
	return ""
}

func (t aTest) String() string {
	if name := t.story(); name != "" {
		return "`" + storiesFolder + "/testdata/" + name + ".txtar`"
	}
	return "`" + t.folder + "` " + t.name
}

var (
	storyPath = regexp.MustCompile(`^` + storiesFolder + `/testdata/([a-z]+)\.txtar$`)
	function  = regexp.MustCompile(`^([a-z0-9/]+) ((?:Test|Fuzz)\w+)$`)
	tables    = regexp.MustCompile(`^the tables of (docs/[a-z]+\.md)$`)
	// inTables is a test in a table. Without a folder, it is in the folder of the test before it.
	inTables = regexp.MustCompile("^(?:`([a-z0-9/.]+)`)? ?(Test\\w+)?$")
)

// testsOf returns the tests of a claim, without repetitions.
func testsOf(root string, c claim) ([]aTest, error) {
	var tests []aTest
	add := func(text string) error {
		if m := storyPath.FindStringSubmatch(text); m != nil {
			tests = append(tests, aTest{storiesFolder, storiesTest + "/" + m[1]})
		} else if m := function.FindStringSubmatch(text); m != nil {
			tests = append(tests, aTest{m[1], m[2]})
		} else {
			return fmt.Errorf("%s: %q is neither a story nor a test of a package", c.ID, text)
		}
		return nil
	}
	for _, text := range c.Tests {
		m := tables.FindStringSubmatch(text)
		if m == nil {
			if err := add(text); err != nil {
				return nil, err
			}
			continue
		}
		page, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(page)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, "|") {
				continue
			}
			cells, folder := strings.Split(line, " | "), ""
			for part := range strings.SplitSeq(strings.TrimRight(cells[len(cells)-1], " |"), ", ") {
				named := inTables.FindStringSubmatch(part)
				if named == nil {
					continue
				}
				folder = cmp.Or(named[1], folder)
				text := strings.TrimSpace(folder + " " + named[2])
				if storyPath.MatchString(text) || function.MatchString(text) {
					if err := add(text); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	slices.SortFunc(tests, func(a, b aTest) int { return strings.Compare(a.folder+" "+a.name, b.folder+" "+b.name) })
	tests = slices.Compact(tests)
	if len(tests) == 0 {
		return nil, fmt.Errorf("%s: no test shows it", c.ID)
	}
	return tests, nil
}

// exists returns an error if a test does not exist.
func exists(root string, t aTest) error {
	if name := t.story(); name != "" {
		_, err := os.Stat(filepath.Join(root, storiesFolder, "testdata", name+".txtar"))
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, t.folder, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(source), "\nfunc "+t.name+"(") {
			return nil
		}
	}
	return fmt.Errorf("%s has no %s", t.folder, t.name)
}

var (
	markup = strings.NewReplacer("**", "", "`", "")
	links  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	// aside matches a link in parentheses, which is not part of the sentence.
	aside = regexp.MustCompile(`\s*\(\[[^\]]*\]\([^)]*\)\)`)
)

// plainText returns a text without markup, as one line.
func plainText(text string) string {
	return strings.Join(strings.Fields(markup.Replace(links.ReplaceAllString(aside.ReplaceAllString(text, ""), "$1"))), " ")
}

// check returns the faults of the list: words that no document has, tests that do not exist, and documents without a claim.
func check(root string, l list) []string {
	var findings []string
	documents := map[string]string{}
	says := func(name, in, words string) {
		if _, read := documents[in]; !read {
			text, err := os.ReadFile(filepath.Join(root, in))
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: %v", name, err))
			}
			documents[in] = plainText(string(text))
		}
		if words == "" || !strings.Contains(documents[in], plainText(words)) {
			findings = append(findings, fmt.Sprintf("%s: %s does not say %q", name, in, words))
		}
	}
	known := map[string]bool{}
	for _, c := range l.Claims {
		if c.ID == "" || known[c.ID] {
			findings = append(findings, fmt.Sprintf("%q is the ID of another claim, or of none", c.ID))
		}
		known[c.ID] = true
		says(c.ID, c.In, c.Says)
		tests, err := testsOf(root, c)
		if err != nil {
			findings = append(findings, err.Error())
		}
		for _, t := range tests {
			if err := exists(root, t); err != nil {
				findings = append(findings, fmt.Sprintf("%s: a test has vanished: %v", c.ID, err))
			}
		}
	}
	for _, o := range l.Open {
		says("open", o.In, o.Says)
	}
	return append(findings, findUncovered(root, l)...)
}

var sentenceEnd = regexp.MustCompile(`\.(?: |$)`)

// findUncovered finds sentences of the introduction of README.md that no claim repeats, and pages without a claim.
func findUncovered(root string, l list) []string {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return []string{err.Error()}
	}
	var findings []string
	_, introduction, _ := strings.Cut(string(text), "\n")
	introduction, _, _ = strings.Cut(introduction, "\n## ")
	for _, sentence := range sentenceEnd.Split(plainText(introduction), -1) {
		if sentence == "" || l.Without["README.md: "+sentence] != "" {
			continue
		}
		if !slices.ContainsFunc(l.Claims, func(c claim) bool { return c.In == "README.md" && strings.Contains(plainText(c.Says), sentence) }) {
			findings = append(findings, "no claim has this sentence of README.md: "+sentence)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return []string{err.Error()}
	}
	for _, page := range pages {
		name := "docs/" + filepath.Base(page)
		claimed := slices.ContainsFunc(l.Claims, func(c claim) bool { return c.In == name })
		switch without := l.Without[name] != ""; {
		case !claimed && !without:
			findings = append(findings, name+" has no claim, and no reason to have none")
		case claimed && without:
			findings = append(findings, name+" has claims: it is not one without")
		}
	}
	for name := range l.Without {
		if name, sentence, ok := strings.Cut(name, ": "); ok {
			if name != "README.md" || !strings.Contains(plainText(introduction), sentence) {
				findings = append(findings, name+" does not say: "+sentence)
			}
		} else if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			findings = append(findings, err.Error())
		}
	}
	slices.Sort(findings)
	return findings
}
