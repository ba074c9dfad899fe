package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// need is something that tests need and a checkout does not have: a program, or the packages of a lock file of npm.
type need struct {
	// programs are the names of the program on PATH. One of them is enough; the first one is installed if possible.
	programs []string
	// elsewhere is a pattern for the path of the program outside PATH.
	elsewhere string
	// beside is a file that the program requires.
	beside string
	// debian are the Debian packages that contain the program.
	debian []string
	// npm is the folder of a package-lock.json.
	npm string
}

// needs are all needs by name.
var needs = map[string]need{
	"redis-server": {programs: []string{"redis-server"}, debian: []string{"redis-server"}},
	// Debian keeps the programs of PostgreSQL and NGINX out of PATH.
	"postgres": {programs: []string{"postgres"}, elsewhere: "/usr/lib/postgresql/*/bin/postgres", debian: []string{"postgresql"}},
	"nginx":    {programs: []string{"nginx"}, elsewhere: "/usr/sbin/nginx", debian: []string{"nginx-light"}},
	"zsh":      {programs: []string{"zsh"}, debian: []string{"zsh"}},
	"fish":     {programs: []string{"fish"}, debian: []string{"fish"}},
	"git":      {programs: []string{"git"}, debian: []string{"git"}},
	"gcc":      {programs: []string{"gcc"}, debian: []string{"gcc", "libc6-dev"}},
	"node":     {programs: []string{"node"}, debian: []string{"nodejs", "npm"}},
	"npm":      {programs: []string{"npm"}, debian: []string{"nodejs", "npm"}},
	// The headless shell draws no window around a page. Drawing it takes a third of the time of the stories.
	"chromium": {
		programs: []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}, debian: []string{"chromium-headless-shell"},
	},
	"simplesamlphp": {
		programs: []string{"php"}, beside: "/usr/share/simplesamlphp/www", debian: []string{"simplesamlphp", "php-cli", "php-xml"},
	},
	// Only Debian's own interpreter finds Debian's packages, and another interpreter may be first on PATH.
	"authlib": {
		programs: []string{"python3"}, elsewhere: "/usr/bin/python3", beside: "/usr/lib/python3/dist-packages/authlib",
		debian: []string{"python3-authlib", "python3-requests"},
	},
	"python-kubernetes": {
		programs: []string{"python3"}, elsewhere: "/usr/bin/python3", beside: "/usr/lib/python3/dist-packages/kubernetes",
		debian: []string{"python3-kubernetes"},
	},
	"kubeclient": {
		programs: []string{"ruby"}, beside: "/usr/share/rubygems-integration/all/specifications/kubeclient-4.9.3.gemspec",
		debian: []string{"ruby-kubeclient"},
	},
	"client-node": {npm: "test/clients"},
	"providers":   {npm: "test/signin/providertest"},
	"playwright":  {npm: "test/browser"},
	"osls":        {npm: "infra/serverless"},
	"console":     {npm: "functions/serveconsole/web"},
}

// isMissing reports whether a need is not installed at all.
func (n need) isMissing(root string) bool {
	if n.npm != "" {
		locked, err := os.Stat(filepath.Join(root, n.npm, "package-lock.json"))
		installed, missing := os.Stat(filepath.Join(root, n.npm, installedMark))
		return err != nil || missing != nil || installed.ModTime().Before(locked.ModTime())
	}
	if n.beside != "" {
		if _, err := os.Stat(n.beside); err != nil {
			return true
		}
	}
	elsewhere, err := filepath.Glob(n.elsewhere)
	return (err != nil || len(elsewhere) == 0) && !slices.ContainsFunc(n.programs, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// hasOtherName reports whether the program is installed, but not under its first name.
func (n need) hasOtherName() bool {
	if n.npm != "" || n.elsewhere != "" {
		return false
	}
	_, err := exec.LookPath(n.programs[0])
	return err != nil
}

// installedMark is the file that npm ci writes last.
const installedMark = "node_modules/.package-lock.json"

// install installs missing needs: Debian packages in one run, if the user is root and apt-get exists, and npm packages. It returns one line for
// each need that is still missing.
func install(ctx context.Context, root string, wanted []string) []string {
	var packages []string
	for _, name := range wanted {
		if n := needs[name]; n.npm == "" && (n.isMissing(root) || n.hasOtherName()) {
			packages = append(packages, n.debian...)
		}
	}
	var lines []string
	var failure string
	if apt, err := exec.LookPath("apt-get"); err == nil && os.Getuid() == 0 && len(packages) > 0 {
		for _, args := range [][]string{{"update", "-qq"}, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)} {
			command := exec.CommandContext(ctx, apt, args...)
			command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if output, err := command.CombinedOutput(); err != nil {
				failure = fmt.Sprintf("; apt-get %s: %v: %s", args[0], err, lastLine(output))
				break
			}
		}
	}
	for _, name := range wanted {
		n := needs[name]
		if !n.isMissing(root) {
			continue
		}
		if n.npm == "" {
			lines = append(lines, fmt.Sprintf("%s is missing: on Debian, apt-get install %s%s", strings.Join(n.programs, " or "), strings.Join(n.debian, " "), failure))
		} else if err := installPackages(ctx, root, n.npm); err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// installPackages installs the packages of a lock file. If the Node.js of the machine is too old for the packager of serverless.yml, an
// optional package brings a newer one.
func installPackages(ctx context.Context, root, folder string) error {
	args := []string{"ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}
	tries := [][]string{args}
	if folder == needs["osls"].npm {
		tries = [][]string{append(slices.Clone(args), "--omit=optional", "--engine-strict"), args}
	}
	var failure error
	for _, try := range tries {
		command := exec.CommandContext(ctx, "npm", try...)
		command.Dir = root
		output, err := command.CombinedOutput()
		if err == nil {
			now := time.Now()
			return os.Chtimes(filepath.Join(root, folder, installedMark), now, now)
		}
		failure = fmt.Errorf("npm ci in %s: %w: %s", folder, err, lastLine(output))
	}
	return failure
}

// startError returns the reason why an installed program does not work. It checks only the browser, which often does not.
func startError(ctx context.Context, name string) error {
	if name != "chromium" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	folder, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for _, program := range needs[name].programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		output, err := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+folder,
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom", "about:blank").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s does not start: %w: %s", program, err, lastLine(output))
		}
		return nil
	}
	return errors.New("no browser is on PATH")
}

// lastLine returns the last line of an output that is not empty.
func lastLine(output []byte) string {
	text := strings.TrimSpace(string(output))
	return text[strings.LastIndex(text, "\n")+1:]
}
