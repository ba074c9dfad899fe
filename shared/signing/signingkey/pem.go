package signingkey

import (
	"fmt"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings/keypem"
	"management.platform.sh/shared/signing/token"
)

// parsePEM returns the keys of a text that the operator manages. The first key signs, and all of them are published. It
// returns the errors of keypem.Parse, which name a key by its position and quote none.
func parsePEM(text secret.String) (*Set, error) {
	keys, err := keypem.Parse(text)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for i, key := range keys {
		public, err := token.NewJWK(key.Public)
		if err == nil && i == 0 {
			set.Signing, err = token.NewSigningKey(key.Private)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %d: %w", i+1, err)
		}
		set.Public.Keys = append(set.Public.Keys, public)
	}
	return set, nil
}
