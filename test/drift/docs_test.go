package drift_test

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// paragraph is a piece of a document: text, or a block of code.
type paragraph struct {
	line int
	text string
	code bool
}

// paragraphs returns the pieces of a Markdown document. Each line of a block of code is a piece of its own.
func paragraphs(text string) []paragraph {
	var list []paragraph
	fence, open := "", false
	for i, l := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(l)
		switch {
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence != "":
			list = append(list, paragraph{i + 1, l, true})
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence, open = trimmed[:3], false
		case strings.HasPrefix(l, "    ") && !open:
			list = append(list, paragraph{i + 1, trimmed, true})
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
			open = false
			if trimmed != "" {
				list = append(list, paragraph{i + 1, trimmed, false})
			}
		case open:
			last := &list[len(list)-1]
			last.text += "\n" + l
		default:
			list, open = append(list, paragraph{i + 1, l, false}), true
		}
	}
	return list
}

var (
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	inlineLink   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	definedLink  = regexp.MustCompile(`(?m)^\s*\[[^\]]+\]:\s+<?([^\s>]+)`)
	linkText     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	explicitName = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	scheme       = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// spans returns the code spans of a paragraph, in order.
func (p paragraph) spans() []string {
	var found []string
	for _, span := range codeSpan.FindAllStringSubmatch(p.text, -1) {
		found = append(found, strings.Join(strings.Fields(span[1]), " "))
	}
	return found
}

// slug returns the anchor of a heading, as GitHub makes it.
func slug(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(heading))
}

// anchors returns the anchors of a document, to which links can point.
func anchors(text string) map[string]bool {
	set := map[string]bool{}
	for _, p := range paragraphs(text) {
		if p.code {
			continue
		}
		for _, name := range explicitName.FindAllStringSubmatch(p.text, -1) {
			set[name[1]] = true
		}
		level, heading, ok := strings.Cut(p.text, " ")
		if !ok || strings.Trim(level, "#") != "" || level == "" {
			continue
		}
		base := slug(heading)
		name := base
		for i := 1; set[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		set[name] = true
	}
	return set
}

// deadLinks finds relative links in the documents whose target does not exist.
func deadLinks(p project) []string {
	var findings []string
	for _, name := range p.documents() {
		for _, piece := range paragraphs(p[name]) {
			if piece.code {
				continue
			}
			text := codeSpan.ReplaceAllString(piece.text, "code")
			for _, link := range append(inlineLink.FindAllStringSubmatch(text, -1), definedLink.FindAllStringSubmatch(text, -1)...) {
				if scheme.MatchString(link[1]) {
					continue
				}
				file, anchor, _ := strings.Cut(link[1], "#")
				target := path.Join(path.Dir(name), file)
				switch {
				case file == "":
					target = name
				case strings.HasPrefix(file, "/"):
					target = path.Clean(file[1:])
				}
				if !p.holds(target) {
					findings = append(findings, fmt.Sprintf("%s:%d links to %s, and there is no %s", name, piece.line, link[1], target))
				} else if anchor != "" && !anchors(p[target])[anchor] {
					findings = append(findings, fmt.Sprintf("%s:%d links to %s, and %s has no heading of that name", name, piece.line, link[1], target))
				}
			}
		}
	}
	return findings
}

var (
	looksLikePath = regexp.MustCompile(`^(\.?[\w-]+)(/[\w.*-]+)*/?$`)
	lineNumber    = regexp.MustCompile(`:\d+$`)
)

// deadPaths finds paths of the project in the documents that do not exist. Such a path is in a code span, has a slash, and begins with a folder
// at the top. A star matches anything within one step.
func deadPaths(p project) []string {
	var findings []string
	for _, name := range p.documents() {
		for _, piece := range paragraphs(p[name]) {
			words := piece.spans()
			if piece.code {
				words = strings.Fields(piece.text)
				words = words[:min(1, len(words))]
			}
			for _, word := range words {
				word = lineNumber.ReplaceAllString(strings.TrimPrefix(word, "./"), "")
				first, _, below := strings.Cut(word, "/")
				if !below || !looksLikePath.MatchString(word) || !p.holds(first) || p.holds(word) {
					continue
				}
				if !slices.ContainsFunc(slices.Collect(maps.Keys(p)), func(file string) bool {
					ok, err := path.Match(path.Clean(word), file)
					return ok && err == nil
				}) {
					findings = append(findings, fmt.Sprintf("%s:%d names %s, which is not there", name, piece.line, word))
				}
			}
		}
	}
	return findings
}

var (
	separator  = regexp.MustCompile(`\s*(?:&&|\|\||[;|&])\s*|\s#\s`)
	assignment = regexp.MustCompile(`^\w+=`)
	target     = regexp.MustCompile(`^[a-z][a-z-]*$`)
	rule       = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// commands returns the commands of a line of shell, as words. Words before the program are left out.
func commands(text string) [][]string {
	var list [][]string
	for _, part := range separator.Split(text, -1) {
		words := strings.Fields(part)
		for len(words) > 0 && (words[0] == "$" || words[0] == "exec" || words[0] == "then" || assignment.MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			list = append(list, words)
		}
	}
	return list
}

// shell returns the lines of shell of a file: the code of a document, or a whole script.
func shell(name, text string) []paragraph {
	if !strings.HasSuffix(name, ".md") {
		var found []paragraph
		for i, l := range strings.Split(text, "\n") {
			found = append(found, paragraph{i + 1, l, true})
		}
		return found
	}
	var list []paragraph
	for _, piece := range paragraphs(text) {
		if piece.code {
			list = append(list, piece)
			continue
		}
		for _, span := range piece.spans() {
			list = append(list, paragraph{piece.line, span, true})
		}
	}
	return list
}

// deadTargets finds targets of make in documents and scripts that the Makefile does not have.
func deadTargets(p project) []string {
	targets := map[string]bool{}
	for _, found := range rule.FindAllStringSubmatch(p["Makefile"], -1) {
		targets[found[1]] = true
	}
	var findings []string
	for _, name := range append(p.documents(), p.pathsWith(".ci/", "")...) {
		for _, l := range shell(name, p[name]) {
			for _, words := range commands(l.text) {
				for _, word := range words[1:] {
					if words[0] == "make" && target.MatchString(word) && !targets[word] {
						findings = append(findings, fmt.Sprintf("%s:%d: the Makefile has no target %s", name, l.line, word))
					}
				}
			}
		}
	}
	return findings
}

var flagWord = regexp.MustCompile(`(?:^|[\s"'])--([a-z][a-z-]*)`)

// runner reports whether a command starts the local runner.
func runner(words []string) bool {
	line := strings.Join(words, " ")
	switch words[0] {
	case "platform", "build/platform", "./build/platform":
		return true
	case "make":
		return slices.Contains(words, "run")
	default:
		return strings.HasPrefix(line, "go run ./local") || strings.HasPrefix(line, "go run management.platform.sh/local")
	}
}

// deadFlags finds flags in the documents that the runner does not have. A flag alone in a code span belongs to the program named before it in
// the paragraph, or to the runner if no program is named.
func deadFlags(p project, flags map[string]bool) []string {
	var findings []string
	for _, name := range p.documents() {
		check := func(line int, text string) {
			for _, flag := range flagWord.FindAllStringSubmatch(text, -1) {
				if !flags[flag[1]] {
					findings = append(findings, fmt.Sprintf("%s:%d: the runner has no flag --%s", name, line, flag[1]))
				}
			}
		}
		for _, piece := range paragraphs(p[name]) {
			lines := piece.spans()
			if piece.code {
				lines = []string{piece.text}
			}
			ours := !piece.code
			for _, l := range lines {
				for _, words := range commands(l) {
					alone := strings.HasPrefix(words[0], "--")
					if !alone && strings.Contains(l, " ") {
						ours = runner(words)
					}
					if ours && (alone || runner(words)) {
						check(piece.line, strings.Join(words, " "))
					}
				}
			}
		}
	}
	return findings
}

var (
	helpCommand = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)*)(?: .*)?$`)
	helpFlag    = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z][a-z-]*)`)
)

// runnerFlags returns the flags in the runner's own help. The runner is built once, and prints the help of each of its commands.
func runnerFlags(t *testing.T) (map[string]bool, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "platform")
	if _, err := run("go", "build", "-o", program, "./local"); err != nil {
		return nil, err
	}
	help, err := run(program, "--help")
	if err != nil {
		return nil, err
	}
	flags := map[string]bool{}
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	pages := []string{help}
	for _, command := range helpCommand.FindAllStringSubmatch(list, -1) {
		page, err := run(program, append(strings.Fields(command[1]), "--help")...)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	for _, page := range pages {
		for _, flag := range helpFlag.FindAllStringSubmatch(page, -1) {
			flags[flag[1]] = true
		}
	}
	return flags, nil
}

func TestLinks(t *testing.T) {
	t.Parallel()
	report(t, deadLinks(files(t)))
}

func TestLinksFinds(t *testing.T) {
	t.Parallel()
	expect(t, deadLinks(project{
		"README.md": "# A `b`, c\n\n[x](docs/a.md) [x](docs/a.md#how-it-is) [x](docs/) [x](https://example.com/x) [x](#a-b-c)\n" +
			"[x](docs/gone.md)\n\n[x](docs/a.md#gone) `[x](in-code)`\n\n```\n[x](in-a-block)\n```\n\n[ref]: ./lost.md\n",
		"docs": "", "docs/a.md": "# How it is\n\n## Twice\n\n## Twice\n\n[x](../README.md) [x](a.md) [x](#twice-1) [x](#twice-2) [x](/README.md)\n",
	}), "README.md:3 links to docs/gone.md", "README.md:6 links to docs/a.md#gone", "README.md:12 links to ./lost.md", "docs/a.md:7 links to #twice-2")
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]string{
		"1. The listener: `local/serve.go`": "1-the-listener-localservego",
		"A first walk":                      "a-first-walk",
		"See [this](x.md) -- Über_alles!":   "see-this----über_alles",
	} {
		if got := slug(heading); got != want {
			t.Errorf("the slug of %q is %q, want %q", heading, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	report(t, deadPaths(files(t)))
}

func TestPathsFinds(t *testing.T) {
	t.Parallel()
	expect(t, deadPaths(project{
		"README.md": "`local/main.go`, `local/gone.go`, `local/*.go`, `local/*.md`, `local/`, `/local/x`, `virtual/kubeconfig`\n" +
			"`./local/main.go:12` `local/<operation>/` `local/a b`\n\n```\nlocal/      the runner\nlocal/old/  no more\n```\n",
		"local": "", "local/main.go": "package main",
	}), "README.md:1 names local/gone.go", "README.md:1 names local/*.md", "README.md:6 names local/old/")
}

func TestTargets(t *testing.T) {
	t.Parallel()
	report(t, deadTargets(files(t)))
}

func TestTargetsFinds(t *testing.T) {
	t.Parallel()
	expect(t, deadTargets(project{
		"Makefile":  "run: ## Serve.\n\techo\nlint:\n",
		".ci/run":   "for tool in make git; do\nexec make check\n",
		"README.md": "To make things: `make run ARGS=\"--help\"`, `make` or `make tests`.\n\n```console\n$ CI=1 make lint && make all   # makes it all\n```\n",
	}), "README.md:1: the Makefile has no target tests", "README.md:4: the Makefile has no target all", ".ci/run:2: the Makefile has no target check")
}

func TestFlags(t *testing.T) {
	t.Parallel()
	flags, err := runnerFlags(t)
	if err != nil {
		t.Fatal(err)
	}
	if !flags["help"] || !flags["listen"] || len(flags) < 5 {
		t.Fatalf("the runner says that it has %v: that cannot be all", flags)
	}
	report(t, deadFlags(files(t), flags))
}

func TestFlagsFinds(t *testing.T) {
	t.Parallel()
	expect(t, deadFlags(project{
		"README.md": "`make run ARGS=\"--listen :1 --gone\"` and `--http`, `--lost`.\n\n`kubectl patch --type=merge` or\n`--type=json`.\n\n" +
			"```console\n$ go run ./local serve --old=1\n$ kubectl get keys --watch\n$ X=1 build/platform --listen=:2 | grep --line-buffered x\n```\n",
	}, set("listen", "http", "help")), "README.md:1: the runner has no flag --gone", "README.md:1: the runner has no flag --lost", "README.md:7: the runner has no flag --old")
}
