package codec

import (
	"bytes"
	"mime"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/model/apierror"
)

// Protobuf is the media type in which Kubernetes' own clients send Kubernetes' own kinds.
const Protobuf = "application/vnd.kubernetes.protobuf"

// protobufMagic is the prefix of such a body. A runtime.Unknown follows, which contains the object.
var protobufMagic = []byte("k8s\x00")

// IsProtobuf reports whether a Content-Type is Protobuf.
func IsProtobuf(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == Protobuf
}

// DecodeProtobuf passes the object in the envelope of a body to unmarshal, the generated method of a Kubernetes kind. Errors:
// BadRequest if the envelope or the object cannot be read.
func DecodeProtobuf(data []byte, unmarshal func([]byte) error) error {
	object, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return apierror.BadRequest("the body is not Kubernetes protobuf", nil)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(object); err != nil {
		return apierror.BadRequest("the body is not Kubernetes protobuf", nil).Because(err)
	}
	if err := unmarshal(envelope.Raw); err != nil {
		return apierror.BadRequest("the object in the body could not be read", nil).Because(err)
	}
	return nil
}
