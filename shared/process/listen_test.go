package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/process"
)

// patience is how long a test waits for a server: longer than the limit that it tests, and shorter than the next one.
const patience = limits.RequestDuration / 2

func listen(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := process.NewHTTPServer(handler, slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return conn
}

// A request whose body is not read is answered although the body never comes, and its connection is closed.
// Source: ADR-0020.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		if r.URL.Path == "/implicit" {
			_, _ = io.WriteString(w, "no")
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	for _, row := range []struct {
		path, head, body string
		code             int
		closes           bool
	}{
		{"/", "Content-Length: 10", "", 401, true},
		{"/", "Content-Length: 10", "01234", 401, true},
		{"/", "Content-Length: 3000000", "", 401, true},
		{"/", "Transfer-Encoding: chunked", "", 401, true},
		{"/", "Transfer-Encoding: chunked", "5\r\n01234\r\n", 401, true},
		{"/", "Content-Length: 10\r\nExpect: 100-continue", "", 401, true},
		{"/implicit", "Content-Length: 10", "", 200, true},
		{"/read", "Content-Length: 10", "0123456789", 401, false},
		{"/read", "Transfer-Encoding: chunked", "0\r\n\r\n", 401, false},
		{"/", "Content-Length: 0", "", 401, false},
		{"/", "X: y", "", 401, false},
	} {
		t.Run(row.path+" "+row.head+" "+row.body, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, address)
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s", row.path, row.head, row.body)
			reader := bufio.NewReader(conn)
			answer, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			if answer.StatusCode != row.code || answer.Close != row.closes {
				t.Errorf("answered %d, closing: %v", answer.StatusCode, answer.Close)
			}
			if !row.closes {
				return
			}
			if _, err := reader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is open: %v", err)
			}
		})
	}
}

// The head of a request has a limit.
func TestHeaderBytes(t *testing.T) {
	t.Parallel()
	address := listen(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for size, want := range map[int]int{limits.HeaderBytes - 1<<10: 204, limits.HeaderBytes + 8<<10: 431} {
		conn := dial(t, address)
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", size))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want {
			t.Errorf("%d bytes: %d", size, answer.StatusCode)
		}
	}
}

// A head that does not come ends its connection.
func TestSlowHead(t *testing.T) {
	t.Parallel()
	conn := dial(t, listen(t, func(http.ResponseWriter, *http.Request) { t.Error("served") }))
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Half")
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is open")
	}
}
