package codec_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// entries is a list of numbers.
func entries(count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("1,", count), ",") + "]"
}

// named is an object with that many fields.
func named(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `,"f%d":{}`, i)
	}
	return "{" + strings.TrimPrefix(text.String(), ",") + "}"
}

// valued is an object with that many values.
func valued(count int) string {
	// The object, the list of lists, and full lists.
	const size = 1000
	left := count - 2
	var lists []string
	for left > size+1 {
		lists, left = append(lists, entries(size)), left-size-1
	}
	return `{"x":[` + strings.Join(append(lists, entries(left-1)), ",") + `]}`
}

func deep(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
}

// along is an object whose longest path has that many bytes.
func along(size int) string {
	return `{"abc":{"de":[{"` + strings.Repeat("x", size-len("abc.de..")) + `":1,"y":"` + strings.Repeat("z", limits.BodyPathBytes) + `"}]}}`
}

// Source: ADR-0020.
func TestBounds(t *testing.T) {
	for _, row := range []struct {
		sentence string
		body     string
		code     int32
		field    string
		found    int
	}{
		{"levels below the limit", deep(limits.BodyDepth - 1), 200, "", 0},
		{"levels at the limit", deep(limits.BodyDepth), 200, "", 0},
		{"levels above the limit", deep(limits.BodyDepth + 1), 400, "a" + strings.Repeat("[0]", 85) + "...", limits.BodyDepth + 1},
		{"far too many levels", deep(1_000_000), 400, "a" + strings.Repeat("[0]", 85) + "...", 1_000_000},
		{"far too many objects", strings.Repeat(`{"a":`, 100_000), 400, strings.Repeat(".a", limits.BodyDepth)[1:], 100_000},
		{"values below the limit", valued(limits.BodyValues - 1), 200, "", 0},
		{"values at the limit", valued(limits.BodyValues), 200, "", 0},
		{"values above the limit", valued(limits.BodyValues + 1), 413, "", limits.BodyValues + 1},
		{"entries at the limit", `{"a":{"b":` + entries(limits.BodyEntries) + `}}`, 200, "", 0},
		{"entries above the limit", `{"z":1,"a":{"b":` + entries(limits.BodyEntries+1) + `}}`, 413, "a.b", limits.BodyEntries + 1},
		{"fields at the limit", `{"metadata":` + named(limits.BodyEntries) + `}`, 200, "", 0},
		{"fields above the limit", `{"metadata":` + named(limits.BodyEntries+1) + `}`, 413, "metadata", limits.BodyEntries + 1},
		{"fields of the object at the limit", named(limits.BodyEntries), 200, "", 0},
		{"fields of the object above the limit", named(limits.BodyEntries + 1), 413, "", limits.BodyEntries + 1},
		{"a path at the limit", along(limits.BodyPathBytes), 200, "", 0},
		{"a path above the limit", along(limits.BodyPathBytes + 1), 413, "abc.de[0]." + strings.Repeat("x", limits.FaultBytes/4-len("abc.de[0].")) + "...", limits.BodyPathBytes + 1},
		{"brackets in texts", `{"a":"` + strings.Repeat(`[{\"`, 1000) + `","b":"\\","c":["]"]}`, 200, "", 0},
		{"a text that does not end", `{"a":"` + strings.Repeat("[,", 100_000), 200, "", 0},
		{"brackets that nothing opened", strings.Repeat("]}", 1000) + deep(limits.BodyDepth), 200, "", 0},
		{"nothing", "", 200, "", 0},
	} {
		err := codec.Bounded([]byte(row.body))
		if code(err) != row.code {
			t.Errorf("%s: %d, %v", row.sentence, code(err), err)
			continue
		}
		if err == nil {
			continue
		}
		var at string
		if status := apierror.From(err).Status(); status.Details != nil && len(status.Details.Causes) > 0 {
			at = status.Details.Causes[0].Field
		}
		if at != row.field || !strings.Contains(err.Error(), fmt.Sprint(row.found)) {
			t.Errorf("%s: %q: %v", row.sentence, at, err)
		}
	}
}

// A JSON patch is bounded by its operations, and by what parsing it level by level costs.
func TestBoundedPatch(t *testing.T) {
	// within is a patch whose lists and objects have that many bytes together.
	within := func(size int) string {
		const levels = 32
		frame := levels * (levels + 1)
		text := (size - frame) / levels
		return strings.Repeat("[", levels) + `"` + strings.Repeat("x", text-2) + `"` + strings.Repeat("]", levels)
	}
	for _, row := range []struct {
		sentence string
		patch    string
		code     int32
	}{
		{"many operations", entries(limits.BodyEntries + 1), 200},
		{"a list of an operation", "[" + entries(limits.BodyEntries+1) + "]", 413},
		{"levels at the limit", within(limits.PatchNestedBytes), 200},
		{"levels above the limit", within(limits.PatchNestedBytes + 32), 413},
		{"too deep", deep(limits.BodyDepth + 1), 400},
	} {
		if err := codec.BoundedPatch([]byte(row.patch)); code(err) != row.code {
			t.Errorf("%s: %v", row.sentence, err)
		}
	}
}

// YAML is bounded before it is parsed.
func TestBoundedYAML(t *testing.T) {
	marks := func(count int) string { return "x: " + strings.Repeat("\n", count-1) }
	aliases := func(count int) string { return "a: &a 1\nb: [" + strings.Repeat("*a,", count) + "]\n# **a** * a 2*a\n" }
	directives := func(count int) string {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, "%%TAG !a%d! b\n", i)
		}
		return text.String() + "---\na: 1\n"
	}
	for _, row := range []struct {
		sentence string
		text     string
		code     int32
	}{
		{"marks at the limit", marks(limits.YAMLMarks), 200},
		{"marks above the limit", marks(limits.YAMLMarks + 1), 413},
		{"marks and levels above the limit", "x: " + strings.Repeat("[", limits.YAMLMarks), 400},
		{"aliases at the limit", aliases(limits.YAMLAliases), 200},
		{"aliases above the limit", aliases(limits.YAMLAliases + 1), 413},
		{"directives at the limit", directives(limits.YAMLDirectives), 200},
		{"directives above the limit", directives(limits.YAMLDirectives + 1), 400},
		{"values of aliases above the limit", "c: " + entries(5000) + "\na: &a " + entries(1000) + "\nb: [" + strings.Repeat("*a,", 150) + "]\n", 413},
	} {
		if _, err := codec.Read(codec.YAML, []byte(row.text)); code(err) != row.code {
			t.Errorf("%s: %v", row.sentence, err)
		}
	}
}

// Both ways to read a body are bounded, in every media type.
func TestBoundedBodies(t *testing.T) {
	for about, text := range map[string]string{
		"levels": deep(limits.BodyDepth + 1), "values": valued(limits.BodyValues + 1), "entries": `{"a":` + entries(limits.BodyEntries+1) + `}`,
		"paths": along(limits.BodyPathBytes + 1),
	} {
		for _, media := range []string{codec.JSON, codec.YAML} {
			if _, err := codec.Read(media, []byte(text)); code(err) != 400 && code(err) != 413 {
				t.Errorf("%s in %s: %v", about, media, err)
			}
		}
		if _, err := codec.Decode(codec.Body{JSON: []byte(text)}, &model.OwnedAccessKey{}, codec.Warn); code(err) != 400 && code(err) != 413 {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// FuzzBounded: the scan counts what a decoder of JSON finds.
func FuzzBounded(f *testing.F) {
	for _, seed := range append(slices.Clone(seeds), deep(20), deep(limits.BodyDepth+1), named(20), valued(100), `{"a\"":{"b":[[],{}]},"c":[1,"\\",null]}`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := codec.Bounded(text)
		var tree any
		if json.Unmarshal(text, &tree) != nil {
			return
		}
		levels, most := 0, 0
		var walk func(value any, level int)
		walk = func(value any, level int) {
			levels = max(levels, level)
			switch value := value.(type) {
			case []any:
				most = max(most, len(value))
				for _, each := range value {
					walk(each, level+1)
				}
			case map[string]any:
				most = max(most, len(value))
				for _, each := range value {
					walk(each, level+1)
				}
			}
		}
		walk(tree, 0)
		if levels > limits.BodyDepth+1 || most > limits.BodyEntries {
			if err == nil {
				t.Errorf("%d levels and %d entries are within the bounds: %s", levels, most, text)
			}
		} else if levels < limits.BodyDepth && len(text) < limits.BodyPathBytes && err != nil {
			t.Errorf("%d levels and %d entries: %v: %s", levels, most, err, text)
		}
	})
}
