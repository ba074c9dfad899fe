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
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
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

// Watch binds an operation to GET with the query parameter watch on a resource: a stream of events, one JSON
// document a line. It stands on the route of List.
func Watch[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.WatchInput) (*resource.Watcher[T], error),
) Endpoint {
	return bind(definition, http.MethodGet, "watch", collection, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		// As in Kubernetes, YAML is no stream.
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
}

// readWatchOptions reads the query parameters of a watch, and returns how long it may last. 0: the usual time.
func readWatchOptions(query url.Values, in *resource.WatchInput) (time.Duration, error) {
	var err error
	if in.Labels, in.Fields, err = readSelectors(query); err != nil {
		return 0, err
	}
	// A watch has no pages; a number that cannot be read is still an error.
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
	headed := s.form.as == asTable && !s.begun
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
	case asTable:
		include := s.include
		if _, closing := object.GetAnnotations()[metav1.InitialEventsAnnotationKey]; closing && include == metav1.IncludeNone {
			// Its annotation is what the bookmark is sent for.
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
