package worker

import (
	"encoding/binary"
	"errors"
	"fmt"

	"management.platform.sh/shared/model"
)

// The matches of a trace are packed: a count, and the texts of each match with their lengths.

var errMalformed = errors.New("the frame is malformed")

// packer appends matches to a frame.
type packer struct{ b []byte }

func (p *packer) count(n int) { p.b = binary.AppendUvarint(p.b, uint64(n)) }

func (p *packer) text(s string) {
	p.count(len(s))
	p.b = append(p.b, s...)
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

// unpacker reads the output of a packer. The texts of JSON that it returns refer to the frame. Its error is sticky:
// after it, all values are empty.
type unpacker struct {
	frame []byte
	at    int
	err   error
}

func (u *unpacker) fail() {
	u.err = errMalformed
	u.at = len(u.frame)
}

// count reads the number of elements that follow, each of which has at least size bytes.
func (u *unpacker) count(size int) int {
	n, length := binary.Uvarint(u.frame[u.at:])
	if length <= 0 || n > uint64((len(u.frame)-u.at-length)/size) {
		u.fail()
		return 0
	}
	u.at += length
	return int(n)
}

func (u *unpacker) bytes() []byte {
	n := u.count(1)
	u.at += n
	return u.frame[u.at-n : u.at : u.at]
}

func (u *unpacker) cbor(into any) {
	if err := decoding.Unmarshal(u.bytes(), into); err != nil && u.err == nil {
		u.err = fmt.Errorf("decoding: %w", err)
	}
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
		m.Path, m.Outcome, m.Reason = string(u.bytes()), string(u.bytes()), string(u.bytes())
		m.Before, m.After = u.json(&texts[2*i]), u.json(&texts[2*i+1])
	}
	return matches
}

// json reads a text of JSON into a given place.
func (u *unpacker) json(into *model.JSON) *model.JSON {
	if into.Raw = u.bytes(); len(into.Raw) == 0 {
		return nil
	}
	return into
}
