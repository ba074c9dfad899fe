package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// WriteOnly is a secret text that clients send and no response contains. Like a String it prints as Mark through fmt and
// log/slog. Unlike a String it is clear text in JSON, so that clients can send it. Remove it from an object before the
// object goes into a response. Source: ADR-0017.
type WriteOnly string

// Format prints Mark for every verb and flag.
func (s WriteOnly) Format(state fmt.State, verb rune) { String(s).Format(state, verb) }

// LogValue is what log/slog prints.
func (s WriteOnly) LogValue() slog.Value { return String(s).LogValue() }

// WriteOnlyBytes is like WriteOnly, for bytes: base64 in JSON. Source: ADR-0017.
type WriteOnlyBytes []byte

// Format prints Mark for every verb and flag.
func (b WriteOnlyBytes) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, b.mark()) }

// LogValue is what log/slog prints.
func (b WriteOnlyBytes) LogValue() slog.Value { return slog.StringValue(b.mark()) }

func (b WriteOnlyBytes) mark() string {
	if len(b) == 0 {
		return ""
	}
	return Mark
}
