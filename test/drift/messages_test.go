package drift_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// troubleshooting is the page that leads from each message to its cause.
const troubleshooting = "docs/troubleshooting.md"

// sayers are the functions whose text arguments users read, and the fields that hold such texts. A name with a dot before it is a method of any
// value.
var sayers = set(
	"errors.New", "fmt.Errorf", "field.Invalid", "field.Required", "field.Forbidden", "field.TypeInvalid",
	"apierror.BadRequest", "apierror.Broken", "apierror.Conflict", "apierror.Expired", "apierror.Forbidden", "apierror.TooLarge",
	"apierror.TooMany", "apierror.Unauthorized", "apierror.InProgress", "apierror.Unprocessable", "apierror.Upstream", "apierror.UpstreamTimeout",
	"apierrors.NewServiceUnavailable", "apierrors.NewTimeoutError", "failure",
	"scope.RefusalOf", "logins.Throttle", "oauth.NewError", "refusal.BadRequest", "refusal.ByProvider", "refusal.Misconfigured", "refusal.New", "refusal.NotAdmitted",
	"refusal.NotStartedHere", "refusal.RefreshTokenRefused", "NotStartedHere", "New", "NewError", "newRefusal", "badRequestError", "forbiddenError", "errorResponse", "invalid",
	"misconfigured", "notAdmitted", "notStartedHere", "badRequest", "badInput", "bad", "forbidden", "mismatch", "mismatchError", "newValueError", "refuse", "unreadable", "unsuitable",
	"shorten", "Conflict", "wrong", "wrongOperation", "warn", ".complain", ".explain", ".fail", ".finding", ".finds", ".invalid", ".notes", ".required", ".text", ".warn",
	"Message:", "Reason:", "Title:",
)

// assembled are the folders in which users also read concatenated texts and texts in constants.
var assembled = []string{"shared/api/", "shared/auth/", "shared/credentials/", "shared/kinds/", "shared/signin/", "shared/state/store/", "shared/syncpatch/", "local/patch/"}

// silent are the folders whose texts users do not read unchanged: errors in expressions get line and column, and the end of a worker becomes
// the message of its limit.
var silent = []string{"shared/limits/", "shared/syncpatch/expression/", "shared/syncpatch/worker/", "shared/webpage/theme/", "shared/webpage/", "functions/serveconsole/"}

var (
	verb     = regexp.MustCompile(`%[-+#0-9.*]*(\[\d+\])?[a-zA-Z]`)
	wrapped  = regexp.MustCompile(`^(…: )+`)
	sentence = regexp.MustCompile(`[A-Za-z-]{2,}[^…]*? [^…]*?[A-Za-z]{2,}`)
	noText   = regexp.MustCompile(`^(SELECT|INSERT|DELETE FROM|CREATE) |^default-src |;charset=|; charset=|max-age=|^(Basic|Bearer) realm|^GET to |^this address$|^creation time$|^abcdefgh|^short header$|\n.*\n`)
)

// jobScript is the script of jobs. Its function fail prints a text.
const jobScript = "infra/ci/job.sh"

var (
	scriptMessage = regexp.MustCompile(`\bfail (?:"([^"]+)"|'([^']+)')`)
	scriptValue   = regexp.MustCompile(`\$(?:\([^)]*\)|\{[^}]*\}|\w+)`)
)

// messages returns the texts in the code that users can meet, with the position of each text. A value within a text becomes an ellipsis.
func messages(p project) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range p.pathsWith("", ".go") {
		top, _, _ := strings.Cut(name, "/")
		skipped := strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "zz_") || strings.HasSuffix(path.Dir(name), "test") ||
			!slices.Contains([]string{"functions", "shared", "infra", "local"}, top) || strings.HasPrefix(name, "infra/") &&
			!strings.HasPrefix(name, "infra/lambda/") && !strings.HasPrefix(name, "infra/framework/") ||
			slices.ContainsFunc(silent, func(folder string) bool { return strings.HasPrefix(name, folder) })
		if skipped {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, name, p[name], 0)
		if err != nil {
			return nil, err
		}
		all := slices.ContainsFunc(assembled, func(folder string) bool { return strings.HasPrefix(name, folder) })
		note := func(e ast.Expr) {
			text, ok := constant(e)
			text = wrapped.ReplaceAllString(strings.TrimSpace(verb.ReplaceAllString(text, "…")), "")
			if ok && sentence.MatchString(text) && !noText.MatchString(text) {
				found[text] = positions.Position(e.Pos()).String()
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				full, method := callee(n.Fun)
				if sayers[full] || sayers[method] || all && full == "fmt.Sprintf" {
					for _, argument := range n.Args {
						note(argument)
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && sayers[key.Name+":"] {
					note(n.Value)
				}
			case *ast.ValueSpec:
				if all && len(n.Names) == len(n.Values) {
					for i, value := range n.Values {
						if at := n.Names[i]; at.Obj != nil && at.Obj.Kind == ast.Con {
							note(value)
						}
					}
				}
			}
			return true
		})
	}
	for i, line := range strings.Split(p[jobScript], "\n") {
		for _, match := range scriptMessage.FindAllStringSubmatch(line, -1) {
			found[scriptValue.ReplaceAllString(match[1]+match[2], "…")] = fmt.Sprintf("%s:%d", jobScript, i+1)
		}
	}
	return found, nil
}

// callee returns the name of the called function, and the name of the method with a dot before it.
func callee(e ast.Expr) (full, method string) {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name, ""
	case *ast.IndexExpr:
		return callee(e.X)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name, "." + e.Sel.Name
		}
		return "", "." + e.Sel.Name
	default:
		return "", ""
	}
}

// constant returns a text of the source. An operand that is not a text is a value.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.BinaryExpr:
		left, isLeft := constant(e.X)
		right, isRight := constant(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = "%v"
		}
		if !isRight {
			right = "%v"
		}
		return left + right, true
	default:
		return "", false
	}
}

// explainedMessages returns the beginnings of messages in the first cells of the page's tables. Three dots stand for a value.
func explainedMessages(text string) map[string]int {
	positions := map[string]int{}
	for i, l := range strings.Split(text, "\n") {
		cells := strings.Split(l, " | ")
		if !strings.HasPrefix(l, "| `") || len(cells) < 3 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			positions[span[1]] = i + 1
		}
	}
	return positions
}

// findUnexplained finds messages of the code of which the page lacks the beginning, and beginnings on the page of no message.
func findUnexplained(p project) ([]string, error) {
	positions, err := messages(p)
	if err != nil {
		return nil, err
	}
	var findings []string
	lines, used, patterns := explainedMessages(p[troubleshooting]), map[string]bool{}, map[string]*regexp.Regexp{}
	for message, line := range lines {
		patterns[message] = regexp.MustCompile(`^(?s:` + strings.ReplaceAll(regexp.QuoteMeta(message), `\.\.\.`, ".*") + `)`)
		if len(strings.ReplaceAll(message, "...", "")) < 5 {
			findings = append(findings, fmt.Sprintf("%s:%d: %q is every message", troubleshooting, line, message))
		}
	}
	for _, text := range slices.Sorted(maps.Keys(positions)) {
		explained := false
		for message, pattern := range patterns {
			if pattern.MatchString(text) {
				explained, used[message] = true, true
			}
		}
		if !explained {
			findings = append(findings, fmt.Sprintf("%s: no message in %s fits %q: give it a line, or an existing line its text", positions[text], troubleshooting, strings.ReplaceAll(text, "…", "...")))
		}
	}
	for _, message := range slices.Sorted(maps.Keys(lines)) {
		if !used[message] {
			findings = append(findings, fmt.Sprintf("%s:%d: no code says %q", troubleshooting, lines[message], message))
		}
	}
	return findings, nil
}

var reason = regexp.MustCompile(`metav1\.StatusReason(\w+)|apierrors\.New(Unauthorized|BadRequest|Forbidden|Conflict|NotFound|AlreadyExists|Invalid|ResourceExpired|TimeoutError|ServiceUnavailable)\(`)

// Each message that a user can meet leads to a line of the page, and each line to a message. Source: docs/style.md.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	p := files(t)
	findings, err := findUnexplained(p)
	if err != nil {
		t.Fatal(err)
	}
	said, err := messages(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) < 700 {
		t.Errorf("the code has %d messages: that cannot be all", len(said))
	}
	report(t, findings)
}

// Each reason of a Status has its line.
func TestReasons(t *testing.T) {
	t.Parallel()
	p := files(t)
	constructors := map[string]string{"ResourceExpired": "Expired", "TimeoutError": "Timeout"}
	for _, name := range p.pathsWith("shared/model/apierror/", ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range reason.FindAllStringSubmatch(p[name], -1) {
			wanted := match[1] + match[2]
			if other := constructors[wanted]; other != "" {
				wanted = other
			}
			if !regexp.MustCompile(`(?m)^\| \d{3} ` + wanted + ` \|`).MatchString(p[troubleshooting]) {
				t.Errorf("%s has no line for the reason %s", troubleshooting, wanted)
			}
		}
	}
}

func TestTroubleshootingFinds(t *testing.T) {
	t.Parallel()
	findings, err := findUnexplained(project{
		troubleshooting: "| message | cause | do |\n|---|---|---|\n| `no key`, `the ... is old` | a | b |\n| `is gone` | a | b |\n| `... x` | a | b |\n",
		"local/a.go": "package a\n\nfunc a(name string) {\n\t_ = fmt.Errorf(\"no key %q\", name)\n\t_ = errors.New(\"the \" + name + \" is old\")\n" +
			"\t_ = errors.New(\"nobody explains this\")\n\tlog.Info(\"nobody has to explain this\")\n\t_ = a.Page{Title: \"Nor this title\"}\n}\n",
		"local/a_test.go":   "package a\n\nvar _ = errors.New(\"only a test says this\")\n",
		"shared/auth/b.go":  "package auth\n\nconst refused = \"the bearer is unknown here\"\n",
		"shared/model/b.go": "package model\n\nconst name = \"no message at all\"\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, findings, `"... x" is every message`, `"Nor this title"`, `"nobody explains this"`, `"the bearer is unknown here"`, `no code says "... x"`, `no code says "is gone"`)
}
