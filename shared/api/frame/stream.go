package frame

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// stream is an answer that is sent bit by bit.
type stream interface {
	// next returns what is to be sent next, waiting for it if need be. There may be some beside an error.
	next(ctx context.Context, wait time.Duration) ([]line, error)
	// bookmark tells how far the stream has come; ok is false where it may not.
	bookmark() (mark line, ok bool, err error)
	// lasts is how long the stream was asked to last; 0 for as long as usual.
	lasts() time.Duration
}

// line is one event of a stream.
type line struct {
	kind   watch.EventType
	object []byte
}

// Why a stream ended, as the log says it.
const (
	endedByTime   = "its time is over"
	endedByDrain  = "the process drains"
	endedByClient = "the client is gone"
	endedByKey    = "the access key is over"
	endedByChange = "the credential has changed"
	endedByState  = "the state cannot be reached"
	endedByError  = "an error was sent"
)

// serve sends a stream until it ends, and tells the log how it did.
func (f *frame) serve(ctx context.Context, w http.ResponseWriter, c *call, s stream) (*reply, []slog.Attr, error) {
	defer f.server.metrics().Watch(f.function)()
	out := &sender{frame: f, call: c, http: w, control: http.NewResponseController(w), stuckAfter: f.server.Watch.stuckAfter()}
	why, err := f.pump(ctx, c, s, out)
	result := &reply{status: http.StatusOK}
	if why == endedByError {
		result.reason = string(apierror.From(err).Status().Reason)
	}
	return result, []slog.Attr{slog.Int("events", out.sent), slog.String("ended", why)}, err
}

// pump moves events from a stream to its client, keeps an eye on the clock and on the credential, and tells
// why it ended.
func (f *frame) pump(ctx context.Context, c *call, s stream, out *sender) (why string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			why, err = endedByError, panicked(problem)
			out.failure(err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	draining, _ := f.server.drain()
	defer context.AfterFunc(draining, cancel)()

	settings, begun := f.server.Watch, time.Now()
	end := begun.Add(settings.lasts(s.lasts()))
	if bound, bounded := ctx.Deadline(); bounded && bound.Add(-politeness).Before(end) {
		end = bound.Add(-politeness)
	}
	over := f.keyEnds(c.caller, begun)
	checkAt, markAt := begun.Add(settings.checkEvery()), begun.Add(settings.bookmarkEvery())
	// Headers go out at once: the client is to know that it watches.
	if err := out.begin(); err != nil {
		return endedByClient, nil
	}
	for {
		now := time.Now()
		if !over.IsZero() && !now.Before(over) {
			return endedByKey, nil
		}
		if draining.Err() != nil {
			return out.close(s, endedByDrain)
		}
		if !now.Before(end) {
			return out.close(s, endedByTime)
		}
		if !now.Before(checkAt) {
			checkAt = now.Add(settings.checkEvery())
			caller, why, err := f.again(ctx, c)
			if why != "" {
				return why, err
			}
			over = f.keyEnds(caller, now)
		}
		if !now.Before(markAt) {
			markAt = now.Add(settings.bookmarkEvery())
			if err := out.mark(s); err != nil {
				return out.ended(err)
			}
		}
		next := end
		for _, at := range []time.Time{over, checkAt, markAt} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		lines, err := s.next(ctx, max(next.Sub(now), time.Millisecond))
		if sendErr := out.send(lines); sendErr != nil {
			return endedByClient, nil
		}
		switch {
		case err == nil:
		case draining.Err() != nil:
			// Looked at above.
		case ctx.Err() != nil:
			return endedByClient, nil
		case errors.Is(err, store.ErrUnavailable):
			return endedByState, err
		default:
			out.failure(err)
			return endedByError, err
		}
	}
}

// keyEnds is when the key of a caller ends by the clock of this process; zero for never.
func (f *frame) keyEnds(caller identity.Caller, now time.Time) time.Time {
	if caller.KeyExpires.IsZero() {
		return time.Time{}
	}
	return now.Add(caller.KeyExpires.Sub(f.server.Env.Now()))
}

// again authenticates and authorizes a watch again. It tells why it must end; empty: it goes on.
func (f *frame) again(ctx context.Context, c *call) (identity.Caller, string, error) {
	caller, err := f.server.Authenticator.Again(ctx, c.http.Header)
	if over(ctx) {
		return c.caller, "", nil // which is noticed right after
	}
	if errors.Is(err, store.ErrUnavailable) {
		return caller, endedByState, err
	}
	if err == nil {
		err = auth.Authorize(caller, f.request(c))
	}
	if err != nil {
		return caller, endedByChange, err
	}
	now, then := caller, c.caller
	now.KeyExpires, then.KeyExpires = time.Time{}, time.Time{}
	if !reflect.DeepEqual(now, then) {
		return caller, endedByChange, nil
	}
	return caller, "", nil
}

// sender writes a stream to its client.
type sender struct {
	frame      *frame
	call       *call
	http       http.ResponseWriter
	control    *http.ResponseController
	stuckAfter time.Duration
	sent       int
}

// begin sends the headers. A server that bounds the time to read a request must not bound the answer to this.
func (s *sender) begin() error {
	// Where it is not supported there is no bound.
	_ = s.control.SetReadDeadline(time.Time{})
	header := s.http.Header()
	header.Set("Content-Type", codec.JSON)
	header.Set("Cache-Control", "no-cache, private")
	header.Set(requestIDHeader, s.call.id)
	s.http.WriteHeader(http.StatusOK)
	return s.flush()
}

// send writes lines, flushes them, and gives up on a client that does not take them.
func (s *sender) send(lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.stuckAfter))
	for _, each := range lines {
		for _, part := range [][]byte{[]byte(`{"type":"` + string(each.kind) + `","object":`), each.object, []byte("}\n")} {
			if _, err := s.http.Write(part); err != nil {
				return err
			}
		}
		s.sent++
		s.frame.server.metrics().Event(s.frame.function, string(each.kind))
	}
	if err := s.flush(); err != nil {
		return err
	}
	// The connection may serve other requests after this one.
	_ = s.control.SetWriteDeadline(time.Time{})
	return nil
}

func (s *sender) flush() error {
	// A platform that cannot stream sends everything at the end.
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// errGone is the error of a client that does not take what it is sent.
var errGone = errors.New("the client is gone")

// mark sends a bookmark where one may be sent.
func (s *sender) mark(stream stream) error {
	mark, ok, err := stream.bookmark()
	if err != nil || !ok {
		return err
	}
	if err := s.send([]line{mark}); err != nil {
		return errGone
	}
	return nil
}

// close sends the last bookmark, from which the client resumes.
func (s *sender) close(stream stream, why string) (string, error) {
	if err := s.mark(stream); err != nil {
		return s.ended(err)
	}
	return why, nil
}

// ended tells why a stream ends with an error, after it was sent if need be.
func (s *sender) ended(err error) (string, error) {
	if errors.Is(err, errGone) {
		return endedByClient, nil
	}
	s.failure(err)
	return endedByError, err
}

// failure sends an error as the last event. Whether it arrives is of no matter: the stream ends.
func (s *sender) failure(err error) {
	status := apierror.From(err).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Code >= http.StatusInternalServerError {
		status.Message += " (request " + s.call.id + ")"
	}
	// A Status holds only strings and numbers: it always marshals.
	text, _ := json.Marshal(status)
	_ = s.send([]line{{kind: watch.Error, object: text}})
}
