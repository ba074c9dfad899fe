package worker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// question asks a worker for one evaluation, or to read one configuration. The JSON in it stays text: the program never
// decodes it.
type question struct {
	Spec *model.SyncPatchEvaluationSpec `json:"spec,omitempty"`
	// Check reports whether the Spec is only checked.
	Check bool `json:"check,omitempty"`
	// Configuration is the text of a configuration, if Read is true.
	Configuration []byte           `json:"configuration,omitempty"`
	Read          bool             `json:"read,omitempty"`
	Limits        syncpatch.Limits `json:"limits"`
}

// answer is the answer of a worker. Before an evaluation begins, the worker sends the part that it knows, so that the
// program has it if the worker ends.
type answer struct {
	Begun     bool      `json:"begun,omitempty"`
	Problems  []problem `json:"problems,omitempty"`
	Paths     []string  `json:"paths,omitempty"`
	Fields    []string  `json:"fields,omitempty"`
	Direction string    `json:"direction,omitempty"`
	// Status has no object if it has an error: the object is then the object of the question.
	Status *model.SyncPatchEvaluationStatus `json:"status,omitempty"`
	Failed string                           `json:"failed,omitempty"`
	// Read and Resources are for a configuration.
	Read      bool     `json:"read,omitempty"`
	Resources []string `json:"resources,omitempty"`
	// Error is a fault of the platform.
	Error string `json:"error,omitempty"`
}

// problem is a syncpatch.Problem. Its value is a text, a number, or nil for a value that is left out.
type problem struct {
	Type    string           `json:"type"`
	Field   string           `json:"field"`
	Value   any              `json:"value"`
	Detail  string           `json:"detail"`
	Warning bool             `json:"warning,omitempty"`
	Line    int              `json:"line,omitempty"`
	Column  int              `json:"column,omitempty"`
	Offset  syncpatch.Offset `json:"offset"`
}

func problemsOf(found []syncpatch.Problem) []problem {
	var all []problem
	for _, p := range found {
		value := p.BadValue
		if value == (field.OmitValueType{}) {
			value = nil
		}
		all = append(all, problem{
			Type: string(p.Type), Field: p.Field, Value: value, Detail: p.Detail,
			Warning: p.Warning, Line: p.Line, Column: p.Column, Offset: p.Offset,
		})
	}
	return all
}

func foundOf(all []problem) []syncpatch.Problem {
	var problems []syncpatch.Problem
	for _, p := range all {
		value := p.Value
		if value == nil {
			value = field.OmitValueType{}
		}
		problems = append(problems, syncpatch.Problem{
			Error:   &field.Error{Type: field.ErrorType(p.Type), Field: p.Field, BadValue: value, Detail: p.Detail},
			Warning: p.Warning, Line: p.Line, Column: p.Column, Offset: p.Offset,
		})
	}
	return problems
}

// outcome returns the part of the answer about an evaluation.
func (a *answer) outcome() syncpatch.Outcome {
	return syncpatch.Outcome{Problems: foundOf(a.Problems), Paths: a.Paths, Fields: a.Fields, Direction: a.Direction, Status: a.Status, Failed: a.Failed}
}

func answerOf(o syncpatch.Outcome) answer {
	return answer{Problems: problemsOf(o.Problems), Paths: o.Paths, Fields: o.Fields, Direction: o.Direction, Status: o.Status, Failed: o.Failed}
}

// maxFrame is the maximum length of a frame that a side accepts, in bytes.
const maxFrame = 64 << 20

// decoding has wide bounds, because both sides are the same program and the request was bounded as JSON.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		IntDec: cbor.IntDecConvertSignedOrFail, MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// appendAnswer adds an answer to a frame: the length of its CBOR, the CBOR without the matches, and the packed matches.
// Encoding these through reflection would take as long as the evaluation.
func appendAnswer(b []byte, a answer) ([]byte, error) {
	if a.Status == nil {
		return appendCBOR(b, a)
	}
	status := *a.Status
	status.Patches = slices.Clone(status.Patches)
	for i := range status.Patches {
		status.Patches[i].Matches = nil
	}
	if status.Error != nil {
		status.Object = nil
	}
	patches := a.Status.Patches
	a.Status = &status
	b, err := appendCBOR(b, a)
	p := packer{b: b}
	for i := range patches {
		p.matches(patches[i].Matches)
	}
	return p.b, err
}

// readAnswer reads an answer. It refers to the frame, which must not be used again.
func readAnswer(frame []byte) (answer, error) {
	u := unpacker{frame: frame}
	var a answer
	u.cbor(&a)
	if u.err != nil || a.Status == nil {
		return a, u.err
	}
	for i := range a.Status.Patches {
		a.Status.Patches[i].Matches = u.matches()
	}
	return a, u.err
}

func readQuestion(frame []byte) (question, error) {
	u := unpacker{frame: frame}
	var q question
	u.cbor(&q)
	if u.err == nil && (q.Spec == nil) != q.Read {
		u.err = errMalformed
	}
	return q, u.err
}

func appendCBOR(b []byte, value any) ([]byte, error) {
	head, err := cbor.Marshal(value)
	if err != nil {
		return b, fmt.Errorf("encoding: %w", err)
	}
	return append(binary.AppendUvarint(b, uint64(len(head))), head...), nil
}

// frames sends and receives frames: a length in four bytes, and the content. It reuses its buffer to send.
type frames struct {
	in  *bufio.Reader
	out io.Writer
	b   []byte
}

// begin returns an empty frame, to append to and send.
func (f *frames) begin() []byte { return append(f.b[:0], 0, 0, 0, 0) }

func (f *frames) send(frame []byte) error {
	if len(frame)-4 > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(frame)-4)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	_, err := f.out.Write(frame)
	// A buffer that is unusually large is not kept.
	if cap(frame) <= 1<<20 {
		f.b = frame
	}
	return err
}

// receive returns the next frame. It belongs to the caller.
func (f *frames) receive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[:]))
	if length > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes is too long", length)
	}
	frame := make([]byte, length)
	_, err := io.ReadFull(f.in, frame)
	return frame, err
}
