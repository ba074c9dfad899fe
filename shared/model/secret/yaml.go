package secret

import (
	"strings"

	"management.platform.sh/shared/model/lazyregexp"
)

// harmless matches what errors of YAML libraries quote of the syntax, and the names of fields that occur twice.
var harmless = lazyregexp.New("'[^0-9A-Za-z'`]{1,3}'" + `|key "[^"]*" already set in map`)

// YAMLError returns the text of an error of a YAML library without what it quotes of the document, which may be a secret: the
// name of an alias, a value of the wrong type, or a key that is no text. Its lines are joined with semicolons.
func YAMLError(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "yaml: ")
		for _, words := range []string{"invalid map key", "cannot unmarshal"} {
			// The text follows without quotes.
			if before, _, found := strings.Cut(line, words); found {
				line = before + words
			}
		}
		// Harmless quotes are hidden from the search by as many other bytes.
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
