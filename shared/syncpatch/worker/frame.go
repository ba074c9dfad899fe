package worker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// question asks a worker for one evaluation.
type question struct {
	Request *syncpatch.Request `json:"request"`
	Limits  syncpatch.Limits   `json:"limits"`
}

// answer is the answer of a worker. A result with an error has no object: it is the object of the question.
type answer struct {
	Result *syncpatch.Result `json:"result,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// maxFrame is the greatest length of a frame that a side accepts, in bytes.
const maxFrame = 256 << 20

// decoding decodes JSON values as apimachinery does: map[string]any, []any, int64, float64. Its bounds are wide, because
// both sides are the same program and the request was bounded as JSON.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail,
		MaxNestedLevels: maxDepth, MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// appendQuestion adds a question to a frame: the length of its CBOR, the CBOR without the objects, and the packed
// objects.
func appendQuestion(b []byte, q question) ([]byte, error) {
	request := *q.Request
	objects := objectsOf(&request)
	values := make([]any, len(objects))
	for i, object := range objects {
		if *object != nil {
			values[i], *object = *object, nil
		}
	}
	b, err := appendCBOR(b, question{Request: &request, Limits: q.Limits})
	p := packer{b: b, err: err}
	for _, value := range values {
		p.value(value)
	}
	return p.b, p.err
}

func readQuestion(text string) (question, error) {
	u := unpacker{text: text}
	var q question
	u.cbor(&q)
	if u.err != nil {
		return q, u.err
	}
	if q.Request == nil {
		return q, errMalformed
	}
	for _, object := range objectsOf(q.Request) {
		*object, _ = u.value().(map[string]any)
	}
	return q, u.err
}

// objectsOf returns the parts of a request that may be large.
func objectsOf(r *syncpatch.Request) []*map[string]any {
	return []*map[string]any{&r.Object, &r.Context.Tenant.Config, &r.Context.HostObject, &r.Context.VirtualObject}
}

// appendAnswer adds an answer to a frame in the same way. The object and the matches of each patch are packed.
func appendAnswer(b []byte, a answer) ([]byte, error) {
	if a.Result == nil {
		return appendCBOR(b, a)
	}
	result := *a.Result
	result.Object, result.Patches = nil, append([]model.SyncPatchTrace(nil), result.Patches...)
	for i := range result.Patches {
		result.Patches[i].Matches = nil
	}
	b, err := appendCBOR(b, answer{Result: &result, Error: a.Error})
	p := packer{b: b, err: err}
	if a.Result.Error == nil {
		p.value(a.Result.Object)
	} else {
		p.value(nil)
	}
	for i := range a.Result.Patches {
		p.matches(a.Result.Patches[i].Matches)
	}
	return p.b, p.err
}

func readAnswer(text string) (answer, error) {
	u := unpacker{text: text}
	var a answer
	u.cbor(&a)
	if u.err != nil || a.Result == nil {
		return a, u.err
	}
	a.Result.Object, _ = u.value().(map[string]any)
	for i := range a.Result.Patches {
		a.Result.Patches[i].Matches = u.matches()
	}
	return a, u.err
}

func appendCBOR(b []byte, value any) ([]byte, error) {
	head, err := cbor.Marshal(value)
	if err != nil {
		return b, fmt.Errorf("encoding: %w", err)
	}
	return append(binary.AppendUvarint(b, uint64(len(head))), head...), nil
}

// frames sends and receives frames: a length in four bytes, and the content. It reuses its buffer.
type frames struct {
	in  *bufio.Reader
	out io.Writer
	b   []byte
}

// begin returns an empty frame, to append to and send.
func (f *frames) begin() []byte { return append(f.b[:0], 0, 0, 0, 0) }

func (f *frames) send(frame []byte) error {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	_, err := f.out.Write(frame)
	f.keep(frame)
	return err
}

// receive returns the next frame.
func (f *frames) receive() (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return "", err
	}
	length := int(binary.BigEndian.Uint32(head[:]))
	if length > maxFrame {
		return "", fmt.Errorf("a frame of %d bytes is too long", length)
	}
	b := f.b
	if cap(b) < length {
		b = make([]byte, length)
	}
	b = b[:length]
	_, err := io.ReadFull(f.in, b)
	f.keep(b)
	return string(b), err
}

// keep keeps a buffer for reuse, unless it is unusually large.
func (f *frames) keep(b []byte) {
	if cap(b) <= 1<<20 {
		f.b = b
	}
}
