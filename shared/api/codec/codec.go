// Package codec decodes request bodies in JSON and YAML, with the three levels of field validation, and errors that
// name every wrong field. Source: Spec 2.1, 9; ADR-0003.
//
// Unknown fields are pruned, as custom resources prune them. The package does not validate values.
package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
)

// Media types of bodies.
const (
	JSON = "application/json"
	YAML = "application/yaml"
)

// Strictness says what happens to unknown and duplicate fields.
type Strictness string

// The values of the query parameter fieldValidation. Empty means Warn.
const (
	Ignore Strictness = "Ignore"
	Warn   Strictness = "Warn"
	Strict Strictness = "Strict"
)

// Body is a request body as JSON, with the faults that its conversion to JSON would hide.
type Body struct {
	// JSON is the text. It is valid UTF-8, and not parsed yet.
	JSON []byte
	// duplicates are the errors about duplicate keys of a YAML text.
	duplicates []error
	// bounded reports whether the text is within the bounds of Bounded.
	bounded bool
}

// Read returns a body as JSON. ContentType is the value of Content-Type; empty means JSON. Errors: UnsupportedMediaType for
// media types other than JSON and YAML; BadRequest for text that cannot be parsed or contains several YAML documents;
// RequestEntityTooLarge for YAML that is larger than a body may be after its aliases are resolved; the errors of Bounded.
func Read(contentType string, data []byte) (Body, error) {
	media := JSON
	if contentType != "" {
		parsed, _, err := mime.ParseMediaType(contentType)
		if err != nil {
			return Body{}, apierror.UnsupportedMediaType(contentType, JSON+", "+YAML)
		}
		media = parsed
	}
	if !utf8.Valid(data) {
		return Body{}, apierror.BadRequest("the body is not valid UTF-8", nil)
	}
	switch media {
	case JSON, "text/json":
		return Body{JSON: data, bounded: true}, Bounded(data)
	case YAML, "application/x-yaml", "text/yaml", "application/vnd.yaml":
		if err := checkYAML(data); err != nil {
			return Body{}, err
		}
		body := Body{bounded: true}
		converted, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			body.duplicates = yamlDuplicates(err)
			if converted, err = yaml.YAMLToJSON(data); err != nil {
				return Body{}, apierror.BadRequest("the body is not valid YAML: "+secret.YAMLError(err), nil)
			}
		}
		body.JSON = converted
		return body, Bounded(converted)
	default:
		return Body{}, apierror.UnsupportedMediaType(contentType, JSON+", "+YAML)
	}
}

// checkYAML refuses several documents, of which the conversion to JSON would drop all but the first, and aliases that repeat
// long texts. The YAML library itself refuses aliases that repeat many values.
func checkYAML(data []byte) error {
	if err := boundedYAML(data); err != nil {
		return err
	}
	decoder := goyaml.NewDecoder(bytes.NewReader(data))
	var tree any
	first := any(&document{})
	if aliasesIn(data) > 0 {
		first = &tree
	}
	rest := document{}
	err := decoder.Decode(first)
	for err == nil {
		err = decoder.Decode(&rest)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return apierror.BadRequest("the body is not valid YAML: "+secret.YAMLError(err), nil)
	case rest.present:
		return apierror.BadRequest("the body holds several YAML documents; send one at a time", nil)
	}
	values := limits.YAMLResolvedValues
	if left(tree, limits.BodyBytes, &values) < 0 {
		return apierror.TooLarge(fmt.Sprintf("the YAML text with its aliases resolved is larger than %d bytes", limits.BodyBytes))
	}
	if values < 0 {
		return apierror.TooLarge(fmt.Sprintf("the YAML text with its aliases resolved has more than %d values", limits.YAMLResolvedValues))
	}
	return nil
}

// document reports whether there is a YAML document that is not empty.
type document struct{ present bool }

// UnmarshalYAML is called for what is not null.
func (d *document) UnmarshalYAML(func(any) error) error {
	d.present = true
	return nil
}

// left returns what is left of a budget of bytes after a value. It takes the values from a budget of their own, and stops
// when nothing is left of one of the two.
func left(value any, budget int, values *int) int {
	if *values--; *values < 0 {
		return budget
	}
	switch value := value.(type) {
	case string:
		budget -= len(value)
	case []any:
		for _, entry := range value {
			if budget = left(entry, budget-1, values); budget < 0 || *values < 0 {
				break
			}
		}
	case map[any]any:
		for key, entry := range value {
			if name, ok := key.(string); ok {
				budget -= len(name)
			}
			if budget = left(entry, budget-1, values); budget < 0 || *values < 0 {
				break
			}
		}
	}
	return budget
}

// Decode decodes the body into a pointer to a struct or a map. Unknown and duplicate fields are errors with Strict, warnings
// with Warn, and ignored with Ignore. Errors: BadRequest, with a cause for each wrong field, also for a body that is not a
// JSON object of the type; the errors of Bounded.
func Decode(body Body, into any, strictness Strictness) (warnings []string, err error) {
	const blanks = " \t\r\n"
	text := bytes.Trim(body.JSON, blanks)
	switch {
	case len(text) == 0, string(text) == "null":
		return nil, apierror.BadRequest("the body is empty; an object was expected", nil)
	case text[0] != '{':
		return nil, apierror.BadRequest("the body is not an object; YAML is read where Content-Type says so", nil)
	}
	if !body.bounded {
		if err := Bounded(body.JSON); err != nil {
			return nil, err
		}
	}
	var complaints []error
	if strictness == Ignore {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body.JSON, into)
	} else {
		complaints, err = kjson.UnmarshalStrict(body.JSON, into)
		complaints = append(complaints, body.duplicates...)
	}
	if err != nil {
		return nil, unreadable(body, into, strictness, err)
	}
	if len(complaints) == 0 {
		return nil, nil
	}
	if strictness == Strict {
		return nil, apierror.BadRequest("strict decoding error: "+join(complaints), strictProblems(complaints))
	}
	for _, complaint := range complaints {
		warnings = append(warnings, complaint.Error())
	}
	return warnings, nil
}

// unreadable returns the error for a body that the decoder rejected at the first mistake. It names all mistakes.
func unreadable(body Body, into any, strictness Strictness, err error) error {
	const text = "the body could not be read: "
	if problems := misfits(body, into, strictness == Strict); len(problems) > 0 {
		return apierror.BadRequest(text+apierror.Summary(problems), problems)
	}
	if syntax, offset := kjson.SyntaxErrorOffset(err); syntax {
		before := body.JSON[:min(max(0, int(offset)), len(body.JSON))]
		line, column := 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')-1
		return apierror.BadRequest(fmt.Sprintf("%s%v, at line %d, column %d", text, err, line, column), nil)
	}
	return apierror.BadRequest(text+err.Error(), typeProblem(err))
}

// typeProblem returns the field of a value of the wrong type, if the decoder knows it.
func typeProblem(err error) field.ErrorList {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return field.ErrorList{{
			Type:     field.ErrorTypeTypeInvalid,
			Field:    wrongType.Field,
			BadValue: field.OmitValueType{},
			Detail:   fmt.Sprintf("is a %s, must be a %s", wrongType.Value, wrongType.Type.Kind()),
		}}
	}
	return nil
}

// strictProblems turns the decoder's complaints, such as `unknown field "spec.x"`, into causes.
func strictProblems(complaints []error) field.ErrorList {
	var problems field.ErrorList
	for _, complaint := range complaints {
		what, rest, _ := strings.Cut(complaint.Error(), ` "`)
		problem := &field.Error{
			Type:     field.ErrorTypeNotSupported,
			Field:    strings.TrimSuffix(rest, `"`),
			BadValue: field.OmitValueType{},
			Detail:   what,
		}
		if strings.HasPrefix(what, "duplicate") {
			problem.Type = field.ErrorTypeDuplicate
		}
		problems = append(problems, problem)
	}
	return problems
}

// yamlDuplicates returns the YAML library's complaints in the form of the JSON decoder's, each of them once.
func yamlDuplicates(err error) []error {
	var list []error
	seen := map[string]bool{}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if len(list) == limits.Faults {
			break
		}
		if _, rest, ok := strings.Cut(line, `key "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			if !seen[name] {
				seen[name] = true
				list = append(list, fmt.Errorf("duplicate field %q", name))
			}
		}
	}
	if list == nil {
		list = append(list, errors.New(secret.YAMLError(err)))
	}
	return list
}

func join(complaints []error) string {
	texts := make([]string, len(complaints))
	for i, complaint := range complaints {
		texts[i] = complaint.Error()
	}
	return strings.Join(texts, ", ")
}
