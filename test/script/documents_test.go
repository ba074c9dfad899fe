package script_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// notFollowed lists the commands in documents that follow does not run, by their beginning, with the reason.
var notFollowed = map[string]string{
	"docs/audit.md: build/platform audit verify": "the story audit writes a log and verifies it",
	"docs/deploy.md":                        "accounts of clouds and a cluster; test/deploy and the stories in other shapes run what is deployed",
	"docs/doctor.md: build/platform doctor": "examines the Redis of a deployment; the story doctor does it",
	"docs/auditor.md":                       "an auditor with a key of their own; the story auditor walks each section",
	"docs/ci.md":                            "the tokens of jobs; the story jobs walks each section, and test/ci runs the jobs",
	"docs/install.md":                       "the test of infra/release follows the whole page from an archive",
	"docs/kubeconfigs.md":                   "the story kubeconfig runs each block, as a user without other rights",
	"README.md: make run":                   "the runner is what serve starts",
	"README.md: make test":                  "a test does not run all tests",
	"docs/configuration.md: kubectl get config --watch":    "goes on until it is interrupted; the story watch watches",
	"docs/configuration.md: build/platform configure":      "writes into a Redis that a deployment uses; the story configuration does it",
	"docs/people.md: build/platform login --refresh":       "asks a person in a browser; test/signin signs in",
	"docs/people.md: build/platform login HOST":            "asks a person in a browser; test/signin signs in",
	"docs/people.md: kubectl create -f trial.yaml":         "needs a connector; the story people begins a trial, and test/signin ends it",
	"docs/people.md: build/platform people adopt":          "reads the Redis of a deployment; the story adopt does it",
	"docs/security.md: kubectl delete ownedaccesskey NAME": "the story deletion deletes keys",
	"docs/patches.md: kubectl create -f evaluation.yaml":   "the story patches evaluates on the server",
	"docs/kubernetes.md":                                   "the tests of test/helm install the chart",
	"docs/go.md":                                           "the test of test/clients builds and runs the program with the lines of the page",
	"docs/terraform.md":                                    "the test of infra/terraform/provider builds the mirror and runs the example",
	"docs/operate.md":                                      "a Redis that is restored, and processes that start again; the story operate walks each section",
}

// shownCommand is a command in a document, with the lines that the document shows below it.
type shownCommand struct {
	line     string
	expected []string
}

var consoleBlock = regexp.MustCompile("(?ms)^```(console|sh)\n(.*?)^```")

var sectionHeading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)

var namedBlock = regexp.MustCompile("(?ms)^```yaml\n# ([a-z_]+\\.yaml)\n(.*?)^```")

// commandsOf returns the commands of a block. A command continues after a backslash, and to the end of a quoted text.
func commandsOf(block string) []shownCommand {
	var list []shownCommand
	end, open := "", false
	for l := range strings.Lines(block) {
		l = strings.TrimSuffix(l, "\n")
		rest, begins := strings.CutPrefix(l, "$ ")
		switch {
		case open:
			list[len(list)-1].line += "\n" + l
			if end == "" || l == end {
				open, end = end == "" && strings.HasSuffix(l, `\`), ""
			}
		case begins:
			list = append(list, shownCommand{line: rest})
			if at := regexp.MustCompile(`<<'?(\w+)'?$`).FindStringSubmatch(rest); at != nil {
				open, end = true, at[1]
			} else {
				open = strings.HasSuffix(rest, `\`)
			}
		case len(list) > 0:
			list[len(list)-1].expected = append(list[len(list)-1].expected, l)
		default:
			list = append(list, shownCommand{line: l})
		}
	}
	return list
}

// follow runs the commands of all documents in their order, in the folder of the story, and compares their output with the documents. Only
// spans of time may differ, because they differ in every run.
func follow(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	documents, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	ts.Check(err)
	// A block of YAML that begins with the name of a file is that file.
	for _, file := range documents {
		text, err := os.ReadFile(file)
		ts.Check(err)
		writeNamed(ts, string(text))
	}
	used, ran, findings := map[string]bool{}, 0, []string(nil)
	for _, file := range append([]string{filepath.Join(repository, "README.md")}, documents...) {
		name, err := filepath.Rel(repository, file)
		ts.Check(err)
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(file)
		ts.Check(err)
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			var selection []shownCommand
			for _, c := range commandsOf(block[2]) {
				if exception := exceptionFor(name, c.line); exception != "" {
					used[exception] = true
				} else {
					selection = append(selection, c)
				}
			}
			ran += len(selection)
			findings = append(findings, runBlock(ts, name, selection)...)
		}
	}
	for _, exception := range slices.Sorted(maps.Keys(notFollowed)) {
		if !used[exception] {
			findings = append(findings, fmt.Sprintf("no document has the exception %q: take it out", exception))
		}
	}
	if len(findings) > 0 {
		ts.Fatalf("%s", strings.Join(findings, "\n"))
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "%d commands ran\n", ran)
}

// writeNamed writes the files that a document shows.
func writeNamed(ts *testscript.TestScript, document string) {
	for _, block := range namedBlock.FindAllStringSubmatch(document, -1) {
		ts.Check(os.WriteFile(ts.MkAbs(block[1]), []byte(localize(ts, block[2])), 0o600))
	}
}

// localize returns a text of a document, with its addresses and folder replaced by the addresses and the folder of the story.
func localize(ts *testscript.TestScript, text string) string {
	pairs := []string{"/var/log/platform", ts.MkAbs("audit"), "https://127.0.0.1:8443", ts.Getenv("SECURE")}
	if issuer := ts.Getenv("ISSUER"); issuer != "" {
		pairs = append(pairs, "https://token.actions.githubusercontent.com", issuer+"\n  caData: "+ts.ReadFile("issuer.crt64"))
	}
	pairs = append(pairs, "https://platform.example", ts.Getenv("SECURE"), "platform.example", strings.TrimPrefix(ts.Getenv("SECURE"), "https://"))
	return strings.NewReplacer(pairs...).Replace(text)
}

func exceptionFor(document, line string) string {
	for exception := range notFollowed {
		file, beginning, _ := strings.Cut(exception, ": ")
		if file == document && strings.HasPrefix(line, beginning) {
			return exception
		}
	}
	return ""
}

// runBlock runs commands in one shell, so that they share its variables. It returns the differences from the document.
func runBlock(ts *testscript.TestScript, document string, all []shownCommand) []string {
	if len(all) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp(ts.MkAbs("."), "block-")
	ts.Check(err)
	var script strings.Builder
	for i, c := range all {
		fmt.Fprintf(&script, "{ %s\n} > %[2]s/%[3]d.out 2>&1; echo $? > %[2]s/%[3]d.code\n", localize(ts, c.line), folder, i)
	}
	shell := exec.Command("bash", "-c", script.String())
	shell.Dir = ts.MkAbs(".")
	path := ts.Getenv("PATH")
	programs(ts, false, nil)
	defer ts.Setenv("PATH", path)
	for _, variable := range []string{"PATH", "HOME", "KUBECACHEDIR", "KUBECONFIG", "API", "KEY", "KEY_UID", "EDITOR", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "PLATFORM_REDIS_URL", "PLATFORM_SECRET_AUDIT_STORE", "REDIS_CLI",
		"PLATFORM_ID_TOKEN", "PLATFORM_ID_TOKEN_FILE", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"} {
		shell.Env = append(shell.Env, variable+"="+ts.Getenv(variable))
	}
	output, err := shell.CombinedOutput()
	ts.Check(err)
	var findings []string
	for i, c := range all {
		printed := ts.ReadFile(filepath.Join(folder, fmt.Sprint(i)+".out"))
		code := strings.TrimSpace(ts.ReadFile(filepath.Join(folder, fmt.Sprint(i)+".code")))
		refused := slices.ContainsFunc(c.expected, func(l string) bool { return strings.HasPrefix(strings.ToLower(l), "error") })
		if (code == "0") == refused {
			findings = append(findings, fmt.Sprintf("%s: %s\nends with %s and prints:\n%s%s", document, c.line, code, printed, output))
			continue
		}
		var got []string
		for l := range strings.Lines(printed) {
			got = append(got, normalize(l))
		}
		position := 0
		for _, want := range c.expected {
			if want == "" || want == "..." {
				continue
			}
			// Three dots stand for what a reader fills in.
			pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(normalize(want)), `\.\.\.`, ".*") + "$")
			next := slices.IndexFunc(got[position:], pattern.MatchString)
			if next < 0 {
				findings = append(findings, fmt.Sprintf("%s: %s\ndoes not print\n%s\nat its place, but:\n%s", document, c.line, want, printed))
				break
			}
			position += next + 1
		}
	}
	return findings
}

var span = regexp.MustCompile(`\b(\d+(d|h|m|s))+\b`)

// normalize returns a line without the parts that differ in every run.
func normalize(l string) string {
	return strings.Join(strings.Fields(span.ReplaceAllString(l, "TIME")), " ")
}

// walk runs the commands of a section of a document, or of one of its blocks, as follow does for all documents. With -job it runs the commands
// that a block of YAML defines for a job. Subsections are sections of their own. Files that the document shows are written first. A
// redis-server that has left its process in redis.pid ends with the story.
func walk(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	ofJob := len(args) > 0 && args[0] == "-job"
	if ofJob {
		args = args[1:]
	}
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: walk [-job] FILE SECTION [BLOCK]")
	}
	text, err := os.ReadFile(filepath.Join(repository, args[0]))
	ts.Check(err)
	section := sectionOf(string(text), args[1])
	ts.Defer(func() {
		if id, err := os.ReadFile(ts.MkAbs("redis.pid")); err == nil {
			_ = exec.Command("kill", strings.TrimSpace(string(id))).Run()
		}
	})
	if len(args) == 2 {
		writeNamed(ts, section)
	}
	blocks, commandsIn := consoleBlock, commandsOf
	if ofJob {
		blocks, commandsIn = jobBlock, func(block string) []shownCommand {
			found, err := commandsOfJob(block)
			ts.Check(err)
			return found
		}
	}
	var all []shownCommand
	for i, block := range blocks.FindAllStringSubmatch(section, -1) {
		if len(args) == 2 || args[2] == fmt.Sprint(i+1) {
			all = append(all, commandsIn(block[2])...)
		}
	}
	if len(all) == 0 {
		ts.Fatalf("%s has no section %q with commands", args[0], args[1])
	}
	if findings := runBlock(ts, args[0], all); len(findings) > 0 {
		ts.Fatalf("%s", strings.Join(findings, "\n"))
	}
}

// sectionOf returns the text of a section, to the next heading.
func sectionOf(document, heading string) string {
	for _, at := range sectionHeadings(document) {
		if document[at[2]:at[3]] == heading {
			return document[at[1]:at[4]]
		}
	}
	return ""
}

// sectionHeadings returns the positions of the headings of a document and of their texts, and the end of the section. A comment in a block is
// not a heading.
func sectionHeadings(document string) [][5]int {
	hidden := regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllStringFunc(document, func(block string) string { return strings.Repeat(".", len(block)) })
	var headings [][5]int
	for _, at := range sectionHeading.FindAllStringSubmatchIndex(hidden, -1) {
		if len(headings) > 0 {
			headings[len(headings)-1][4] = at[0]
		}
		headings = append(headings, [5]int{at[0], at[1], at[2], at[3], len(document)})
	}
	return headings
}

var jobBlock = regexp.MustCompile("(?ms)^```(yaml)\n(.*?)^```")

// commandsOfJob returns the commands of a job in YAML: a step of GitHub Actions, the script of GitLab CI, the command of a container.
func commandsOfJob(block string) ([]shownCommand, error) {
	var document any
	if err := yaml.Unmarshal([]byte(block), &document); err != nil {
		return nil, err
	}
	var list []shownCommand
	add := func(line any) {
		if text, isText := line.(string); isText {
			list = append(list, shownCommand{line: text})
		}
	}
	var visit func(node any)
	visit = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, each := range node {
				visit(each)
			}
		case map[string]any:
			add(node["run"])
			if lines, isList := node["script"].([]any); isList {
				for _, line := range lines {
					add(line)
				}
			}
			if words, isList := node["command"].([]any); isList {
				add(strings.Trim(fmt.Sprint(words), "[]"))
			}
			for _, key := range slices.Sorted(maps.Keys(node)) {
				visit(node[key])
			}
		}
	}
	visit(document)
	return list, nil
}

// A story that walks through a page walks through each section with commands, in the order of the page.
func TestWalkedPages(t *testing.T) {
	t.Parallel()
	for page, story := range map[string]string{"auditor.md": "auditor", "ci.md": "jobs", "operate.md": "operate"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		script, err := os.ReadFile(filepath.Join("testdata", story+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		rest := string(script)
		for _, at := range sectionHeadings(string(text)) {
			heading := string(text[at[2]:at[3]])
			if !consoleBlock.Match(text[at[1]:at[4]]) {
				continue
			}
			_, after, found := strings.Cut(rest, fmt.Sprintf("walk docs/%s '%s'", page, heading))
			if !found {
				t.Errorf("the story %s does not walk the section %q of %s, or not at its place", story, heading, page)
				continue
			}
			rest = after
		}
	}
}

func TestCommandsOfJob(t *testing.T) {
	t.Parallel()
	for block, want := range map[string][]string{
		"jobs:\n  a:\n    steps:\n    - uses: x\n    - run: b c\n    - run: d\n": {"b c", "d"},
		"a:\n  script:\n  - b\n  - c d\n":                                        {"b", "c d"},
		"kind: Pod\nspec:\n  containers:\n  - command: [a, --b]\n":               {"a --b"},
	} {
		found, err := commandsOfJob(block)
		if err != nil || !slices.EqualFunc(found, want, func(a shownCommand, b string) bool { return a.line == b }) {
			t.Errorf("%q, %v", found, err)
		}
	}
}

// example runs a script of docs/examples, or a program of it, in the environment of the story.
func example(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 1 {
		ts.Fatalf("usage: example NAME")
	}
	path := filepath.Join(repository, "docs", "examples", args[0])
	if strings.HasSuffix(path, ".sh") {
		ts.Check(ts.Exec("sh", path))
		return
	}
	program := ts.MkAbs(args[0])
	ts.Check(goBuild(path, "build", "-o", program, "."))
	ts.Check(ts.Exec(program))
}

func TestCommandsOf(t *testing.T) {
	t.Parallel()
	found := commandsOf("$ a \\\n    b\n$ cat <<EOF\nx: $ y\nEOF\nshown 1s\n$ c\n")
	want := []shownCommand{{line: "a \\\n    b"}, {line: "cat <<EOF\nx: $ y\nEOF", expected: []string{"shown 1s"}}, {line: "c"}}
	if !slices.EqualFunc(found, want, func(a, b shownCommand) bool { return a.line == b.line && slices.Equal(a.expected, b.expected) }) {
		t.Errorf("%q", found)
	}
	if normalize("NAME   EXPIRES in 23h59m  0s ago\n") != normalize("NAME EXPIRES in 1d 15s ago") || normalize("ci 1") == normalize("ci 2") {
		t.Error("spans of time are no spans, or numbers are")
	}
}
