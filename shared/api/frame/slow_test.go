package frame_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/platform"
)

// isLargeLimit serves a document that no buffer between server and client can hold.
var isLargeLimit = &frame.Function{Name: "testlarge", Endpoints: []frame.Endpoint{
	frame.Document("/large", frame.Everyone, func(*platform.Environment) []byte { return bytes.Repeat([]byte("x"), 64<<20) },
		func(_ context.Context, text []byte, _ frame.DocumentInput) (*frame.Page, error) {
			return &frame.Page{MediaType: "text/plain", Body: text}, nil
		}),
}}

// A client that does not receive an answer is cut off, with HTTP/1 and with HTTP/2. Source: ADR-0020.
func TestSlowReader(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the time that a client has to receive a part of an answer")
	}
	t.Parallel()
	w := newWorld(t)
	served := make(chan string, 2)
	mounted := w.server.Mount(isLargeLimit)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		mounted.ServeHTTP(answer, r)
		served <- r.Proto
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/large", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	// Compressed, the document would fit into the buffers.
	r.Header.Set("Accept-Encoding", "identity")
	second, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()

	plain := httptest.NewServer(server.Config.Handler)
	t.Cleanup(plain.Close)
	first, err := net.Dial("tcp", strings.TrimPrefix(plain.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, _ = fmt.Fprint(first, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")

	for range 2 {
		select {
		case protocol := <-served:
			t.Log(protocol)
		case <-time.After(6 * limits.WriteDuration):
			t.Fatal("an answer that nobody receives is still being sent")
		}
	}
	if _, err := io.Copy(io.Discard, second.Body); err == nil {
		t.Error("the answer seems to be complete")
	}
}
