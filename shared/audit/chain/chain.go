// Package chain links the lines of an audit log: each names the hash of the one before, across backups and restarts, so
// that Verify finds what was changed, removed or put elsewhere. The head of the chain is kept beside the file and, where
// there is one, in an anchor that whoever can write the files cannot reach: only that shows a chain that was made anew
// as a whole. It writes no file. Source: ADR-0016.
package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Name is the file that is written to, and HeadName the one beside it that holds the head. Backups are called
// audit-TIME-size.log, with .gz behind it where they are compressed.
const (
	Name     = "audit.log"
	HeadName = "audit.head"
)

// Annotations of events in files. Source: ADR-0016.
const (
	// Sequence counts the events of a directory from 1 on.
	Sequence = "audit.management.platform.sh/sequence"
	// Previous is the SHA-256 of the line before, without its end, in hexadecimal; empty in the first one.
	Previous = "audit.management.platform.sh/previous"
	// Begins is on the first event of each file, as "true": where old files were removed, a log begins with such a one.
	Begins = "audit.management.platform.sh/begins-file"
)

// Place is that of an event in the chain.
type Place struct {
	Sequence int64
	Previous string
	Begins   bool
}

// Head is the end of a chain.
type Head struct {
	// Sequence is that of the last event. 0: there is none.
	Sequence int64
	// Hash is the SHA-256 of its line in hexadecimal.
	Hash string
}

// String is "sequence hash", as HeadName holds it.
func (h Head) String() string { return fmt.Sprintf("%020d %s", h.Sequence, h.Hash) }

// ParseHead reads what String writes.
func ParseHead(text string) (Head, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(text), " ")
	sequence, err := strconv.ParseInt(number, 10, 64)
	raw, hexErr := hex.DecodeString(hash)
	if err != nil || hexErr != nil || sequence < 1 || len(raw) != sha256.Size {
		return Head{}, fmt.Errorf("%q is not the head of a chain: it is a number and 64 hexadecimal digits", text)
	}
	return Head{Sequence: sequence, Hash: hash}, nil
}

// Anchor keeps the head of a directory's chain in another place.
type Anchor interface {
	// Load returns the head of the chain in a directory; the zero value where there is none.
	Load(ctx context.Context, directory string) (Head, error)
	// Save replaces it.
	Save(ctx context.Context, directory string, head Head) error
}

// Link adds the place in the chain to an event, as its last annotations. It begins a file or does not.
func Link(text []byte, after Head, begins bool) []byte {
	place := fmt.Sprintf(`%q:"%d",%q:%q`, Sequence, after.Sequence+1, Previous, after.Hash)
	if begins {
		place += fmt.Sprintf(`,%q:"true"`, Begins)
	}
	line := make([]byte, 0, len(text)+len(place)+20)
	// Annotations are the last field of an event; one that has some ends with both braces.
	if bytes.HasSuffix(text, []byte(`"}}`)) {
		line = append(line, text[:len(text)-2]...)
		line = append(append(line, ','), place...)
		return append(line, "}}"...)
	}
	line = append(line, text[:len(text)-1]...)
	line = append(line, `,"annotations":{`...)
	return append(append(line, place...), "}}"...)
}

// PlaceOf reads the place of a line in the chain.
func PlaceOf(line []byte) (Place, error) {
	var event struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Place{}, fmt.Errorf("reading an event: %w", err)
	}
	sequence, err := strconv.ParseInt(event.Annotations[Sequence], 10, 64)
	if err != nil || sequence < 1 {
		return Place{}, fmt.Errorf("an event has no %s", Sequence)
	}
	return Place{Sequence: sequence, Previous: event.Annotations[Previous], Begins: event.Annotations[Begins] == "true"}, nil
}

// HashOf is the hash of a line, without its end.
func HashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
