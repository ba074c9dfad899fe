package frame

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// stream is a response that is sent event by event.
type stream interface {
	// next returns the lines to send next. It waits for them at most as long as wait. It may return lines together with an
	// error.
	next(ctx context.Context, wait time.Duration) ([]line, error)
	// bookmark returns a bookmark of the position of the stream. ok is false if the stream must not send one.
	bookmark() (mark line, ok bool, err error)
	// hasBegun reports whether the stream has sent what it begins with.
	hasBegun() bool
	// duration returns the duration that the request asked for; 0 for the usual duration.
	duration() time.Duration
}

// line is one event of a stream.
type line struct {
	kind   watch.EventType
	object []byte
}

// Reasons why a stream ended, as the log gives them.
const (
	endedByTime   = "its duration has elapsed"
	endedByDrain  = "the process is draining"
	endedByClient = "the client is gone"
	endedByKey    = "the access key has expired"
	endedByChange = "the credential has changed"
	endedByState  = "the state cannot be reached"
	endedByError  = "an error was sent"
	endedByRoom   = "the response is full"
)

// serve sends a stream until it ends. It returns log attributes that say how the stream ended.
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

// pump sends the events of a stream to its client until the stream must end, because of its duration, its credential or an
// error. It returns the reason why the stream ended.
func (f *frame) pump(ctx context.Context, c *call, s stream, out *sender) (why string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			why, err = endedByError, panicked(problem)
			out.sendError(err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	draining, _ := f.server.drain()
	defer context.AfterFunc(draining, cancel)()

	settings, started := f.server.Watch, time.Now()
	end := started.Add(settings.duration(s.duration()))
	if bound, bounded := ctx.Deadline(); bounded && bound.Add(-politeness).Before(end) {
		end = bound.Add(-politeness)
	}
	keyEnd := f.keyEnds(c.caller, started)
	checkAt, markAt := started.Add(settings.checkEvery()), started.Add(settings.bookmarkEvery())
	// The headers are sent at once, so that the client knows that the watch has begun.
	if err := out.begin(); err != nil {
		return endedByClient, nil
	}
	for {
		now := time.Now()
		if !keyEnd.IsZero() && !now.Before(keyEnd) {
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
			caller, why, err := f.reauthorize(ctx, c)
			if why != "" {
				return why, err
			}
			keyEnd = f.keyEnds(caller, now)
		}
		if !now.Before(markAt) {
			markAt = now.Add(settings.bookmarkEvery())
			if err := out.sendBookmark(s); err != nil {
				return out.endReason(err)
			}
		}
		next := end
		for _, due := range []time.Time{keyEnd, checkAt, markAt} {
			if !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		begun := s.hasBegun()
		lines, err := s.next(ctx, max(next.Sub(now), time.Millisecond))
		if begun && out.isFull(lines) {
			// The client resumes after the last event that it has.
			return endedByRoom, nil
		}
		if sendErr := out.send(lines); sendErr != nil {
			return endedByClient, nil
		}
		if out.isTooLarge() {
			return endedByRoom, nil
		}
		if s.hasBegun() {
			c.places[fairness.Lists].Release()
		}
		switch {
		case err == nil:
		case draining.Err() != nil:
			// The next iteration ends the stream.
		case ctx.Err() != nil:
			return endedByClient, nil
		case errors.Is(err, store.ErrUnavailable):
			return endedByState, err
		default:
			out.sendError(err)
			return endedByError, err
		}
	}
}

// keyEnds returns the time at which the caller's key expires, by the clock of this process; zero if it does not expire.
func (f *frame) keyEnds(caller identity.Caller, now time.Time) time.Time {
	if caller.KeyExpires.IsZero() {
		return time.Time{}
	}
	return now.Add(caller.KeyExpires.Sub(f.server.Env.Now()))
}

// reauthorize authenticates and authorizes a watch again. It returns the reason why the watch must end; empty if it continues.
func (f *frame) reauthorize(ctx context.Context, c *call) (identity.Caller, string, error) {
	caller, err := f.server.Authenticator.Reauthenticate(ctx, c.http.Header)
	if isOver(ctx) {
		return c.caller, "", nil // pump then ends the watch
	}
	if errors.Is(err, store.ErrUnavailable) {
		return caller, endedByState, err
	}
	if err == nil {
		request := f.request(c)
		caller = caller.ForVerb(request.Verb)
		err = auth.Authorize(caller, request)
	}
	if err != nil {
		return caller, endedByChange, err
	}
	if !caller.SameRights(c.caller) {
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

// begin sends the headers. It lifts the server's time limits for a request, which must not end the response.
func (s *sender) begin() error {
	// A server that does not support this has no such limits.
	_ = s.control.SetReadDeadline(time.Time{})
	_ = s.control.SetWriteDeadline(time.Time{})
	header := s.http.Header()
	header.Set("Content-Type", codec.JSON)
	header.Set("Cache-Control", "no-cache, private")
	header.Set(requestIDHeader, s.call.id)
	s.http.WriteHeader(http.StatusOK)
	return s.flush()
}

// send writes and flushes lines. It returns an error if the client does not receive them in time.
func (s *sender) send(lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.stuckAfter))
	for _, event := range lines {
		for _, part := range [][]byte{[]byte(`{"type":"` + string(event.kind) + `","object":`), event.object, []byte("}\n")} {
			if _, err := s.http.Write(part); err != nil {
				return err
			}
		}
		s.sent++
		s.frame.server.metrics().Event(s.frame.function, string(event.kind))
	}
	if err := s.flush(); err != nil {
		return err
	}
	// The connection may serve other requests after this one.
	_ = s.control.SetWriteDeadline(time.Time{})
	return nil
}

// markRoom is the space that is kept for the last bookmark or error, in bytes.
const markRoom = 4 << 10

// isFull reports whether lines do not fit into a response that is sent in one piece, although it has events already.
func (s *sender) isFull(lines []line) bool {
	bounded, ok := s.http.(Bounded)
	if !ok || s.sent == 0 || len(lines) == 0 {
		return false
	}
	size := markRoom
	for _, event := range lines {
		size += len(event.object) + len(`{"type":"BOOKMARK","object":}`+"\n")
	}
	return !bounded.Fits(size)
}

// isTooLarge reports whether the response has become too large to be sent.
func (s *sender) isTooLarge() bool {
	bounded, ok := s.http.(Bounded)
	return ok && !bounded.Fits(0) && bounded.Excess() > 0
}

func (s *sender) flush() error {
	// A platform that cannot stream sends all events at the end.
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// errGone says that the client does not receive what is sent to it.
var errGone = errors.New("the client is gone")

// sendBookmark sends a bookmark if the stream may send one.
func (s *sender) sendBookmark(stream stream) error {
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
	if err := s.sendBookmark(stream); err != nil {
		return s.endReason(err)
	}
	return why, nil
}

// endReason returns the reason why a stream ends with an error. It first sends the error, unless the client is gone.
func (s *sender) endReason(err error) (string, error) {
	if errors.Is(err, errGone) {
		return endedByClient, nil
	}
	s.sendError(err)
	return endedByError, err
}

// sendError sends an error as the last event. The stream ends whether or not the event arrives.
func (s *sender) sendError(err error) {
	// A Status holds only strings and numbers: it always marshals.
	text, _ := json.Marshal(s.call.statusOf(err))
	_ = s.send([]line{{kind: watch.Error, object: text}})
}
