//go:build unix

package script_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// edit is an editor for kubectl edit: it replaces a text in a file. If the text is missing, the file stays unchanged, and
// kubectl cancels the edit.
func edit() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: edit OLD NEW FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[3])
	if err == nil && strings.Contains(string(text), os.Args[1]) {
		err = os.WriteFile(os.Args[3], []byte(strings.ReplaceAll(string(text), os.Args[1], os.Args[2])), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "edit:", err)
		os.Exit(1)
	}
}

// compareFiles compares two files that are equal except for the names in them.
func compareFiles(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 4 {
		ts.Fatalf("usage: same FILE NAME FILE NAME")
	}
	first := strings.ReplaceAll(ts.ReadFile(args[0]), args[1], "NAME")
	second := strings.ReplaceAll(ts.ReadFile(args[2]), args[3], "NAME")
	if first != second {
		ts.Fatalf("the files differ in more than the name:\n%s\n%s", first, second)
	}
}

// take sets a variable of the story to the match of a pattern's group in stdout.
func take(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: take NAME PATTERN")
	}
	found := compile(ts, args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("stdout has no match for the one group of %q", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// checkDistance checks the difference between the two timestamps in stdout.
func checkDistance(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	want, err := time.ParseDuration(singleArgument(ts, args))
	ts.Check(err)
	words := strings.Fields(ts.ReadFile("stdout"))
	if len(words) != 2 {
		ts.Fatalf("stdout is %q and not two timestamps", words)
	}
	from, err := time.Parse(time.RFC3339, words[0])
	ts.Check(err)
	to, err := time.Parse(time.RFC3339, words[1])
	ts.Check(err)
	if got := to.Sub(from); got != want {
		ts.Fatalf("%s and %s are %s apart, not %s", words[0], words[1], got, want)
	}
}

// mode checks the permissions of files.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: mode OCTAL FILE...")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := info.Mode().Perm(); got != os.FileMode(want) {
			ts.Fatalf("%s has the mode %o, not %o", name, got, want)
		}
	}
}

var (
	repeated = regexp.MustCompile(`(?s)^([0-9]+)\*(.*)$`)
	hexByte  = regexp.MustCompile(`\\x[0-9a-fA-F]{2}`)
)

// generate writes a file from parts, which can be repeated.
func generate(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: generate FILE PART...")
	}
	var text strings.Builder
	for _, part := range args[1:] {
		count := 1
		if found := repeated.FindStringSubmatch(part); found != nil {
			var err error
			count, err = strconv.Atoi(found[1])
			ts.Check(err)
			part = found[2]
		}
		part = hexByte.ReplaceAllStringFunc(part, func(escape string) string {
			code, err := strconv.ParseUint(escape[2:], 16, 8)
			ts.Check(err)
			return string([]byte{byte(code)})
		})
		text.WriteString(strings.Repeat(part, count))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}
