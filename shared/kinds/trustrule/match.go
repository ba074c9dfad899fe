package trustrule

import (
	"encoding/json"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// Claims are the claims of a token, as JSON.
type Claims map[string]json.RawMessage

// Text returns a claim as a text. A number or a boolean has the text that JSON gives it. Not ok: the claim is absent or has
// another type.
func (c Claims) Text(name string) (text string, ok bool) {
	raw, given := c[name]
	if !given || len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		return text, json.Unmarshal(raw, &text) == nil
	case '{', '[', 'n':
		return "", false
	default:
		return string(raw), true
	}
}

// Unmet returns the names of the claims whose conditions in a rule the token does not meet, in the order of the conditions.
// Empty: the rule fits.
func Unmet(rule *model.TrustRule, claims Claims) []string {
	var unmet []string
	for _, condition := range rule.Spec.Match {
		text, given := claims.Text(condition.Claim)
		met := given && (condition.Is != "" && text == condition.Is || slices.Contains(condition.IsOneOf, text) ||
			condition.HasPrefix != "" && strings.HasPrefix(text, condition.HasPrefix))
		if !met {
			unmet = append(unmet, condition.Claim)
		}
	}
	return unmet
}
