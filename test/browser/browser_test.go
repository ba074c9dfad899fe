// Package browser_test drives the console in a real browser: chromium, by playwright-core. The stories are in the folder pages; console.mjs tells them. It
// needs node with the packages of package.json, which `make browser` installs, and chromium. Source: ADR-0030.
package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/local/patch"
	"management.platform.sh/local/runner"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/test/signin/providertest"
)

// storyTimeout is how long all stories may take together, on a machine that does other work as well.
const storyTimeout = 30 * time.Minute

// browser returns the path of chromium. On a laptop without it, or without the packages, the test is skipped; CI has both.
func browser(t *testing.T) string {
	t.Helper()
	missing := func(what string) {
		if os.Getenv("CI") != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("node is not installed")
	}
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		missing("the packages are not installed: run make browser")
	}
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing("chromium is not installed: run make browser")
	return ""
}

// serve starts a runner, with the patch studio for everybody or for those who sign in, and returns its origin and the file of its
// admin key.
func serve(t *testing.T, studio bool) (origin, key string) {
	t.Helper()
	data := t.TempDir()
	command := runner.New("test")
	command.Getenv = func(string) string { return "" }
	for name, value := range map[string]string{
		settings.Listen: "127.0.0.1:0", settings.RedisURL: redistest.Embedded(t), settings.EncryptionKey: encryption.Generate().Reveal(), settings.Data: data, settings.LogLevel: "error",
		settings.Studio: strconv.FormatBool(studio),
		// A busy machine is no slow expression.
		settings.PatchExpressionTime: "25s", settings.PatchObjectTime: "25s",
	} {
		command.Set(name, value)
	}
	ready := make(chan struct{})
	command.Ready = func() { close(ready) }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- command.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the runner has ended: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the runner: %v", err)
		}
	})
	kubeconfig, err := os.ReadFile(filepath.Join(data, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`https://[^/\s"]+`).Find(kubeconfig)
	if server == nil {
		t.Fatal("the kubeconfig names no server")
	}
	return string(server), filepath.Join(data, "admin.key")
}

// line is what console.mjs prints: the outcome of a story or, at the end, of all of them.
type line struct {
	Story, Failure string
	Seconds        float64
	Stories        int
	Violations     []string
	Foreign        []string
}

// runExported runs the test files that the studio has exported, as `platform patch test` does.
func runExported(ctx context.Context, t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.yaml"))
	if err != nil || len(files) < 12 {
		t.Fatalf("the studio exported %d files: %v", len(files), err)
	}
	command := patch.New().Test
	command.Files, command.Output, command.Color = files, "diff", "never"
	for _, name := range []string{settings.PatchExpressionTime, settings.PatchObjectTime} {
		command.Limits.Set(name, "25s") // a busy machine is no slow expression
	}
	if err := command.Run(ctx); err != nil {
		t.Errorf("the exported files: %v", err)
	}
}

// The stories of the console hold, none of its requests leaves its host, and its policy is never violated.
func TestConsole(t *testing.T) {
	exported := runStories(t, "")
	if os.Getenv("STORY") == "" {
		runExported(t.Context(), t, exported)
	}
}

// The same for the stories that take long.
func TestConsoleLong(t *testing.T) {
	if testing.Short() {
		t.Skip("these stories take long")
	}
	runStories(t, "long")
}

// runStories tells all stories of a kind, and returns the folder of what they have exported. Each processor has a platform and a
// browser of its own, and takes a story that no other has taken until there is none left.
func runStories(t *testing.T, kind string) (exported string) {
	t.Helper()
	program, kubectlProgram, taken := browser(t), kubectl(t), t.TempDir()
	exported = t.TempDir()
	var count atomic.Int64
	t.Run("stories", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				count.Add(runShare(t, program, kubectlProgram, kind, exported, taken))
			})
		}
	})
	t.Logf("counted: %d stories", count.Load())
	if count.Load() < 4 && os.Getenv("STORY") == "" {
		t.Errorf("%d stories were told", count.Load())
	}
	return exported
}

// runShare starts a platform and a browser that tell the stories of a kind that have no file in the folder taken, and returns how many
// they were.
func runShare(t *testing.T, program, kubectlProgram, kind, exported, taken string) int64 {
	t.Helper()
	origin, key := serve(t, false)
	openOrigin, _ := serve(t, true)
	registerCluster(t, origin, key)
	ctx, cancel := context.WithTimeout(t.Context(), storyTimeout)
	defer cancel()
	arguments := []string{"console.mjs", origin, key, program, exported, openOrigin}
	if pictures := os.Getenv("PICTURES"); pictures != "" {
		arguments = append(arguments, pictures)
	}
	command := exec.CommandContext(ctx, "node", arguments...)
	provider := providertest.Start(t, "../signin/providertest", providertest.Client{
		Secret: "hush", Callback: origin + "/auth/oidc/callback", After: origin + "/console",
	})
	command.Env = append(os.Environ(), "KUBECTL="+kubectlProgram, "ISSUER="+provider.Issuer, "ISSUER_CA="+provider.CAFile, "EVENTS="+redistest.Embedded(t), "TAKEN="+taken, "STORIES="+kind,
		"DEBUG=pw:api") // it writes each call of the browser to stderr
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, tail(stderr.Bytes()))
	}
	count, last := 0, line{}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		var event line
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		if event.Story == "" {
			last = event
			continue
		}
		count++
		t.Logf("%5.1f s  %s", event.Seconds, event.Story)
		if event.Failure != "" {
			t.Errorf("%s: %s", event.Story, event.Failure)
		}
	}
	if last.Stories != count || len(last.Violations) > 0 || len(last.Foreign) > 0 {
		t.Errorf("%d stories were told; the end says %+v", count, last)
	}
	return int64(count)
}

// tail returns the end of what a program has written to stderr.
func tail(stderr []byte) []byte {
	const most = 8 << 10
	return stderr[max(0, len(stderr)-most):]
}
