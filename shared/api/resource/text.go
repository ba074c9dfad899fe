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
)

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
