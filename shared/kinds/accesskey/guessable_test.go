package accesskey

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"management.platform.sh/shared/model/secret"
)

// Texts that people make up are refused, and random texts are not. Source: ADR-0022.
func TestGuessable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("a", 32), strings.Repeat("a", 256), strings.Repeat("ab", 16), strings.Repeat("Passw0rd-", 4),
		strings.Repeat("a", 31) + "b", "0123456789-0123456789-0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
		"zyxwvutsrqponmlkjihgfedcba9876543210", "qwertyuiopQWERTYUIOPasdfghjklASDF", "aabbccddeeffgghhiijjkkllmmnnoopp",
		"a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6", "13579135791357913579135791357913", "01101001100101101001011001101001",
		"00000000-0000-0000-0000-000000000001", "deadbeefdeadbeefdeadbeefdeadbeef", "correct-horse-battery-staple-now",
		"2026-11-22T17:36:20Z-2026-11-22T17:36:20Z", "my-secret-key-for-the-platform-1234", strings.Repeat("~", 32),
	} {
		if err := checkGuessable(secret.String(text)); err == nil {
			t.Errorf("%q is accepted, worth %.0f bits", text, EstimateBits(text))
		} else if strings.Contains(err.Error(), text) {
			t.Errorf("the error quotes it: %v", err)
		}
	}
	own := "pak_" + strings.Repeat("A", randomLength)
	own += string(checksum([]byte(own)))
	if CheckBearer(secret.String(own)) != nil || checkGuessable(secret.String(own)) == nil {
		t.Error("the form of the server's own keys makes a text that is easy to guess acceptable")
	}
	random := rand.NewChaCha8([32]byte{22})
	for range 500 {
		var bits [16]byte
		if _, err := io.ReadFull(random, bits[:]); err != nil {
			t.Fatal(err)
		}
		bits[6], bits[8] = bits[6]&0x0f|0x40, bits[8]&0x3f|0x80
		made, err := NewBearer(random)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			fmt.Sprintf("%x", bits), fmt.Sprintf("%X", bits), fmt.Sprintf("%x-%x-%x-%x-%x", bits[:4], bits[4:6], bits[6:8], bits[8:10], bits[10:]), made.Reveal(),
		} {
			if err := checkGuessable(secret.String(text)); err != nil {
				t.Errorf("%q is refused, worth %.0f bits", text, EstimateBits(text))
			}
		}
	}
}
