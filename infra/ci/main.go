// Command ci copies infra/ci/job.sh into the component of GitLab, since an include brings no other file into a job. The text around the script
// is written by hand. Run it from the top of the repository: `go run ./infra/ci`. Source: ADR-0051.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// script is the file that does the work of both systems.
	script = "infra/ci/job.sh"
	// component is the file with a copy of the script.
	component = "infra/ci/gitlab/templates/platform.yml"
	// begin is the end of the line above the copy. end is the line below it.
	begin, end = "<<'END_OF_JOB_SH'\n", "      END_OF_JOB_SH\n"
	// indent stands before each line of the copy that is not empty.
	indent = "      "
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	source, err := os.ReadFile(filepath.Join(root, script))
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	file := filepath.Join(root, component)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the component: %w", err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s does not have the lines around the script: %q and %q", component, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var lines strings.Builder
	for line := range strings.Lines(string(source)) {
		if line != "\n" {
			lines.WriteString(indent)
		}
		lines.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(head+begin+lines.String()+end+tail), 0o644); err != nil {
		return fmt.Errorf("writing the component: %w", err)
	}
	return nil
}
