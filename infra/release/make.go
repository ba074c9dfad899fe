package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// environment has the variables on which the bytes of a program depend, besides the source and the version of Go.
var environment = []string{
	"CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
}

// build compiles the program of a folder of a module, and returns its bytes. module is the folder of the go.mod; empty: the top of the checkout.
func (r release) build(ctx context.Context, cache string, p platform, target, module, folder string, flags ...string) ([]byte, error) {
	env := append(slices.Clone(environment), "GOOS="+p.system, "GOARCH="+p.processor)
	if cache != "" {
		env = append(env, "GOCACHE="+cache)
	}
	arguments := append([]string{"build", "-trimpath", "-o", target}, flags...)
	if _, err := output(ctx, filepath.Join(r.root, module), env, "go", append(arguments, folder)...); err != nil {
		return nil, err
	}
	return os.ReadFile(target)
}

// make writes a whole release into a new folder. cache is the cache of the compiler; empty: the user's cache.
func (r release) make(ctx context.Context, o options, folder, cache string) error {
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	programs, servers, providers := map[platform][]byte{}, map[platform][]byte{}, map[platform][]byte{}
	var parts []part
	for _, p := range o.Platform {
		fmt.Printf("building platform for %s\n", p)
		if programs[p], err = r.build(ctx, cache, p, filepath.Join(work, "platform"), "", "./local",
			"-buildvcs=true", "-ldflags", "-s -w -X main.version="+r.version); err != nil {
			return err
		}
		parts = append(parts, part{"platform", p, programs[p]})
		fmt.Printf("building the Terraform provider for %s\n", p)
		if providers[p], err = r.build(ctx, cache, p, filepath.Join(work, "provider"), providerModule, ".",
			"-buildvcs=true", "-ldflags", "-s -w -X main.version="+r.version); err != nil {
			return err
		}
		parts = append(parts, part{providerName, p, providers[p]})
		if p.system != "linux" {
			continue
		}
		fmt.Printf("building the functions for %s\n", p)
		// Like the programs for Lambda, functions without changes are the same in the next release.
		if servers[p], err = r.build(ctx, cache, p, filepath.Join(work, "server"), "", "./infra/framework/server", "-buildvcs=false", "-ldflags", "-s -w"); err != nil {
			return err
		}
		parts = append(parts, part{"functions", p, servers[p]})
	}
	files := map[string][]byte{"release-notes.md": []byte(r.notes)}
	listed, err := r.inventory(ctx, parts)
	if err != nil {
		return err
	}
	if files["platform_"+r.version+".cdx.json"], err = r.bill(listed); err != nil {
		return err
	}
	notices, err := r.notices(listed, "platform", "functions")
	if err != nil {
		return err
	}
	companions, err := r.companions(notices)
	if err != nil {
		return err
	}
	for p, program := range programs {
		name := "platform_" + r.version + "_" + p.String()
		if files[name+".tar.gz"], err = r.archive(name, program, companions); err != nil {
			return err
		}
	}
	ownNotices, err := r.notices(listed, providerName)
	if err != nil {
		return err
	}
	ofProvider, err := r.provider(providers, ownNotices)
	if err != nil {
		return err
	}
	maps.Copy(files, ofProvider)
	for name, image := range map[string]image{"platform": r.runner(programs), "functions": r.functions(servers)} {
		if len(servers) > 0 {
			if files[name+"_"+r.version+"_image.tar"], err = r.pack(filepath.Join(work, name+"-image"), name, image, notices); err != nil {
				return err
			}
		}
	}
	if o.Lambda {
		if err := r.lambda(ctx, cache, files); err != nil {
			return err
		}
	}
	if files["platform.yaml"], err = r.plugin(o, files); err != nil {
		return err
	}
	if files["platform_"+r.version+"_chart.tgz"], err = r.chart(); err != nil {
		return err
	}
	return write(folder, files)
}

// lambda adds the programs for AWS Lambda, in the folders in which Terraform looks for them.
func (r release) lambda(ctx context.Context, cache string, files map[string][]byte) error {
	fmt.Println("building the functions for AWS Lambda")
	env := slices.Clone(environment)
	if cache != "" {
		env = append(env, "GOCACHE="+cache)
	}
	if _, err := output(ctx, r.root, env, "go", "run", "./infra/shells", "build", "--architecture=arm64", "--architecture=amd64"); err != nil {
		return err
	}
	folders, err := os.ReadDir(filepath.Join(r.root, "infra", "lambda", "functions"))
	if err != nil {
		return err
	}
	for _, processor := range []string{"amd64", "arm64"} {
		var entries []entry
		for _, f := range folders {
			name := path.Join(f.Name(), processor, "bootstrap.zip")
			text, err := os.ReadFile(filepath.Join(r.root, "build", "lambda", name))
			if err != nil {
				return err
			}
			entries = append(entries, entry{path: path.Join("lambda", name), text: text, mode: 0o644})
		}
		if files["functions_"+r.version+"_lambda_"+processor+".tar"], err = tarOf(entries, r.time); err != nil {
			return err
		}
	}
	return nil
}

// chart returns the Helm chart, with the version of the release as its own and as the version of its application.
func (r release) chart() ([]byte, error) {
	entries, err := entriesOf(os.DirFS(filepath.Join(r.root, "infra", "helm", "platform")), "platform")
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entries[i].path != "platform/Chart.yaml" {
			continue
		}
		var about map[string]any
		if err := yaml.Unmarshal(entries[i].text, &about); err != nil {
			return nil, fmt.Errorf("reading Chart.yaml: %w", err)
		}
		about["version"], about["appVersion"] = r.version, r.version
		if entries[i].text, err = yaml.Marshal(about); err != nil {
			return nil, err
		}
	}
	text, err := tarOf(entries, r.time)
	if err != nil {
		return nil, err
	}
	return compress(text)
}

// companions are the files of an archive besides the program.
func (r release) companions(notices []byte) ([]entry, error) {
	entries := []entry{{path: "THIRD-PARTY-NOTICES.txt", text: notices, mode: 0o644}}
	for target, source := range map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"completions/platform.bash": "local/completion/scripts/platform.bash",
		"completions/_platform":     "local/completion/scripts/platform.zsh",
		"completions/platform.fish": "local/completion/scripts/platform.fish",
	} {
		text, err := os.ReadFile(filepath.Join(r.root, source))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{path: target, text: text, mode: 0o644})
	}
	documents, err := entriesOf(os.DirFS(filepath.Join(r.root, "docs")), "docs")
	return append(entries, documents...), err
}

// The kubectl plugin and the program that completes its command lines. krew unpacks no links, and kubectl runs a plugin
// by its name alone.
const (
	pluginScript = `#!/bin/sh
# kubectl platform is the program platform, which stands beside this file or on PATH.
here=$(dirname -- "$0")
if [ -x "$here/platform" ]; then exec "$here/platform" "$@"; fi
exec platform "$@"
`
	pluginCompletion = `#!/bin/sh
# kubectl asks this program for the words that can follow kubectl platform.
here=$(dirname -- "$0")
if [ -x "$here/platform" ]; then exec "$here/platform" completion words -- "$@"; fi
exec platform completion words -- "$@"
`
)

func (r release) archive(name string, program []byte, companions []entry) ([]byte, error) {
	entries := append([]entry{
		{path: "platform", text: program, mode: 0o755},
		{path: "kubectl-platform", text: []byte(pluginScript), mode: 0o755},
		{path: "kubectl_complete-platform", text: []byte(pluginCompletion), mode: 0o755},
	}, companions...)
	for i := range entries {
		entries[i].path = path.Join(name, entries[i].path)
	}
	text, err := tarOf(entries, r.time)
	if err != nil {
		return nil, err
	}
	return compress(text)
}

func (r release) plugin(o options, files map[string][]byte) ([]byte, error) {
	var platforms []any
	for _, p := range o.Platform {
		name := "platform_" + r.version + "_" + p.String()
		sum := sha256.Sum256(files[name+".tar.gz"])
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.system, "arch": p.processor}},
			"uri":      o.Downloads + "/v" + r.version + "/" + name + ".tar.gz",
			"sha256":   hex.EncodeToString(sum[:]),
			"files":    []any{map[string]any{"from": name + "/platform", "to": "."}, map[string]any{"from": name + "/LICENSE", "to": "."}},
			"bin":      "platform",
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": map[string]any{"name": "platform"},
		"spec": map[string]any{
			"version": "v" + r.version, "homepage": "https://management.platform.sh",
			"shortDescription": "Sign in to a platform of virtual clusters",
			"description": "Signs in to a platform of virtual clusters, gets tokens and kubeconfigs,\n" +
				"and tries sync patches. It also serves the whole API on this machine.\n",
			"platforms": platforms,
		},
	})
}

// write writes the files of a release, and their checksums as sha256sum reads them.
func write(folder string, files map[string][]byte) error {
	var sums bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return os.WriteFile(filepath.Join(folder, "checksums.txt"), sums.Bytes(), 0o644) //nolint:gosec // for everybody to read
}

// checksums computes the checksum of each file in a folder.
func checksums(folder string) (map[string]string, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, f := range found {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		sums[f.Name()] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return sums, nil
}

// keys returns the keys of two maps, each once.
func keys(one, two map[string]string) iter.Seq[string] {
	both := maps.Clone(one)
	maps.Copy(both, two)
	return maps.Keys(both)
}

// part is a program of a release.
type part struct {
	name     string
	platform platform
	program  []byte
}

// modules returns the modules in a program.
func (p part) modules() (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.program))
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s for %s: %w", p.name, p.platform, err)
	}
	return info, nil
}
