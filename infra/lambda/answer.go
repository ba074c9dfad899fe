package lambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"management.platform.sh/shared/api/frame"
)

// The maximum sizes of responses that are sent in one piece. For a larger response the platform would return an error
// without a reason.
const (
	// maxAnswer is Lambda's limit, minus the size of the fields around the body.
	maxAnswer = 6<<20 - 64<<10
	// maxBalancerAnswer is the limit of a load balancer, minus the same size.
	maxBalancerAnswer = 1<<20 - 16<<10
)

// answer is the JSON from which a gateway makes an HTTP response. Each kind of gateway reads some of the fields.
type answer struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// newAnswer returns an answer with a status and headers, in the form of a kind.
func (e *event) newAnswer(sender kind, status int, header http.Header) *answer {
	a := &answer{StatusCode: status}
	header = header.Clone()
	// The gateway sets the length itself.
	header.Del("Content-Length")
	switch {
	case sender == gatewayV1, sender == balancer && e.MultiValueHeaders != nil:
		a.MultiValueHeaders = header
	default:
		if sender != balancer {
			a.Cookies = header["Set-Cookie"]
			header.Del("Set-Cookie")
		}
		a.Headers = make(map[string]string, len(header))
		for name, values := range header {
			a.Headers[name] = strings.Join(values, ", ")
		}
	}
	if sender == balancer {
		a.StatusDescription = strconv.Itoa(status) + " " + http.StatusText(status)
	}
	return a
}

// buffer collects a response that is sent in one piece. It implements frame.Bounded.
type buffer struct {
	header http.Header
	sent   http.Header
	status int
	body   bytes.Buffer
	// most is the maximum size of the body, in the form in which it is sent.
	most int
	// over reports whether the body became larger than any form allows. It is then no longer collected.
	over bool
}

var _ frame.Bounded = (*buffer)(nil)

func newBuffer(of kind) *buffer {
	b := &buffer{header: http.Header{}, most: maxAnswer}
	if of == balancer {
		b.most = maxBalancerAnswer
	}
	return b
}

func (b *buffer) Header() http.Header { return b.header }

// WriteHeader fixes the status and the headers.
func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status, b.sent = status, b.header.Clone()
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if b.over = b.over || b.body.Len()+len(p) > b.most; b.over {
		return len(p), nil
	}
	return b.body.Write(p)
}

func (b *buffer) Fits(more int) bool {
	return !b.over && base64.StdEncoding.EncodedLen(b.body.Len()+more) <= b.most
}

func (b *buffer) Excess() int {
	if b.over {
		return b.most
	}
	if text, _ := b.encode(); len(text) > b.most {
		return b.most
	}
	return 0
}

func (b *buffer) Reset() {
	b.status, b.sent, b.over = 0, nil, false
	b.body.Reset()
}

// encode returns the body as it is sent: unchanged or, if it is no text or grows too much, in base64. JSON within JSON
// grows by its escapes, and base64 by a third.
func (b *buffer) encode() (text string, inBase64 bool) {
	text = b.body.String()
	if utf8.Valid(b.body.Bytes()) && quotedLength(text) <= b.most {
		return text, false
	}
	return base64.StdEncoding.EncodeToString(b.body.Bytes()), true
}

// answer returns the collected answer in the form of a kind.
func (b *buffer) answer(e *event, of kind) *answer {
	b.WriteHeader(http.StatusOK)
	a := e.newAnswer(of, b.status, b.sent)
	a.Body, a.IsBase64Encoded = b.encode()
	return a
}

// quotedLength returns the length of a text as a JSON string of the library's encoder, without the quotes.
func quotedLength(text string) int {
	length := len(text) + 3*(strings.Count(text, "\u2028")+strings.Count(text, "\u2029"))
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"', b == '\\', b == '\b', b == '\f', b == '\n', b == '\r', b == '\t':
			length++
		case b < ' ':
			length += len(`\u0000`) - 1
		}
	}
	return length
}

// stream sends a response while it is being made: status and headers as a line of JSON, eight zero bytes, the body.
type stream struct {
	event   *event
	kind    kind
	header  http.Header
	out     *io.PipeWriter
	begun   bool
	prelude chan []byte
}

func (s *stream) Header() http.Header { return s.header }

// WriteHeader sends the status and the headers.
func (s *stream) WriteHeader(status int) {
	if s.begun {
		return
	}
	s.begun = true
	head := s.event.newAnswer(s.kind, status, s.header)
	// Strings and numbers always marshal.
	text, _ := json.Marshal(struct {
		StatusCode        int                 `json:"statusCode"`
		Headers           map[string]string   `json:"headers,omitempty"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
		Cookies           []string            `json:"cookies,omitempty"`
	}{head.StatusCode, head.Headers, head.MultiValueHeaders, head.Cookies})
	s.prelude <- append(text, make([]byte, 8)...)
}

// Write sends a part of the body. It returns once the platform has read it.
func (s *stream) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.out.Write(p)
}

// FlushError does nothing, because Write buffers nothing.
func (s *stream) FlushError() error {
	s.WriteHeader(http.StatusOK)
	return nil
}

// streamed is the response that the library reads to its end and sends.
type streamed struct {
	io.Reader
	body *io.PipeReader
}

// Close tells the handler that the library reads no further.
func (s *streamed) Close() error { return s.body.Close() }

// ContentType returns the type of a body that begins with status and headers.
func (*streamed) ContentType() string { return "application/vnd.awslambda.http-integration-response" }

// MarshalJSON fails, so that the library reads the body instead.
func (*streamed) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a streamed answer is not JSON")
}
