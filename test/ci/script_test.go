//go:build unix

package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script finds the archive of the machine, with the programs that Linux, macOS and small images have.
func TestMachines(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(filepath.Join(root, "infra", "ci", "job.sh"))
	if err != nil {
		t.Fatal(err)
	}
	release := t.TempDir()
	// The program writes what platform writes at the sign-in, and prints for which machine it is.
	machines := map[string]string{}
	for _, machine := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		machines[machine] = `#!/bin/sh
[ "$1" = login ] || exit 0
echo "this is ` + machine + `"
mkdir -p "$HOME/Library/Application Support/management.platform.sh/x"
printf pak_secret >"$HOME/Library/Application Support/management.platform.sh/x/access.key"
for argument; do case $argument in --output=*) echo config >"${argument#--output=}" ;; esac; done
`
	}
	writeRelease(t, release, version, machines)
	usual := []string{"cat", "chmod", "cp", "cut", "find", "gzip", "mkdir", "mv", "rm", "sed", "sh", "tar"}
	for _, row := range []struct {
		system, processor, want string
		digest                  string
	}{
		{"Linux", "x86_64", "this is linux_amd64", "sha256sum"},
		{"Linux", "aarch64", "this is linux_arm64", "sha256sum"},
		{"Darwin", "x86_64", "this is darwin_amd64", "shasum"},
		{"Darwin", "arm64", "this is darwin_arm64", "shasum"},
		{"Linux", "riscv64", "there is no archive for riscv64", "sha256sum"},
		{"MINGW64_NT-10.0", "x86_64", "there is no archive for MINGW64_NT-10.0", "sha256sum"},
		{"Linux", "x86_64", "the SHA-256 of platform_1.2.3_linux_amd64.tar.gz is unknown", ""},
	} {
		tools := t.TempDir()
		names := usual
		if row.digest != "" {
			if _, err := exec.LookPath(row.digest); err != nil {
				t.Logf("%s is not on PATH", row.digest)
				continue
			}
			names = append([]string{row.digest}, usual...)
		}
		for _, name := range names {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
				t.Fatal(err)
			}
		}
		uname := "#!/bin/sh\ncase $1 in -s) echo '" + row.system + "' ;; -m) echo '" + row.processor + "' ;; esac\n"
		if err := os.WriteFile(filepath.Join(tools, "uname"), []byte(uname), 0o755); err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		start := func(command string) (string, error) {
			started := exec.Command("sh", script, command)
			started.Env = []string{"PATH=" + tools, "PLATFORM_CI_FOLDER=" + folder, "PLATFORM_CI_HOST=platform.example", "PLATFORM_CI_ARCHIVES=" + release}
			printed, err := started.CombinedOutput()
			return string(printed), err
		}
		printed, err := start("begin")
		if !strings.Contains(printed, row.want) || (err == nil) != strings.HasPrefix(row.want, "this is") || strings.Contains(printed, "pak_secret") {
			t.Errorf("%s on %s: %v %s", row.system, row.processor, err, printed)
		}
		if printed, err := start("end"); err != nil {
			t.Errorf("%s on %s: the end: %v %s", row.system, row.processor, err, printed)
		}
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s on %s: files are left", row.system, row.processor)
		}
	}
}

// No text of an input becomes text of a program.
func TestTexts(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root, "infra", "ci")
	for _, name := range []string{"github/action.yml", "github/main.js", "github/post.js", "job.sh"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{"${{", "$[["} {
			if strings.Contains(string(text), mark) {
				t.Errorf("%s has %s", name, mark)
			}
		}
	}
	check, err := exec.LookPath("shellcheck")
	if err != nil {
		return
	}
	if printed, err := exec.Command(check, "--shell=sh", filepath.Join(folder, "job.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
}
