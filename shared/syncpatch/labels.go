package syncpatch

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

// The keys of labels that have a meaning on the host. Source: ADR-0013.
const (
	managedByLabel    = "platform.sh/managed-by"
	namespaceLabel    = "platform.sh/namespace"
	controlledByLabel = "platform.sh/controlled-by"
	releaseLabel      = "release"
)

// reservedLabels are the keys that a tenant may use and that have another name on the host.
var reservedLabels = []string{releaseLabel, managedByLabel, namespaceLabel, controlledByLabel}

// sameKeys is the reason of labels that are unchanged.
const sameKeys = "all keys are the same on both sides"

// labels translates the labels of one tenant. Source: Spec 2.8 (labels); ADR-0013.
type labels struct {
	// keys maps each key that is translated in this direction to its translation.
	keys map[string]string
	// markers are the labels that only the host has.
	markers  map[string]string
	toTenant bool
}

// newLabels returns the translation for an object in a namespace of the tenant cluster. The namespace of a
// cluster-scoped object is empty; it is marked with the tenant's namespace on the host instead.
func newLabels(n names, namespace string, toTenant bool) *labels {
	l := &labels{keys: map[string]string{}, markers: map[string]string{managedByLabel: n.tenant, namespaceLabel: namespace}, toTenant: toTenant}
	if namespace == "" {
		l.markers = map[string]string{managedByLabel: n.hostNamespace + "-x-" + n.tenant}
	}
	for _, key := range reservedLabels {
		digest := sha256.Sum256([]byte(key))
		onHost := "platform.sh/label-" + n.tenant + "-x-" + hex.EncodeToString(digest[:5])
		if toTenant {
			l.keys[onHost] = key
		} else {
			l.keys[key] = onHost
		}
	}
	return l
}

// rewrite is the rule of a labels patch.
func (l *labels) rewrite(value any) (change, error) {
	object, ok := value.(map[string]any)
	switch {
	case value == nil:
		return skipped("null has no labels"), nil
	case !ok:
		return change{}, unsuitable("the value is %s; it must be a map of labels or a label selector", kindOf(value))
	}
	_, matchLabels := object["matchLabels"]
	_, matchExpressions := object["matchExpressions"]
	if matchLabels || matchExpressions {
		return l.selector(object)
	}
	return l.all(object)
}

// all translates a map of labels, and adds or removes the markers.
func (l *labels) all(object map[string]any) (change, error) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch value := object[key].(type) {
		case map[string]any, []any:
			return change{}, unsuitable("the value of the label %q is %s", key, kindOf(value))
		}
	}
	if l.toTenant {
		delete(object, managedByLabel)
		delete(object, namespaceLabel)
		return change{value: l.rename(object), reason: sameKeys}, nil
	}
	renamed := l.rename(object)
	for key, value := range l.markers {
		renamed[key] = value
	}
	return change{value: renamed, reason: sameKeys}, nil
}

// rename returns the labels with their keys on the other side. Where two labels would have the same key, the
// translated one wins.
func (l *labels) rename(object map[string]any) map[string]any {
	renamed := make(map[string]any, len(object)+2)
	for key, value := range object {
		if _, translated := l.keys[key]; !translated {
			renamed[key] = value
		}
	}
	for key, value := range object {
		if to, translated := l.keys[key]; translated {
			renamed[to] = value
		}
	}
	return renamed
}

// selector translates the keys in both parts of a label selector.
func (l *labels) selector(object map[string]any) (change, error) {
	switch matchLabels := object["matchLabels"].(type) {
	case nil:
	case map[string]any:
		object["matchLabels"] = l.rename(matchLabels)
	default:
		return change{}, unsuitable("matchLabels is %s; it must be an object", kindOf(matchLabels))
	}
	switch matchExpressions := object["matchExpressions"].(type) {
	case nil:
	case []any:
		for i, entry := range matchExpressions {
			requirement, ok := entry.(map[string]any)
			key, isText := requirement["key"].(string)
			if !ok || !isText {
				return change{}, unsuitable("matchExpressions.%d has no key", i)
			}
			if to, translated := l.keys[key]; translated {
				requirement["key"] = to
			}
		}
	default:
		return change{}, unsuitable("matchExpressions is %s; it must be an array", kindOf(matchExpressions))
	}
	return change{value: object, reason: sameKeys}, nil
}
