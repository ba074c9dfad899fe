// Command evidence runs the tests that show what the documents claim, and writes docs/evidence.md: each claim in the words of its document, its
// tests, its judge, and the number of passed cases. claims.yaml is the source. If the test of a claim fails, is skipped or no longer exists,
// the command fails and the page stays unchanged. The page shows no figures of speed: `make bench` measures them. Source: ADR-0044.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	IDs  []string `arg:"" optional:"" name:"id" help:"Claims whose tests run. Without IDs, the tests of all claims run and the page is written."`
	Keep string   `type:"path" placeholder:"DIR" help:"Folder for results. Results of the same commit in this folder are used again."`
	Form bool     `help:"Run no tests. Write the page after a change of claims, without counts for the changed claims."`
}

func main() {
	var opts options
	kong.Parse(&opts, kong.Name("evidence"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	var err error
	if opts.Form {
		err = reform(".")
	} else {
		err = run(ctx, ".", opts.Keep, opts.IDs)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

// reform writes the page again with its current counts.
func reform(root string) error {
	l, err := parse(claimsText)
	if err != nil {
		return err
	}
	if findings := check(root, l); len(findings) > 0 {
		return errors.New(strings.Join(findings, "\n"))
	}
	page, err := render(root, l, origin{}, nil)
	if err != nil {
		return err
	}
	earlier, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(root, pageFile), []byte(withCounts(page, string(earlier))), 0o600)
}

// run runs the tests of the claims with these IDs. Without IDs it runs the tests of all claims and writes the page.
func run(ctx context.Context, root, folder string, ids []string) error {
	l, err := parse(claimsText)
	if err != nil {
		return err
	}
	if findings := check(root, l); len(findings) > 0 {
		return errors.New(strings.Join(findings, "\n"))
	}
	claims := slices.DeleteFunc(slices.Clone(l.Claims), func(c claim) bool { return len(ids) > 0 && !slices.Contains(ids, c.ID) })
	if len(ids) > 0 && len(claims) != len(ids) {
		return fmt.Errorf("%q are not all IDs of claims; %s has the IDs", ids, pageFile)
	}
	var tests []aTest
	for _, c := range claims {
		of, err := testsOf(root, c)
		if err != nil {
			return err
		}
		for _, t := range of {
			if !slices.Contains(tests, t) {
				tests = append(tests, t)
			}
		}
	}
	m := origin{date: time.Now().UTC().Format(time.DateOnly), machine: runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH}
	if len(ids) == 0 {
		if m.commit, err = commitOf(ctx, root); err != nil {
			return err
		}
	} else {
		folder = "" // of no commit
	}
	results, err := runTests(ctx, root, folder, m.commit, tests)
	if err != nil {
		return err
	}
	if findings := findBroken(root, claims, results); len(findings) > 0 {
		return errors.New(strings.Join(findings, "\n"))
	}
	if len(ids) > 0 {
		for _, c := range claims {
			of, err := testsOf(root, c)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %s\n", c.ID, passedCell(of, results))
		}
		return nil
	}
	page, err := render(root, l, m, results)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, pageFile), []byte(page), 0o600)
}

// commitOf returns the commit of a checkout. The checkout may differ from the commit only in the page.
func commitOf(ctx context.Context, root string) (string, error) {
	changed, err := exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain", "--", ".", ":!"+pageFile).Output()
	if err != nil {
		return "", fmt.Errorf("asking git for changed files: %w", err)
	}
	if len(changed) > 0 {
		return "", fmt.Errorf("evidence is of a commit, and these files differ from it:\n%s", changed)
	}
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--short=10", "HEAD").Output()
	return strings.TrimSpace(string(commit)), err
}
