package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

const pageFile = "docs/evidence.md"

// origin describes the run behind the counts of a page: the commit and the machine.
type origin struct{ commit, date, machine string }

// render returns the page. Without outcomes, the page has no counts.
func render(root string, l list, m origin, results map[aTest]*outcome) (string, error) {
	var page strings.Builder
	line := func(text string, values ...any) { fmt.Fprintf(&page, text+"\n", values...) }
	line("<!-- make evidence writes this page. -->")
	line("# Evidence\n")
	line("What README.md and the documents claim, and the tests that show it. `make evidence` runs the tests of this page and writes it. It fails,")
	line("and leaves the page alone, if one of them fails, is skipped or has vanished. A test compares the words of each claim with its")
	line("document, so a claim that is taken back or changed has to be looked at here.\n")
	line("%s\n", madeLine(m))
	line("`make evidence ARGS=ID` runs the tests of one claim, and `go test -count=1 -timeout 60m -run '^NAME$' .` in a folder one test. Nothing is")
	line("fetched from a network while tests run. In a new clone, `make test` fetches the modules and installs the programs before. A test with")
	line("subtests counts by its subtests. A story counts once for each way in which the API is deployed ([ADR-0010](adr/0010-shells.md)). Some tests")
	line("count cases of their own, such as vectors. A dash says that the tests have not run since the claim was written. Where no judge is named,")
	line("the tests compare with this project's own rules. A test without a folder is in the folder before it.\n")
	line("| ID | claim | tests | judged by | passed |")
	line("|---|---|---|---|---|")
	for _, c := range l.Claims {
		tests, err := testsOf(root, c)
		if err != nil {
			return "", err
		}
		says := strings.ReplaceAll(strings.Join(strings.Fields(c.Says), " "), "|", "\\|")
		line("| `%s` | %s ([%s](%s)) | %s | %s | %s |", c.ID, strings.TrimSuffix(links.ReplaceAllString(says, "$1"), "."),
			filepath.Base(c.In), linkTo(c.In), testsCell(c, tests), c.Judge, passedCell(tests, results))
	}
	line("\n## What nobody has run\n")
	for _, o := range l.Open {
		line("- %s ([%s](%s))", o.What, filepath.Base(o.In), linkTo(o.In))
	}
	line("\nFigures of speed, memory and size are measured, and no test holds them: they differ from machine to machine.")
	line("[evidence/speed.md](evidence/speed.md) has them beside those of other servers (`make bench`, `make speed`), and")
	line("[scale.md](scale.md#measured) names the command for each of the others.")
	return page.String(), nil
}

func madeLine(m origin) string {
	if m.commit == "" {
		return "The counts are of no commit."
	}
	return fmt.Sprintf("The counts are of commit `%s`, on %s, with %s.", m.commit, m.date, m.machine)
}

// linkTo returns the relative path from the page to a document.
func linkTo(document string) string {
	if below, ok := strings.CutPrefix(document, "docs/"); ok {
		return below
	}
	return "../" + document
}

// namesTables reports whether the document of a claim names the tests itself, in its tables.
func namesTables(c claim) bool { return len(c.Tests) == 1 && tables.MatchString(c.Tests[0]) }

// testsCell returns the tests of a claim, or the tables that name the tests, so that the page does not change with the tables. A folder stands
// before the first of its tests.
func testsCell(c claim, tests []aTest) string {
	if namesTables(c) {
		return fmt.Sprintf("those in [its tables](%s)", linkTo(c.In))
	}
	var names []string
	for i, t := range tests {
		if i > 0 && t.story() == "" && tests[i-1].story() == "" && tests[i-1].folder == t.folder {
			names = append(names, t.name)
		} else {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, ", ")
}

// passedCell returns the number of passed cases.
func passedCell(tests []aTest, results map[aTest]*outcome) string {
	if results == nil {
		return "-"
	}
	passed, skipped, counts := 0, 0, []string(nil)
	for _, t := range tests {
		passed += results[t].Passed
		skipped += results[t].Skipped
		counts = append(counts, results[t].Counted...)
	}
	text := fmt.Sprint(passed)
	if skipped > 0 {
		text += fmt.Sprintf("; %d not applicable", skipped)
	}
	if len(counts) > 0 {
		text += "; " + strings.Join(counts, ", ")
	}
	return text
}

var (
	madeIn   = regexp.MustCompile(`(?m)^The counts are of .*$`)
	passedIn = regexp.MustCompile("(?m)^(\\| `.*) \\| ([^|]+) \\|$")
)

// form returns a page without the parts that differ between two runs.
func form(page string) string {
	return passedIn.ReplaceAllString(madeIn.ReplaceAllString(page, madeLine(origin{})), "$1 | - |")
}

// withCounts returns a new page with the commit of an earlier page, and with its counts for the rows that have not changed.
func withCounts(form, earlier string) string {
	counts := map[string]string{}
	for _, row := range passedIn.FindAllStringSubmatch(earlier, -1) {
		counts[row[1]] = row[2]
	}
	if line := madeIn.FindString(earlier); line != "" {
		form = madeIn.ReplaceAllLiteralString(form, line)
	}
	return passedIn.ReplaceAllStringFunc(form, func(row string) string {
		text := passedIn.FindStringSubmatch(row)[1]
		if count, ok := counts[text]; ok {
			return text + " | " + count + " |"
		}
		return row
	})
}
