package serveconsole

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/webpage/theme"
)

// unavailable is a configuration that cannot be read, as when the state cannot be reached.
type unavailable struct{}

func (unavailable) Refresh(context.Context) error { return errors.New("the state cannot be reached") }

func serve(t testing.TB) func(method, path string, header http.Header) *http.Response {
	t.Helper()
	server := &frame.Server{Configuration: unavailable{}, Env: &platform.Environment{
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
	}}
	handler := server.Mount(Function)
	return func(method, path string, header http.Header) *http.Response {
		request := httptest.NewRequest(method, path, nil)
		request.Header = header
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Result()
	}
}

func read(t testing.TB, from io.Reader) []byte {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var asset = regexp.MustCompile(`="((?:console/)?assets/[\w.-]+)"`)

// The console is served without a credential, a configuration and a state, below the base path and at the root. Its page names
// assets that exist, from every path. Source: ADR-0030.
func TestPages(t *testing.T) {
	t.Parallel()
	ask := serve(t)
	paths := []string{root, root + "/"}
	for page := range pages() {
		paths = append(paths, root+"/"+page)
	}
	for _, base := range []string{"", frame.BasePath} {
		for _, path := range paths {
			first := ask("GET", base+path, nil)
			body, header := read(t, first.Body), first.Header
			if first.StatusCode != http.StatusOK || header.Get("Content-Type") != "text/html; charset=utf-8" || header.Get("Cache-Control") != "no-cache" {
				t.Fatalf("%s: %d %v", base+path, first.StatusCode, header)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": contentPolicy(theme.Look{}), "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if header.Get(name) != want {
					t.Errorf("%s: %s is %q", base+path, name, header.Get(name))
				}
			}
			if header.Get("Permissions-Policy") == "" || header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %v", base+path, header)
			}
			if again := ask("GET", base+path, http.Header{"If-None-Match": {header.Get("ETag")}}); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s again: %d", base+path, again.StatusCode)
			}
			if head := ask("HEAD", base+path, nil); head.StatusCode != http.StatusOK || len(read(t, head.Body)) > 0 {
				t.Errorf("HEAD %s: %d", base+path, head.StatusCode)
			}
			named := asset.FindAllSubmatch(body, -1)
			if len(named) != 2 {
				t.Errorf("%s names %d assets", base+path, len(named))
			}
			folder := base + path[:strings.LastIndex(path, "/")+1]
			for _, one := range named {
				if answer := ask("GET", folder+string(one[1]), nil); answer.StatusCode != http.StatusOK {
					t.Errorf("%s names %s: %d", base+path, one[1], answer.StatusCode)
				}
			}
		}
	}
}

// Assets are stored compressed and named by their content: browsers keep them for ever. A client that does not accept gzip gets
// the same text.
func TestAssets(t *testing.T) {
	t.Parallel()
	ask := serve(t)
	found, err := readAssets()
	if err != nil {
		t.Fatal(err)
	}
	for path, page := range found.files {
		plain, packed := ask("GET", path, nil), ask("GET", path, http.Header{"Accept-Encoding": {"br, gzip"}})
		for _, answer := range []*http.Response{plain, packed} {
			if answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
				answer.Header.Get("Vary") != "Accept-Encoding" || answer.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
			}
		}
		want, got := read(t, plain.Body), read(t, packed.Body)
		if page.Gzipped {
			if packed.Header.Get("Content-Encoding") != "gzip" || !bytes.Equal(got, page.Body) {
				t.Errorf("%s: %v", path, packed.Header)
			}
			text, err := gzip.NewReader(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			got = read(t, text)
		}
		if plain.Header.Get("Content-Encoding") != "" || !bytes.Equal(got, want) {
			t.Errorf("%s: the texts differ: %v", path, plain.Header)
		}
	}
}

// What does not exist is 404 and never the page: an old page that asks for a script of its own version would run a page.
func TestAbsent(t *testing.T) {
	t.Parallel()
	ask := serve(t)
	for _, path := range []string{
		"/console/assets/main-00000000.js", "/console/assets/", "/console/assets", "/console/absent", "/console/keys/", "/console/assets/index.html", "/console/index.html",
		"/console/assets/..%2f..%2findex.html", "/console/web/main.tsx", "/consoles",
	} {
		if answer := ask("GET", path, nil); answer.StatusCode != http.StatusNotFound || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
	}
	// A browser that opens a path gets a page that says so, and names its assets from there.
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}}
	for path, page := range map[string]bool{
		"/console/absent": true, "/console/keys/x": true, "/console/keys/x/y": true, frame.BasePath + "/console/keys/": true, "/console/assets/main-00000000.js": false,
	} {
		answer := ask("GET", path, browser)
		if html := answer.Header.Get("Content-Type") == pageType; answer.StatusCode != http.StatusNotFound || html != page || answer.Header.Get("ETag") != "" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
		for _, one := range regexp.MustCompile(`="((?:\.\./)*assets/[\w.-]+)"`).FindAllSubmatch(read(t, answer.Body), -1) {
			if named := ask("GET", resolve(path, string(one[1])), nil); named.StatusCode != http.StatusOK {
				t.Errorf("%s names %s: %d", path, one[1], named.StatusCode)
			}
		}
	}
	if answer := ask("GET", "/console/absent", http.Header{"Accept": {"application/json, text/html;q=0.5"}}); answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a client of the API: %v", answer.Header)
	}
	if answer := ask("POST", root, nil); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", answer.StatusCode)
	}
}

// resolve returns the path that a relative path names in the document at a path.
func resolve(document, relative string) string {
	return path.Join(document[:strings.LastIndex(document, "/")+1], relative)
}

// Budgets of the console, in bytes as they are sent. Source: ADR-0030.
const (
	firstLoad = 48 << 10
	// A script that is loaded when a page needs it, such as the editor.
	lazyScript = 190 << 10
	allAssets  = 600 << 10
)

// textOf returns the text of an asset.
func textOf(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("assets/" + name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return body
	}
	text, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, text)
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("assets/index.html")
	if err != nil {
		t.Fatal(err)
	}
	// The page loads its style sheet and one script, which loads no other one with it.
	var named []string
	for _, one := range asset.FindAllSubmatch(page, -1) {
		named = append(named, path.Ext(string(one[1])))
	}
	if want := []string{".css", ".js"}; !slices.Equal(named, want) {
		t.Errorf("the page names files that end with %q, want %q", named, want)
	}
	all, first := 0, len(page)
	for _, file := range files {
		about, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += int(about.Size())
		if name, _ := strings.CutSuffix(file.Name(), ".gz"); bytes.Contains(page, []byte(name)) {
			first += int(about.Size())
			if found := regexp.MustCompile(`\b(?:from|import)"\./[^"]+"`).Find(textOf(t, file.Name())); found != nil && strings.HasSuffix(name, ".js") {
				t.Errorf("%s loads another script with it: %s", name, found)
			}
		} else if strings.HasSuffix(name, ".js") && about.Size() > lazyScript {
			t.Errorf("%s takes %d bytes of %d", name, about.Size(), lazyScript)
		}
	}
	if first > firstLoad || all > allAssets {
		t.Errorf("the first page takes %d bytes of %d, and all assets %d of %d", first, firstLoad, all, allAssets)
	}
}

// shipped are the packages that the console may contain. A new one needs a reason.
var shipped = map[string]string{
	"preact":               "draws the page",
	"@preact/signals":      "state that redraws what reads it",
	"@preact/signals-core": "the same, without preact",

	"yaml": "reads the texts of the studio, with the places of fields",

	"@codemirror/autocomplete": "what the editor offers while somebody writes",
	"@codemirror/commands":     "keys and undo of the editor",
	"@codemirror/lang-yaml":    "the language of the editor",
	"@codemirror/language":     "colours of the editor",
	"@codemirror/lint":         "shows mistakes at their places",
	"@codemirror/search":       "Ctrl+F in the editor",
	"@codemirror/state":        "the text of the editor",
	"@codemirror/view":         "the editor",

	"@lezer/common":     "needed by the language",
	"@lezer/highlight":  "needed by the language",
	"@lezer/javascript": "the colours of expressions",
	"@lezer/lr":         "needed by the language",
	"@lezer/yaml":       "the grammar of YAML",

	"@marijn/find-cluster-break": "needed by the editor",
	"crelt":                      "needed by the editor",
	"style-mod":                  "needed by the editor",
	"w3c-keyname":                "needed by the editor",
}

// LICENSES.txt names each package in the scripts, and no package is there that the list does not have.
func TestPackages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("assets/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^(\S+) \d\S* \(\S+\)$`).FindAllStringSubmatch(string(text), -1) {
		found[line[1]] = true
		if shipped[line[1]] == "" {
			t.Errorf("the console contains %s, which is not on the list", line[1])
		}
	}
	for name := range shipped {
		if !found[name] {
			t.Errorf("LICENSES.txt has no %s", name)
		}
	}
}

// unshipped are the folders beside the sources: packages, which LICENSES.txt lists, and unit tests.
var unshipped = map[string]bool{"node_modules": true, "tests": true}

// The policy forbids inline scripts and styles, so the sources have none. Everything that people read is in texts.
func TestSources(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`\sstyle=|\son[a-z]+="|dangerouslySetInnerHTML|innerHTML|eval\(|https?://`)
	literal := regexp.MustCompile(`>\s*[A-Za-z][A-Za-z ,.']{2,}\s*<(?:/|[a-z])`)
	count := 0
	err := filepath.WalkDir("web", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && unshipped[entry.Name()] {
				return filepath.SkipDir
			}
			return err
		}
		if ext := filepath.Ext(path); ext != ".tsx" && ext != ".ts" && ext != ".html" {
			return nil
		}
		count++
		text, err := os.ReadFile(path)
		if found := inline.Find(text); found != nil {
			t.Errorf("%s contains %q", path, found)
		}
		if found := literal.Find(text); found != nil && filepath.Ext(path) == ".tsx" {
			t.Errorf("%s contains the text %q: put it into texts", path, found)
		}
		return err
	})
	if err != nil || count < 10 {
		t.Errorf("read %d sources: %v", count, err)
	}
}

// The first page uses the texts that are loaded with it, and no text is left over. Source: ADR-0030.
func TestTexts(t *testing.T) {
	t.Parallel()
	texts := func(name string) map[string]string {
		content, err := os.ReadFile("web/texts/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		if err := json.Unmarshal(content, &found); err != nil || len(found) < 100 {
			t.Fatalf("%s has %d texts: %v", name, len(found), err)
		}
		return found
	}
	first, later := texts("en.json"), texts("en-pages.json")
	used := map[string]bool{}
	quoted := regexp.MustCompile(`["` + "`" + `]([\w.]+)["` + "`" + `]`)
	apart := regexp.MustCompile(`^web/(studio/|config/|keys/(expiration|lineage|matrix|newkey|owners|prefill|sheet|tokens)\.tsx?|kinds/(auditevent|role)\.ts|clusters/(clusterform|deletecluster|kubeconfig|whocan)\.tsx|parts/(activity|bars|causes|endings|field|firsthour|form|namelist|outcome|owner|requests|scope|scopewords|search|secret|tabs)\.tsx?|pages/(audit|clusters|config|foundkey|people|projects|studio|teams|tokens|trustrules)\.tsx)`)
	err := filepath.WalkDir("web", func(path string, entry os.DirEntry, err error) error {
		if err == nil && unshipped[entry.Name()] {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasPrefix(filepath.Ext(path), ".ts") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range quoted.FindAllSubmatch(source, -1) {
			used[string(name[1])] = true
			if _, found := later[string(name[1])]; found && !apart.MatchString(filepath.ToSlash(path)) {
				t.Errorf("%s uses the text %q, which is loaded with other pages: move it to en.json", path, name[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, label := range pages() {
		used[label] = true
		if first[label] == "" {
			t.Errorf("the page %s has the label %q, which en.json does not have", page, label)
		}
	}
	for name := range later {
		if _, found := first[name]; found {
			t.Errorf("the text %q is there twice", name)
		}
		// The templates and the operators of trust rules make their names.
		if !used[name] && !strings.HasPrefix(name, "trustrules.") {
			t.Errorf("nothing uses the text %q", name)
		}
	}
	for name := range first {
		if !used[name] {
			t.Errorf("nothing uses the text %q", name)
		}
	}
}

// A page has the look of the configuration. What hostile settings try, its policy and its text do not permit. Source: ADR-0030.
func TestLook(t *testing.T) {
	t.Parallel()
	const script = `"></head><script>alert(1)</script>`
	config := &model.ConfigStatus{UISettings: &model.ConfigUISettings{
		LogoURL: "https://cdn.example/logo.png", SmallLogoURL: "javascript:alert(1)", FaviconURL: "https://cdn.example/icon.png?a=" + script,
		PrimaryColor: "#fff}*{background:url(//evil.example)", SidebarColor: "navy", LegalTemplate: script,
		CustomCSS:        []string{"https://cdn.example/own.css", "https://cdn.example; script-src *"},
		CustomJavaScript: []string{"https://cdn.example/own.js"},
		NavBarButtons:    []model.NavBarButton{{Text: script, Link: "https://wiki.example/" + script}, {Text: "run", Link: "javascript:alert(1)"}},
	}}
	server := &frame.Server{Env: &platform.Environment{
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return config },
	}}
	handler := server.Mount(Function)
	ask := func(path string, header http.Header) (*http.Response, string) {
		request := httptest.NewRequest("GET", path, nil)
		request.Header = header
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Result(), answer.Body.String()
	}
	for _, path := range []string{root, root + "/keys", frame.BasePath + root} {
		answer, body := ask(path, nil)
		policy := answer.Header.Get("Content-Security-Policy")
		for _, rule := range []string{
			"script-src 'self';", "style-src 'self' https://cdn.example/own.css;", "img-src 'self' data: https://cdn.example/logo.png https://cdn.example/icon.png;",
			"frame-src 'self';", "connect-src 'self';", "trusted-types 'none'", "frame-ancestors 'none'",
		} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: no %s in %s", path, rule, policy)
			}
		}
		if strings.Contains(policy, "own.js") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "wiki") {
			t.Error(policy)
		}
		if strings.Contains(body, "alert(1)</script>") || strings.Contains(body, "javascript:") || strings.Contains(body, "evil") || strings.Contains(body, "own.js") || strings.Count(body, "<script") != 1 {
			t.Error(body)
		}
		if !strings.Contains(body, `<link rel="icon" href="https://cdn.example/icon.png?a=`) || strings.Contains(body, `rel="stylesheet" href="https:`) {
			t.Error(body)
		}
		theme := regexp.MustCompile(`href="((?:console/)?theme\.css\?\w{8})"`).FindStringSubmatch(body)
		if theme == nil {
			t.Fatal(body)
		}
		sheet, rules := ask(path[:strings.LastIndex(path, "/")+1]+theme[1], nil)
		if sheet.StatusCode != http.StatusOK || sheet.Header.Get("Content-Type") != mediaTypes[".css"] || !strings.HasPrefix(rules, ":root{--bar:#000080;") || strings.Contains(rules, "evil") {
			t.Errorf("%d %s", sheet.StatusCode, rules)
		}
	}
	legal, body := ask(root+"/legal", nil)
	policy := legal.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "frame-ancestors 'self'; sandbox ") || strings.Contains(policy, "allow-scripts") ||
		strings.Contains(policy, "allow-same-origin") || strings.Contains(policy, "allow-forms") || strings.Contains(policy, "allow-top") || !strings.Contains(body, script) {
		t.Errorf("%s\n%s", policy, body)
	}
	// Another look is another page.
	before, _ := ask(root, nil)
	config = &model.ConfigStatus{UISettings: &model.ConfigUISettings{CustomCSS: []string{"https://cdn.example/other.css"}}}
	if after, _ := ask(root, http.Header{"If-None-Match": {before.Header.Get("ETag")}}); after.StatusCode != http.StatusOK {
		t.Errorf("the page of another look: %d", after.StatusCode)
	}
	if gone, _ := ask(root+"/legal", nil); gone.StatusCode != http.StatusNotFound {
		t.Errorf("no legal notice: %d", gone.StatusCode)
	}
	if empty, rules := ask(root+"/theme.css", nil); empty.StatusCode != http.StatusOK || rules != "" {
		t.Errorf("no theme: %d %s", empty.StatusCode, rules)
	}
}

// countingConfiguration is a configuration that counts how often it is brought up to date.
type countingConfiguration struct{ times *int }

func (c countingConfiguration) Refresh(context.Context) error { *c.times++; return nil }

// The page, its colors and the legal notice follow the newest configuration. Assets do not wait for the configuration.
// Source: ADR-0030.
func TestRefresh(t *testing.T) {
	t.Parallel()
	times := 0
	server := &frame.Server{Configuration: countingConfiguration{&times}, Env: &platform.Environment{
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
	}}
	handler := server.Mount(Function)
	for path, want := range map[string]int{
		root: 1, frame.BasePath + root: 1, root + "/keys": 1, root + "/theme.css": 1, frame.BasePath + root + "/legal": 1,
		root + "/assets/LICENSES.txt": 0, root + "/absent": 0,
	} {
		times = 0
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		if times != want {
			t.Errorf("%s: the configuration was read %d times", path, times)
		}
	}
}
