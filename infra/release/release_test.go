package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// here is the platform of this machine.
var here = platform{runtime.GOOS, runtime.GOARCH}

// The version is the newest one of the changelog at its tag, and a snapshot anywhere else.
func TestVersion(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\n## Unreleased\n\n%s## 0.2.10 (2026-11-23)\n\n- New.\n\n## 0.2.9 (2026-01-02)\n\n- Old.\n"
	for _, row := range []struct {
		about, changelog, tag, version, notes, wrong string
	}{
		{"a release", fmt.Sprintf(changelog, ""), "v0.2.10", "0.2.10", "- New.\n", ""},
		{"a snapshot", fmt.Sprintf(changelog, "- Next.\n\n"), "", "0.2.11-next.g0123456789", "- Next.\n", ""},
		{"the tag of another version", fmt.Sprintf(changelog, "- Next.\n\n"), "v0.2.9", "0.2.11-next.g0123456789", "- Next.\n", ""},
		{"unreleased entries at the tag", fmt.Sprintf(changelog, "- Next.\n\n"), "v0.2.10", "", "", "under Unreleased"},
		{"no version", "# Changelog\n\n## Unreleased\n\n## 0.2 (2026-01-02)\n", "", "", "", "names no version"},
		{"no heading for what is next", "# Changelog\n\n## 0.2.0 (2026-01-02)\n", "", "", "", "no heading"},
	} {
		version, notes, err := versionOf(row.changelog, []string{row.tag}, "0123456789abcdef")
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: %v", row.about, err)
		} else if version != row.version || notes != row.notes {
			t.Errorf("%s: %q, %q", row.about, version, notes)
		}
	}
}

// The versions of the changelog fall, their days do not rise, and every heading is one of them.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := versionOf(string(text), nil, "0123456789"); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range misplaced(string(text)) {
		t.Error(wrong)
	}
	if found := misplaced("# C\n\n## Unreleased\n\n## 0.9.0 (2026-01-01)\n\n## 0.10.0 (2026-01-02)\n\n## 0.1 (soon)\n"); len(found) != 3 {
		t.Errorf("three mistakes are %q", found)
	}
}

// misplaced finds mistakes in the headings of a changelog.
func misplaced(changelog string) []string {
	var mistakes []string
	heading := regexp.MustCompile(`^## (\d+)\.(\d+)\.(\d+) \((\d{4}-\d{2}-\d{2})\)$`)
	above, day := []string(nil), "9999"
	for l := range strings.Lines(changelog) {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "## ") || l == "## Unreleased" && above == nil {
			continue
		}
		parts := heading.FindStringSubmatch(l)
		if parts == nil {
			mistakes = append(mistakes, fmt.Sprintf("%q is not a version with a day", l))
			continue
		}
		var version []string
		for _, number := range parts[1:4] {
			version = append(version, fmt.Sprintf("%09s", number))
		}
		if above != nil && slices.Compare(version, above) >= 0 {
			mistakes = append(mistakes, fmt.Sprintf("%q stands below a version that is not newer", l))
		}
		if _, err := time.Parse(time.DateOnly, parts[4]); err != nil || parts[4] > day {
			mistakes = append(mistakes, fmt.Sprintf("%q is after the day of the version above it, or no day", l))
		}
		above, day = version, parts[4]
	}
	return mistakes
}

// Files that differ from the commit are in no release.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	folder := clone(t, "changed")
	if err := os.WriteFile(filepath.Join(folder, "new.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "out")
	err := run(t.Context(), options{Root: folder, Output: output})
	if _, there := os.Stat(output); err == nil || !strings.Contains(err.Error(), "new.txt") || there == nil {
		t.Errorf("a new file: %v, %v", err, there)
	}
	if err := os.Remove(filepath.Join(folder, "new.txt")); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), options{Root: folder, Output: output, Tag: "v99.0.0"}); err == nil || !strings.Contains(err.Error(), "v99.0.0") {
		t.Errorf("a wrong tag: %v", err)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for folder, text := range map[string]string{one: "a", two: "b"} {
		if err := write(folder, map[string][]byte{"same": []byte("x"), "other": []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(two, map[string][]byte{"more": nil}); err != nil {
		t.Fatal(err)
	}
	err := compare(one, two)
	for _, name := range []string{"other", "more", "checksums.txt"} {
		if err == nil || !strings.Contains(err.Error(), "two builds of "+name+" differ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "same") {
		t.Error(err)
	}
}

// clone is a clone of the commit of this checkout, in a folder of the name.
func clone(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	if _, err := output(t.Context(), root, nil, "git", "clone", "--quiet", ".", folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The same commit makes the same bytes in two folders. make release shows that for all platforms, and for the compiler
// as well: here the compiler works once, and the linker and the packing steps work twice. The files of the release are
// then used: the images are read by their library, and the archive is unpacked and followed on a machine without Go.
func TestRelease(t *testing.T) {
	t.Parallel()
	releaseFolder := filepath.Join(t.TempDir(), "release")
	if err := run(t.Context(), options{
		Root: clone(t, "a folder with another path"), Output: releaseFolder, Downloads: "https://example.com/d", Platform: []platform{here}, Twice: true, Cache: true,
	}); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(releaseFolder, "platform_*_"+here.String()+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives: %v, %v", archives, err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archives[0]), "platform_"), "_"+here.String()+".tar.gz")
	t.Run("bill of materials", func(t *testing.T) { checkBill(t, releaseFolder, version) })
	t.Run("krew", func(t *testing.T) { checkPlugin(t, releaseFolder, archives[0], version) })
	t.Run("provider", func(t *testing.T) { checkProvider(t, releaseFolder, version) })
	t.Run("chart", func(t *testing.T) { checkChart(t, releaseFolder, version) })
	t.Run("archive", func(t *testing.T) { followArchive(t, releaseFolder, archives[0], version) })
	if here.system == "linux" {
		t.Run("images", func(t *testing.T) { checkImages(t, releaseFolder, version) })
	}
}

func checkBill(t *testing.T, releaseFolder, version string) {
	text, err := os.ReadFile(filepath.Join(releaseFolder, "platform_"+version+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{bom.Metadata.Component.BOMRef: true}
	for _, c := range *bom.Components {
		if known[c.BOMRef] || c.Version == "" || c.PackageURL == "" {
			t.Errorf("%s is there twice or has no version: %+v", c.BOMRef, c)
		}
		known[c.BOMRef] = true
	}
	counted := map[string]int{}
	for _, d := range *bom.Dependencies {
		if !known[d.Ref] {
			t.Errorf("%s depends on something and is no component", d.Ref)
		}
		for _, on := range *d.Dependencies {
			if !known[on] {
				t.Errorf("%s depends on %s, which is no component", d.Ref, on)
			}
			_, name, _ := strings.Cut(d.Ref, "#")
			counted[name+" "+strings.SplitN(on, "/", 2)[0]]++
		}
	}
	// Every module that go version finds in the program is there.
	listed, err := output(t.Context(), releaseFolder, nil, "go", "version", "-m", extract(t, releaseFolder, version))
	if err != nil {
		t.Fatal(err)
	}
	modules := 0
	for _, dep := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(listed, -1) {
		modules++
		if !known["pkg:golang/"+dep[1]+"@"+dep[2]] {
			t.Errorf("%s %s is linked and not listed", dep[1], dep[2])
		}
	}
	if modules < 10 || counted["platform pkg:golang"] != modules+1 || counted["platform pkg:npm"] == 0 {
		t.Errorf("%d modules and the standard library are %v", modules, counted)
	}
}

// extract returns the path of the program of the archive, unpacked.
func extract(t *testing.T, releaseFolder, version string) string {
	t.Helper()
	name := "platform_" + version + "_" + here.String()
	folder := t.TempDir()
	if _, err := output(t.Context(), folder, nil, "tar", "-xzf", filepath.Join(releaseFolder, name+".tar.gz")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name, "platform")
}

func checkPlugin(t *testing.T, releaseFolder, archive, version string) {
	text, err := os.ReadFile(filepath.Join(releaseFolder, "platform.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	sums, err := checksums(releaseFolder)
	if err != nil {
		t.Fatal(err)
	}
	p := manifest.Spec.Platforms
	if name := filepath.Base(archive); manifest.Spec.Version != "v"+version || len(p) != 1 || p[0].SHA256 != sums[name] || p[0].URI != "https://example.com/d/v"+version+"/"+name {
		t.Errorf("the manifest is %s", text)
	}
	// krew unpacks files and folders alone, and finds what the manifest names.
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names[header.Name] = true
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir || header.Uname != "" || header.Uid != 0 {
			t.Errorf("%s: %+v", header.Name, header)
		}
	}
	for _, f := range p[0].Files {
		if !names[f.From] {
			t.Errorf("the archive has no %s", f.From)
		}
	}
}

// An archive of the Terraform provider has the same bytes whenever it is made, the checksums name each file, and the program can be started.
func TestProvider(t *testing.T) {
	t.Parallel()
	r := release{root: root, version: "1.2.3", time: time.Date(2026, 11, 28, 1, 2, 3, 0, time.FixedZone("", 3600))}
	programs := map[platform][]byte{{"linux", "amd64"}: []byte("one"), {"darwin", "arm64"}: []byte("two")}
	files, err := r.provider(programs, []byte("notices"))
	if err != nil {
		t.Fatal(err)
	}
	r.time = r.time.UTC()
	again, err := r.provider(programs, []byte("notices"))
	if err != nil || !maps.EqualFunc(files, again, bytes.Equal) {
		t.Errorf("the files differ the second time: %v", err)
	}
	names := slices.Sorted(maps.Keys(files))
	if want := []string{
		"terraform-provider-platform_1.2.3_SHA256SUMS", "terraform-provider-platform_1.2.3_darwin_arm64.zip", "terraform-provider-platform_1.2.3_linux_amd64.zip",
		"terraform-provider-platform_1.2.3_manifest.json",
	}; !slices.Equal(names, want) {
		t.Errorf("the files are %q", names)
	}
	for _, name := range names[1:] {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(files[name]), name); !strings.Contains(string(files[names[0]]), line) {
			t.Errorf("the checksums have no line for %s:\n%s", name, files[names[0]])
		}
	}
	reader, err := zip.NewReader(bytes.NewReader(files[names[2]]), int64(len(files[names[2]])))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{}
	for _, f := range reader.File {
		modes[f.Name] = f.Mode()
	}
	if want := map[string]os.FileMode{"terraform-provider-platform_v1.2.3": 0o755, "LICENSE": 0o644, "THIRD-PARTY-NOTICES.txt": 0o644}; !maps.Equal(modes, want) {
		t.Errorf("the archive has %v", modes)
	}
}

// checkProvider checks that the provider names itself, that its notices are its own, and that Terraform, if it is on PATH, installs the archive
// from a mirror as docs/terraform.md says.
func checkProvider(t *testing.T, releaseFolder, version string) {
	name := providerName + "_" + version + "_" + here.String() + ".zip"
	archive, err := zip.OpenReader(filepath.Join(releaseFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	folder := t.TempDir()
	if err := os.CopyFS(folder, archive); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, providerName+"_v"+version)
	if said, err := exec.Command(program).CombinedOutput(); err == nil || !strings.Contains(string(said), "plugin") {
		t.Errorf("the program says %q, %v", said, err)
	}
	notices, err := os.ReadFile(filepath.Join(folder, "THIRD-PARTY-NOTICES.txt"))
	if err != nil || !bytes.Contains(notices, []byte("terraform-plugin-framework")) || bytes.Contains(notices, []byte("goja")) {
		t.Errorf("the notices are %s, %v", notices, err)
	}
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Log("terraform is not on PATH: no program installs the archive")
		return
	}
	mirror := filepath.Join(folder, "mirror", "management.platform.sh", "platform", "platform")
	text, err := os.ReadFile(filepath.Join(releaseFolder, name))
	if err == nil {
		err = os.MkdirAll(mirror, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(mirror, name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for file, text := range map[string]string{
		"terraform.rc": fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(folder, "mirror")),
		"main.tf": fmt.Sprintf("terraform {\n  required_providers {\n    platform = {\n      source  = \"management.platform.sh/platform/platform\"\n"+
			"      version = %q\n    }\n  }\n}\n", version),
	} {
		if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := output(t.Context(), work, []string{"TF_CLI_CONFIG_FILE=" + filepath.Join(work, "terraform.rc"), "CHECKPOINT_DISABLE=1"}, terraform, "init", "-no-color"); err != nil {
		t.Error(err)
	}
}

// checkChart checks that the chart names the images of its own release.
func checkChart(t *testing.T, releaseFolder, version string) {
	folder := t.TempDir()
	if _, err := output(t.Context(), folder, nil, "tar", "-xzf", filepath.Join(releaseFolder, "platform_"+version+"_chart.tgz")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "platform", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Name, Version, AppVersion string }
	if err := yaml.Unmarshal(text, &about); err != nil {
		t.Fatal(err)
	}
	if about.Name != "platform" || about.Version != version || about.AppVersion != version {
		t.Errorf("the chart is %+v", about)
	}
	for _, name := range []string{"values.schema.json", "templates/_helpers.tpl"} {
		if _, err := os.Stat(filepath.Join(folder, "platform", name)); err != nil {
			t.Error(err)
		}
	}
}

func checkImages(t *testing.T, releaseFolder, version string) {
	for name, program := range map[string]string{"platform": "platform", "functions": "server"} {
		folder := t.TempDir()
		if _, err := output(t.Context(), folder, nil, "tar", "-xf", filepath.Join(releaseFolder, name+"_"+version+"_image.tar")); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		outer, err := index.IndexManifest()
		if err != nil || len(outer.Manifests) != 1 {
			t.Fatalf("%s: %v, %v", name, outer, err)
		}
		inner, err := index.ImageIndex(outer.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		manifests, err := inner.IndexManifest()
		if err != nil || len(manifests.Manifests) != 1 || manifests.Manifests[0].Platform.Architecture != here.processor {
			t.Fatalf("%s: %v, %v", name, manifests, err)
		}
		image, err := inner.Image(manifests.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		file, err := image.ConfigFile()
		if err != nil || file.Config.User != "65532:65532" || !slices.Equal(file.Config.Entrypoint, []string{"/" + program}) ||
			file.Config.Labels["org.opencontainers.image.version"] != version || file.OS != "linux" {
			t.Errorf("%s: %+v, %v", name, file, err)
		}
		files := contents(t, image)
		if len(files[program]) < 10<<20 || bytes.Count(files["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) < 50 {
			t.Errorf("%s: a program of %d bytes, %d bytes of certificates", name, len(files[program]), len(files["etc/ssl/certs/ca-certificates.crt"]))
		}
	}
}

func contents(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %v, %v", layers, err)
	}
	text, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	files := map[string][]byte{}
	for r := tar.NewReader(text); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// followArchive follows docs/install.md from the archive alone, to the first key and the first kubeconfig. On PATH are the
// tools of the system and kubectl.
func followArchive(t *testing.T, releaseFolder, archive, version string) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range consoleBlock.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^\$ `).ReplaceAllString(block[1], ""))
	}
	if len(blocks) != 3 || !strings.HasSuffix(blocks[0], "\n./platform\n") {
		t.Fatalf("docs/install.md has %d blocks: %q", len(blocks), blocks)
	}
	machine := t.TempDir()
	for _, name := range []string{filepath.Base(archive), "checksums.txt"} {
		text, err := os.ReadFile(filepath.Join(releaseFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(machine, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tools := filepath.Join(machine, "tools")
	if _, err := output(t.Context(), filepath.Join(root, "test", "kubectl"), nil, "go", "build", "-o", filepath.Join(tools, "kubectl"), "."); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "cat", "dirname", "gzip", "sha256sum", "sh", "tar"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(tools, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(machine, "platform_"+version+"_"+here.String())
	shell := func(ctx context.Context, folder, script string) *exec.Cmd {
		command := exec.CommandContext(ctx, filepath.Join(tools, "bash"), "-euo", "pipefail", "-c", script)
		command.Dir = folder
		command.Env = []string{"PATH=" + tools, "HOME=" + machine}
		return command
	}
	// exec makes the signal reach the program. The port is a free one.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	serve := shell(ctx, machine, strings.ReplaceAll(strings.TrimSuffix(blocks[0], "./platform\n"), "linux_amd64", here.String())+"exec ./platform serve --listen=127.0.0.1:0")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	var failures bytes.Buffer
	serve.Stderr = &failures
	printed, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var announced []string
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		announced = append(announced, strings.TrimSpace(lines.Text()))
		if strings.HasPrefix(announced[len(announced)-1], "kubectl explain") {
			break
		}
	}
	i := slices.Index(announced, "Try, in another terminal:")
	if i < 0 {
		t.Fatalf("the program says %q, and %s", announced, &failures)
	}
	if !slices.Contains(announced, "management.platform.sh "+version) {
		t.Errorf("the program says %q", announced)
	}
	for _, row := range []struct{ script, want string }{
		{strings.Join(announced[i+1:], "\n"), "user:admin"},
		{blocks[1], "role:platformCLI"},
		{"KUBECONFIG=.platform/kubeconfig\nexport KUBECONFIG\n" + blocks[2], "server: https://dev.shop.example.com"},
		{"KUBECONFIG=.platform/kubeconfig\nexport KUBECONFIG PATH=$PWD:$PATH\nkubectl platform version -o json", `"version": "` + version + `"`},
		{"PATH=$PWD:$PATH\nkubectl __complete platform signing-ke", "signing-keys\t"},
	} {
		text, err := shell(t.Context(), folder, row.script).CombinedOutput()
		if err != nil || !strings.Contains(string(text), row.want) {
			t.Errorf("%s\n%v: it does not say %q: %s", row.script, err, row.want, text)
		}
	}
	var report struct{ Commit, Version string }
	text, err := exec.Command(filepath.Join(folder, "platform"), "version", "-o", "json").Output()
	if err := errors.Join(err, json.Unmarshal(text, &report)); err != nil || len(report.Commit) != 40 {
		t.Errorf("the program was built from %+v, %v", report, err)
	}
	stop()
	_, _ = io.Copy(io.Discard, printed)
	if err := serve.Wait(); err != nil && ctx.Err() == nil {
		t.Errorf("the program ended with %v: %s", err, &failures)
	}
}
