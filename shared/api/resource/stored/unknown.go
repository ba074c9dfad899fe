package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// KeepUnknown returns the text to store for an object that replaces a stored one, with the fields that
// this build does not know. Functions are deployed one by one, so that an older one may rewrite what a
// newer one wrote. Stored is the text in the store, known what this build understands of it, and updated
// the replacement. A field is unknown when it is in stored and not in known; a list that the update
// changes keeps the unknown fields of the entries that are still in it.
func KeepUnknown(stored, known, updated []byte) ([]byte, error) {
	if bytes.Equal(stored, known) {
		return updated, nil
	}
	// The last is for a comparison: merge changes the one before it.
	var values [4]any
	for i, text := range [][]byte{stored, known, updated, updated} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, fmt.Errorf("keeping unknown fields: %w", err)
		}
	}
	if fields, isObject := values[0].(map[string]any); isObject {
		// A build that does not know the member has kept it, for another text.
		delete(fields, markMember)
	}
	merged := merge(values[0], values[1], values[2])
	if reflect.DeepEqual(merged, values[3]) {
		return updated, nil
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("keeping unknown fields: %w", err)
	}
	return text, nil
}

func merge(stored, known, updated any) any {
	if reflect.DeepEqual(known, updated) {
		return stored
	}
	switch updated := updated.(type) {
	case map[string]any:
		storedMap, ok := stored.(map[string]any)
		knownMap, isMap := known.(map[string]any)
		if !ok || !isMap {
			return updated
		}
		for key, value := range storedMap {
			if before, isKnown := knownMap[key]; !isKnown {
				if _, taken := updated[key]; !taken {
					updated[key] = value
				}
			} else if after, kept := updated[key]; kept {
				updated[key] = merge(value, before, after)
			}
		}
	case []any:
		storedList, ok := stored.([]any)
		knownList, isList := known.([]any)
		if !ok || !isList || len(storedList) != len(knownList) {
			return updated
		}
		// Entries that are the same to this build are matched in their order.
		taken := make([]bool, len(knownList))
		for i, entry := range updated {
			for j, before := range knownList {
				if !taken[j] && reflect.DeepEqual(entry, before) {
					updated[i], taken[j] = storedList[j], true
					break
				}
			}
		}
	}
	return updated
}
