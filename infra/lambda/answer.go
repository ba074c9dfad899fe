package lambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The largest answers that are sent in one piece; more would be an error of the platform that tells nobody why.
const (
	// maxAnswer is what Lambda takes, less what stands around it.
	maxAnswer = 6<<20 - 64<<10
	// maxBalancerAnswer is what a load balancer takes.
	maxBalancerAnswer = 1<<20 - 16<<10
)

// answer is what a gateway makes an HTTP response of. Each kind reads some of the fields.
type answer struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// headed is an answer with a status and headers, in the form of a kind.
func (e *event) headed(of kind, status int, header http.Header) *answer {
	a := &answer{StatusCode: status}
	header = header.Clone()
	// Who sends the answer on counts for itself.
	header.Del("Content-Length")
	switch {
	case of == gatewayV1, of == balancer && e.MultiValueHeaders != nil:
		a.MultiValueHeaders = header
	default:
		if of != balancer {
			a.Cookies = header["Set-Cookie"]
			header.Del("Set-Cookie")
		}
		a.Headers = make(map[string]string, len(header))
		for name, values := range header {
			a.Headers[name] = strings.Join(values, ", ")
		}
	}
	if of == balancer {
		a.StatusDescription = strconv.Itoa(status) + " " + http.StatusText(status)
	}
	return a
}

// buffer collects an answer.
type buffer struct {
	header http.Header
	sent   http.Header
	status int
	body   bytes.Buffer
}

func newBuffer() *buffer { return &buffer{header: http.Header{}} }

// Header is what will be sent with the first byte.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader fixes the status and the headers.
func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status, b.sent = status, b.header.Clone()
	}
}

// Write adds to the body.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}

// answer is the collected answer in the form of a kind.
func (b *buffer) answer(e *event, of kind) *answer {
	b.WriteHeader(http.StatusOK)
	most := maxAnswer
	if of == balancer {
		most = maxBalancerAnswer
	}
	a := e.headed(of, b.status, b.sent)
	a.Body = b.body.String()
	// JSON in JSON grows by what is escaped; base64 by a third.
	if text := utf8.Valid(b.body.Bytes()); !text || quoted(a.Body) > most {
		a.Body, a.IsBase64Encoded = base64.StdEncoding.EncodeToString(b.body.Bytes()), true
	}
	if len(a.Body) <= most {
		return a
	}
	refused := newBuffer()
	refuse(refused, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
		fmt.Sprintf("the answer is larger than the %d bytes that can be sent here: ask for less, such as with limit", most))
	refused.header.Set("X-Request-Id", b.sent.Get("X-Request-Id"))
	refused.sent = refused.header
	return refused.answer(e, of)
}

// quoted is how long a text is as a string of the JSON that the library writes, without its quotes.
func quoted(text string) int {
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

// refuse answers with a Status where there is no frame to do it.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "reason": reason, "code": code, "message": message,
	})
}

// stream passes an answer on while it is made: status and headers as a line of JSON, eight zero bytes, the body.
type stream struct {
	event   *event
	kind    kind
	header  http.Header
	out     *io.PipeWriter
	begun   bool
	prelude chan []byte
}

// Header is what will be sent with the first byte.
func (s *stream) Header() http.Header { return s.header }

// WriteHeader sends the status and the headers.
func (s *stream) WriteHeader(status int) {
	if s.begun {
		return
	}
	s.begun = true
	head := s.event.headed(s.kind, status, s.header)
	// Strings and numbers always marshal.
	text, _ := json.Marshal(struct {
		StatusCode        int                 `json:"statusCode"`
		Headers           map[string]string   `json:"headers,omitempty"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
		Cookies           []string            `json:"cookies,omitempty"`
	}{head.StatusCode, head.Headers, head.MultiValueHeaders, head.Cookies})
	s.prelude <- append(text, make([]byte, 8)...)
}

// Write sends a piece of the body. It returns when the platform has taken it.
func (s *stream) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.out.Write(p)
}

// FlushError has nothing to do: nothing is held back.
func (s *stream) FlushError() error {
	s.WriteHeader(http.StatusOK)
	return nil
}

// streamed is what the library sends on: it reads until the end.
type streamed struct {
	io.Reader
	body *io.PipeReader
}

// Close tells the handler that nobody reads on.
func (s *streamed) Close() error { return s.body.Close() }

// ContentType tells the platform that a prelude comes first.
func (*streamed) ContentType() string { return "application/vnd.awslambda.http-integration-response" }

// MarshalJSON fails, which tells the library to read instead.
func (*streamed) MarshalJSON() ([]byte, error) {
	return nil, errors.New("an answer that is streamed is not JSON")
}
