package model

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// deprecated has the advice for each deprecated field, what to use instead, by type and by the field's name in Go. A test
// compares the list with the docstrings. Source: Spec 2.3, 2.5, 2.7, 9.
var deprecated = map[reflect.Type]map[string]string{
	reflect.TypeFor[ConfigStatus](): {
		"OIDC": "it is kept for old configurations", "WorkspaceSubDomain": "it is kept for old configurations",
	},
	reflect.TypeFor[OwnedAccessKeySpec](): {
		"Parent": "it is kept for old objects", "OIDCLogin": "use identity instead",
	},
	reflect.TypeFor[Scope](): {
		"Rules": "use projects, spaces and virtualClusters instead", "AllowPlatformCLI": "use the role platformCLI instead",
	},
}

// DeprecatedFields returns the deprecated fields that are set in the spec and the status of an object, a pointer to a
// struct. The keys are the paths of the fields; the values say what to use instead.
func DeprecatedFields(object any) map[string]string {
	advice := map[string]string{}
	value := reflect.ValueOf(object).Elem()
	for _, part := range partsOf(value.Type()) {
		if part.name == "spec" || part.name == "status" {
			addDeprecated(advice, part.name, value.Field(part.index))
		}
	}
	return advice
}

// part is a field of a struct that is deprecated, or that can hold a deprecated field. Source: Spec 9.
//
// +k8s:openapi-gen=false
type part struct {
	// index is the position of the field in the struct.
	index int
	// name is the name of the field in JSON.
	name string
	// advice says what to use instead if the field itself is deprecated.
	advice string
	// deprecated is true if the field itself is deprecated.
	deprecated bool
}

// parts keeps the result of partsOf for each type. Every write looks for deprecated fields in its object, and most structs
// have none.
var parts sync.Map

// partsOf returns the parts of a struct type.
func partsOf(kind reflect.Type) []part {
	if known, ok := parts.Load(kind); ok {
		return known.([]part)
	}
	var list []part
	for i := range kind.NumField() {
		field := kind.Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		advice, old := deprecated[kind][field.Name]
		if old || holdsDeprecated(field.Type, map[reflect.Type]bool{}) {
			list = append(list, part{index: i, name: name, advice: advice, deprecated: old})
		}
	}
	parts.Store(kind, list)
	return list
}

// holdsDeprecated reports whether a value of a type can hold a deprecated field. The struct types in seen contain this
// type, and are not entered again.
func holdsDeprecated(kind reflect.Type, seen map[reflect.Type]bool) bool {
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice:
		return holdsDeprecated(kind.Elem(), seen)
	case reflect.Struct:
		if len(deprecated[kind]) > 0 {
			return true
		}
		if seen[kind] {
			return false
		}
		seen[kind] = true
		for i := range kind.NumField() {
			if field := kind.Field(i); field.IsExported() && holdsDeprecated(field.Type, seen) {
				return true
			}
		}
	default:
	}
	return false
}

// addDeprecated adds the deprecated fields in a value at a path.
func addDeprecated(advice map[string]string, path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			addDeprecated(advice, path, value.Elem())
		}
	case reflect.Slice:
		if !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, value.Type().Elem().Kind()) {
			return
		}
		for i := range value.Len() {
			addDeprecated(advice, path+"["+strconv.Itoa(i)+"]", value.Index(i))
		}
	case reflect.Struct:
		for _, part := range partsOf(value.Type()) {
			field := value.Field(part.index)
			switch {
			case field.IsZero():
			case part.deprecated:
				advice[path+"."+part.name] = part.advice
			default:
				addDeprecated(advice, path+"."+part.name, field)
			}
		}
	default:
	}
}
