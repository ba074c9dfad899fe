package platformconfig

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/codec"
)

// decode fills into from a body, and returns all that is wrong with its form: unknown and duplicate fields and
// values of a wrong type, wherever they are. What could be read is in into then. The error is for a body that
// is no object at all.
func decode(body codec.Body, into any) (field.ErrorList, error) {
	_, err := codec.Decode(body, into, codec.Strict)
	if err == nil {
		return nil, nil
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body.JSON))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil || tree == nil {
		return nil, err
	}
	problems := misshapen(tree, reflect.TypeOf(into), nil)
	// Duplicates are gone from the tree; the decoder has told of them.
	if known, ok := errors.AsType[*apierror.Error](err); ok && known.Status().Details != nil {
		for _, cause := range known.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeFieldValueDuplicate {
				problems = append(problems, &field.Error{
					Type: field.ErrorTypeDuplicate, Field: cause.Field, BadValue: field.OmitValueType{}, Detail: "is given twice",
				})
			}
		}
	}
	if len(problems) == 0 {
		return nil, err
	}
	// The first value of a wrong type is an error that does not keep the rest from being read.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(body.JSON, into)
	return problems, nil
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// misshapen returns what of a JSON value does not fit into a type.
func misshapen(value any, goType reflect.Type, path *field.Path) field.ErrorList {
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
		return misshapenObject(value, goType, path, wrong)
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		var problems field.ErrorList
		for _, key := range slices.Sorted(maps.Keys(object)) {
			problems = append(problems, misshapen(object[key], goType.Elem(), path.Key(key))...)
		}
		return problems
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return wrong("a list")
		}
		var problems field.ErrorList
		for i, each := range list {
			problems = append(problems, misshapen(each, goType.Elem(), path.Index(i))...)
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
			return wrong(fmt.Sprintf("a whole number of %d bits", goType.Bits()))
		}
	default:
		panic("platformconfig: the model has a field of type " + goType.String())
	}
	return nil
}

func misshapenObject(value any, goType reflect.Type, path *field.Path, wrong func(string) field.ErrorList) field.ErrorList {
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
			problems = append(problems, misshapen(object[name], inner, at)...)
			continue
		}
		problems = append(problems, &field.Error{
			Type: field.ErrorTypeNotSupported, Field: at.String(), BadValue: field.OmitValueType{}, Detail: "unknown field",
		})
	}
	return problems
}

// collect lists the fields of a struct, those of inlined ones too, by their JSON names.
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

// named says what a JSON value is.
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

// beside drops the problems of fields that lie at or below those of others: what could not be read breaks rules
// that are none of its own.
func beside(problems, others field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(problems, func(problem *field.Error) bool {
		return slices.ContainsFunc(others, func(other *field.Error) bool {
			rest, below := strings.CutPrefix(problem.Field, other.Field)
			return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}
