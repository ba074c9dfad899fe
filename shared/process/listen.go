package process

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"management.platform.sh/shared/limits"
)

// maxStreams is how many requests a client may have open on one HTTP/2 connection.
const maxStreams = 100

// NewHTTPServer returns an HTTP server for shells that listen themselves, with the limits that they share: for the head of
// a request, its arrival, the response and idle connections. Source: ADR-0020.
//
// A response that takes longer than limits.WriteDuration must set write deadlines of its own, as streams do.
func NewHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           closeUnread(handler),
		ReadHeaderTimeout: limits.HeadDuration,
		ReadTimeout:       limits.RequestDuration,
		// A handler may take the whole duration of a request before it answers.
		WriteTimeout:   2 * limits.RequestDuration,
		IdleTimeout:    limits.IdleDuration,
		MaxHeaderBytes: limits.HeaderBytes,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: limits.WriteDuration},
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// closeUnread makes a handler respond at once if it does not read the body of the request. Otherwise, the server would wait
// for up to 256 KiB of the body before it sends the response, so that a body that never comes would hold its
// connection.
func closeUnread(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.ProtoMajor != 1 {
			// On HTTP/2, only the stream ends.
			handler.ServeHTTP(w, r)
			return
		}
		body := &requestBody{ReadCloser: r.Body}
		with := *r
		with.Body = body
		handler.ServeHTTP(&responseWriter{ResponseWriter: w, body: body}, &with)
	})
}

// requestBody is the body of a request. It knows whether all of the body was read.
type requestBody struct {
	io.ReadCloser
	ended bool
}

func (a *requestBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		a.ended = true
	}
	return n, err
}

// responseWriter is a response. If the body of its request was not read, it closes the connection.
type responseWriter struct {
	http.ResponseWriter
	body  *requestBody
	begun bool
}

// Unwrap returns the response writer for http.ResponseController.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *responseWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.begin()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

func (a *responseWriter) begin() {
	if a.begun || a.body.ended {
		a.begun = true
		return
	}
	a.begun = true
	a.Header().Set("Connection", "close")
	// The rest of the body may still arrive. The client then reads the response before the connection is reset.
	_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now().Add(limits.UnreadDuration))
}
