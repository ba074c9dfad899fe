// Command limits writes the table of package limits into docs/limits.md, below the mark in the document. The text above
// the mark is written by hand. Run it from the top of the repository: `go run ./infra/limits`. Source: ADR-0020.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"management.platform.sh/shared/limits"
)

const (
	// document is the file with the table.
	document = "docs/limits.md"
	// mark is the line after which everything is generated.
	mark = "<!-- make gen writes what follows. -->\n"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	file := filepath.Join(root, document)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	head, _, marked := strings.Cut(string(text), mark)
	if !marked {
		return fmt.Errorf("%s does not have the line %q", document, strings.TrimSpace(mark))
	}
	if err := os.WriteFile(file, []byte(head+mark+"\n"+table(limits.List)), 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func table(list []limits.Limit) string {
	var text strings.Builder
	text.WriteString("| Limit | What is bounded | Bound | Above it | Setting |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for _, row := range list {
		setting := ""
		if row.Setting != "" {
			setting = "`" + row.Setting + "`"
		}
		_, _ = fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n",
			row.Name, cell.Replace(row.What), cell.Replace(row.Bound), cell.Replace(row.Answer), setting)
	}
	return text.String()
}
