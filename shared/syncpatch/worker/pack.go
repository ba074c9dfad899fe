package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"management.platform.sh/shared/model"
)

// The large parts of a question and an answer are packed: JSON values and the matches of a trace. Encoding them as CBOR
// through reflection would take as long as the evaluation.

// The first byte of a value says what follows: nothing, a number as varint, a string, or a count and the elements.
const (
	packedNull = iota
	packedFalse
	packedTrue
	packedInteger
	packedFraction
	packedText
	packedArray
	packedObject
)

// maxDepth is the greatest depth of a value.
const maxDepth = 65535

var errMalformed = errors.New("the frame is malformed")

// packer appends values to a frame. Its error is sticky.
type packer struct {
	b   []byte
	err error
}

func (p *packer) count(n int) { p.b = binary.AppendUvarint(p.b, uint64(n)) }

func (p *packer) text(s string) {
	p.count(len(s))
	p.b = append(p.b, s...)
}

// value appends a JSON value as apimachinery decodes it.
func (p *packer) value(value any) {
	switch v := value.(type) {
	case nil:
		p.b = append(p.b, packedNull)
	case bool:
		kind := byte(packedFalse)
		if v {
			kind = packedTrue
		}
		p.b = append(p.b, kind)
	case int64:
		p.b = binary.AppendVarint(append(p.b, packedInteger), v)
	case float64:
		p.b = binary.AppendUvarint(append(p.b, packedFraction), math.Float64bits(v))
	case string:
		p.b = append(p.b, packedText)
		p.text(v)
	case []any:
		p.b = append(p.b, packedArray)
		p.count(len(v))
		for _, item := range v {
			p.value(item)
		}
	case map[string]any:
		p.b = append(p.b, packedObject)
		p.count(len(v))
		for key, item := range v {
			p.text(key)
			p.value(item)
		}
	default:
		p.err = errors.Join(p.err, fmt.Errorf("encoding: a %T is not a JSON value", value))
	}
}

func (p *packer) matches(matches []model.SyncPatchMatch) {
	p.count(len(matches))
	for i := range matches {
		m := &matches[i]
		p.text(m.Path)
		p.text(m.Outcome)
		p.text(m.Reason)
		p.json(m.Before)
		p.json(m.After)
	}
}

// json appends a text of JSON. Nil is empty, which no text of JSON is.
func (p *packer) json(j *model.JSON) {
	if j == nil {
		p.count(0)
		return
	}
	p.count(len(j.Raw))
	p.b = append(p.b, j.Raw...)
}

// unpacker reads what a packer wrote. The values that it returns refer to the frame, which saves copies. Its error is
// sticky: after it, all values are empty.
type unpacker struct {
	text string
	// raw is a copy of the text for values that are bytes, made when the first one is read.
	raw   []byte
	at    int
	depth int
	err   error
}

func (u *unpacker) fail() {
	u.err = errMalformed
	u.at = len(u.text)
}

func (u *unpacker) byte() byte {
	if u.at == len(u.text) {
		u.fail()
		return 0
	}
	u.at++
	return u.text[u.at-1]
}

// number reads a varint.
func (u *unpacker) number() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		c := u.byte()
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	u.fail()
	return 0
}

// count reads the number of elements that follow, each of which has at least size bytes.
func (u *unpacker) count(size int) int {
	n := u.number()
	if n > uint64((len(u.text)-u.at)/size) {
		u.fail()
		return 0
	}
	return int(n)
}

func (u *unpacker) string() string {
	n := u.count(1)
	u.at += n
	return u.text[u.at-n : u.at]
}

func (u *unpacker) cbor(into any) {
	if err := decoding.Unmarshal([]byte(u.string()), into); err != nil && u.err == nil {
		u.err = fmt.Errorf("decoding: %w", err)
	}
}

func (u *unpacker) value() any {
	switch kind := u.byte(); kind {
	case packedNull:
		return nil
	case packedFalse, packedTrue:
		return kind == packedTrue
	case packedInteger:
		n := u.number()
		return int64(n>>1) ^ -int64(n&1)
	case packedFraction:
		return math.Float64frombits(u.number())
	case packedText:
		return u.string()
	case packedArray:
		array := make([]any, u.enter(1))
		for i := range array {
			array[i] = u.value()
		}
		u.depth--
		return array
	case packedObject:
		n := u.enter(2)
		object := make(map[string]any, n)
		for range n {
			key := u.string()
			object[key] = u.value()
		}
		u.depth--
		return object
	default:
		u.fail()
		return nil
	}
}

// enter reads the number of elements of an array or object, and counts the depth.
func (u *unpacker) enter(size int) int {
	if u.depth++; u.depth > maxDepth {
		u.fail()
	}
	return u.count(size)
}

func (u *unpacker) matches() []model.SyncPatchMatch {
	n := u.count(5)
	if n == 0 {
		return nil
	}
	matches := make([]model.SyncPatchMatch, n)
	texts := make([]model.JSON, 2*n)
	for i := range matches {
		m := &matches[i]
		m.Path, m.Outcome, m.Reason = u.string(), u.string(), u.string()
		m.Before, m.After = u.json(&texts[2*i]), u.json(&texts[2*i+1])
	}
	return matches
}

// json reads a text of JSON into a given place.
func (u *unpacker) json(into *model.JSON) *model.JSON {
	n := u.count(1)
	if n == 0 {
		return nil
	}
	if u.raw == nil {
		u.raw = []byte(u.text)
	}
	u.at += n
	into.Raw = u.raw[u.at-n : u.at : u.at]
	return into
}
