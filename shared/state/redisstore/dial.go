package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxSilence is the longest silence after which a connection is used without a PING first. The function may have
	// been frozen in the meantime, and the server may be gone without having closed the connection.
	maxSilence = time.Second
	// maxDials is the number of connections to one server that are opened at a time. While the server is away, the
	// number is one.
	maxDials = 8
	// longestPause is the minimum duration of a failed attempt to connect, give or take a quarter. It bounds how often
	// a server that is away is tried.
	longestPause = 50 * time.Millisecond
)

var (
	errFull  = errors.New("the server has reached its maximum number of clients")
	errUnfit = errors.New("the connection no longer answers, or leads to a server that is now a replica")
)

// toPrimary marks the context of a connection that does not lead to a sentinel.
type toPrimary struct{}

// dialer returns a function that opens sockets with another dialer, with TLS if there is a config. Limit bounds each
// request to a sentinel: the library asks a silent sentinel three times before it tries the next. 0: there are no
// sentinels. MaxReply has the same meaning as in Options.
func dialer(base *net.Dialer, config *tls.Config, limit time.Duration, maxReply int64) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (socket net.Conn, err error) {
		toSentinel := limit > 0 && ctx.Value(toPrimary{}) == nil
		if toSentinel {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		if config == nil {
			socket, err = base.DialContext(ctx, network, addr)
		} else if socket, err = (&tls.Dialer{NetDialer: base, Config: config}).DialContext(ctx, network, addr); err != nil {
			err = fmt.Errorf("TLS with %s: %w", addr, err)
		}
		if err != nil {
			return nil, err
		}
		if maxReply > 0 {
			socket = &boundedConn{Conn: socket, replies: replyBounds{most: maxReply}}
		}
		if toSentinel {
			return sentinelConn{socket, limit}, nil
		}
		return socket, nil
	}
}

// sentinelConn bounds the wait for a reply of a sentinel. A wait for notifications has no deadline, and gets none.
type sentinelConn struct {
	net.Conn
	limit time.Duration
}

func (s sentinelConn) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(s.limit); t.After(latest) {
		t = latest
	}
	return s.Conn.SetReadDeadline(t)
}

// peer is the server at the other end of all connections of one client of the library. It is a hook of that client.
type peer struct {
	// patience bounds a PING on a silent connection. An attempt to connect may last twice as long.
	patience time.Duration
	// turns and trial bound the concurrent attempts to connect. trial is for attempts that begin while the server is
	// away.
	turns, trial chan struct{}
	// outage is the last failure to connect. Nil: the last attempt succeeded.
	outage atomic.Pointer[endError]
	// condemned is when a silent connection was last found dead. Silent connections that were last used before that
	// time are given up without a PING.
	condemned atomic.Int64
	// demoted is when the server last said that it is a replica. The server's name may now lead to another server, to
	// which connections made before that time do not lead.
	demoted atomic.Int64
}

func newPeer(timeout time.Duration) *peer {
	return &peer{patience: timeout / 4, turns: make(chan struct{}, maxDials), trial: make(chan struct{}, 1)}
}

// DialHook hides failures to connect from the library. After as many failures as the pool has connections, the library
// would return the last error for a second without trying, and a process that was frozen would resume with that error.
func (p *peer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := time.Now()
		socket, err := p.dial(ctx, began, func(ctx context.Context) (net.Conn, error) { return next(ctx, network, addr) })
		if err != nil {
			nowhere, _ := net.Pipe()
			socket = broken{nowhere, err}
		}
		return &conn{Conn: socket, peer: p, began: began, made: clock()}, nil
	}
}

// dial connects for a caller that arrived at a given time. If an attempt that began after that time has failed in the
// meantime, the caller gets its error. While the server is away, an accepted connection is not enough: the server must
// answer a PING.
func (p *peer) dial(ctx context.Context, arrival time.Time, next func(context.Context) (net.Conn, error)) (net.Conn, error) {
	turns := p.turns
	if p.outage.Load() != nil {
		turns = p.trial
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	outage := p.outage.Load()
	if outage != nil && outage.dialed.After(arrival) {
		return nil, outage.cause
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, toPrimary{}, true), 2*p.patience)
	defer cancel()
	socket, err := next(ctx)
	if err == nil && outage != nil {
		if err = greet(ctx, socket); err != nil {
			_ = socket.Close()
		} else {
			p.outage.Store(nil)
		}
	}
	if isReply(err) {
		// The library must not take an error reply of a sentinel for the reply to the command: "nil" would mean that a
		// value is absent.
		err = errors.New("asking the sentinels: " + err.Error())
	}
	if err != nil {
		p.outage.Store(&endError{err, began})
		pause := min(p.patience, longestPause)
		<-time.After(pause*3/4 + rand.N(pause/2+1) - time.Since(began)) //nolint:gosec // a pause is no secret
		return nil, err
	}
	return socket, nil
}

func (p *peer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return p.notice(next(ctx, cmd)) }
}

func (p *peer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return p.notice(next(ctx, cmds)) }
}

func (p *peer) notice(err error) error {
	if ignoreAbsence(err) == nil {
		return err // the usual answers, for which the rest would allocate memory
	}
	var end *endError
	switch {
	case redis.IsReadOnlyError(err):
		p.demoted.Store(clock())
	case redis.IsMaxClientsError(err):
		p.outage.CompareAndSwap(nil, &endError{cause: errFull})
	case errors.As(err, &end) && !end.dialed.IsZero():
		p.outage.CompareAndSwap(nil, end)
	}
	return err
}

// greet sends a PING and accepts any reply, even an error that asks for a password: every reply shows that the server
// answers.
func greet(ctx context.Context, socket net.Conn) error {
	deadline, _ := ctx.Deadline()
	answer, err := ping(socket, deadline)
	if strings.HasPrefix(answer, "-ERR max number of clients") {
		return errFull
	}
	return err
}

// ping sends a PING and returns the first line of the reply.
func ping(socket net.Conn, deadline time.Time) (string, error) {
	_ = socket.SetDeadline(deadline)
	if _, err := io.WriteString(socket, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReaderSize(socket, 1024).ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(line), socket.SetDeadline(time.Time{})
}

// clock returns the wall clock in nanoseconds, which goes on while a process or its machine is frozen.
func clock() int64 { return time.Now().UnixNano() }

// conn is one connection. One goroutine at a time uses it, as the library does.
type conn struct {
	net.Conn
	peer *peer
	// began is when the attempt to connect began, by the monotonic clock.
	began time.Time
	// made is when the attempt ended, and used when something was last read. 0: the server has sent nothing yet.
	made, used int64
	// answered reports whether something was read after the last write.
	answered bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.used, c.answered = clock(), true
		return n, err
	}
	return n, c.endOf(err)
}

func (c *conn) Write(p []byte) (int, error) {
	c.answered = false
	n, err := c.Conn.Write(p)
	return n, c.endOf(err)
}

// endOf returns an error that says whether the last write was answered before the connection ended.
func (c *conn) endOf(err error) error {
	switch {
	case err == nil || c.answered:
		return err
	case c.used == 0:
		// The library was setting up the connection. It then removes the outermost error.
		return fmt.Errorf("connecting: %w", &endError{err, c.began})
	default:
		return &endError{cause: err}
	}
}

// SyscallConn returns the socket. The library calls it before it uses an idle connection, to check whether the server
// has closed the connection. After an error the library takes another connection, before anything was sent. With TLS it
// checks the socket below: between two replies that socket has nothing to read.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if err := c.prove(); err != nil {
		return nil, err
	}
	socket := c.Conn
	if bounded, ok := socket.(*boundedConn); ok {
		socket = bounded.Conn
	}
	if secure, ok := socket.(*tls.Conn); ok {
		socket = secure.NetConn()
	}
	raw, ok := socket.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported // no connection could be made, and the caller no longer waits
	}
	return raw.SyscallConn()
}

// prove sends a PING on a connection that was silent for longer than maxSilence. Until then, a connection may look
// healthy that a firewall or a failover has cut, or that was cut while the process was frozen.
func (c *conn) prove() error {
	now := clock()
	silent := c.used > 0 && now-c.used >= int64(maxSilence)
	if c.peer.demoted.Load() > c.made || silent && c.peer.condemned.Load() > c.used {
		return errUnfit
	}
	if !silent {
		return nil
	}
	if answer, err := ping(c.Conn, time.Now().Add(c.peer.patience)); err != nil || answer != "+PONG\r\n" {
		c.peer.condemned.Store(now)
		return errUnfit
	}
	c.used = clock()
	return nil
}

// endError means that a connection ended before any reply to the last write.
type endError struct {
	cause error
	// dialed is when connecting began, if the connection was still being set up: no command of the caller was then sent
	// over it. Otherwise it is zero.
	dialed time.Time
}

func (e *endError) Error() string { return e.cause.Error() }
func (e *endError) Unwrap() error { return e.cause }

// endErrorIn returns the endError in the error of an operation, or nil.
func endErrorIn(err error) *endError {
	if err == nil {
		return nil
	}
	var lost *lostError
	if errors.As(err, &lost) {
		err = lost.cause
	}
	var end *endError
	errors.As(err, &end)
	return end
}

// isUnanswered reports whether the connection ended after a command was sent, and before any reply.
func isUnanswered(err error) bool {
	end := endErrorIn(err)
	return end != nil && end.dialed.IsZero()
}

// isStale reports whether an operation failed because of an attempt to connect that began before the operation. The
// library passes on connections that it opened for a caller that has given up.
func isStale(err error, start time.Time) bool {
	end := endErrorIn(err)
	return end != nil && !end.dialed.IsZero() && end.dialed.Before(start)
}

// broken stands for a connection that could not be made: every use returns the error.
type broken struct {
	net.Conn
	err error
}

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }
