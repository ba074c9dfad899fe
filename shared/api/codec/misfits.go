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

	"management.platform.sh/shared/model/apierror"
)

// maxNumber bounds the numbers that are quoted, in digits.
const maxNumber = 40

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Misfits returns everything in a body that does not fit the type of into: values of a wrong type, and unknown fields,
// which are NotSupported. It names the first ones and counts the others, as apierror.Faults does. It is for bodies that
// Decode has refused; it finds nothing in a body that is not a JSON object, or was refused for another reason. Values are
// not quoted, since they may be secrets; only numbers are, where a whole number belongs.
func Misfits(body Body, into any) field.ErrorList { return misfits(body, into, true) }

// misfits is Misfits, with or without the unknown fields.
func misfits(body Body, into any, unknown bool) field.ErrorList {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body.JSON))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil || tree == nil {
		return nil
	}
	f := &fitter{unknown: unknown, fields: map[reflect.Type]map[string]reflect.Type{}}
	f.fit(tree, reflect.TypeOf(into), nil)
	return f.faults.List()
}

// fitter compares JSON values with types.
type fitter struct {
	faults  apierror.Faults
	unknown bool
	// fields are the fields of the structs that were met.
	fields map[reflect.Type]map[string]reflect.Type
}

// wrong adds a value of a wrong type. Only the first faults need their texts.
func (f *fitter) wrong(value any, path *field.Path, want string) {
	f.faults.Add(func() *field.Error {
		return field.TypeInvalid(path, field.OmitValueType{}, "must be "+want+", is "+named(value))
	})
}

// fit adds what does not fit a type in a JSON value.
func (f *fitter) fit(value any, goType reflect.Type, path *field.Path) {
	if value == nil {
		return
	}
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	switch {
	case reflect.PointerTo(goType).Implements(jsonUnmarshaler):
		text, err := json.Marshal(value)
		if err != nil || json.Unmarshal(text, reflect.New(goType).Interface()) != nil {
			want := "a " + strings.ToLower(goType.Name())
			if goType == reflect.TypeFor[metav1.Time]() {
				want = "a time such as 2006-01-02T15:04:05Z"
			}
			f.wrong(value, path, want)
		}
		return
	case reflect.PointerTo(goType).Implements(textUnmarshaler):
		if _, ok := value.(string); !ok {
			f.wrong(value, path, "a string")
		}
		return
	}
	switch goType.Kind() {
	case reflect.Struct:
		f.fitStruct(value, goType, path)
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			f.wrong(value, path, "an object")
			return
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			f.fit(object[key], goType.Elem(), path.Key(key))
		}
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			text, ok := value.(string)
			if _, err := base64.StdEncoding.DecodeString(text); err != nil || !ok {
				f.wrong(value, path, "bytes in base64")
			}
			return
		}
		list, ok := value.([]any)
		if !ok {
			f.wrong(value, path, "a list")
			return
		}
		for i, each := range list {
			f.fit(each, goType.Elem(), path.Index(i))
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			f.wrong(value, path, "a string")
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			f.wrong(value, path, "true or false")
		}
	case reflect.Int32, reflect.Int64:
		number, _ := value.(json.Number)
		if _, err := strconv.ParseInt(number.String(), 10, goType.Bits()); err != nil {
			want, shown := fmt.Sprintf("a whole number of %d bits", goType.Bits()), ""
			if number != "" && len(number) < maxNumber {
				shown = ": " + number.String()
			}
			f.faults.Add(func() *field.Error {
				return field.TypeInvalid(path, field.OmitValueType{}, "must be "+want+", is "+named(value)+shown)
			})
		}
	default:
		// The model has no other types. For those, the error of Decode is enough.
	}
}

func (f *fitter) fitStruct(value any, goType reflect.Type, path *field.Path) {
	object, ok := value.(map[string]any)
	if !ok {
		f.wrong(value, path, "an object")
		return
	}
	goTypes := f.fields[goType]
	if goTypes == nil {
		goTypes = map[string]reflect.Type{}
		collect(goType, goTypes)
		f.fields[goType] = goTypes
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := path.Child(name)
		if path == nil {
			at = field.NewPath(name)
		}
		if inner, ok := goTypes[name]; ok {
			f.fit(object[name], inner, at)
		} else if f.unknown {
			f.faults.Add(func() *field.Error {
				return &field.Error{
					Type: field.ErrorTypeNotSupported, Field: at.String(), BadValue: field.OmitValueType{}, Detail: "unknown field",
				}
			})
		}
	}
}

// collect lists the fields of a struct by their JSON names, including the fields of inlined structs.
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
