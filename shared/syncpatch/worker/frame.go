package worker

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"management.platform.sh/shared/syncpatch"
)

// question is what a worker is asked, once per evaluation.
type question struct {
	Request *syncpatch.Request `json:"request"`
	Limits  syncpatch.Limits   `json:"limits"`
}

// answer is what it says.
type answer struct {
	Result *syncpatch.Result `json:"result,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// maxFrame bounds what one side believes the other about the length of what comes, in bytes.
const maxFrame = 256 << 20

// decoding reads JSON values as apimachinery does: map[string]any, []any, int64, float64. The two sides are the same
// program, and what they say has been bounded as JSON.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail,
		MaxNestedLevels: 65535, MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// writeFrame sends a value as its length in four bytes and its CBOR, which takes a fraction of the time of JSON.
func writeFrame(w io.Writer, value any) error {
	text, err := cbor.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	_, err = w.Write(append(frame, text...))
	return err
}

// readFrame reads such a value.
func readFrame(r io.Reader, value any) error {
	text, err := readText(r)
	if err != nil {
		return err
	}
	return decoding.Unmarshal(text, value)
}

func readText(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes is too long", length)
	}
	text := make([]byte, length)
	_, err := io.ReadFull(r, text)
	return text, err
}
