package platformconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// difference returns the fields in which two documents differ, with marks in place of secrets. A list counts as one field.
func difference(from, to *document) ([]model.ConfigChange, error) {
	fromLeaves, err := leaves(from)
	if err != nil {
		return nil, err
	}
	toLeaves, err := leaves(to)
	if err != nil {
		return nil, err
	}
	// All marks look the same, so compare the sealed texts to find secrets that differ.
	changedPaths := map[string]bool{}
	for _, sealed := range []struct{ of, other map[string]string }{{from.Sealed, to.Sealed}, {to.Sealed, from.Sealed}} {
		for path, value := range sealed.of {
			if sealed.other[path] != value {
				list, _, _ := strings.Cut(path, "[")
				changedPaths["status."+list] = true
			}
		}
	}
	for _, side := range []map[string][]byte{fromLeaves, toLeaves} {
		for path := range side {
			if !bytes.Equal(fromLeaves[path], toLeaves[path]) {
				changedPaths[path] = true
			}
		}
	}
	var changes []model.ConfigChange
	for _, path := range slices.Sorted(maps.Keys(changedPaths)) {
		change := model.ConfigChange{Path: path}
		if value, ok := fromLeaves[path]; ok {
			change.From = &model.JSON{Raw: value}
		}
		if value, ok := toLeaves[path]; ok {
			change.To = &model.JSON{Raw: value}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// leaves returns the values of a document that are not objects, by their paths: the fields of its status, its labels and its
// annotations.
func leaves(d *document) (map[string][]byte, error) {
	valuesByPath := map[string][]byte{}
	text, err := json.Marshal(map[string]any{
		"status": d.Status, "metadata": map[string]any{"labels": d.Metadata.Labels, "annotations": d.Metadata.Annotations},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return valuesByPath, collectLeaves(text, "", valuesByPath)
}

func collectLeaves(text []byte, path string, valuesByPath map[string][]byte) error {
	if text[0] != '{' {
		if string(text) != "null" {
			valuesByPath[path] = text
		}
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("comparing configurations: %w", err)
	}
	for name, value := range object {
		if path == "metadata.annotations" && name == model.LastAppliedAnnotation {
			continue // the manifest repeats the other fields
		}
		if err := collectLeaves(value, strings.TrimPrefix(path+"."+name, "."), valuesByPath); err != nil {
			return err
		}
	}
	return nil
}
