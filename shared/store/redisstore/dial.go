package redisstore

import (
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
	// trialTimeout is when a trial is given up whose connection nobody uses.
	trialTimeout = time.Second
	// sentinelTimeout bounds a question to a sentinel: there must be time left to ask another one.
	sentinelTimeout = 150 * time.Millisecond
)

var errSilent = errors.New("the connection was silent and answers no more")

// connect opens sockets, with TLS where there is a config for it.
type connect struct {
	tls *tls.Config
	// sentinels: some of the connections are to sentinels.
	sentinels bool
}

// toPrimary marks a context: the connection is not one to a sentinel.
type toPrimary struct{}

func (c connect) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	toSentinel := c.sentinels && ctx.Value(toPrimary{}) == nil
	if toSentinel {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sentinelTimeout)
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
		return hasty{spoken}, nil
	}
	return spoken, nil
}

// hasty waits for each answer for the time of a sentinel at most. Waiting for news has no end and stays so.
type hasty struct{ net.Conn }

func (h hasty) SetDeadline(t time.Time) error     { return h.Conn.SetDeadline(sooner(t)) }
func (h hasty) SetReadDeadline(t time.Time) error { return h.Conn.SetReadDeadline(sooner(t)) }

func sooner(t time.Time) time.Time {
	if limit := time.Now().Add(sentinelTimeout); !t.IsZero() && t.After(limit) {
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
		turn, err := g.enter(ctx)
		if err != nil {
			return broken{err}, nil //nolint:nilerr // the connection says it
		}
		socket, err := next(context.WithValue(ctx, toPrimary{}, true), network, addr)
		<-g.slots
		if isReply(err) {
			// A sentinel's refusal is not the answer to what Redis was asked; "absent" would be taken for one.
			err = errors.New("asking the sentinels: " + err.Error())
		}
		if err != nil {
			g.settle(turn, err)
			return broken{err}, nil
		}
		c := &conn{Conn: socket, gate: g, turn: turn}
		c.used.Store(clock())
		return c, nil
	}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// enter waits for one's turn to connect, and takes a slot. The trial is nil while all is well.
func (g *gate) enter(ctx context.Context) (*trial, error) {
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
			if other.err != nil {
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
	if g.trial != nil && now.Sub(g.trial.began) < trialTimeout {
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
	select {
	case <-turn.done:
		return
	default:
	}
	turn.err = err
	close(turn.done)
	if g.trial == turn {
		g.trial = nil
	}
}

// clock is the time on the wall in nanoseconds: it goes on while a process or its machine is frozen.
func clock() int64 { return time.Now().UnixNano() }

// conn is one connection. Like the library it is used by one at a time.
type conn struct {
	net.Conn
	gate *gate
	turn *trial
	// used is when something was read last.
	used atomic.Int64
	// alive: the server has said something, or is known not to.
	alive, settled atomic.Bool
	// answered: something was read after what was written last.
	answered atomic.Bool
}

func (c *conn) settle(err error) {
	if c.settled.CompareAndSwap(false, true) {
		c.gate.settle(c.turn, err)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.answered.Store(true)
		c.alive.Store(true)
		c.used.Store(clock())
		c.settle(nil)
		return n, err
	}
	if err == nil {
		return n, nil
	}
	c.settle(err)
	if c.answered.Load() {
		return n, err
	}
	return n, &cutError{err}
}

func (c *conn) Write(p []byte) (int, error) {
	c.answered.Store(false)
	n, err := c.Conn.Write(p)
	if err != nil {
		c.settle(err)
		return n, &cutError{err}
	}
	return n, nil
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
	const question, answer = "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"
	used, now := c.used.Load(), clock()
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

// unanswered tells whether a connection ended before any answer.
func unanswered(err error) bool {
	var lost *lostError
	if errors.As(err, &lost) {
		err = lost.cause
	}
	var cut *cutError
	return errors.As(err, &cut)
}

// broken is a connection that was never made.
type broken struct{ err error }

// The library takes the outermost error off what stops it from setting a connection up.
func (b broken) Read([]byte) (int, error)       { return 0, fmt.Errorf("connecting: %w", b.err) }
func (b broken) Write([]byte) (int, error)      { return 0, fmt.Errorf("connecting: %w", b.err) }
func (broken) Close() error                     { return nil }
func (broken) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (broken) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (broken) SetDeadline(time.Time) error      { return nil }
func (broken) SetReadDeadline(time.Time) error  { return nil }
func (broken) SetWriteDeadline(time.Time) error { return nil }
