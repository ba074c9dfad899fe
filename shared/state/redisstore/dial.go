package redisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limits of connections. Source: ADR-0002.
const (
	// quiet is how long a connection may have been silent to be used without a question first. A function may have
	// been frozen since, and what was at the other end may be gone without a word.
	quiet = time.Second
	// maxDials is how many connections are opened at a time.
	maxDials = 8
	// firstPause and longestPause bound the pause between attempts to connect, which doubles each time. Callers wait
	// for its end, so that nobody is given an error of before he came: it has to fit into an operation.
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// What is asked to see whether a server is there, and what it answers.
const question, answer = "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"

var (
	errFull    = errors.New("the server has as many clients as it takes")
	errSilent  = errors.New("the connection was silent and answers no more")
	errDemoted = errors.New("the connection leads to a server that is a replica now")
)

// connect opens sockets, with TLS where there is a config for it.
type connect struct {
	tls *tls.Config
	// sentinel bounds a question to a sentinel: the library asks a silent one three times before it goes on. 0: there are none.
	sentinel time.Duration
}

// toPrimary marks a context: the connection is not one to a sentinel.
type toPrimary struct{}

func (c connect) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	toSentinel := c.sentinel > 0 && ctx.Value(toPrimary{}) == nil
	if toSentinel {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.sentinel)
		defer cancel()
	}
	socket, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	spoken := socket
	if c.tls != nil {
		config := c.tls.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(socket, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, fmt.Errorf("TLS with %s: %w", addr, err)
		}
		spoken = secure
	}
	if toSentinel {
		return hasty{spoken, c.sentinel}, nil
	}
	return spoken, nil
}

// hasty waits for each answer for the time of a sentinel at most. Waiting for news has no end and stays so.
type hasty struct {
	net.Conn
	limit time.Duration
}

func (h hasty) SetDeadline(t time.Time) error     { return h.Conn.SetDeadline(h.sooner(t)) }
func (h hasty) SetReadDeadline(t time.Time) error { return h.Conn.SetReadDeadline(h.sooner(t)) }

func (h hasty) sooner(t time.Time) time.Time {
	if limit := time.Now().Add(h.limit); !t.IsZero() && t.After(limit) {
		return limit
	}
	return t
}

// gate is before the connections of one client of the library, which are those to one server. Many who want to
// connect to a server that is away share one attempt, and the pauses between attempts grow. An attempt has
// succeeded when the server has said something: what accepts and closes is no better than what refuses.
type gate struct {
	probe time.Duration
	slots chan struct{}
	// condemned is when a silent connection was found dead: others that were silent as long are not asked.
	condemned atomic.Int64
	// demoted is when the server last said that it is a replica: where its name leads now, connections of before do not.
	demoted atomic.Int64

	mu       sync.Mutex
	failures int
	next     time.Time
	trial    *trial
}

// trial is the one attempt under way while a server is away. err is set before done is closed.
type trial struct {
	began time.Time
	done  chan struct{}
	err   error
}

func newGate(timeout time.Duration) *gate {
	return &gate{probe: timeout / 4, slots: make(chan struct{}, maxDials)}
}

// DialHook never lets the library see that connecting failed: after as many failures as the pool has connections it
// would answer with the last one for a second, which a frozen process would come back with.
func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := time.Now()
		turn, err := g.enter(ctx)
		if err != nil {
			return broken{&dialError{err, began}}, nil //nolint:nilerr // the connection says it
		}
		socket, err := next(context.WithValue(ctx, toPrimary{}, true), network, addr)
		<-g.slots
		if isReply(err) {
			// A sentinel's refusal is not the answer to what Redis was asked; "absent" would be taken for one.
			err = errors.New("asking the sentinels: " + err.Error())
		}
		if err == nil && turn != nil {
			if err = greet(ctx, socket); err != nil {
				_ = socket.Close()
			}
		}
		if err != nil || turn != nil {
			g.settle(turn, err)
		}
		if err != nil {
			return broken{&dialError{err, began}}, nil //nolint:nilerr // the connection says it
		}
		c := &conn{Conn: socket, gate: g, began: began, made: clock()}
		c.used.Store(c.made)
		return c, nil
	}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return g.notice(next(ctx, cmd)) }
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return g.notice(next(ctx, cmds)) }
}

func (g *gate) notice(err error) error {
	if redis.IsReadOnlyError(err) {
		g.demoted.Store(clock())
	}
	return err
}

// greet finds out whether a server says anything at all, were it that it wants a password first.
func greet(ctx context.Context, socket net.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = socket.SetDeadline(deadline)
	}
	if _, err := io.WriteString(socket, question); err != nil {
		return err
	}
	var line []byte
	for char := make([]byte, 1); char[0] != '\n' && len(line) < 1024; line = append(line, char[0]) {
		if _, err := io.ReadFull(socket, char); err != nil {
			return err
		}
	}
	if full(line) {
		return errFull
	}
	return socket.SetDeadline(time.Time{})
}

// full tells whether a server has too many clients, which it says to close the connection then.
func full(answer []byte) bool { return bytes.HasPrefix(answer, []byte("-ERR max number of clients")) }

// enter waits for one's turn to connect, and takes a slot. The trial is nil while all is well.
func (g *gate) enter(ctx context.Context) (*trial, error) {
	came := time.Now()
	for {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		turn, other, pause := g.look()
		if other == nil && pause == 0 {
			return turn, nil
		}
		<-g.slots
		if other == nil {
			over := time.NewTimer(pause)
			select {
			case <-over.C:
			case <-ctx.Done():
				over.Stop()
				return nil, ctx.Err()
			}
			continue
		}
		select {
		case <-other.done:
			if other.err != nil && other.began.After(came) {
				return nil, other.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look says what to do: connect, as a trial or as ever, or wait for another's trial, or for the end of a pause.
func (g *gate) look() (turn, other *trial, pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.failures == 0 {
		return nil, nil, 0
	}
	if g.trial != nil {
		return nil, g.trial, 0
	}
	// By the clock on the wall, which goes on while the process is frozen, and may be put back.
	if pause = g.next.Sub(now.Round(0)); pause > 0 && pause <= longestPause {
		return nil, nil, pause
	}
	g.trial = &trial{began: now, done: make(chan struct{})}
	return g.trial, nil, 0
}

// settle notes how an attempt ended. Failures at about the same time are one.
func (g *gate) settle(turn *trial, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now().Round(0)
	switch {
	case err == nil:
		g.failures = 0
	case g.failures == 0 || turn != nil:
		g.failures++
		pause := min(firstPause<<min(g.failures-1, 10), longestPause)
		g.next = now.Add(pause/2 + rand.N(pause/2)) //nolint:gosec // a pause is no secret
	}
	if turn == nil {
		return
	}
	turn.err = err
	close(turn.done)
	g.trial = nil
}

// clock is the time on the wall in nanoseconds: it goes on while a process or its machine is frozen.
func clock() int64 { return time.Now().UnixNano() }

// conn is one connection. Like the library it is used by one at a time.
type conn struct {
	net.Conn
	gate *gate
	// began is when it was to be connected, by the clock of the process.
	began time.Time
	// made is when it was connected.
	made int64
	// used is when something was read last.
	used atomic.Int64
	// alive: the server has said something. settled: that, or it is noted that it never did.
	alive, settled atomic.Bool
	// answered: something was read after what was written last.
	answered atomic.Bool
}

func (c *conn) settle(err error) {
	if c.settled.CompareAndSwap(false, true) {
		c.gate.settle(nil, err)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.answered.Store(true)
		c.alive.Store(true)
		c.used.Store(clock())
		if full(p[:n]) {
			c.settle(errFull)
		}
		c.settled.Store(true)
		return n, err
	}
	if err == nil {
		return n, nil
	}
	return n, c.ended(err)
}

// ended notes the end of a connection and says what it means for what was sent.
func (c *conn) ended(err error) error {
	c.settle(err)
	switch {
	case !c.alive.Load():
		// The library was setting the connection up.
		return fmt.Errorf("connecting: %w", &dialError{err, c.began})
	case c.answered.Load():
		return err
	default:
		return &cutError{err}
	}
}

func (c *conn) Write(p []byte) (int, error) {
	c.answered.Store(false)
	n, err := c.Conn.Write(p)
	if err != nil {
		err = c.ended(err)
	}
	return n, err
}

func (c *conn) Close() error {
	c.settle(net.ErrClosed)
	return c.Conn.Close()
}

// SyscallConn is asked for by the library before it uses a connection that was idle, to look whether the other end
// has closed it. An error has it take another connection, before anything was sent. The socket below TLS is
// looked at as well: nothing is to be read from it between two answers.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if err := c.prove(); err != nil {
		return nil, err
	}
	socket := c.Conn
	if secure, ok := socket.(*tls.Conn); ok {
		socket = secure.NetConn()
	}
	raw, ok := socket.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return raw.SyscallConn()
}

// prove asks a connection that was silent for long whether it still is one. What a firewall, a failover or a thaw
// has cut may not show otherwise.
func (c *conn) prove() error {
	used, now := c.used.Load(), clock()
	if c.gate.demoted.Load() > c.made {
		return errDemoted
	}
	if !c.alive.Load() || now-used < int64(quiet) {
		return nil
	}
	if c.gate.condemned.Load() > used {
		return errSilent
	}
	_ = c.SetDeadline(time.Now().Add(c.gate.probe))
	got := make([]byte, len(answer))
	_, err := io.WriteString(c.Conn, question)
	if err == nil {
		_, err = io.ReadFull(c.Conn, got)
	}
	if err == nil && string(got) != answer {
		err = errSilent
	}
	if err != nil {
		c.gate.condemned.Store(now)
		return err
	}
	c.used.Store(clock())
	return c.SetDeadline(time.Time{})
}

// cutError is a connection that ended before any answer came to what was sent last.
type cutError struct{ cause error }

func (e *cutError) Error() string { return e.cause.Error() }
func (e *cutError) Unwrap() error { return e.cause }

// dialError is a connection that could not be used: nothing was sent over it but what sets it up.
type dialError struct {
	cause error
	// began is when connecting began.
	began time.Time
}

func (e *dialError) Error() string { return e.cause.Error() }
func (e *dialError) Unwrap() error { return e.cause }

// unanswered tells whether a connection ended before any answer.
func unanswered(err error) bool {
	var cut *cutError
	return errors.As(revealed(err), &cut)
}

// stale tells whether an operation was not done because of an attempt to connect that began before it did. The
// library hands on what it got for a caller who has given up.
func stale(err error, start time.Time) bool {
	var dial *dialError
	return errors.As(revealed(err), &dial) && dial.began.Before(start)
}

func revealed(err error) error {
	var lost *lostError
	if errors.As(err, &lost) {
		return lost.cause
	}
	return err
}

// broken is a connection that was never made.
type broken struct{ err *dialError }

// The library takes the outermost error off what stops it from setting a connection up.

func (b broken) Read([]byte) (int, error)  { return 0, fmt.Errorf("connecting: %w", b.err) }
func (b broken) Write([]byte) (int, error) { return 0, fmt.Errorf("connecting: %w", b.err) }
func (broken) Close() error                { return nil }

// SyscallConn keeps it out of use when nobody waited for it any more.
func (b broken) SyscallConn() (syscall.RawConn, error) { return nil, b.err }

func (broken) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (broken) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (broken) SetDeadline(time.Time) error      { return nil }
func (broken) SetReadDeadline(time.Time) error  { return nil }
func (broken) SetWriteDeadline(time.Time) error { return nil }
