package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// library is code of other projects in the release.
type library struct {
	name, version, purl string
	// folder has the files of the licence. Empty: they are known by other means.
	folder string
	hashes []cdx.Hash
}

// inventory lists the libraries in the programs of a release.
type inventory struct {
	// libraries by their package URLs.
	libraries map[string]library
	// librariesOf has, for the name of each program, the package URLs of its libraries on any platform.
	librariesOf map[string][]string
}

// console is the folder with the bundle of the web console. Every part but the Terraform provider has it.
const console = "functions/serveconsole/"

// inventory reads the programs themselves, so that it lists every linked library and no other.
func (r release) inventory(ctx context.Context, parts []part) (inventory, error) {
	listed := inventory{libraries: map[string]library{}, librariesOf: map[string][]string{}}
	folders, err := r.folders(ctx)
	if err != nil {
		return listed, err
	}
	packages, err := r.packages()
	if err != nil {
		return listed, err
	}
	for _, p := range parts {
		info, err := p.modules()
		if err != nil {
			return listed, err
		}
		compiler := strings.TrimPrefix(info.GoVersion, "go")
		contained := []library{}
		if p.name != providerName {
			contained = append(contained, packages...)
		}
		contained = append(contained, library{name: "std", version: compiler, purl: "pkg:golang/std@" + compiler, folder: folders["std"]})
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			name := module.Path + "@" + module.Version
			if folders[name] == "" {
				return listed, fmt.Errorf("%s contains %s, which go list does not know", p.name, name)
			}
			contained = append(contained, library{name: module.Path, version: module.Version, purl: "pkg:golang/" + name, folder: folders[name]})
		}
		for _, l := range contained {
			listed.libraries[l.purl] = l
			listed.librariesOf[p.name] = append(listed.librariesOf[p.name], l.purl)
		}
	}
	for name, purls := range listed.librariesOf {
		slices.Sort(purls)
		listed.librariesOf[name] = slices.Compact(purls)
	}
	return listed, nil
}

// folders are the folders of modules' sources on this machine, of the checkout's module and of the provider's.
func (r release) folders(ctx context.Context) (map[string]string, error) {
	byModule := map[string]string{}
	for _, folder := range []string{"", providerModule} {
		listed, err := output(ctx, filepath.Join(r.root, folder), nil, "go", "list", "-m", "-json=Path,Version,Dir", "all")
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
			var m struct{ Path, Version, Dir string }
			if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("listing modules: %w", err)
			}
			if m.Dir != "" {
				byModule[m.Path+"@"+m.Version] = m.Dir
			}
		}
	}
	root, err := output(ctx, r.root, nil, "go", "env", "GOROOT")
	byModule["std"] = strings.TrimSpace(root)
	return byModule, err
}

// packages returns the npm packages in the web console.
func (r release) packages() ([]library, error) {
	text, err := os.ReadFile(filepath.Join(r.root, console, "web", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev                bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("reading the packages of the console: %w", err)
	}
	var libraries []library
	for location, p := range lock.Packages {
		_, name, ok := strings.Cut(location, "node_modules/")
		if !ok || p.Dev {
			continue
		}
		digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil {
			return nil, fmt.Errorf("reading the checksum of %s: %w", name, err)
		}
		libraries = append(libraries, library{
			name: name, version: p.Version, purl: "pkg:npm/" + strings.ReplaceAll(name, "@", "%40") + "@" + p.Version,
			hashes: []cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(digest)}},
		})
	}
	return libraries, nil
}

// bill returns the software bill of materials in the format CycloneDX.
func (r release) bill(listed inventory) ([]byte, error) {
	component := func(name string) cdx.Component {
		purl := "pkg:golang/management.platform.sh@v" + r.version + "#" + name
		return cdx.Component{
			BOMRef: purl, Type: cdx.ComponentTypeApplication, Name: name, Version: r.version, PackageURL: purl,
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		}
	}
	product := component("management.platform.sh")
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &product}
	components, graph := []cdx.Component{}, []cdx.Dependency{}
	programs := []string{}
	for _, name := range slices.Sorted(maps.Keys(listed.librariesOf)) {
		c, depends := component(name), listed.librariesOf[name]
		components, programs = append(components, c), append(programs, c.BOMRef)
		graph = append(graph, cdx.Dependency{Ref: c.BOMRef, Dependencies: &depends})
	}
	graph = append(graph, cdx.Dependency{Ref: product.BOMRef, Dependencies: &programs})
	for _, purl := range slices.Sorted(maps.Keys(listed.libraries)) {
		l := listed.libraries[purl]
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: l.name, Version: l.version, PackageURL: purl}
		if len(l.hashes) > 0 {
			c.Hashes = &l.hashes
		}
		components = append(components, c)
	}
	bom.Components, bom.Dependencies = &components, &graph
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-_.].*)?$`)

// notices returns the licences of everything in some programs of the release. Redistributors must pass them on.
func (r release) notices(listed inventory, programs ...string) ([]byte, error) {
	var out bytes.Buffer
	var purls []string
	for _, name := range programs {
		purls = append(purls, listed.librariesOf[name]...)
	}
	slices.Sort(purls)
	for _, purl := range slices.Compact(purls) {
		l := listed.libraries[purl]
		if l.folder == "" {
			continue
		}
		files, err := os.ReadDir(l.folder)
		if err != nil {
			return nil, err
		}
		texts := 0
		for _, f := range files {
			if f.IsDir() || !licenceFile.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(l.folder, f.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "==== %s %s: %s\n\n%s\n\n", l.name, l.version, f.Name(), bytes.TrimSpace(text))
			texts++
		}
		if texts == 0 {
			return nil, fmt.Errorf("%s has no file with its licence", l.name)
		}
	}
	if !slices.ContainsFunc(purls, func(purl string) bool { return strings.HasPrefix(purl, "pkg:npm/") }) {
		return out.Bytes(), nil
	}
	text, err := os.ReadFile(filepath.Join(r.root, console, "assets", "LICENSES.txt"))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, "==== Packages of npm in the web console\n\n%s\n", bytes.TrimSpace(text))
	return out.Bytes(), nil
}
