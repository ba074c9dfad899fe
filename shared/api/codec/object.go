package codec

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DecodeObject decodes a body into object, and sets its kind to want. An empty body leaves all fields empty. Kubernetes' own
// kinds can be in Protobuf as well. It returns the body as JSON, which is empty for Protobuf, and the warnings of Decode.
//
// Errors: the errors of Read, Decode, DecodeProtobuf and CheckKind. Source: Spec 2.1, 7.
func DecodeObject(contentType string, data []byte, object runtime.Object, want schema.GroupVersionKind, strictness Strictness) (Body, []string, error) {
	var body Body
	var warnings []string
	wire, hasProtobuf := object.(interface{ Unmarshal(data []byte) error })
	switch {
	case len(data) == 0:
	case hasProtobuf && IsProtobuf(contentType):
		if err := DecodeProtobuf(data, wire.Unmarshal); err != nil {
			return Body{}, nil, err
		}
	default:
		var err error
		if body, err = Read(contentType, data); err != nil {
			return Body{}, nil, err
		}
		if warnings, err = Decode(body, object, strictness); err != nil {
			return Body{}, nil, err
		}
		if err := CheckKind(object, want); err != nil {
			return Body{}, nil, err
		}
	}
	object.GetObjectKind().SetGroupVersionKind(want)
	return body, warnings, nil
}
