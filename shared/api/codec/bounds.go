package codec

import (
	"bytes"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// Bounded refuses a JSON text whose decoding would cost more than its size suggests: one that is nested too deep, has too
// many values, too many entries in one list or object, or too long a path. It reads the text once and allocates nothing
// that grows with it. It does not find malformed texts, but bounds them as well.
//
// Errors: BadRequest for the depth, RequestEntityTooLarge for the others. They name the field where one is to blame, the limit and
// the value found. Source: ADR-0020.
func Bounded(text []byte) error {
	return measure(text).check(true)
}

// BoundedPatch is Bounded for a JSON patch. The number of its operations has a bound of its own, which the caller checks.
func BoundedPatch(text []byte) error {
	found := measure(text)
	if err := found.check(false); err != nil {
		return err
	}
	if found.nested > limits.PatchNestedBytes {
		return tooLarge("", fmt.Sprintf("the patch has %d bytes, counted at each level; the limit is %d", found.nested, limits.PatchNestedBytes))
	}
	return nil
}

// shape is what bounds a JSON text.
type shape struct {
	depth, values int
	// nested is the sum of the sizes of all lists and objects.
	nested int
	// outermost is the number of entries of the outermost list or object.
	outermost int
	// entries and pathBytes are the maxima below that. The paths are the paths of the values that have them; both are empty
	// within their limits.
	entries, pathBytes int
	tooDeep, tooMany   string
	tooLong            string
}

func (s shape) check(all bool) error {
	switch {
	case s.depth > limits.BodyDepth:
		why := fmt.Sprintf("the body is nested %d levels deep; the limit is %d", s.depth, limits.BodyDepth)
		return apierror.BadRequest(why, field.ErrorList{{
			Type: field.ErrorTypeTooLong, Field: s.tooDeep, BadValue: field.OmitValueType{}, Detail: why,
		}})
	case all && s.outermost > limits.BodyEntries:
		return tooLarge("", fmt.Sprintf("the body has %d entries; the limit is %d", s.outermost, limits.BodyEntries))
	case s.entries > limits.BodyEntries:
		return tooLarge(s.tooMany, fmt.Sprintf("has %d entries; the limit is %d", s.entries, limits.BodyEntries))
	case s.values > limits.BodyValues:
		return tooLarge("", fmt.Sprintf("the body has %d values; the limit is %d", s.values, limits.BodyValues))
	case s.pathBytes > limits.BodyPathBytes:
		return tooLarge(s.tooLong, fmt.Sprintf("the path of a field has %d bytes; the limit is %d", s.pathBytes, limits.BodyPathBytes))
	default:
		return nil
	}
}

func tooLarge(at, why string) error {
	if at == "" {
		return apierror.TooLarge(why)
	}
	return apierror.TooLargeField(at, why)
}

// level is an open list or object.
type level struct {
	list bool
	// begins is the position of the bracket.
	begins int
	// entries counts the commas. path is the length of the path that leads here.
	entries, path int
	// name is the name of the current field, as it is written.
	name []byte
}

// measure reads a JSON text once. Levels beyond the maximum depth are counted and not remembered.
func measure(text []byte) shape {
	var found shape
	var levels [limits.BodyDepth]level
	depth := 0
	// naming reports whether the next text is the name of a field, and fresh whether the next byte may begin a value.
	naming, fresh := false, true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := closing(text, i+1)
			if naming {
				at := &levels[depth-1] //nolint:gosec // depth is within the levels
				at.name = text[i+1 : end]
				if length := at.path + len(at.name); length > found.pathBytes {
					if found.pathBytes = length; length > limits.BodyPathBytes {
						found.tooLong = pathOf(levels[:depth])
					}
				}
			} else if fresh {
				found.values++
			}
			naming, fresh = false, false
			i = end
		case '{', '[':
			if fresh {
				found.values++
			}
			if depth++; depth > found.depth {
				if found.depth = depth; depth == limits.BodyDepth+1 {
					found.tooDeep = pathOf(levels[:])
				}
			}
			naming, fresh = c == '{' && depth <= limits.BodyDepth, true
			if depth > limits.BodyDepth {
				continue
			}
			opened := level{list: c == '[', begins: i}
			if depth > 1 {
				// A position in a list counts as one byte.
				opened.path = levels[depth-2].path + len(levels[depth-2].name) + 1 //nolint:gosec // depth is within the levels
			}
			levels[depth-1] = opened //nolint:gosec // depth is within the levels
		case '}', ']':
			if depth > 0 {
				if depth--; depth < limits.BodyDepth {
					found.nested += i - levels[depth].begins + 1 //nolint:gosec // depth is within the levels
				}
			}
			naming, fresh = false, false
		case ',':
			fresh = true
			if depth == 0 || depth > limits.BodyDepth {
				continue
			}
			level := &levels[depth-1] //nolint:gosec // depth is within the levels
			naming = !level.list
			// The comma promises one more entry.
			if level.entries++; depth == 1 {
				found.outermost = max(found.outermost, level.entries+1)
			} else if level.entries+1 > found.entries {
				if found.entries = level.entries + 1; level.entries == limits.BodyEntries {
					found.tooMany = pathOf(levels[:depth-1])
				}
			}
		case ':':
			fresh = true
		default:
			if fresh {
				found.values++
			}
			fresh = false
		}
	}
	return found
}

// closing returns the position of the quote that ends a text which begins at a position; the end where there is none.
func closing(text []byte, from int) int {
	for {
		quote := bytes.IndexByte(text[from:], '"')
		if quote < 0 {
			return len(text)
		}
		escapes := 0
		for quote-escapes > 0 && text[from+quote-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return from + quote
		}
		from += quote + 1
	}
}

// pathOf returns the path of the current value of the innermost level, as field errors name it, truncated to what an error may say.
func pathOf(levels []level) string {
	const most = limits.FaultBytes / 4
	var path []byte
	for _, level := range levels {
		switch {
		case level.list:
			path = append(strconv.AppendInt(append(path, '['), int64(level.entries), 10), ']')
		case len(path) > 0:
			path = append(append(path, '.'), level.name...)
		default:
			path = append(path, level.name...)
		}
		if len(path) > most {
			return string(bytes.ToValidUTF8(path[:most], nil)) + "..."
		}
	}
	return string(path)
}

// boundedYAML refuses a YAML text that would cost too much to parse. A value or a key needs a mark before it, unless it is
// the first one: a comma, a colon, an opening bracket or the end of a line. Directives cost the square of their number.
func boundedYAML(text []byte) error {
	marks := 0
	for _, mark := range []byte(",:[{\n") {
		marks += bytes.Count(text, []byte{mark})
	}
	if marks > limits.YAMLMarks {
		// JSON is YAML as well: then, the depth is the better reason.
		if err := (shape{depth: measure(text).depth}).check(true); err != nil {
			return err
		}
		return apierror.TooLarge(fmt.Sprintf(
			"the YAML text has %d commas, colons, opening brackets and line ends; the limit is %d: send JSON instead", marks, limits.YAMLMarks))
	}
	switch aliases := aliasesIn(text); {
	case aliases > limits.YAMLAliases:
		return apierror.TooLarge(fmt.Sprintf("the YAML text has %d aliases; the limit is %d", aliases, limits.YAMLAliases))
	case aliases > 0 && marks > limits.YAMLAliasMarks:
		return apierror.TooLarge(fmt.Sprintf(
			"the YAML text has aliases and %d commas, colons, opening brackets and line ends; the limit is %d: write the values out",
			marks, limits.YAMLAliasMarks))
	}
	directives := bytes.Count(text, []byte("\n%")) + bytes.Count(text, []byte("\r%"))
	if bytes.HasPrefix(text, []byte("%")) {
		directives++
	}
	if directives > limits.YAMLDirectives {
		return apierror.BadRequest(fmt.Sprintf("the YAML text has %d lines that begin with %%; the limit is %d", directives, limits.YAMLDirectives), nil)
	}
	return nil
}

// aliasesIn counts the asterisks that may begin an alias: they follow a blank or a bracket, and a name follows them.
func aliasesIn(text []byte) int {
	count := 0
	for i := bytes.IndexByte(text, '*'); i >= 0; {
		if i > 0 && i+1 < len(text) && bytes.IndexByte([]byte(" \t\r\n,:[{-"), text[i-1]) >= 0 && bytes.IndexByte([]byte(" \t\r\n*"), text[i+1]) < 0 {
			count++
		}
		next := bytes.IndexByte(text[i+1:], '*')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return count
}
