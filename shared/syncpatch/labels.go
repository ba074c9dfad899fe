package syncpatch

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// labelKeys are the keys of labels that have a meaning on the host. Source: ADR-0013, ADR-0048.
type labelKeys struct{ managedBy, namespace, controlledBy, translated, ofNamespaces string }

func labelKeysBelow(domain string) labelKeys {
	return labelKeys{
		managedBy: domain + "managed-by", namespace: domain + "namespace", controlledBy: domain + "controlled-by",
		translated: domain + "label-", ofNamespaces: domain + "ns-label",
	}
}

var neutralKeys, vclusterKeys = labelKeysBelow("platform.sh/"), labelKeysBelow("vcluster.loft.sh/")

// reserved are the keys that a tenant may use and that have another name on the host.
func (k labelKeys) reserved() []string {
	return []string{"release", k.managedBy, k.namespace, k.controlledBy}
}

// sameKeys is the reason of labels that are unchanged.
const sameKeys = "all keys are the same on both sides"

// labels translates the labels of one tenant. Source: Spec 2.8 (labels); ADR-0013, ADR-0048.
type labels struct {
	// keys maps each key that is translated in this direction to its translation.
	keys map[string]string
	// dropped are the keys that a map loses in this direction, in addition to the keys with droppedPrefix. An empty
	// prefix means that there are none.
	dropped       []string
	droppedPrefix string
	// markers are the labels that only the host has.
	markers  map[string]string
	toTenant bool
}

// newLabels returns the translation for an object in a namespace of the tenant cluster. A cluster-scoped object has no
// namespace; it is marked with the tenant's namespace on the host instead.
func newLabels(n names, namespace string, toTenant bool) *labels {
	keys, shorten := neutralKeys, func(text string) string { return text }
	if n.vcluster {
		keys, shorten = vclusterKeys, cutName
	}
	l := &labels{keys: map[string]string{}, markers: map[string]string{keys.managedBy: n.tenant, keys.namespace: namespace}, toTenant: toTenant}
	if namespace == "" {
		l.markers = map[string]string{keys.managedBy: shorten(n.hostNamespace + "-x-" + n.tenant)}
	}
	for _, key := range keys.reserved() {
		digest := sha256.Sum256([]byte(key))
		onHost := shorten(keys.translated + n.tenant + "-x-" + hex.EncodeToString(digest[:5]))
		if toTenant {
			l.keys[onHost] = key
		} else {
			l.keys[key] = onHost
		}
	}
	switch {
	case n.vcluster && toTenant:
		l.dropped, l.droppedPrefix = keys.reserved(), keys.ofNamespaces
	case n.vcluster:
		l.dropped = slices.Collect(maps.Values(l.keys))
	case toTenant:
		l.dropped = []string{keys.managedBy, keys.namespace}
	}
	return l
}

// rewrite is the rule of a labels patch.
func (l *labels) rewrite(value any) (change, error) {
	object, ok := value.(map[string]any)
	switch {
	case value == nil:
		return skipChange("null has no labels"), nil
	case !ok:
		return change{}, newValueError("the value is %s; it must be a map of labels or a label selector", kindOf(value))
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
			return change{}, newValueError("the value of the label %q is %s", key, kindOf(value))
		}
	}
	maps.DeleteFunc(object, func(key string, _ any) bool {
		return slices.Contains(l.dropped, key) || l.droppedPrefix != "" && strings.HasPrefix(key, l.droppedPrefix)
	})
	renamed := l.rename(object)
	if l.toTenant {
		return change{value: renamed, reason: sameKeys}, nil
	}
	for key, value := range l.markers {
		renamed[key] = value
	}
	return change{value: renamed, reason: sameKeys}, nil
}

// rename returns the labels with their keys on the other side. If two labels would have the same key, the translated
// one wins.
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
		return change{}, newValueError("matchLabels is %s; it must be an object", kindOf(matchLabels))
	}
	switch matchExpressions := object["matchExpressions"].(type) {
	case nil:
	case []any:
		for i, entry := range matchExpressions {
			requirement, ok := entry.(map[string]any)
			key, isText := requirement["key"].(string)
			if !ok || !isText {
				return change{}, newValueError("matchExpressions.%d has no key", i)
			}
			if to, translated := l.keys[key]; translated {
				requirement["key"] = to
			}
		}
	default:
		return change{}, newValueError("matchExpressions is %s; it must be an array", kindOf(matchExpressions))
	}
	return change{value: object, reason: sameKeys}, nil
}
