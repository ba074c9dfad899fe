package model

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// deprecated are the deprecated fields: what to use instead, by type and by the name of the field in Go. A test compares
// the list with the docstrings. Source: Spec 2.3, 2.5, 2.7, 9.
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

// DeprecatedFields returns the deprecated fields that are set in an object, a pointer to a struct: what to use instead, by
// the path of the field. It looks at the spec and the status.
func DeprecatedFields(object any) map[string]string {
	found := map[string]string{}
	value := reflect.ValueOf(object).Elem()
	for _, name := range []string{"Spec", "Status"} {
		if part := value.FieldByName(name); part.IsValid() {
			addDeprecated(found, strings.ToLower(name), part)
		}
	}
	return found
}

// addDeprecated adds the deprecated fields in a value at a path.
func addDeprecated(found map[string]string, path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			addDeprecated(found, path, value.Elem())
		}
	case reflect.Slice:
		if !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Pointer}, value.Type().Elem().Kind()) {
			return
		}
		for i := range value.Len() {
			addDeprecated(found, path+"["+strconv.Itoa(i)+"]", value.Index(i))
		}
	case reflect.Struct:
		kind := value.Type()
		for i := range kind.NumField() {
			field := kind.Field(i)
			if !field.IsExported() || value.Field(i).IsZero() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			at := path + "." + name
			if advice, old := deprecated[kind][field.Name]; old {
				found[at] = advice
				continue
			}
			addDeprecated(found, at, value.Field(i))
		}
	default:
	}
}
