// Package digest hashes several texts into one name. Names of records are such digests, so that the texts themselves are
// not in the state. It does not hash passwords: a digest is fast to compute, and so are guesses.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sum returns the SHA-256 of the texts, in hexadecimal. The texts are quoted before they are hashed, so that they cannot
// run into each other: ("ab", "c") and ("a", "bc") have different digests.
//
// The state has these digests, so that the hashed bytes must not change.
func Sum(texts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", texts))
	return hex.EncodeToString(sum[:])
}
