package codec

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNumber bounds the numbers that are quoted, in digits.
const maxNumber = 40

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Misfits returns everything in a body that does not fit the type of into: values of a wrong type, and unknown fields,
// which are NotSupported. It is for bodies that Decode has refused; it finds nothing in a body that is not a JSON
// object, or was refused for another reason. Values are not quoted, since they may be secrets; only numbers are, where
// a whole number belongs.
func Misfits(body Body, into any) field.ErrorList {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body.JSON))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil || tree == nil {
		return nil
	}
	return misfits(tree, reflect.TypeOf(into), nil)
}

// misfits returns what does not fit a type in a JSON value.
func misfits(value any, goType reflect.Type, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	wrong := func(want string) field.ErrorList {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be "+want+", is "+named(value))}
	}
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	switch {
	case reflect.PointerTo(goType).Implements(jsonUnmarshaler):
		text, err := json.Marshal(value)
		if err != nil || json.Unmarshal(text, reflect.New(goType).Interface()) != nil {
			if goType == reflect.TypeFor[metav1.Time]() {
				return wrong("a time such as 2006-01-02T15:04:05Z")
			}
			return wrong("a " + strings.ToLower(goType.Name()))
		}
		return nil
	case reflect.PointerTo(goType).Implements(textUnmarshaler):
		if _, ok := value.(string); !ok {
			return wrong("a string")
		}
		return nil
	}
	switch goType.Kind() {
	case reflect.Struct:
		return misfitsOf(value, goType, path, wrong)
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		var problems field.ErrorList
		for _, key := range slices.Sorted(maps.Keys(object)) {
			problems = append(problems, misfits(object[key], goType.Elem(), path.Key(key))...)
		}
		return problems
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			text, ok := value.(string)
			if _, err := base64.StdEncoding.DecodeString(text); err != nil || !ok {
				return wrong("bytes in base64")
			}
			return nil
		}
		list, ok := value.([]any)
		if !ok {
			return wrong("a list")
		}
		var problems field.ErrorList
		for i, each := range list {
			problems = append(problems, misfits(each, goType.Elem(), path.Index(i))...)
		}
		return problems
	case reflect.String:
		if _, ok := value.(string); !ok {
			return wrong("a string")
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.Int32, reflect.Int64:
		number, _ := value.(json.Number)
		if _, err := strconv.ParseInt(number.String(), 10, goType.Bits()); err != nil {
			problems := wrong(fmt.Sprintf("a whole number of %d bits", goType.Bits()))
			if number != "" && len(number) < maxNumber {
				problems[0].Detail += ": " + number.String()
			}
			return problems
		}
	default:
		// The model has no other types. For those, the error of Decode is enough.
	}
	return nil
}

func misfitsOf(value any, goType reflect.Type, path *field.Path, wrong func(string) field.ErrorList) field.ErrorList {
	object, ok := value.(map[string]any)
	if !ok {
		return wrong("an object")
	}
	known := map[string]reflect.Type{}
	collect(goType, known)
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := path.Child(name)
		if path == nil {
			at = field.NewPath(name)
		}
		if inner, ok := known[name]; ok {
			problems = append(problems, misfits(object[name], inner, at)...)
			continue
		}
		problems = append(problems, &field.Error{
			Type: field.ErrorTypeNotSupported, Field: at.String(), BadValue: field.OmitValueType{}, Detail: "unknown field",
		})
	}
	return problems
}

// collect lists the fields of a struct by their JSON names, including those of inlined structs.
func collect(goType reflect.Type, into map[string]reflect.Type) {
	for i := range goType.NumField() {
		one := goType.Field(i)
		name, options, _ := strings.Cut(one.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "inline"), one.Anonymous && name == "":
			collect(one.Type, into)
		case name != "-":
			into[name] = one.Type
		}
	}
}

// named names the type of a JSON value.
func named(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	default:
		return "true or false"
	}
}
