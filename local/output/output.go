// Package output prints what a command reports, in the format that its user asks for.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Write prints a value in a format: json with two spaces of indentation, yaml with the same names, and otherwise
// the text that a function returns. Errors: those of the encoding and of out.
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
