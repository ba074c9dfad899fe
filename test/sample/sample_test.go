package sample

import (
	"slices"
	"testing"

	"management.platform.sh/shared/platform"
)

// Each stored kind has an object, and no other resource has one.
func TestSpecsHaveEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range platform.StoredKinds {
		if specs[kind.Resource.Resource] == nil {
			t.Errorf("specs has no object of %s", kind.Resource.Resource)
		}
	}
	for resource := range specs {
		if !slices.ContainsFunc(platform.StoredKinds, func(kind platform.StoredKind) bool { return kind.Resource.Resource == resource }) {
			t.Errorf("specs has an object of %s, which is not stored", resource)
		}
	}
}
