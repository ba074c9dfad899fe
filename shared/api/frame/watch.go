package frame

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

// Defaults of WatchSettings. Source: ADR-0007.
const (
	// defaultWatch is the minimum duration of a watch without timeoutSeconds. The maximum is twice that.
	defaultWatch = 30 * time.Minute
	// defaultBookmarkEvery is the interval between two bookmarks. Clients such as the console learn from a missing bookmark that
	// the connection is lost.
	defaultBookmarkEvery = 20 * time.Second
	// defaultCheckEvery is the interval between two checks of the credential.
	defaultCheckEvery = 30 * time.Second
	// defaultStuckAfter is the time that a client has to receive the events that are sent at once.
	defaultStuckAfter = 30 * time.Second
)

// politeness is how long before the deadline of its platform a watch ends, so that it can still send the last bookmark.
const politeness = 500 * time.Millisecond

// WatchSettings are the durations of watches in an environment. Source: ADR-0007.
type WatchSettings struct {
	// Window is the maximum duration of a watch on a platform that cannot stream: the client gets all events of the window
	// at its end, and resumes. 0: watches last as long as they request.
	Window time.Duration
	// BookmarkEvery, CheckEvery and StuckAfter replace the defaults. 0: the default.
	BookmarkEvery, CheckEvery, StuckAfter time.Duration
}

// Watch binds an operation to GET with the query parameter watch on a resource: a stream of events, one JSON
// document per line. It has the same route as List.
func Watch[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.WatchInput) (*resource.Watcher[T], error),
) Endpoint {
	endpoint := bind(definition, http.MethodGet, "watch", collection, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		// As in Kubernetes, a watch cannot be in YAML.
		if c.form.yaml || c.form.as == asPartialList {
			return nil, apierror.NotAcceptable(codec.JSON)
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
			definition: definition, now: c.now, watcher: watcher, form: c.form, include: c.include, limit: limit,
		}}, nil
	})
	return endpoint.Sharing(fairness.Watches)
}

// readWatchOptions reads the query parameters of a watch, and returns the maximum duration. 0: the usual one.
func readWatchOptions(query url.Values, in *resource.WatchInput) (time.Duration, error) {
	var err error
	if in.Labels, in.Fields, err = readSelectors(query); err != nil {
		return 0, err
	}
	// A watch ignores limit, but a value that is not a number is an error.
	if _, err := listNumber(query, "limit"); err != nil {
		return 0, err
	}
	seconds, err := listNumber(query, "timeoutSeconds")
	if err != nil {
		return 0, err
	}
	limit := time.Duration(min(seconds, math.MaxInt32)) * time.Second
	given := givenListOptions(query)
	given.Watch = true
	internalversion.SetListOptionsDefaults(&given, true)
	in.ResourceVersion, in.SendInitialEvents = given.ResourceVersion, given.SendInitialEvents
	in.AllowBookmarks = flag(query, "allowWatchBookmarks")
	return limit, invalidOptions("ListOptions", internalvalidation.ValidateListOptions(&given, true))
}

// watchStream gives the events of a watcher the form that the client asked for.
type watchStream[T resource.Object] struct {
	definition *resource.Definition[T]
	now        func() time.Time
	watcher    *resource.Watcher[T]
	form       form
	include    metav1.IncludeObjectPolicy
	limit      time.Duration
	// columnsSent reports whether the columns of a Table have been sent.
	columnsSent bool
}

func (s *watchStream[T]) hasBegun() bool { return s.watcher.Begun() }

func (s *watchStream[T]) duration() time.Duration { return s.limit }

func (s *watchStream[T]) next(ctx context.Context, wait time.Duration) ([]line, error) {
	events, err := s.watcher.Next(ctx, wait)
	lines := make([]line, 0, len(events))
	for _, event := range events {
		encoded, encodeErr := s.line(event)
		if encodeErr != nil {
			return lines, encodeErr
		}
		lines = append(lines, encoded)
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
	headed := s.form.as == asTable && !s.columnsSent
	s.columnsSent = true
	key := s.form.as
	if key != "" {
		key = fmt.Sprint(s.form.as, " ", s.form.version, " ", s.include, " ", headed)
	}
	text, err := event.Encoded(key, func(object T) ([]byte, error) { return s.encode(object, headed) })
	return line{kind: event.Type, object: text}, err
}

// encode encodes an object. The result is the same for all streams of the same form. Headed reports whether a Table includes
// its columns.
func (s *watchStream[T]) encode(object T, headed bool) ([]byte, error) {
	var shaped any = object
	switch s.form.as {
	case "":
	case asTable:
		include := s.include
		if _, closing := object.GetAnnotations()[metav1.InitialEventsAnnotationKey]; closing && include == metav1.IncludeNone {
			// This bookmark is sent for its annotation, which is part of the metadata.
			include = metav1.IncludeMetadata
		}
		rows, err := table(s.definition, object, include, s.now())
		if err != nil {
			return nil, err
		}
		if !headed {
			rows.ColumnDefinitions = nil
		}
		shaped = versioned(rows, s.form.version)
	default:
		metadata, err := partial(object, s.form)
		if err != nil {
			return nil, err
		}
		shaped = metadata
	}
	text, err := json.Marshal(shaped)
	if err != nil {
		return nil, fmt.Errorf("encoding an event: %w", err)
	}
	return text, nil
}

// duration returns the duration of a watch that requests a duration; 0 if it requests none.
func (s WatchSettings) duration(requested time.Duration) time.Duration {
	duration := requested
	if duration == 0 {
		// The duration is random, so that watches that begin together do not resume together.
		duration = defaultWatch + rand.N(defaultWatch) //nolint:gosec // nobody gains by guessing it
	}
	if s.Window > 0 {
		duration = min(duration, s.Window)
	}
	return duration
}

func (s WatchSettings) bookmarkEvery() time.Duration {
	return orDefault(s.BookmarkEvery, defaultBookmarkEvery)
}
func (s WatchSettings) checkEvery() time.Duration { return orDefault(s.CheckEvery, defaultCheckEvery) }
func (s WatchSettings) stuckAfter() time.Duration { return orDefault(s.StuckAfter, defaultStuckAfter) }

func orDefault(given, usual time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return usual
}
