// Package chain links the lines of an audit log: each line contains the hash of the previous one, across backups and
// restarts, so that Verify finds events that were changed, removed or moved. The head of the chain is stored next to
// the file. An anchor, if there is one, stores it where the writers of the files cannot change it: only an anchor
// reveals a chain that was forged as a whole. Each writer of a log begins with an event about the beginning, and ends
// with one unless it is killed. The package writes no files. Source: ADR-0016.
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

	"management.platform.sh/shared/audit"
)

// Name is the current log file, and HeadName is the file next to it that contains the head. Backups have names of the
// form audit-TIME-size.log, followed by .gz if they are compressed.
const (
	Name     = "audit.log"
	HeadName = "audit.head"
)

// Annotations of events in files. Source: ADR-0016.
const (
	// Sequence is the number of an event in its directory, counted from 1.
	Sequence = "audit.management.platform.sh/sequence"
	// Previous is the SHA-256 of the previous line without its newline, in hexadecimal. It is empty in the first line.
	Previous = "audit.management.platform.sh/previous"
	// Begins marks the first event of each file with "true". If old files were removed, the log begins with such an event.
	Begins = "audit.management.platform.sh/begins-file"
)

// Place is the position of an event in the chain.
type Place struct {
	Sequence int64
	Previous string
	Begins   bool
	// Mark is the event's value of the annotation audit.Log, or empty.
	Mark string
}

// Head is the end of a chain.
type Head struct {
	// Sequence is the sequence number of the last event. 0 means that there are no events.
	Sequence int64
	// Hash is the SHA-256 of its line in hexadecimal.
	Hash string
}

// String returns "sequence hash", the content of the file HeadName.
func (h Head) String() string { return fmt.Sprintf("%020d %s", h.Sequence, h.Hash) }

// ParseHead parses the text that String returns.
func ParseHead(text string) (Head, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(text), " ")
	sequence, err := strconv.ParseInt(number, 10, 64)
	raw, hexErr := hex.DecodeString(hash)
	if err != nil || hexErr != nil || sequence < 1 || len(raw) != sha256.Size {
		return Head{}, fmt.Errorf("%q is not the head of a chain: a head is a number and 64 hexadecimal digits", text)
	}
	return Head{Sequence: sequence, Hash: hash}, nil
}

// Anchor stores the head of a directory's chain outside of the directory.
type Anchor interface {
	// Load returns the stored head of a directory's chain, or the zero value if there is none.
	Load(ctx context.Context, directory string) (Head, error)
	Save(ctx context.Context, directory string, head Head) error
}

// Link adds the place in the chain to an event, as its last annotations, and marks an event that begins a file.
func Link(text []byte, after Head, begins bool) []byte {
	place := fmt.Sprintf(`%q:"%d",%q:%q`, Sequence, after.Sequence+1, Previous, after.Hash)
	if begins {
		place += fmt.Sprintf(`,%q:"true"`, Begins)
	}
	line := make([]byte, 0, len(text)+len(place)+20)
	// Annotations are the last field of an event: an event with annotations ends with two braces.
	if bytes.HasSuffix(text, []byte(`"}}`)) {
		line = append(line, text[:len(text)-2]...)
		line = append(append(line, ','), place...)
		return append(line, "}}"...)
	}
	line = append(line, text[:len(text)-1]...)
	line = append(line, `,"annotations":{`...)
	return append(append(line, place...), "}}"...)
}

// PlaceOf returns the place of a line in the chain.
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
	return Place{
		Sequence: sequence, Previous: event.Annotations[Previous], Begins: event.Annotations[Begins] == "true",
		Mark: event.Annotations[audit.Log],
	}, nil
}

// HashOf returns the hash of a line without its newline.
func HashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
