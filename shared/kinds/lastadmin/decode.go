package lastadmin

import (
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/state/store"
)

// decode returns the user or the team of a record.
func decode[T any](record store.Record) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(record.Object, object); err != nil {
		return nil, fmt.Errorf("reading %q: %w", record.Name, err)
	}
	return object, nil
}
