package model_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// unheld are the types of files: no field of a kind has them.
var unheld = []reflect.Type{reflect.TypeFor[model.EndpointsSync]()}

// blocks returns the types of the names: the kinds, and the types in their fields.
func blocks(t *testing.T, named map[string][]string) map[string]reflect.Type {
	t.Helper()
	found := map[string]reflect.Type{}
	seen := map[reflect.Type]bool{}
	for _, goType := range kinds(t) {
		collect(t, goType, named, found, seen)
	}
	for _, goType := range unheld {
		if collect(t, goType, named, found, seen); found[goType.Name()] == nil {
			t.Errorf("testdata/fields.txt does not describe %s", goType.Name())
		}
	}
	return found
}

// collect adds a type, and the types in its fields, to found if they have one of the names.
func collect(t *testing.T, goType reflect.Type, named map[string][]string, found map[string]reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t, goType.Elem(), named, found, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[goType] || words[goType] != "" {
		return
	}
	seen[goType] = true
	if _, described := named[goType.Name()]; described {
		if other := found[goType.Name()]; other != nil {
			t.Errorf("testdata/fields.txt describes %s, which is the name of %s.%[1]s and of %s.%[1]s", goType.Name(), other.PkgPath(), goType.PkgPath())
		}
		found[goType.Name()] = goType
	}
	for i := range goType.NumField() {
		collect(t, goType.Field(i).Type, named, found, seen)
	}
}

// words are the types that become a single JSON value, whatever they are in Go.
var words = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():       "time",
	reflect.TypeFor[metav1.MicroTime]():  "time",
	reflect.TypeFor[metav1.Duration]():   "duration",
	reflect.TypeFor[metav1.FieldsV1]():   "any",
	reflect.TypeFor[model.JSON]():        "any",
	reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte]():            "bytes",

	reflect.TypeFor[secret.WriteOnlyBytes](): "bytes",
}

func TestFieldsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	var block string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case !strings.HasPrefix(line, " ") && !unicode.IsUpper(rune(line[0])):
			t.Fatalf("testdata/fields.txt, line %d: a field is indented: %s", number, strings.TrimSpace(line))
		case !strings.HasPrefix(line, " "):
			block = fields[0]
			if _, seen := want[block]; seen {
				t.Errorf("%s stands twice", block)
			}
			want[block] = []string{}
		default:
			want[block] = append(want[block], strings.TrimPrefix(strings.Join(fields, " "), "+ "))
		}
	}
	types := blocks(t, want)
	for name := range want {
		if _, found := types[name]; !found {
			t.Errorf("testdata/fields.txt describes %s: no kind has that name, and no field of a kind that type", name)
		}
	}
	for kind := range kinds(t) {
		if _, described := want[kind]; !described {
			t.Errorf("testdata/fields.txt does not describe the kind %s", kind)
		}
	}
	if t.Failed() {
		return
	}
	for name, goType := range types {
		got := paths(goType, "", types)
		for _, path := range got {
			if !slices.Contains(want[name], path) {
				t.Errorf("%s: the type has %q, the table has not", name, path)
			}
		}
		for _, path := range want[name] {
			if !slices.Contains(got, path) {
				t.Errorf("%s: the table has %q, the type has not", name, path)
			}
		}
	}
}

func paths(goType reflect.Type, prefix string, blocks map[string]reflect.Type) []string {
	var lines []string
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			lines = append(lines, paths(field.Type, prefix, blocks)...)
			continue
		}
		word, nested := describe(field.Type, blocks)
		lines = append(lines, prefix+name+" "+word)
		if nested != nil {
			lines = append(lines, paths(nested, prefix+name+strings.TrimSuffix(word, "object")+".", blocks)...)
		}
	}
	return lines
}

// describe returns the word of the table for a type, and the struct whose fields follow, if any.
func describe(goType reflect.Type, blocks map[string]reflect.Type) (string, reflect.Type) {
	if goType.Kind() == reflect.Pointer {
		return describe(goType.Elem(), blocks)
	}
	if word, found := words[goType]; found {
		return word, nil
	}
	if blocks[goType.Name()] == goType {
		return goType.Name(), nil
	}
	switch goType.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int32, reflect.Int64:
		return "integer", nil
	case reflect.Slice:
		word, nested := describe(goType.Elem(), blocks)
		return "[]" + word, nested
	case reflect.Map:
		word, nested := describe(goType.Elem(), blocks)
		return "{}" + word, nested
	case reflect.Struct:
		return "object", goType
	default:
		return "unknown " + goType.String(), nil
	}
}
