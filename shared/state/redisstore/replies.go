package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// The bounds on replies of an untrusted server, besides Options.MaxReply. Source: ADR-0047.
const (
	// maxReplyLine bounds a line, in bytes.
	maxReplyLine = 64 << 10
	// maxReplyElements bounds the elements of all arrays of a reply. The library allocates an array before its elements come.
	maxReplyElements = 1 << 17
	// maxReplyDepth bounds arrays in arrays.
	maxReplyDepth = 16
)

// errReply means that a reply exceeds a bound or violates the protocol.
var errReply = errors.New("the Redis sends what no Redis should")

// boundedConn is a connection to an untrusted server. The library allocates the size that the head of a reply
// announces, so a reply beyond a bound is refused before the library reads its head.
type boundedConn struct {
	net.Conn
	replies replyBounds
}

// Read returns bytes that are within the bounds. After an error it returns none.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if refused := c.replies.follow(p[:n]); refused != nil {
		return 0, refused
	}
	return n, err
}

// replyBounds follows the replies of a connection in the protocol of Redis, versions 2 and 3.
type replyBounds struct {
	// most bounds a reply, in bytes.
	most int64
	// line is the current line, as far as it was read.
	line []byte
	// text is the number of bytes of a text that are still to come, with its line end.
	text int64
	// open has, for each enclosing array, the number of elements that are still to come.
	open []int64
	// size is the number of bytes, and elements the number of elements, that the current reply has announced so far.
	size, elements int64
	refused        error
}

// follow reads the next bytes of a connection. After it has refused a byte, it refuses all.
func (r *replyBounds) follow(data []byte) error {
	for len(data) > 0 && r.refused == nil {
		if r.text > 0 {
			n := min(r.text, int64(len(data)))
			data = data[n:]
			if r.text -= n; r.text == 0 {
				r.endValue()
			}
			continue
		}
		part, end := data, bytes.IndexByte(data, '\n')
		if end >= 0 {
			part = data[:end+1]
		}
		data = data[len(part):]
		if r.line = append(r.line, part...); len(r.line) > maxReplyLine {
			r.refused = fmt.Errorf("%w: a line of more than %d bytes", errReply, maxReplyLine)
		} else if end >= 0 {
			r.refused = r.head(r.line[0], string(bytes.TrimRight(r.line[1:], "\r\n")))
			r.line = r.line[:0]
		}
	}
	return r.refused
}

// head reads the first line of a value: its type and its argument.
func (r *replyBounds) head(kind byte, rest string) error {
	r.size += int64(len(rest)) + 3
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		r.endValue()
		return r.checkSize()
	case '$', '=', '!', '*', '~', '>', '%':
	default:
		return fmt.Errorf("%w: a value of the type %q", errReply, kind)
	}
	count, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil || count < -1:
		return fmt.Errorf("%w: the length %.20q", errReply, rest)
	case count == -1: // an absent value
		r.endValue()
		return r.checkSize()
	case kind == '$' || kind == '=' || kind == '!':
		if count > r.most-r.size {
			return r.tooLarge()
		}
		r.size += count
		r.text = count + 2
		return nil
	case kind == '%': // pairs
		count = 2 * min(count, maxReplyElements)
	}
	if r.elements += min(count, maxReplyElements+1); r.elements > maxReplyElements {
		return fmt.Errorf("%w: a reply of more than %d elements", errReply, maxReplyElements)
	}
	if count == 0 {
		r.endValue()
		return r.checkSize()
	}
	if r.open = append(r.open, count); len(r.open) > maxReplyDepth {
		return fmt.Errorf("%w: arrays in arrays, more than %d deep", errReply, maxReplyDepth)
	}
	return r.checkSize()
}

// checkSize returns an error if the reply is too large.
func (r *replyBounds) checkSize() error {
	if r.size > r.most {
		return r.tooLarge()
	}
	return nil
}

func (r *replyBounds) tooLarge() error {
	return fmt.Errorf("%w: a reply of more than %d bytes", errReply, r.most)
}

// endValue notes the end of a value, and the ends of the arrays whose last element it is.
func (r *replyBounds) endValue() {
	for len(r.open) > 0 {
		last := len(r.open) - 1
		if r.open[last]--; r.open[last] > 0 {
			return
		}
		r.open = r.open[:last]
	}
	r.size, r.elements = 0, 0
}
