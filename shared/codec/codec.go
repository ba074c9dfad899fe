// Package codec turns request bodies into objects: JSON and YAML, with the three strictnesses of field
// validation, and errors that name every field that is wrong. Source: Spec 2.1, 9; ADR-0003.
//
// What a type does not know is pruned, as a custom resource prunes it; nothing here looks at meaning.
package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/apierror"
)

// Media types of bodies.
const (
	JSON = "application/json"
	YAML = "application/yaml"
)

// Strictness tells what becomes of unknown and duplicate fields.
type Strictness string

// The strictnesses, by the names of the query parameter fieldValidation. The empty value is Warn.
const (
	Ignore Strictness = "Ignore"
	Warn   Strictness = "Warn"
	Strict Strictness = "Strict"
)

// Body is a request body as JSON, with what had to be forgiven to get there.
type Body struct {
	// JSON is the text; valid UTF-8, not yet parsed.
	JSON []byte
	// duplicates are complaints about a YAML text that its conversion to JSON would hide.
	duplicates []error
}

// Read takes a body in a media type (the value of Content-Type; empty means JSON) and turns YAML into
// JSON. It fails with 415 for another media type and with 400 for text that cannot be read.
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
		return Body{JSON: data}, nil
	case YAML, "application/x-yaml", "text/yaml", "application/vnd.yaml":
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return Body{}, apierror.BadRequest("the body is not valid YAML: "+err.Error(), nil)
		}
		body := Body{JSON: converted}
		if _, err := yaml.YAMLToJSONStrict(data); err != nil {
			body.duplicates = yamlDuplicates(err)
		}
		return body, nil
	default:
		return Body{}, apierror.UnsupportedMediaType(contentType, JSON+", "+YAML)
	}
}

// Decode fills into from the body. Unknown and duplicate fields are 400 with a cause for each under
// Strict, warnings under Warn, and nothing under Ignore. Text that is no JSON object for the type is 400.
func Decode(body Body, into any, strictness Strictness) (warnings []string, err error) {
	text := strings.TrimLeft(string(body.JSON[:min(len(body.JSON), 64)]), " \t\r\n")
	switch {
	case text == "" && len(body.JSON) <= 64, text == "null":
		return nil, apierror.BadRequest("the body is empty; an object was expected", nil)
	case text != "" && text[0] != '{':
		return nil, apierror.BadRequest("the body is not an object", nil)
	}
	var complaints []error
	if strictness == Ignore {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body.JSON, into)
	} else {
		complaints, err = kjson.UnmarshalStrict(body.JSON, into)
		complaints = append(complaints, body.duplicates...)
	}
	if err != nil {
		return nil, apierror.BadRequest("the body could not be read: "+err.Error(), typeProblem(err))
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

// typeProblem names the field of a value of the wrong type, where the decoder knows it.
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

// yamlDuplicates gives the YAML library's complaints the form of the JSON decoder's.
func yamlDuplicates(err error) []error {
	var list []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if _, rest, ok := strings.Cut(line, `key "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			list = append(list, fmt.Errorf("duplicate field %q", name))
		}
	}
	if list == nil {
		list = append(list, err)
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
