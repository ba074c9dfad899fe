package trustrule

import (
	"encoding/json"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// Claims are the claims of a token, as JSON.
type Claims map[string]json.RawMessage

// Text returns a claim as a text: a number or a boolean as JSON writes it. Not ok: the claim is absent or something else.
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

// Unmet returns the claims of a rule's conditions that the claims of a token do not meet, in their order. None: the rule fits.
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
