package password

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// The bounds on a password. Source: ADR-0032; NIST SP 800-63B, 3.1.1.
const (
	minCharacters = 12
	// MaxBytes is the longest password, in bytes.
	MaxBytes = 1024
	// minBits is the lowest result of accesskey.EstimateBits at which a password is accepted. Twelve random letters are worth 56
	// bits.
	minBits = 35
)

// substitutions replaces the digits and signs that people write in place of letters.
var substitutions = strings.NewReplacer("@", "a", "4", "a", "0", "o", "1", "l", "!", "i", "3", "e", "$", "s", "5", "s", "7", "t")

// validate returns what is wrong with a new password of a user. The user may be nil.
func validate(password secret.String, account *model.User, path *field.Path) field.ErrorList {
	text := password.Reveal()
	invalid := func(why string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, why)}
	}
	switch {
	case text == "":
		return field.ErrorList{field.Required(path, "must be the new password")}
	case len(text) > MaxBytes:
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, MaxBytes)}
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return invalid("must be text without control characters, such as the end of a line")
	}
	text = normalize(password)
	if count := utf8.RuneCountInString(text); count < minCharacters {
		return invalid(fmt.Sprintf("must have at least %d characters; it has %d", minCharacters, count))
	}
	guessable := []string{account.Name, account.Spec.Username, account.Spec.DisplayName, account.Spec.Email}
	if accesskey.EstimateBits(text, guessable...) < minBits || accesskey.EstimateBits(substitutions.Replace(text), guessable...) < minBits {
		return invalid("is easy to guess: leave out your name, common words, rows of keys and repetitions, or make it longer")
	}
	return nil
}
