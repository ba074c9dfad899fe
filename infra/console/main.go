// Command console builds the web console. It bundles functions/serveconsole/web with esbuild, a pinned tool, and writes the files that
// serveconsole embeds to functions/serveconsole/assets. The same sources make the same bytes. npm installs the packages of the lock file,
// and each package in the bundles must have a licence of the list below. Run it from the top of the repository. Source: ADR-0030.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
)

const (
	sources = "functions/serveconsole/web"
	assets  = "functions/serveconsole/assets"
	// entry is what the bundler begins with. The pages that are loaded later import it: so the bundler puts it, everything that it imports and
	// start into one script, which is one request before the first row.
	entry = sources + "/shared.ts"
	// start renders the console.
	start = sources + "/main.tsx"
	// examples are the examples of the patch studio, from patchesPage.
	examples    = sources + "/examples.json"
	patchesPage = "docs/patches.md"
	// language is what the studio offers and explains while patches are written, from patchesPage and the description of the API.
	language    = sources + "/studio/language.json"
	description = "functions/discoverapi/openapi/v3/management.json"
	// connectors are the names of the blocks of a configuration's auth that are connectors.
	connectors = sources + "/connectors.json"
	// periods are the periods of the API that the console shows, in days.
	periods = sources + "/periods.json"
)

// licences are the licences of packages that the console may ship.
var licences = []string{"MIT", "ISC"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := install(); err != nil {
		return err
	}
	if err := writeExamples(); err != nil {
		return err
	}
	if err := writeLanguage(); err != nil {
		return err
	}
	if err := writeConnectors(); err != nil {
		return err
	}
	if err := writeJSON(periods, map[string]int{"signerEnding": int(instance.SignerEndingPeriod.Hours() / 24)}); err != nil {
		return err
	}
	if err := command(sources, "node_modules/.bin/tsc"); err != nil {
		return fmt.Errorf("checking the types: %w", err)
	}
	built, err := os.MkdirTemp("", "console-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }()
	meta := filepath.Join(built, "meta.json")
	if err := command("", "go", "tool", "-modfile=test/tools/go.mod", "esbuild",
		entry, sources+"/app.css",
		"--bundle", "--minify", "--splitting", "--format=esm", "--target=es2022,chrome123,firefox120,safari17.5", "--jsx=automatic", "--jsx-import-source=preact",
		"--loader:.svg=dataurl", "--legal-comments=none", "--log-level=warning",
		"--entry-names=[name]-[hash]", "--chunk-names=[name]-[hash]",
		"--outdir="+built, "--metafile="+meta); err != nil {
		return fmt.Errorf("bundling: %w", err)
	}
	text, err := os.ReadFile(meta)
	if err != nil {
		return err
	}
	var bundle metafile
	if err := json.Unmarshal(text, &bundle); err != nil {
		return fmt.Errorf("reading what the bundler has done: %w", err)
	}
	return write(built, &bundle)
}

// metafile is what esbuild writes about its output.
type metafile struct {
	Outputs map[string]struct {
		EntryPoint string `json:"entryPoint"`
		Inputs     map[string]struct {
			BytesInOutput int `json:"bytesInOutput"`
		} `json:"inputs"`
	} `json:"outputs"`
}

// install installs the packages of the lock file, unless they are installed already.
func install() error {
	const done = sources + "/node_modules/.package-lock.json"
	installed, err := os.Stat(done)
	wanted, missing := os.Stat(sources + "/package-lock.json")
	if missing != nil {
		return missing
	}
	if err == nil && !installed.ModTime().Before(wanted.ModTime()) {
		return nil
	}
	if err := command("", "npm", "ci", "--prefix", sources, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return fmt.Errorf("installing the packages of the console: %w", err)
	}
	now := wanted.ModTime()
	return os.Chtimes(done, now, now)
}

func command(folder, name string, args ...string) error {
	if strings.Contains(name, "/") {
		absolute, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		name = absolute
	}
	command := exec.Command(name, args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, output)
	}
	return nil
}

// write replaces the embedded files with the built ones.
func write(built string, bundle *metafile) error {
	files := map[string][]byte{}
	page, err := os.ReadFile(sources + "/index.html")
	if err != nil {
		return err
	}
	// The icon is part of the page and of the style sheet: it is small, and saves a request.
	icon, err := os.ReadFile(sources + "/icon.svg")
	if err != nil {
		return err
	}
	page = bytes.Replace(page, []byte("assets/icon.svg"), []byte("data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(icon)), 1)
	shipped := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(bundle.Outputs)) {
		output := bundle.Outputs[path]
		name := filepath.Base(path)
		body, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return err
		}
		for input, part := range output.Inputs {
			if match := inPackage.FindStringSubmatch(input); match != nil && part.BytesInOutput > 0 {
				shipped[match[1]] = true
			}
		}
		unhashed := hash.ReplaceAllString(name, ".")
		_, first := output.Inputs[start]
		switch {
		case first:
			unhashed = "main.js"
		case output.EntryPoint == entry:
			continue // It imports the script that has start, and does nothing else.
		}
		if first || output.EntryPoint != "" {
			page = bytes.ReplaceAll(page, []byte(`"assets/`+unhashed+`"`), []byte(`"assets/`+name+`"`))
		}
		if files[name+".gz"], err = compress(body); err != nil {
			return err
		}
	}
	files["index.html"] = page
	if files["LICENSES.txt"], err = notices(slices.Sorted(maps.Keys(shipped))); err != nil {
		return err
	}
	if err := os.RemoveAll(assets); err != nil {
		return err
	}
	if err := os.MkdirAll(assets, 0o750); err != nil {
		return err
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(assets, name), body, 0o600); err != nil {
			return err
		}
	}
	return nil
}

var (
	inPackage = regexp.MustCompile(`node_modules/((?:@[^/]+/)?[^/]+)/[^:]*$`)
	hash      = regexp.MustCompile(`-[0-9A-Z]{8}\.`)
)

// compress returns a text as gzip without a time stamp, so that the same text makes the same bytes.
func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(text)
	}
	if err == nil {
		err = writer.Close()
	}
	return out.Bytes(), err
}

// notices returns the licences of the shipped packages with their texts. Errors: a package has a licence that is not in licences, or no
// text of it.
func notices(packages []string) ([]byte, error) {
	if len(packages) == 0 {
		return nil, errors.New("no package is shipped: the bundler has changed what it says")
	}
	var out bytes.Buffer
	out.WriteString("The console contains these packages.\n")
	for _, name := range packages {
		folder := filepath.Join(sources, "node_modules", filepath.FromSlash(name))
		text, err := os.ReadFile(filepath.Join(folder, "package.json"))
		if err != nil {
			return nil, err
		}
		var about struct{ Version, License string }
		if err := json.Unmarshal(text, &about); err != nil {
			return nil, fmt.Errorf("reading the package.json of %s: %w", name, err)
		}
		if !slices.Contains(licences, about.License) {
			return nil, fmt.Errorf("the package %s has the licence %q; use one of %s", name, about.License, strings.Join(licences, ", "))
		}
		texts, err := filepath.Glob(filepath.Join(folder, "LICENSE*"))
		if err != nil || len(texts) == 0 {
			return nil, fmt.Errorf("the package %s has no text of its licence", name)
		}
		if text, err = os.ReadFile(texts[0]); err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\n%s %s (%s)\n\n%s\n", name, about.Version, about.License, bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}

// example is a configuration of the studio with an object of the tenant cluster and one of the host.
type example struct {
	Title         string `json:"title"`
	Configuration string `json:"configuration"`
	Tenant        string `json:"tenant"`
	Host          string `json:"host"`
}

var (
	exampleFile  = regexp.MustCompile("(?ms)^```yaml\n# (\\S+)\n(.*?)^```$")
	recipeBlock  = regexp.MustCompile("(?ms)^```yaml (\\w+)\n(.*?)^```$")
	recipesBegin = "\n## Recipes\n"
)

// writeExamples writes the examples of the studio: the files and the recipes of the page about patches.
func writeExamples() error {
	text, err := os.ReadFile(patchesPage)
	if err != nil {
		return err
	}
	first, recipes, _ := strings.Cut(string(text), recipesBegin)
	files := map[string]string{}
	for _, file := range exampleFile.FindAllStringSubmatch(first, -1) {
		files[file[1]] = file[2]
	}
	all := []example{{Title: "A configuration and a Pod", Configuration: files["vcluster.yaml"], Tenant: files["pod.yaml"], Host: files["host.yaml"]}}
	for _, part := range strings.Split(recipes, "\n### ")[1:] {
		title, _, _ := strings.Cut(part, "\n")
		blocks := map[string]string{}
		for _, block := range recipeBlock.FindAllStringSubmatch(part, -1) {
			blocks[block[1]] = block[2]
		}
		all = append(all, example{Title: title, Configuration: blocks["patches"], Tenant: blocks["tenant"], Host: blocks["host"]})
	}
	for _, example := range all {
		if example.Configuration == "" || example.Tenant == "" || example.Host == "" {
			return fmt.Errorf("%s: %q lacks patches or an object", patchesPage, example.Title)
		}
	}
	return writeJSON(examples, all)
}

// term is a name of the language of patches, and what it means.
type term struct {
	Name string `json:"name"`
	// Signature has the arguments of a function, such as atob(text). Otherwise it is the name.
	Signature string `json:"signature"`
	Help      string `json:"help"`
}

var (
	namesTable = regexp.MustCompile(`(?m)^\| name \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	link       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// namesOf returns the names that expressions can use, from their table on the page about patches.
func namesOf(page string) ([]term, error) {
	table := namesTable.FindStringSubmatch(page)
	if table == nil {
		return nil, fmt.Errorf("%s has no table of names", patchesPage)
	}
	var names []term
	for line := range strings.Lines(table[1]) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 2 {
			return nil, fmt.Errorf("%s: the row %q is no name with its meaning", patchesPage, line)
		}
		help := strings.ReplaceAll(link.ReplaceAllString(cells[1], "$1"), "`", "")
		var first string
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			signature := span[1]
			// After context.tenant.name, .namespace is another field of the same parent.
			if strings.HasPrefix(signature, ".") {
				signature = first[:strings.LastIndexByte(first, '.')] + signature
			}
			first = signature
			name, _, _ := strings.Cut(signature, "(")
			names = append(names, term{Name: name, Signature: signature, Help: help})
		}
	}
	return names, nil
}

// writeLanguage writes the names that expressions can use, and the fields of a patch.
func writeLanguage() error {
	page, err := os.ReadFile(patchesPage)
	if err != nil {
		return err
	}
	names, err := namesOf(string(page))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(description)
	if err != nil {
		return err
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Description string `json:"description"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		return fmt.Errorf("reading %s: %w", description, err)
	}
	fields := []term{}
	for _, block := range []struct{ prefix, kind string }{{"", "SyncPatch"}, {"reference.", "SyncPatchReference"}} {
		properties := api.Components.Schemas["sh.platform.management.v1."+block.kind].Properties
		if len(properties) == 0 {
			return fmt.Errorf("%s does not describe %s", description, block.kind)
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			fields = append(fields, term{Name: block.prefix + name, Signature: name, Help: properties[name].Description})
		}
	}
	return writeJSON(language, map[string][]term{"names": names, "fields": fields})
}

// writeConnectors writes the names of the blocks that are connectors, in the order of the model. The ID of such a connector is the name of
// its block.
func writeConnectors() error {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[model.IdentityProviders]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return writeJSON(connectors, names)
}

func writeJSON(path string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
