package expression

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// toJS copies a JSON value into a realm, with keys in sorted order. An expression cannot change the original. Integers
// beyond 2^53 are rounded, as in all JavaScript.
func (r *realm) toJS(value any) goja.Value {
	switch v := value.(type) {
	case nil:
		return goja.Null()
	case map[string]any:
		object := r.runtime.NewObject()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			// __proto__ is an ordinary key of JSON, but Set would take it for the prototype.
			if err := object.DefineDataProperty(key, r.toJS(v[key]), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE); err != nil {
				panic(err)
			}
		}
		return object
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = r.toJS(item)
		}
		return r.runtime.NewArray(items...)
	default:
		return r.runtime.ToValue(v)
	}
}

// resultError says why a result is not JSON.
type resultError struct{ message string }

func (e *resultError) Error() string { return e.message }

func notJSON(format string, args ...any) error { return &resultError{fmt.Sprintf(format, args...)} }

// result converts the result of an expression to a JSON value, within the limits of size and depth.
type result struct {
	limits Limits
	// plain is the prototype of plain objects.
	plain *goja.Object
	size  int64
	above []*goja.Object
}

func (r *result) value(v goja.Value) (any, error) {
	if r.size += 4; r.size > r.limits.Result {
		return nil, r.limits.Exceeded(LimitResult)
	}
	if object, ok := v.(*goja.Object); ok {
		return r.object(object)
	}
	switch x := v.Export().(type) {
	case nil:
		return nil, nil
	case bool, int64:
		return x, nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, notJSON("the result contains %s, which JSON cannot represent", v)
		}
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), nil
		}
		return x, nil
	case string:
		if r.size += int64(len(x)); r.size > r.limits.Result {
			return nil, r.limits.Exceeded(LimitResult)
		}
		if text, ok := v.(goja.String); ok && strings.ContainsRune(x, utf8.RuneError) && hasHalfPair(text) {
			return nil, notJSON(halfPair)
		}
		return x, nil
	default:
		return nil, notJSON("the result contains a value that JSON cannot represent")
	}
}

// halfPair is the message for a text in which a character was cut. The halves are no characters, and would become
// U+FFFD.
const halfPair = "the result contains half of a surrogate pair, which JSON cannot represent; a character beyond U+FFFF has the length 2"

// hasHalfPair reports whether a text has a surrogate that is not in a pair.
func hasHalfPair(text goja.String) bool {
	for i := 0; i < text.Length(); i++ {
		first := rune(text.CharAt(i))
		if !utf16.IsSurrogate(first) {
			continue
		}
		if i++; i >= text.Length() || utf16.DecodeRune(first, rune(text.CharAt(i))) == utf8.RuneError {
			return true
		}
	}
	return false
}

func (r *result) object(o *goja.Object) (any, error) {
	if len(r.above) >= r.limits.Depth {
		return nil, r.limits.Exceeded(LimitDepth)
	}
	for _, above := range r.above {
		if above == o || above.Equals(o) {
			return nil, notJSON("the result contains an object that contains itself")
		}
	}
	r.above = append(r.above, o)
	defer func() { r.above = r.above[:len(r.above)-1] }()
	switch o.ClassName() {
	case "Array":
		length := o.Get("length").ToInteger()
		if 4*length > r.limits.Result {
			return nil, r.limits.Exceeded(LimitResult)
		}
		list := make([]any, length)
		for i := range list {
			item := o.Get(strconv.Itoa(i))
			if item == nil {
				item = goja.Null()
			}
			var err error
			if list[i], err = r.value(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case "Object":
		if prototype := o.Prototype(); prototype != nil && prototype != r.plain {
			return nil, notJSON("the result contains an object that is not a plain object, which JSON cannot represent")
		}
		keys := o.Keys()
		object := make(map[string]any, len(keys))
		for _, key := range keys {
			item := o.Get(key)
			if strings.ContainsRune(key, utf8.RuneError) {
				// Names of members with half of a pair are all equal here, and belong to no member.
				if _, again := object[key]; again || item == nil {
					return nil, notJSON(halfPair)
				}
			}
			if item == nil || goja.IsUndefined(item) {
				continue
			}
			r.size += int64(len(key))
			var err error
			if object[key], err = r.value(item); err != nil {
				return nil, err
			}
		}
		return object, nil
	default:
		kind := strings.ToLower(o.ClassName())
		if kind == "regexp" {
			kind = "regular expression"
		}
		return nil, notJSON("the result contains a %s, which JSON cannot represent", kind)
	}
}
