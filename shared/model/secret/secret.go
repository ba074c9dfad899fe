// Package secret has types for text that must not leak by accident. A String prints a fixed mark through fmt, log/slog and
// encoding/json, compares in constant time, and returns its text from Reveal only. It does not encrypt. It keeps secrets
// out of logs, errors and responses.
package secret

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Mark is what a non-empty String prints as, everywhere.
const Mark = "***"

// Parameters are the names of query parameters that hold a secret in a URL, as the alternatives of a case-insensitive
// regular expression. Source: ADR-0015.
const Parameters = "password|passwd|sslpassword|token|access_token|secret|client_secret|api_key"

// String is a secret text. Its zero value is "no secret" and prints as the empty string.
// Source: Spec 2.7 (secrets of the configuration); ADR-0003.
type String string

// Reveal returns the clear text. Call it only to build the response that delivers the secret, or to pass the text to a
// cryptographic function.
func (s String) Reveal() string { return string(s) }

// Equal compares in a time that depends only on the lengths.
func (s String) Equal(other String) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(other)) == 1
}

// InJSON returns the clear text as a JSON string without its quotes, to search for it in JSON that must not contain it.
func (s String) InJSON() []byte {
	text, _ := json.Marshal(string(s)) // a string can always be encoded
	return text[1 : len(text)-1]
}

// String returns Mark, or the empty string where there is no secret.
func (s String) String() string {
	if s == "" {
		return ""
	}
	return Mark
}

// Format prints Mark for every verb and flag, %#v, %x and %q included.
func (s String) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue returns Mark, or the empty string, for log/slog.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns Mark, or the empty string, for encoding/json and YAML. A String must not be a map key: encoding/json
// writes string keys in clear text.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the clear text.
func (s *String) UnmarshalText(text []byte) error {
	*s = String(text)
	return nil
}
