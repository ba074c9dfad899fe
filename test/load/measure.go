package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// warmUp is how long a measurement runs before it counts, at most.
	warmUp = 200 * time.Millisecond
	// patience is how long after its end a measurement waits for its last answers.
	patience = 10 * time.Second
)

// subject is something that can be measured.
type subject struct {
	name string
	// client opens one client and returns what it does again and again. Clients are numbered from 0.
	client func(ctx context.Context, number int) (*client, error)
	// after is done at the end of each measurement, outside of its time. Nil: nothing.
	after func(ctx context.Context) error
}

// client is one of the simultaneous clients.
type client struct {
	// step asks once. A refused error is counted and the client goes on; any other one ends it.
	step  func(ctx context.Context) error
	close func()
}

// refused is an answer other than 2xx.
type refused int

func (r refused) Error() string { return fmt.Sprintf("HTTP status %d", int(r)) }

// sample is one measurement.
type sample struct {
	Subject string  `json:"subject"`
	Clients int     `json:"clients"`
	Round   int     `json:"round"`
	Rate    float64 `json:"requestsPerSecond"`
	P50     float64 `json:"p50Microseconds"`
	P99     float64 `json:"p99Microseconds"`
	Errors  int     `json:"errors"`
	// Error is the first of the errors.
	Error string `json:"error,omitempty"`
}

// measure lets clients ask for a duration, after a warm-up that does not count.
func measure(ctx context.Context, what subject, clients int, duration time.Duration) (sample, error) {
	result := sample{Subject: what.name, Clients: clients}
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
	begin := time.Now().Add(min(warmUp, duration/4))
	end := begin.Add(duration)
	var (
		mu    sync.Mutex
		took  []time.Duration
		group sync.WaitGroup
	)
	for _, one := range opened {
		group.Go(func() {
			mine := make([]time.Duration, 0, 1<<14)
			failures, failure := 0, error(nil)
			for {
				asked := time.Now()
				if !asked.Before(end) || ctx.Err() != nil {
					break
				}
				err := one.step(bounded)
				if err != nil {
					failures++
					if failure == nil {
						failure = err
					}
					if status := refused(0); !errors.As(err, &status) {
						break
					}
				} else if answered := time.Now(); !asked.Before(begin) {
					mine = append(mine, answered.Sub(asked))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
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
	slices.Sort(took)
	result.Rate = float64(len(took)) / span.Seconds()
	result.P50, result.P99 = percentile(took, 50), percentile(took, 99)
	if what.after != nil {
		return result, what.after(ctx)
	}
	return result, nil
}

// percentile is in microseconds.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)-1)*percent/100].Nanoseconds()) / 1000
}

// connection is an HTTP/1.1 connection that does as little as it can, since client and server share the
// machine: requests are finished texts, and of the answers it reads the status and the length.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dial(ctx context.Context, address string) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
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

var contentLength = []byte("Content-Length:")

// send asks once and reads the whole answer.
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
	length := -1
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, fmt.Errorf("header %q", line)
			}
		}
	}
	if length < 0 {
		return 0, errors.New("an answer without Content-Length")
	}
	_, err = c.reader.Discard(length)
	return status, err
}

// httpClient asks over one connection. Next returns the text of the next request.
func httpClient(ctx context.Context, address string, next func() []byte) (*client, error) {
	connection, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &client{
		step: func(context.Context) error {
			status, err := connection.send(next())
			if err == nil && (status < 200 || status > 299) {
				return refused(status)
			}
			return err
		},
		close: func() { _ = connection.conn.Close() },
	}, nil
}
