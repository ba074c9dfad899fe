package platformconfig

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model/apierror"
)

// decode reads a body into a value, and returns a problem for each part that it cannot read: unknown fields, duplicate
// fields and values of the wrong type. The value then has the other fields. The error is for a body that is not an object.
func decode(body codec.Body, into any) (field.ErrorList, error) {
	_, err := codec.Decode(body, into, codec.Strict)
	if err == nil {
		return nil, nil
	}
	problems := codec.Misfits(body, into)
	// The tree does not have the duplicates, but the decoder has reported them.
	if known, ok := errors.AsType[*apierror.Error](err); ok && known.Status().Details != nil {
		for _, cause := range known.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeFieldValueDuplicate {
				problems = append(problems, &field.Error{
					Type: field.ErrorTypeDuplicate, Field: cause.Field, BadValue: field.OmitValueType{}, Detail: "must not be given twice",
				})
			}
		}
	}
	if len(problems) == 0 {
		return nil, err
	}
	// The decoder reads the rest of the body after the first value of a wrong type.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(body.JSON, into)
	return problems, nil
}

// excludeNested removes the problems of fields at or below a field that has another problem. A field that cannot be read
// breaks other rules only because it cannot be read.
func excludeNested(problems, others field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(problems, func(problem *field.Error) bool {
		return slices.ContainsFunc(others, func(other *field.Error) bool {
			rest, below := strings.CutPrefix(problem.Field, other.Field)
			return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}
