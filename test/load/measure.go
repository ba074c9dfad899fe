package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// warmUp is the maximum time that a measurement runs before it counts.
	warmUp = 200 * time.Millisecond
	// patience is the time that a measurement waits for its last answers after its end.
	patience = 10 * time.Second
)

// side is a server that is measured: the API, the floor, or a peer.
type side struct {
	name string
	// server and store are the processes that answer requests and the processes that keep the state.
	server, store processes
	// subject returns an operation. Nil: the side does not have the operation.
	subject func(op string) *subject
	// stop ends its processes. It is called once.
	stop func()
	// about says how the side is set up, for the report.
	about string
}

// subject is an operation of a side.
type subject struct {
	// client opens one client, whose step is repeated. Clients are numbered from 0.
	client func(ctx context.Context, number int) (*client, error)
	// before and after run around each measurement, outside of its time. Nil: nothing.
	before, after func(ctx context.Context) error
}

// client is one of the simultaneous clients.
type client struct {
	// step sends one request. A refused error is counted and the client continues; any other error ends the client. errDone ends the client
	// without an error.
	step  func(ctx context.Context) error
	close func()
}

// errDone is the result of a client that has no more requests.
var errDone = errors.New("nothing is left to ask for")

// refused is an answer other than 2xx.
type refused int

func (r refused) Error() string { return fmt.Sprintf("HTTP status %d", int(r)) }

// sample is one measurement.
type sample struct {
	Side    string  `json:"side"`
	Op      string  `json:"op"`
	Clients int     `json:"clients"`
	Round   int     `json:"round"`
	Rate    float64 `json:"requestsPerSecond"`
	P50     float64 `json:"p50Microseconds"`
	P99     float64 `json:"p99Microseconds"`
	// Server and Store are milliseconds of processor time for each request.
	Server float64 `json:"serverMilliseconds"`
	Store  float64 `json:"storeMilliseconds"`
	Errors int     `json:"errors"`
	// Error is the first of the errors.
	Error string `json:"error,omitempty"`
}

// measure runs clients for a duration, after a warm-up that does not count for the rate and the times.
func measure(ctx context.Context, server *side, op string, clients int, duration time.Duration) (result sample, err error) {
	result = sample{Side: server.name, Op: op, Clients: clients}
	what := server.subject(op)
	if what.before != nil {
		if err := what.before(ctx); err != nil {
			return result, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, warmUp+duration+patience)
	defer cancel()
	opened := make([]*client, 0, clients)
	defer func() {
		for _, each := range opened {
			each.close()
		}
	}()
	for number := range clients {
		one, err := what.client(bounded, number)
		if err != nil {
			return result, err
		}
		opened = append(opened, one)
	}
	serverBefore, err := server.server.processorTime()
	if err != nil {
		return result, err
	}
	storeBefore, err := server.store.processorTime()
	if err != nil {
		return result, err
	}
	begin := time.Now().Add(min(warmUp, duration/4))
	end := begin.Add(duration)
	var (
		mu       sync.Mutex
		took     []time.Duration
		answered int
		group    sync.WaitGroup
	)
	for _, worker := range opened {
		group.Go(func() {
			mine := make([]time.Duration, 0, 1<<14)
			all, failures, failure := 0, 0, error(nil)
			for {
				began := time.Now()
				if !began.Before(end) || ctx.Err() != nil {
					break
				}
				err := worker.step(bounded)
				if errors.Is(err, errDone) {
					break
				}
				all++
				if err != nil {
					failures++
					if failure == nil {
						failure = err
					}
					if status := refused(0); !errors.As(err, &status) {
						break
					}
				} else if answered := time.Now(); answered.After(begin) {
					mine = append(mine, answered.Sub(began))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took, answered = append(took, mine...), answered+all
			if result.Errors += failures; result.Error == "" && failure != nil {
				result.Error = failure.Error()
			}
		})
	}
	group.Wait()
	span := time.Since(begin)
	if err := ctx.Err(); err != nil {
		return result, err
	}
	serverAfter, err := server.server.processorTime()
	if err != nil {
		return result, err
	}
	storeAfter, err := server.store.processorTime()
	if err != nil {
		return result, err
	}
	slices.Sort(took)
	result.Rate = float64(len(took)) / span.Seconds()
	result.P50, result.P99 = percentile(took, 50), percentile(took, 99)
	// The processor time includes the requests of the warm-up.
	if answered > 0 {
		result.Server = (serverAfter - serverBefore) * 1000 / float64(answered)
		result.Store = (storeAfter - storeBefore) * 1000 / float64(answered)
	}
	if what.after != nil {
		return result, what.after(ctx)
	}
	return result, nil
}

// percentile returns a percentile in microseconds.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)-1)*percent/100].Nanoseconds()) / 1000
}

// connection is an HTTP/1.1 connection that does as little work as possible, because client and server share the machine: requests are finished
// texts, and only the status and the length of an answer are parsed.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
	// keep is true if the body of each answer with a length is kept until the next request.
	keep bool
	body []byte
}

// dialer opens connections to one server.
type dialer func(ctx context.Context) (net.Conn, error)

// plainDialer returns a dialer of connections without TLS.
func plainDialer(address string) dialer {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", address) }
}

// connect opens a connection that lasts no longer than the context.
func (d dialer) connect(ctx context.Context) (*connection, error) {
	conn, err := d(ctx)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &connection{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}, nil
}

var (
	contentLength    = []byte("Content-Length:")
	transferEncoding = []byte("Transfer-Encoding:")
)

// send sends one request and reads the whole answer.
func (c *connection) send(request []byte) (status int, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	const at = len("HTTP/1.1 ")
	if len(line) < at+3 {
		return 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[at : at+3])); err != nil {
		return 0, fmt.Errorf("status line %q", line)
	}
	length, chunked := -1, false
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		switch {
		case len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, fmt.Errorf("header %q", line)
			}
		case len(line) > len(transferEncoding) && bytes.EqualFold(line[:len(transferEncoding)], transferEncoding):
			chunked = bytes.EqualFold(bytes.TrimSpace(line[len(transferEncoding):]), []byte("chunked"))
		}
	}
	switch {
	case chunked:
		return status, c.discardChunks()
	case length < 0:
		return 0, errors.New("an answer without Content-Length")
	case c.keep:
		c.body = slices.Grow(c.body[:0], length)[:length]
		_, err = io.ReadFull(c.reader, c.body)
		return status, err
	}
	_, err = c.reader.Discard(length)
	return status, err
}

// discardChunks reads a body in chunks to its end. Source: RFC 9112 7.1.
func (c *connection) discardChunks() error {
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return fmt.Errorf("chunk size %q", line)
		}
		if size > 0 {
			if _, err := c.reader.Discard(int(size) + len("\r\n")); err != nil {
				return err
			}
			continue
		}
		for len(bytes.TrimRight(line, "\r\n")) > 0 {
			if line, err = c.reader.ReadSlice('\n'); err != nil {
				return err
			}
		}
		return nil
	}
}

// httpClient sends requests over one connection. next returns the text of the next request, or nil at the end.
func httpClient(ctx context.Context, dial dialer, next func(*connection) []byte) (*client, error) {
	connection, err := dial.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &client{
		step: func(context.Context) error {
			request := next(connection)
			if request == nil {
				return errDone
			}
			status, err := connection.send(request)
			if err == nil && (status < 200 || status > 299) {
				return refused(status)
			}
			return err
		},
		close: func() { _ = connection.conn.Close() },
	}, nil
}
