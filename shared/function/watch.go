package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/codec"
	"management.platform.sh/shared/identity"
	"management.platform.sh/shared/resource"
	"management.platform.sh/shared/store"
)

// Defaults of WatchSettings. Source: ADR-0007.
const (
	// DefaultWatch is the shortest that a watch without timeoutSeconds lasts; the longest is twice that.
	DefaultWatch = 30 * time.Minute
	// DefaultBookmarkEvery is the time between two bookmarks.
	DefaultBookmarkEvery = time.Minute
	// DefaultCheckEvery is the time between two looks at the credential.
	DefaultCheckEvery = 30 * time.Second
	// DefaultStuckAfter is how long a client may take to receive what is sent at once.
	DefaultStuckAfter = 30 * time.Second
)

// politeness is what a watch leaves of the time that its platform gives it, to send the last bookmark in.
const politeness = 500 * time.Millisecond

// WatchSettings are how long watches last in an environment. Source: ADR-0007.
type WatchSettings struct {
	// Window is the longest that a watch may last where the platform cannot stream: its client gets the events
	// of that time at the end of it, and resumes. 0: watches last as long as they ask for.
	Window time.Duration
	// BookmarkEvery, CheckEvery and StuckAfter replace the defaults. 0: the default.
	BookmarkEvery, CheckEvery, StuckAfter time.Duration
}

// EndWatches ends the watches that are open, and those that begin later as soon as they have begun. It is for
// a process that drains.
func (e *Environment) EndWatches() {
	e.prepare()
	e.endWatches()
}

// Watch binds an operation to GET with the query parameter watch on a resource: a stream of events, one JSON
// document a line. It stands on the route of List.
func Watch[T resource.Object, D any](
	definition *resource.Definition[T], open func(*Environment) D,
	do func(context.Context, D, resource.WatchInput) (*resource.Watcher[T], error),
) Endpoint {
	return bind(definition, http.MethodGet, "watch", collection, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		chosen, include, err := watchForm(c)
		if err != nil {
			return nil, err
		}
		in := resource.WatchInput{Caller: c.caller, Namespace: c.namespace}
		limit, err := readWatchOptions(c.query, &in)
		if err != nil {
			return nil, err
		}
		watcher, err := do(ctx, deps, in)
		if err != nil {
			return nil, err
		}
		return &answer{stream: &watchStream[T]{
			definition: definition, env: c.env, watcher: watcher, form: chosen, include: include, limit: limit,
		}}, nil
	})
}

// watchForm is the form of the objects in the events. As in Kubernetes, YAML is no stream.
func watchForm(c *call) (form, metav1.IncludeObjectPolicy, error) {
	chosen, err := negotiate(c.http.Header.Values("Accept"))
	if err != nil {
		return form{}, "", err
	}
	if chosen.yaml || chosen.as == "PartialObjectMetadataList" {
		return form{}, "", apierror.NotAcceptable(codec.JSON)
	}
	if chosen.as != "Table" {
		return chosen, "", nil
	}
	include, err := includeObject(c.query)
	return chosen, include, err
}

// flag reads a boolean parameter as Kubernetes does: whatever is there and not "0" or "false" is true.
func flag(query url.Values, name string) bool {
	values, given := query[name]
	return given && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// readWatchOptions reads the query parameters of a watch, and returns how long it is to last, 0 for as long as
// usual. Which of them go together is what ValidateListOptions of k8s.io/apimachinery says.
func readWatchOptions(query url.Values, in *resource.WatchInput) (time.Duration, error) {
	var err error
	if in.Labels, in.Fields, err = readSelectors(query); err != nil {
		return 0, err
	}
	in.ResourceVersion = query.Get("resourceVersion")
	in.AllowBookmarks = flag(query, "allowWatchBookmarks")
	if query.Has("sendInitialEvents") {
		send := flag(query, "sendInitialEvents")
		in.SendInitialEvents = &send
	}
	var limit time.Duration
	if text := query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 0 {
			const why = "must be a number of seconds that is not negative"
			return 0, apierror.BadRequest(fmt.Sprintf("timeoutSeconds: invalid value %q: %s", text, why),
				field.ErrorList{field.Invalid(field.NewPath("timeoutSeconds"), text, why)})
		}
		limit = time.Duration(seconds) * time.Second
	}
	var problems field.ErrorList
	path := field.NewPath("resourceVersionMatch")
	match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch"))
	if anywhere := in.ResourceVersion == "" || in.ResourceVersion == "0"; anywhere && in.SendInitialEvents == nil && match == "" {
		// What older clients mean.
		send := true
		in.SendInitialEvents, match = &send, metav1.ResourceVersionMatchNotOlderThan
	}
	if in.SendInitialEvents != nil && match != metav1.ResourceVersionMatchNotOlderThan {
		problems = append(problems, field.Forbidden(path,
			"sendInitialEvents requires setting resourceVersionMatch to "+string(metav1.ResourceVersionMatchNotOlderThan)))
	}
	if match != "" {
		if in.SendInitialEvents == nil {
			problems = append(problems, field.Forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
		}
		if match != metav1.ResourceVersionMatchNotOlderThan {
			problems = append(problems, field.NotSupported(path, match, []metav1.ResourceVersionMatch{metav1.ResourceVersionMatchNotOlderThan}))
		}
		if query.Get("continue") != "" {
			problems = append(problems, field.Forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
		}
	}
	return limit, invalidOptions("ListOptions", problems)
}

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

// watchStream gives the events of a watcher the form that the client asked for.
type watchStream[T resource.Object] struct {
	definition *resource.Definition[T]
	env        *Environment
	watcher    *resource.Watcher[T]
	form       form
	include    metav1.IncludeObjectPolicy
	limit      time.Duration
	// begun tells that the columns of a Table have been sent.
	begun bool
}

func (s *watchStream[T]) lasts() time.Duration { return s.limit }

func (s *watchStream[T]) next(ctx context.Context, wait time.Duration) ([]line, error) {
	events, err := s.watcher.Next(ctx, wait)
	lines := make([]line, 0, len(events))
	for _, event := range events {
		one, encodeErr := s.line(event)
		if encodeErr != nil {
			return lines, encodeErr
		}
		lines = append(lines, one)
	}
	return lines, err
}

func (s *watchStream[T]) bookmark() (line, bool, error) {
	event, ok := s.watcher.Bookmark()
	if !ok {
		return line{}, false, nil
	}
	mark, err := s.line(event)
	return mark, true, err
}

func (s *watchStream[T]) line(event resource.WatchEvent[T]) (line, error) {
	headed := s.form.as == "Table" && !s.begun
	s.begun = true
	key := s.form.as
	if key != "" {
		key = fmt.Sprint(s.form.as, " ", s.form.version, " ", s.include, " ", headed)
	}
	text, err := event.Encoded(key, func(object T) ([]byte, error) { return s.encode(object, headed) })
	return line{kind: event.Type, object: text}, err
}

// encode makes the same of an object for all streams of the same form.
func (s *watchStream[T]) encode(object T, headed bool) ([]byte, error) {
	var shaped any = object
	switch s.form.as {
	case "":
	case "Table":
		include := s.include
		if _, closing := object.GetAnnotations()[metav1.InitialEventsAnnotationKey]; closing && include == metav1.IncludeNone {
			// Its annotation is what the bookmark is sent for.
			include = metav1.IncludeMetadata
		}
		rows, err := table(s.definition, s.env, object, include)
		if err != nil {
			return nil, err
		}
		if !headed {
			rows.ColumnDefinitions = nil
		}
		shaped = asTable(rows, s.form.version)
	default:
		one, err := partial(object, s.form)
		if err != nil {
			return nil, err
		}
		shaped = one
	}
	text, err := json.Marshal(shaped)
	if err != nil {
		return nil, fmt.Errorf("encoding an event: %w", err)
	}
	return text, nil
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
	open := f.env.Metrics.watches.WithLabelValues(f.function)
	open.Inc()
	defer open.Dec()
	out := &sender{frame: f, call: c, http: w, control: http.NewResponseController(w), stuckAfter: f.env.Watch.stuckAfter()}
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
			why, err = endedByError, panicked(problem)
			out.failure(err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.env.draining, cancel)()

	settings, begun := f.env.Watch, time.Now()
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
		if f.env.draining.Err() != nil {
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
		case f.env.draining.Err() != nil:
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
	return now.Add(caller.KeyExpires.Sub(f.env.Now()))
}

// again looks whether the caller is still who he was and may still do what he does. It says why not.
func (f *frame) again(ctx context.Context, c *call) (identity.Caller, string, error) {
	caller, err := f.env.Authenticator().Again(ctx, c.http.Header)
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
		s.frame.env.Metrics.events.WithLabelValues(s.frame.function, string(each.kind)).Inc()
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

// lasts is how long a watch lasts that asks for a time, 0 for none.
func (s WatchSettings) lasts(asked time.Duration) time.Duration {
	if asked == 0 {
		// Spread, so that those that began together do not resume together.
		asked = DefaultWatch + rand.N(DefaultWatch) //nolint:gosec // nobody gains by guessing it
	}
	if s.Window > 0 {
		asked = min(asked, s.Window)
	}
	return asked
}

func (s WatchSettings) bookmarkEvery() time.Duration {
	return or(s.BookmarkEvery, DefaultBookmarkEvery)
}
func (s WatchSettings) checkEvery() time.Duration { return or(s.CheckEvery, DefaultCheckEvery) }
func (s WatchSettings) stuckAfter() time.Duration { return or(s.StuckAfter, DefaultStuckAfter) }

func or(given, usual time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return usual
}
