package syncpatch

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Spec 2.8 (path); ADR-0013.
func TestPathForms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{".", ""},
		{"  ", ""},
		{" spec.a ", "spec.a"},
		{".spec.a", "spec.a"},
		{"spec.containers[*].name", "spec.containers.*.name"},
		{"spec.containers.*.name", "spec.containers.*.name"},
		{"[*]", "*"},
		{"[0][1]", "0.1"},
		{"a.[0].b", "a.0.b"},
		{"items.0.name", "items.0.name"},
		{`metadata.annotations["app.kubernetes.io/name"]`, `metadata.annotations."app.kubernetes.io/name"`},
		{`metadata.annotations['app.kubernetes.io/name']`, `metadata.annotations."app.kubernetes.io/name"`},
		{`spec.rules."a.b".1`, `spec.rules."a.b".1`},
		{`spec.rules.'a.b'[1]`, `spec.rules."a.b".1`},
		{`a["b"]`, "a.b"},
		{`a["0"]`, `a."0"`},
		{`a["*"]`, `a."*"`},
		{`a["it's"]`, `a."it's"`},
		{`a['say "x"']`, `a."say \"x\""`},
		{`a["say \"x\""]`, `a."say \"x\""`},
		{`a["back\slash"]`, `a."back\slash"`},
		{`a["b\\"]`, `a.b\`},
		{`a["x[0].y"]`, `a."x[0].y"`},
		{`größe.日本[2]`, `größe.日本.2`},
		{"a.01", "a.01"},
		{"a[99999999999999999999]", "a.99999999999999999999"},
		{"a.-1", "a.-1"},
	} {
		p, err := ParsePath(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		printed := p.String()
		again, err := ParsePath(printed)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q is printed as %q, which is %v (%v)", test.text, printed, again, err)
		}
		want, err := ParsePath(test.want)
		if err != nil || !reflect.DeepEqual(want, p) {
			t.Errorf("%q is %v, want %v (%v)", test.text, p, want, err)
		}
	}
}

func TestPathErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		column int
	}{
		{"a[]", 3},
		{`a[""]`, 3},
		{"a['']", 3},
		{`a.""`, 3},
		{"a[0", 2},
		{"a[", 2},
		{"a[-1]", 3},
		{"a[01]", 3},
		{"a[b]", 3},
		{"a[1x]", 3},
		{"a[99999999999999999999x]", 3},
		{"a]", 2},
		{"]", 1},
		{`a["b`, 3},
		{`a["b"`, 6},
		{`a["b"x]`, 6},
		{`a."b`, 3},
		{`a["b\"]`, 3},
		{"a..b", 3},
		{"..a", 2},
		{"a.", 3},
		{"a[0]b", 5},
		{`"a"b`, 4},
		{`a"b"`, 2},
		{"a*", 2},
		{"**", 1},
		{"a.b*c.d", 4},
		{"  größe..b", 9},
		{"a[[0]]", 3},
		{"a[0]]", 5},
		{"a[*", 2},
	} {
		_, err := ParsePath(test.text)
		var bad *PathError
		if !errors.As(err, &bad) {
			t.Errorf("%q is taken for a path", test.text)
			continue
		}
		if bad.Column != test.column {
			t.Errorf("%q: %v, want column %d", test.text, bad, test.column)
		}
	}
}

// visited returns the concrete paths that a path matches, and why it does not match more.
func visited(t *testing.T, text, object string) ([]string, string) {
	t.Helper()
	p, err := ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	w := walk{path: p, visit: func(at string, value any) (any, bool, error) {
		paths = append(paths, at)
		return value, false, nil
	}}
	if _, _, err := w.run(decode(t, object)); err != nil {
		t.Fatal(err)
	}
	return paths, w.missed
}

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, object string
		want         []string
	}{
		{"", `{"a":1}`, []string{""}},
		{"a", `{"a":null}`, []string{"a"}},
		{"a", `{"b":1}`, nil},
		{"a.b", `{"a":null}`, nil},
		{"a.b", `{"a":[1]}`, nil},
		{"a.0", `{"a":[1]}`, []string{"a.0"}},
		{"a[0]", `{"a":{"0":1}}`, []string{"a.0"}},
		{`a["0"]`, `{"a":[1]}`, nil},
		{`a["0"]`, `{"a":{"0":1}}`, []string{"a.0"}},
		{"a[1]", `{"a":[1]}`, nil},
		{"a.01", `{"a":[1,2]}`, nil},
		{"a.*", `{"a":{"c":1,"b":2,"a.b":3}}`, []string{`a."a.b"`, "a.b", "a.c"}},
		{`a["*"]`, `{"a":{"*":1,"b":2}}`, []string{`a."*"`}},
		{"*.*", `{"a":[1,{"x":1}],"b":{"c":1},"d":"text"}`, []string{"a.0", "a.1", "b.c"}},
		{"a[*].b[*].c", `{"a":[{"b":[{"c":1},{"d":1}]},{},{"b":{"x":{"c":2}}}]}`, []string{"a.0.b.0.c", "a.2.b.x.c"}},
		{"a[*]", `{"a":{"":1}}`, []string{`a.""`}},
	} {
		if got, _ := visited(t, test.path, test.object); !slices.Equal(got, test.want) {
			t.Errorf("%s in %s matches %q, want %q", test.path, test.object, got, test.want)
		}
	}
}

// The reason why a path matches nothing helps to repair it.
func TestMisses(t *testing.T) {
	t.Parallel()
	const object = `{"spec":{"Image":"x","list":[{"name":"a"},{}],"none":null,"empty":[],"map":{}}}`
	for _, test := range []struct{ path, want string }{
		{"status.a", `the object has no field "status"`},
		{"spec.image", `spec has no field "image"; did you mean "Image"?`},
		{"spec.Image.tag", `spec.Image is a string, and has no field "tag"`},
		{"spec.Image[*]", "spec.Image is a string, and * needs an array or a map"},
		{"spec.none.a", `spec.none is null, and has no field "a"`},
		{"spec.list.name", `spec.list is an array, and "name" is not an index; * matches every element`},
		{"spec.list[2].name", "spec.list has 2 elements, none at index 2"},
		{"spec.list[99999999999999999999]", "spec.list has 2 elements, none at index 99999999999999999999"},
		{"spec.list[*].env[*].name", `spec.list.0 has no field "env"`},
		{"spec.empty[*]", "spec.empty is empty"},
		{"spec.map.*", "spec.map is empty"},
	} {
		matches, missed := visited(t, test.path, object)
		if len(matches) > 0 || missed != test.want {
			t.Errorf("%s matches %q, and misses because %q; want %q", test.path, matches, missed, test.want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	remove := func(any) (any, bool) { return nil, true }
	odd := func(value any) (any, bool) { n, ok := value.(float64); return value, ok && int(n)%2 == 1 }
	for _, test := range []struct {
		path, object string
		change       func(any) (any, bool)
		want         string
	}{
		{"a[*]", `{"a":[1,2,3,4,5]}`, odd, `{"a":[2,4]}`},
		{"a[*]", `{"a":[1,3]}`, remove, `{"a":[]}`},
		{"a[1]", `{"a":[1,2,3]}`, remove, `{"a":[1,3]}`},
		{"a.*", `{"a":{"x":1,"y":2}}`, odd, `{"a":{"y":2}}`},
		{"*[*]", `{"a":[1,2],"b":[3]}`, odd, `{"a":[2],"b":[]}`},
		{"a[*][*]", `{"a":[[1,2],[3,4]]}`, odd, `{"a":[[2],[4]]}`},
	} {
		p, err := ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		w := walk{path: p, visit: func(_ string, value any) (any, bool, error) {
			result, remove := test.change(value)
			return result, remove, nil
		}}
		got, _, err := w.run(decode(t, test.object))
		if err != nil || !reflect.DeepEqual(got, decode(t, test.want)) {
			t.Errorf("%s makes %v (%v) of %s, want %s", test.path, got, err, test.object, test.want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", ".a", "spec.containers[*].name", `a["b.c"]['d'].e[0]`, `a."\\"`, "a[", "a..b", "*.*", "ä[1]", "\xff.a", `a."b\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			var bad *PathError
			if !errors.As(err, &bad) || bad.Column < 1 || bad.Column > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q: %v has no position in the text", text, err)
			}
			return
		}
		printed := p.String()
		again, err := ParsePath(printed)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%q is printed as %q, which reads as %v (%v)", text, printed, again, err)
		}
	})
}

// Each concrete path that a wildcard reports finds the same value alone.
func FuzzMatch(f *testing.F) {
	f.Add("a[*].b", `{"a":[{"b":1},{"b":null}]}`)
	f.Add("*.*", `{"a.b":{"c":1,"\"":[]},"*":{"0":1}}`)
	f.Add("[0]", `[[1]]`)
	f.Fuzz(func(t *testing.T, text, object string) {
		p, err := ParsePath(text)
		var value any
		if err != nil || json.Unmarshal([]byte(object), &value) != nil {
			t.Skip()
		}
		before, _ := json.Marshal(value)
		type match struct {
			at    string
			value any
		}
		var matches []match
		w := walk{path: p, visit: func(at string, value any) (any, bool, error) {
			matches = append(matches, match{at, value})
			return value, false, nil
		}}
		result, _, err := w.run(value)
		if after, _ := json.Marshal(result); err != nil || string(after) != string(before) {
			t.Fatalf("%s changes %s to %s (%v)", text, before, after, err)
		}
		for _, m := range matches {
			if strings.Contains(m.at, `""`) {
				continue // a key without characters has no path of its own
			}
			concrete, err := ParsePath(m.at)
			if err != nil {
				t.Fatalf("%s reports %s: %v", text, m.at, err)
			}
			var values []any
			alone := walk{path: concrete, visit: func(at string, value any) (any, bool, error) {
				if at != m.at {
					t.Fatalf("%s reports %s as %s", text, m.at, at)
				}
				values = append(values, value)
				return value, false, nil
			}}
			if _, _, err := alone.run(value); err != nil || len(values) != 1 || !reflect.DeepEqual(values[0], m.value) {
				t.Fatalf("%s of %s finds %v (%v), want %v", m.at, object, values, err, m.value)
			}
		}
	})
}
