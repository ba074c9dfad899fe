package resource

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	path := spec.Child("description")
	if len(description) > maxDescription {
		problems = append(problems, field.TooLong(path, field.OmitValueType{}, maxDescription))
	}
	return append(problems, validateDirection(description, path)...)
}

// originDirection is the origin of the problems of validateDirection.
const originDirection = "direction"

// turnsDirection reports whether a character turns the direction of the text after it, which can make a text look like another one.
// Source: Unicode, UAX #9.
func turnsDirection(c rune) bool {
	return '\u202a' <= c && c <= '\u202e' || '\u2066' <= c && c <= '\u2069'
}

// IsControl reports whether a character is no text but changes how text is shown: a control character, or one that turns its direction.
func IsControl(c rune) bool { return unicode.IsControl(c) || turnsDirection(c) }

// validateDirection refuses characters that turn the direction of text.
func validateDirection(text string, path *field.Path) field.ErrorList {
	at := strings.IndexFunc(text, turnsDirection)
	if at < 0 {
		return nil
	}
	turning, _ := utf8.DecodeRuneInString(text[at:])
	why := fmt.Sprintf("must not contain %U, which turns the direction of text", turning)
	return field.ErrorList{field.Invalid(path, text, why).WithOrigin(originDirection)}
}

// validateReplacement returns what is wrong with a new version of an object. Texts that were stored before characters were refused that
// turn their direction may stay, so that the other fields can be changed.
func (r *Registry[T]) validateReplacement(object, old T) field.ErrorList {
	problems := r.Rules.Validate(object, old)
	isOfDirection := func(problem *field.Error) bool { return problem.Origin == originDirection }
	if !slices.ContainsFunc(problems, isOfDirection) {
		return problems
	}
	stored := map[string]bool{}
	for _, problem := range r.Rules.Validate(old, old) {
		stored[problem.Error()] = true
	}
	return slices.DeleteFunc(problems, func(problem *field.Error) bool { return isOfDirection(problem) && stored[problem.Error()] })
}

// ValidateText checks a line of text, which may be empty: its length in bytes, no control characters, which would
// garble tables and logs, no characters that turn its direction, and at least one visible character.
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
	return append(problems, validateDirection(text, path)...)
}
