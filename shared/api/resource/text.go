package resource

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits on the texts that people give an object, in bytes. Source: ADR-0005, ADR-0017.
const (
	maxDisplayName = 256
	maxDescription = 4096
	// maxPrintable is the longest text of Printable.
	maxPrintable = 256
)

// Printable returns a text that a client chose, such as a user agent, as one line of at most 256 bytes that can be shown and
// stored. A character that cannot be printed becomes a space, and one that does not fit is cut off as a whole.
func Printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(text[:min(len(text), maxPrintable)], "")
}

// ValidateTexts checks spec.displayName and spec.description, which may be empty.
func ValidateTexts(displayName, description string, spec *field.Path) field.ErrorList {
	problems := ValidateText(displayName, maxDisplayName, spec.Child("displayName"))
	if len(description) > maxDescription {
		problems = append(problems, field.TooLong(spec.Child("description"), field.OmitValueType{}, maxDescription))
	}
	return problems
}

// ValidateText checks a line of text, which may be empty: its length in bytes, no control characters, which would
// garble tables and logs, and at least one visible character.
func ValidateText(text string, most int, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if len(text) > most {
		problems = append(problems, field.TooLong(path, field.OmitValueType{}, most))
	}
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		problems = append(problems, field.Invalid(path, text, "must not contain control characters"))
	case text != "" && !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) }):
		problems = append(problems, field.Invalid(path, text, "must not be blank"))
	}
	return problems
}
