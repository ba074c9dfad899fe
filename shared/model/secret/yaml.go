package secret

import (
	"strings"

	"management.platform.sh/shared/model/lazyregexp"
)

// harmless matches the quotes that are no secrets: YAML syntax, and names of fields that occur twice.
var harmless = lazyregexp.New("'[^0-9A-Za-z'`]{1,3}'" + `|key "[^"]*" already set in map`)

// YAMLError returns the text of an error of a YAML library without its quotes from the document. A quote may be a secret:
// the name of an alias, a value of the wrong type, or a key that is not text. The lines are joined with semicolons.
func YAMLError(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "yaml: ")
		for _, words := range []string{"invalid map key", "cannot unmarshal"} {
			// After these words, the library repeats the document without quotation marks.
			if before, _, found := strings.Cut(line, words); found {
				line = before + words
			}
		}
		// Harmless quotes become spaces, so that the search does not find them and positions stay the same.
		searched := harmless().ReplaceAllStringFunc(line, func(quote string) string { return strings.Repeat(" ", len(quote)) })
		if at := strings.IndexAny(searched, "'\"`"); at >= 0 {
			line = line[:at]
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
