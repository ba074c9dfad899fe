package resource

import (
	"bytes"
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/state/store"
)

// privateMember is the member of a stored text that the server keeps with an object and shows to no client. The object has no
// field for it, so that no answer, event or patch has it. Updates keep it like a member of a newer build. Source: ADR-0032.
const privateMember = "private"

// Private returns the private part of the object of a record: a text that UpdateInput.Private has stored. Empty: there is none.
// The caller of Update encrypts what is secret in it.
func Private(record store.Record) (string, error) {
	// This tells most records without decoding them. Quotes within a string are escaped.
	if !bytes.Contains(record.Object, []byte(`"`+privateMember+`":`)) {
		return "", nil
	}
	var text struct {
		Private string `json:"private"`
	}
	if err := json.Unmarshal(record.Object, &text); err != nil {
		return "", fmt.Errorf("reading the private part of %q: %w", record.Name, err)
	}
	return text.Private, nil
}

// withPrivate returns a text to store with another private part.
func withPrivate(text []byte, private string) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("storing a private part: %w", err)
	}
	value, err := json.Marshal(private)
	if err != nil {
		return nil, fmt.Errorf("storing a private part: %w", err)
	}
	members[privateMember] = value
	if text, err = json.Marshal(members); err != nil {
		return nil, fmt.Errorf("storing a private part: %w", err)
	}
	return text, nil
}
