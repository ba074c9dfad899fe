package resource

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateText bounds a line of text, which may be absent: its length in bytes, and no control characters, which would
// garble tables and logs. What is there can be seen.
func ValidateText(text string, most int, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if len(text) > most {
		problems = append(problems, field.TooLong(path, field.OmitValueType{}, most))
	}
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		problems = append(problems, field.Invalid(path, text, "must not contain control characters"))
	case text != "" && !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) }):
		problems = append(problems, field.Invalid(path, text, "must not be of blanks alone"))
	}
	return problems
}
