package completion

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// program has every kind of word that a line can have.
type program struct {
	Serve struct {
		Listen string `help:"Where to listen. An address."`
		Level  string `enum:"debug,info" default:"info" short:"l" help:"How much to log."`
		Quiet  bool   `short:"q" help:"Say nothing."`
		Secret string `hidden:"" help:"Not for people."`
	} `cmd:"" default:"withargs" help:"Serve (the default)."`
	Patch struct {
		Data string `help:"Folder."`
		Eval struct {
			Files []string `arg:"" help:"Files."`
		} `cmd:"" help:"Evaluate."`
		Mode struct {
			To string `arg:"" enum:"single,multi" help:"Mode."`
		} `cmd:"" help:"Set the mode."`
	} `cmd:"" help:"Try patches: on files."`
	Gone       struct{} `cmd:"" hidden:"" help:"Not for people."`
	Completion Commands `cmd:"" help:"Complete."`
}

func parser(t *testing.T, out *bytes.Buffer) *kong.Kong {
	t.Helper()
	made, err := kong.New(&program{}, kong.Name("platform"), kong.Writers(out, out))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// run answers as the program does.
func run(t *testing.T, line ...string) string {
	t.Helper()
	var out bytes.Buffer
	parsed, err := parser(t, &out).Parse(line)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if err := parsed.Run(); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return out.String()
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ line, want string }{
		{"", "completion patch serve :4"},
		{"pa", "patch :4"},
		{"bogus", ":4"},
		{"--l", "--level --listen :4"}, // the flags of the default command
		{"serve --", "--help --level --listen --quiet :4"},
		{"serve --secret ", ":4"},
		{"serve --listen ", ":0"},
		{"serve --level ", "debug info :4"},
		{"serve -l d", "debug :4"},
		{"serve --level=i", "--level=info :4"},
		{"serve --bogus=i", ":4"},
		{"serve --quiet --le", "--level :4"},
		{"patch ", "eval mode :4"},
		{"patch --data ", ":0"},
		{"patch --data serve m", "mode :4"}, // the value of a flag is no command
		{"patch mode s", "single :4"},
		{"patch mode --", "--data --help :4"},
		{"patch eval a.yaml ", ":0"},
		{"patch mode -- ", "multi single :4"},
		{"patch mode -- --", ":4"}, // no flags behind two hyphens
		{"completion ", "bash fish zsh :4"},
	} {
		var got []string
		lines := strings.Split(strings.TrimSuffix(run(t, append([]string{"completion", "words", "--"}, strings.Split(row.line, " ")...)...), "\n"), "\n")
		for _, l := range lines {
			first, _, _ := strings.Cut(l, "\t")
			got = append(got, first)
		}
		slices.Sort(got[:len(got)-1])
		if strings.Join(got, " ") != row.want {
			t.Errorf("%q: %q, want %q", row.line, got, row.want)
		}
	}
	if got := run(t, "completion", "words"); !strings.Contains(got, "patch\tTry patches: on files\n") || strings.Contains(got, "gone") {
		t.Errorf("without a word: %s", got)
	}
}

// Every shell offers what the program answers, by its own means.
func TestShells(t *testing.T) {
	t.Parallel()
	for shell, how := range map[string]string{
		"bash": `source "$1"; COMP_LINE=$2 COMP_POINT=${#2} _platform; printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh": `compdef() {}; _describe() { print -l -- "${(P@)4}" }; _files() { print files }; source "$1"
			words=("${(@s: :)2}") CURRENT=$#words; _platform`,
		"fish": `source $argv[1]; complete --do-complete $argv[2]`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			folder := t.TempDir()
			script := filepath.Join(folder, "platform."+shell)
			write(t, script, run(t, "completion", shell), 0o600)
			write(t, filepath.Join(folder, "notes.yaml"), "", 0o600)
			// It stands for the program, and writes down what it was asked.
			write(t, filepath.Join(folder, "platform"), "#!/bin/sh\nprintf '<%s>' \"$@\" > \"$0.asked\"\ncat \"$0.answer\"\n", 0o700)
			for _, row := range []struct{ line, answer, asked, offered string }{
				{"platform ser", "serve\tServe: now\n:4\n", "<ser>", "serve"},
				{"platform patch ", "eval\tEvaluate\nmode\tSet\n:4\n", "<patch><>", "eval mode"},
				{"platform serve --level=", "--level=info\t\n--level=debug\t\n:4\n", "<serve><--level=>", "debug info"},
				{"platform patch eval no", ":0\n", "<patch><eval><no>", "FILES"},
				{"platform bogus ", ":4\n", "<bogus><>", ""},
			} {
				write(t, filepath.Join(folder, "platform.answer"), row.answer, 0o600)
				arguments := []string{"-c", how, shell, script, row.line}
				switch shell {
				case "zsh":
					arguments = append([]string{"-f"}, arguments...)
				case "fish":
					arguments = append([]string{"--no-config"}, slices.Delete(arguments, 2, 3)...)
				}
				command := exec.Command(path, arguments...)
				command.Dir = folder
				command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "HOME="+folder)
				output, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v: %s", row.line, err, output)
				}
				asked, err := os.ReadFile(filepath.Join(folder, "platform.asked"))
				if want := "<completion><words><-->" + row.asked; err != nil || string(asked) != want {
					t.Errorf("%q asks %s, want %s (%v)", row.line, asked, want, err)
				}
				var offered []string
				for l := range strings.Lines(string(output)) {
					text, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
					if shell == "zsh" {
						text, _, _ = strings.Cut(text, ":")
					}
					if text = strings.TrimPrefix(text, "--level="); text != "" {
						offered = append(offered, text)
					}
				}
				slices.Sort(offered)
				want := row.offered
				if want == "FILES" {
					// bash falls back to files by itself.
					want = map[string]string{"bash": "", "zsh": "files", "fish": "notes.yaml"}[shell]
				}
				if got := strings.Join(offered, " "); got != want {
					t.Errorf("%q offers %q, want %q: %s", row.line, got, want, output)
				}
			}
		})
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
