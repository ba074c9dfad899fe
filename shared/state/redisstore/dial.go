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
	// maxSilence is the longest silence after which a connection is used without a PING first. The function may have
	// been frozen meanwhile, and the server may be gone without having closed the connection.
	maxSilence = time.Second
	// maxDials is how many connections are opened at a time.
	maxDials = 8
	// firstPause and longestPause bound the pause between attempts to connect, which doubles each time. Callers wait
	// for the end of the pause, because an error that is older than their call must not reach them. The pause must
	// therefore be shorter than an operation.
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// pingCommand and pingReply test whether a server is there: the command as it is sent, and the expected reply.
const pingCommand, pingReply = "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"

var (
	errFull    = errors.New("the server has reached its maximum number of clients")
	errSilent  = errors.New("the connection was silent and no longer answers")
	errDemoted = errors.New("the connection leads to a server that is now a replica")
)

// connect opens sockets, with TLS if it has a config.
type connect struct {
	tls *tls.Config
	// sentinel bounds each request to a sentinel: the library asks a silent one three times before it tries the next.
	// 0: there are no sentinels.
	sentinel time.Duration
}

// toPrimary marks a context: the connection does not lead to a sentinel.
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
		return sentinelConn{spoken, c.sentinel}, nil
	}
	return spoken, nil
}

// sentinelConn shortens every deadline to the limit for a sentinel. A wait for notifications has no deadline, and none
// is set.
type sentinelConn struct {
	net.Conn
	limit time.Duration
}

func (h sentinelConn) SetDeadline(t time.Time) error     { return h.Conn.SetDeadline(h.sooner(t)) }
func (h sentinelConn) SetReadDeadline(t time.Time) error { return h.Conn.SetReadDeadline(h.sooner(t)) }

func (h sentinelConn) sooner(t time.Time) time.Time {
	if limit := time.Now().Add(h.limit); !t.IsZero() && t.After(limit) {
		return limit
	}
	return t
}

// gate controls the connections of one client of the library; they all lead to one server. Callers that want to
// connect to an unreachable server share one attempt, and the pauses between attempts grow. An attempt has succeeded
// once the server has sent something: accepting a connection and closing it counts as a failure.
type gate struct {
	// probe bounds a PING on a silent connection.
	probe time.Duration
	slots chan struct{}
	// condemned is when a silent connection was last found dead. Silent connections last used before that time are
	// given up without a PING.
	condemned atomic.Int64
	// demoted is when the server last said that it is a replica. The server's name may lead to another server now, and
	// connections made before that time do not.
	demoted atomic.Int64

	mu       sync.Mutex
	failures int
	next     time.Time
	trial    *trial
}

// trial is the one attempt under way while a server is unreachable. err is set before done is closed.
type trial struct {
	began time.Time
	done  chan struct{}
	err   error
}

func newGate(timeout time.Duration) *gate {
	return &gate{probe: timeout / 4, slots: make(chan struct{}, maxDials)}
}

// DialHook hides failures to connect from the library. After as many failures as the pool has connections, the library
// would return the last error for a second without trying, and a process that was frozen would resume with that error.
func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := time.Now()
		turn, err := g.enter(ctx)
		if err != nil {
			return broken{&dialError{err, began}}, nil //nolint:nilerr // the connection returns the error
		}
		socket, err := next(context.WithValue(ctx, toPrimary{}, true), network, addr)
		<-g.slots
		if isReply(err) {
			// A sentinel's error reply must not be taken for the reply to the command: "nil" would mean that a value
			// is absent.
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
			return broken{&dialError{err, began}}, nil //nolint:nilerr // the connection returns the error
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

// greet sends a PING and accepts any reply, even that a password is required: it shows that the server answers.
func greet(ctx context.Context, socket net.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = socket.SetDeadline(deadline)
	}
	if _, err := io.WriteString(socket, pingCommand); err != nil {
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

// full reports whether an answer says that the server has too many clients. The server then closes the connection.
func full(answer []byte) bool { return bytes.HasPrefix(answer, []byte("-ERR max number of clients")) }

// enter waits until the caller may connect, and takes a slot. The trial is nil while the server is reachable.
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

// look says what the caller has to do: connect (as the trial if turn is not nil), wait for the trial of another
// caller, or wait for the end of a pause.
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
	// By the wall clock, which goes on while the process is frozen. It may be set back: a pause longer than
	// longestPause is ignored.
	if pause = g.next.Sub(now.Round(0)); pause > 0 && pause <= longestPause {
		return nil, nil, pause
	}
	g.trial = &trial{began: now, done: make(chan struct{})}
	return g.trial, nil, 0
}

// settle records how an attempt ended. Failures at about the same time count as one.
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

// clock is the wall clock in nanoseconds: it goes on while a process or its machine is frozen.
func clock() int64 { return time.Now().UnixNano() }

// conn is one connection. One goroutine at a time uses it, as the library does.
type conn struct {
	net.Conn
	gate *gate
	// began is when the attempt to connect began, by the monotonic clock.
	began time.Time
	// made is when the attempt succeeded.
	made int64
	// used is when something was last read.
	used atomic.Int64
	// alive: the server has sent something. settled: the outcome of the attempt is known and recorded.
	alive, settled atomic.Bool
	// answered: something was read after the last write.
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

// ended records the end of a connection and returns the error that tells what became of the last write.
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

// SyscallConn is called by the library before it uses an idle connection, to check whether the server has closed it.
// After an error the library takes another connection, before anything was sent. With TLS it checks the socket
// below: between two replies that socket has nothing to read.
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

// prove sends a PING on a connection that was silent for longer than maxSilence. A connection that a firewall or a
// failover has cut, or that was cut while the process was frozen, may look healthy until then.
func (c *conn) prove() error {
	used, now := c.used.Load(), clock()
	if c.gate.demoted.Load() > c.made {
		return errDemoted
	}
	if !c.alive.Load() || now-used < int64(maxSilence) {
		return nil
	}
	if c.gate.condemned.Load() > used {
		return errSilent
	}
	_ = c.SetDeadline(time.Now().Add(c.gate.probe))
	got := make([]byte, len(pingReply))
	_, err := io.WriteString(c.Conn, pingCommand)
	if err == nil {
		_, err = io.ReadFull(c.Conn, got)
	}
	if err == nil && string(got) != pingReply {
		err = errSilent
	}
	if err != nil {
		c.gate.condemned.Store(now)
		return err
	}
	c.used.Store(clock())
	return c.SetDeadline(time.Time{})
}

// cutError says that the connection ended before any answer to the last write.
type cutError struct{ cause error }

func (e *cutError) Error() string { return e.cause.Error() }
func (e *cutError) Unwrap() error { return e.cause }

// dialError says that a connection could not be set up. No command of the caller was sent over it.
type dialError struct {
	cause error
	// began is when connecting began.
	began time.Time
}

func (e *dialError) Error() string { return e.cause.Error() }
func (e *dialError) Unwrap() error { return e.cause }

// unanswered reports whether the connection ended before any answer.
func unanswered(err error) bool {
	var cut *cutError
	return errors.As(revealed(err), &cut)
}

// stale reports whether an operation failed because of an attempt to connect that had begun before the operation. The
// library passes on connections that it opened for a caller that has given up.
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

// broken stands for a connection that could not be made: every use returns the error.
type broken struct{ err *dialError }

// Read and Write wrap the error, because the library removes the outermost error when setting up a connection fails.

func (b broken) Read([]byte) (int, error)  { return 0, fmt.Errorf("connecting: %w", b.err) }
func (b broken) Write([]byte) (int, error) { return 0, fmt.Errorf("connecting: %w", b.err) }
func (broken) Close() error                { return nil }

// SyscallConn keeps the connection out of use if it came into the pool because its caller no longer waited.
func (b broken) SyscallConn() (syscall.RawConn, error) { return nil, b.err }

func (broken) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (broken) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (broken) SetDeadline(time.Time) error      { return nil }
func (broken) SetReadDeadline(time.Time) error  { return nil }
func (broken) SetWriteDeadline(time.Time) error { return nil }
