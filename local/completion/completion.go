// Package completion completes command lines of the program in bash, zsh and fish, and in kubectl for the plugin. A
// script for each shell passes the words of the line to the program, which answers from its own commands and flags: it
// always offers the commands of this version. Source: ADR-0006.
package completion

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands print the scripts, and the words that the scripts request.
type Commands struct {
	Bash  bash  `cmd:"" help:"Print the script for bash. Load it with: source <(platform completion bash)"`
	Zsh   zsh   `cmd:"" help:"Print the script for zsh. Load it with: source <(platform completion zsh)"`
	Fish  fish  `cmd:"" help:"Print the script for fish. Load it with: platform completion fish | source"`
	Words words `cmd:"" hidden:"" help:"Print what can stand in place of the last word."`
}

type (
	bash struct{}
	zsh  struct{}
	fish struct{}
)

//go:embed scripts
var scripts embed.FS

func (*bash) Run(line *kong.Context) error { return script(line.Stdout, "bash") }

func (*zsh) Run(line *kong.Context) error { return script(line.Stdout, "zsh") }

func (*fish) Run(line *kong.Context) error { return script(line.Stdout, "fish") }

func script(out io.Writer, shell string) error {
	text, err := scripts.ReadFile("scripts/platform." + shell)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

type words struct {
	Line []string `arg:"" optional:"" help:"The words of the line after the name of the program. The last one is completed."`
}

// The last line of the output reports whether file names are possible as well. kubectl knows these two values.
const (
	filesToo = ":0"
	noFiles  = ":4"
)

// Run prints one word on each line, with a description after a tab.
func (c *words) Run(line *kong.Context) error {
	found, files := complete(line.Model.Node, c.Line)
	for _, w := range found {
		if _, err := fmt.Fprintf(line.Stdout, "%s\t%s\n", w.text, w.about); err != nil {
			return err
		}
	}
	directive := noFiles
	if files {
		directive = filesToo
	}
	_, err := fmt.Fprintln(line.Stdout, directive)
	return err
}

// word is a possible last word of a line.
type word struct{ text, about string }

// complete returns the possible last words of a line, and whether the word can be the name of a file.
func complete(app *kong.Node, line []string) ([]word, bool) {
	if len(line) == 0 {
		line = []string{""}
	}
	last := line[len(line)-1]
	node, arguments, onlyArguments := app, 0, false
	var value *kong.Flag
	for _, text := range line[:len(line)-1] {
		child := childOf(node, text)
		switch {
		case value != nil:
			value = nil
		case onlyArguments:
			arguments++
		case text == "--":
			onlyArguments = true
		case strings.HasPrefix(text, "-"):
			if flag := flagOf(node, text); flag != nil && !flag.IsBool() {
				value = flag
			}
		case child != nil:
			node, arguments = child, 0
		default:
			arguments++
		}
	}
	name, begun, joined := strings.Cut(last, "=")
	switch {
	case value != nil:
		return valuesOf(value.Value, "", last)
	case !onlyArguments && joined && strings.HasPrefix(name, "-"):
		flag := flagOf(node, name)
		if flag == nil {
			return nil, false
		}
		return valuesOf(flag.Value, name+"=", begun)
	case !onlyArguments && strings.HasPrefix(last, "-"):
		return flagsOf(node, last), false
	}
	var words []word
	if !onlyArguments && arguments == 0 {
		for _, child := range node.Children {
			if !child.Hidden && strings.HasPrefix(child.Name, last) {
				words = append(words, word{child.Name, oneLine(child.Help)})
			}
		}
	}
	if len(node.Positional) == 0 {
		return words, false
	}
	values, files := valuesOf(node.Positional[min(arguments, len(node.Positional)-1)], "", last)
	return append(words, values...), files
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// availableFlags returns the flags that can follow a command: its own flags, and the flags of the commands above it. The flags
// of the default command do not need the name of the command.
func availableFlags(node *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	groups := node.AllFlags(true)
	if node.DefaultCmd != nil {
		groups = append(groups, node.DefaultCmd.Flags)
	}
	for _, group := range groups {
		for _, flag := range group {
			if !flag.Hidden {
				flags = append(flags, flag)
			}
		}
	}
	return flags
}

// flagOf returns the flag that a word names, or nil.
func flagOf(node *kong.Node, text string) *kong.Flag {
	for _, flag := range availableFlags(node) {
		if text == "--"+flag.Name || flag.Short != 0 && text == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

func flagsOf(node *kong.Node, begun string) []word {
	var words []word
	for _, flag := range availableFlags(node) {
		if text := "--" + flag.Name; strings.HasPrefix(text, begun) {
			words = append(words, word{text, oneLine(flag.Help)})
		}
	}
	return words
}

// valuesOf returns the values of a flag or an argument that has a list of them. Without a list, the value may be the
// name of a file.
func valuesOf(value *kong.Value, before, begun string) ([]word, bool) {
	var words []word
	for _, text := range value.EnumSlice() {
		if text != "" && strings.HasPrefix(text, begun) {
			words = append(words, word{before + text, ""})
		}
	}
	return words, value.Enum == ""
}

// oneLine returns the first sentence of a help text.
func oneLine(help string) string {
	help = strings.Join(strings.Fields(help), " ")
	if first, _, more := strings.Cut(help, ". "); more {
		return first
	}
	return strings.TrimSuffix(help, ".")
}
