package syncpatch

import (
	"maps"
	"strings"
)

// auto is the value of enabled for resources that are synced if another part of the configuration needs them.
const auto = "auto"

// synced are the resources that a configuration may have patches for, and the defaults of their field enabled: true,
// false or auto. Custom resources are not listed: they are synced because the configuration names them. Source: Spec
// 2.8 (endpoints, services); ADR-0013.
var synced = map[string]map[string]any{
	toHost: {
		"configMaps": true, "endpointSlices": true, "endpoints": true, gatewayAPI: false,
		gatewayAPI + ".backendTLSPolicies": false, gatewayAPI + ".gateways": false, gatewayAPI + ".httpRoutes": false,
		gatewayAPI + ".referenceGrants": auto, gatewayAPI + ".tlsRoutes": false, "ingresses": false, "namespaces": false,
		"networkPolicies": false, "persistentVolumeClaims": true, "persistentVolumes": false, "podDisruptionBudgets": false,
		"pods": true, "priorityClasses": false, "resourceClaimTemplates": false, "resourceClaims": false, "secrets": true,
		"serviceAccounts": false, "services": true, "storageClasses": false, "volumeSnapshotContents": false,
		"volumeSnapshots": false,
	},
	fromHost: {
		"configMaps": false, "csiDrivers": auto, "csiNodes": auto, "csiStorageCapacities": auto, "deviceClasses": false,
		"events": true, "gatewayClasses": false, "gateways": false, "ingressClasses": false, "nodes": false,
		"priorityClasses": false, "runtimeClasses": false, "secrets": false, "storageClasses": auto,
		"volumeSnapshotClasses": false,
	},
}

// isReversed reports whether the patches of a resource below fromHost are a reverseExpression, as in every patch from
// host to tenant. The patches of the other resources are an expression, or a reverseExpression if there is no
// expression. Source: ADR-0013.
func isReversed(name string) bool {
	return name == "configMaps" || name == "secrets" || strings.HasPrefix(name, customResources+".")
}

// defaults has the fields of a configuration that sets nothing, as far as this package uses them: enabled of each
// resource. It must not be changed.
var defaults = func() map[string]any {
	sync := map[string]any{}
	for side, resources := range synced {
		below := map[string]any{}
		for name, enabled := range resources {
			set(below, enabled, append(strings.Split(name, "."), "enabled"))
		}
		sync[side] = below
	}
	return map[string]any{"sync": sync}
}()

// set sets a value below an object, and creates the objects on the way.
func set(object map[string]any, value any, path []string) {
	for ; len(path) > 1; path = path[1:] {
		below, ok := object[path[0]].(map[string]any)
		if !ok {
			below = map[string]any{}
			object[path[0]] = below
		}
		object = below
	}
	object[path[0]] = value
}

// merge returns an object with defaults for the fields that it does not set. A null field counts as not set. Neither
// argument is changed, and the result shares parts of both. Source: Spec 2.8 rule 5.
func merge(object, defaults map[string]any) map[string]any {
	merged := maps.Clone(defaults)
	for name, value := range object {
		of, isObject := value.(map[string]any)
		byDefault, hasDefaults := defaults[name].(map[string]any)
		switch {
		case value == nil && defaults[name] != nil:
		case isObject && hasDefaults:
			merged[name] = merge(of, byDefault)
		default:
			merged[name] = value
		}
	}
	return merged
}
