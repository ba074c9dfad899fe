package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// WriteOnly is a secret text that clients send and no answer returns. Like a String it prints as Mark through fmt and
// log/slog; unlike a String it is plain in JSON, so that clients can send it. Remove it from an object before you
// answer with that. Source: ADR-0017.
type WriteOnly string

// Format prints Mark for every verb and flag.
func (s WriteOnly) Format(state fmt.State, verb rune) { String(s).Format(state, verb) }

// LogValue is what log/slog prints.
func (s WriteOnly) LogValue() slog.Value { return String(s).LogValue() }

// WriteOnlyBytes is a WriteOnly of bytes: base64 in JSON. Source: ADR-0017.
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
