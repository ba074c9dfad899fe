// Package output prints the results of commands in the format that the user asks for, and their errors and warnings.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Write prints a value in a format: json with two spaces of indentation, yaml with the same names, and otherwise the
// text that a function returns. It returns the errors of encoding and of out.
func Write(out io.Writer, format string, value any, text func() []byte) error {
	var printed []byte
	var err error
	switch format {
	case "json":
		printed, err = json.MarshalIndent(value, "", "  ")
		printed = append(printed, '\n')
	case "yaml":
		printed, err = yaml.Marshal(value)
	default:
		printed = text()
	}
	if err == nil {
		_, err = out.Write(printed)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// Coloured reports whether text that is written to out has colours: it is a terminal that supports them, and NO_COLOR
// is empty. Lookup returns variables of the environment. Source: https://no-color.org.
func Coloured(out io.Writer, lookup func(string) string) bool {
	file, ok := out.(*os.File)
	return ok && lookup("NO_COLOR") == "" && lookup("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// The colours and styles of text on a terminal. Source: ECMA-48, 8.3.117.
const (
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint returns text in a colour.
func Paint(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }

// Error prints why a command has failed.
func Error(out io.Writer, err error) { message(out, Red, err.Error()) }

// Warn prints a warning about a command that continues.
func Warn(out io.Writer, format string, values ...any) {
	message(out, Yellow, fmt.Sprintf(format, values...))
}

func message(out io.Writer, colour, text string) {
	program := "platform:"
	if Coloured(out, os.Getenv) {
		program = Paint(colour, program)
	}
	_, _ = fmt.Fprintln(out, program, text)
}
