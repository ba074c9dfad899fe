package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model"
)

// warn returns the warnings for the writer of an object: the warnings of its rules, and one for each finalizer without a domain
// and each deprecated field that the write adds. Old is the object before the write; at a create, it has none of these.
// Source: Spec 2.2; ADR-0004.
func (r *Registry[T]) warn(object, old T) []string {
	warnings := r.Rules.Warn(object)
	var none T
	var finalizers []string
	before := map[string]string{}
	if any(old) != any(none) {
		finalizers, before = old.GetFinalizers(), model.DeprecatedFields(old)
	}
	for _, finalizer := range object.GetFinalizers() {
		if !strings.Contains(finalizer, "/") && !gc.IsPropagation(finalizer) && !slices.Contains(finalizers, finalizer) {
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) "+
				"to avoid accidental conflicts with other finalizer writers", finalizer))
		}
	}
	after := model.DeprecatedFields(object)
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, had := before[path]; !had {
			warnings = append(warnings, path+": deprecated: "+after[path])
		}
	}
	return warnings
}
