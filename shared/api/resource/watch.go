package resource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"management.platform.sh/shared/api/resource/snapshot"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// WatchInput is a request to watch the objects of a resource.
type WatchInput struct {
	Caller identity.Caller
	// Namespace selects one namespace; empty selects all.
	Namespace string
	// Labels and Fields select objects; nil or empty selects all. Fields may only name what the resource offers.
	Labels labels.Selector
	Fields fields.Selector
	// ResourceVersion is where the watch begins: after that revision. Empty or "0": at the present state.
	ResourceVersion string
	// SendInitialEvents reports whether the watch begins with the present state, which is then at least as new as
	// ResourceVersion. Nil: true where ResourceVersion is empty or "0".
	SendInitialEvents *bool
	// AllowBookmarks permits events of type BOOKMARK.
	AllowBookmarks bool
}

// watchBatch is the most events that are returned at once.
const watchBatch = 256

// Watcher watches the objects of a resource for one caller. It is not safe for concurrent use, and needs no closing.
// Source: Spec 2.2 (resourceVersion); ADR-0007.
type Watcher[T Object] struct {
	registry *Registry[T]
	in       WatchInput
	prefix   string
	// reader reads the initial state; nil once it has been read, or if it is not asked for. initial are the records of the
	// last page that were not sent yet. closing reports whether a bookmark follows.
	reader  *snapshot.Reader
	initial []store.Record
	closing bool
	// after is the revision up to which everything was sent, once the initial state was.
	after int64
}

// Watch begins a watch of the objects that the caller may see.
//
// Errors: BadRequest for an unsupported field selector or a resourceVersion that cannot be read;
// Expired for one that the event log no longer holds or the state has not reached; Timeout where the present
// state is asked for and is older than resourceVersion. Source: ADR-0007.
func Watch[T Object](ctx context.Context, r *Registry[T], in WatchInput) (*Watcher[T], error) {
	if in.Labels == nil {
		in.Labels = labels.Everything()
	}
	if in.Fields == nil {
		in.Fields = fields.Everything()
	}
	var err error
	if in.Fields, err = r.readFields(in.Fields); err != nil {
		return nil, err
	}
	listInput := ListInput{ResourceVersion: in.ResourceVersion}
	if err := checkRevision(listInput, math.MaxInt64); err != nil {
		return nil, err
	}
	w := &Watcher[T]{registry: r, in: in}
	if in.Namespace != "" {
		w.prefix = in.Namespace + "/"
	}
	anywhere := in.ResourceVersion == "" || in.ResourceVersion == "0"
	initial := anywhere
	if in.SendInitialEvents != nil {
		initial = *in.SendInitialEvents
	}
	switch {
	case initial:
		w.reader = snapshot.New(r.Store, store.Query{Prefix: w.prefix, Owners: r.owners(in.Caller)})
		if err := w.read(ctx); err != nil {
			return nil, err
		}
		w.closing = in.AllowBookmarks
		return w, checkRevision(listInput, w.after)
	case anywhere:
		page, err := r.Store.List(ctx, store.Query{Prefix: w.prefix, Owners: r.owners(in.Caller), Limit: 1})
		w.after = page.Revision
		return w, w.translate(err)
	default:
		// checkRevision has read it before.
		w.after, _ = strconv.ParseInt(in.ResourceVersion, 10, 64)
		_, err := r.Store.Events(ctx, w.after, 1, 0)
		return w, w.translate(err)
	}
}

func (w *Watcher[T]) translate(err error) error {
	if errors.Is(err, store.ErrGone) {
		return apierror.Expired(fmt.Sprintf("The resourceVersion for the provided watch is too old or not reached yet: %d", w.after)).Because(err)
	}
	return w.registry.translate(err, "")
}

// read reads the next page of the initial state. All pages show the state at the revision of the first one, after which the
// events begin.
func (w *Watcher[T]) read(ctx context.Context) error {
	records, err := w.reader.Next(ctx)
	if err != nil {
		return w.translate(err)
	}
	w.after = w.reader.Revision
	for _, record := range records {
		seen, err := w.sees(newShown(w.registry, record))
		if err != nil {
			return err
		}
		if seen {
			w.initial = append(w.initial, record)
		}
	}
	if w.reader.Done {
		w.reader = nil
	}
	return nil
}

// sees reports whether the caller sees an object and selects it.
func (w *Watcher[T]) sees(shown *shown[T]) (bool, error) {
	record := &shown.record
	if !strings.HasPrefix(record.Name, w.prefix) {
		return false, nil
	}
	if seen, err := w.registry.sees(w.in.Caller, *record); err != nil || !seen.Allowed {
		return false, err
	}
	if w.in.Labels.Empty() && w.in.Fields.Empty() {
		return true, nil
	}
	object, err := shown.get()
	if err != nil {
		return false, err
	}
	return w.registry.matchesSelectors(ListInput{Labels: w.in.Labels, Fields: w.in.Fields}, object), nil
}

// Begun reports whether Next has returned all objects that the watch begins with.
func (w *Watcher[T]) Begun() bool { return w.reader == nil && len(w.initial) == 0 && !w.closing }

// Next returns the next events for the caller, and waits for them if necessary. It may return none, even before the
// time is up.
//
// Errors: Expired when the event log has moved past the watcher, or the state back behind it;
// ServiceUnavailable when the state cannot be reached; the context's. Source: ADR-0007.
func (w *Watcher[T]) Next(ctx context.Context, wait time.Duration) ([]WatchEvent[T], error) {
	if !w.Begun() {
		return w.begin(ctx)
	}
	events, err := w.registry.Store.Events(ctx, w.after, watchBatch, wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, w.translate(err)
	}
	var list []WatchEvent[T]
	for _, event := range events {
		change, err := w.change(event)
		if err != nil {
			return list, err
		}
		if change.Type != "" {
			list = append(list, change)
		}
		w.after = event.Revision
	}
	return list, w.relate(ctx, list)
}

// begin returns a part of the initial state, and the bookmark after it.
func (w *Watcher[T]) begin(ctx context.Context) ([]WatchEvent[T], error) {
	if len(w.initial) == 0 && w.reader != nil {
		if err := w.read(ctx); err != nil {
			return nil, err
		}
	}
	n := min(len(w.initial), watchBatch)
	list := make([]WatchEvent[T], 0, n+1)
	for _, record := range w.initial[:n] {
		list = append(list, WatchEvent[T]{Type: watch.Added, shown: newShown(w.registry, record)})
	}
	if err := w.relate(ctx, list); err != nil {
		return nil, err
	}
	w.initial = w.initial[n:]
	if len(w.initial) == 0 {
		w.initial = nil
	}
	if len(w.initial) == 0 && w.reader == nil && w.closing {
		w.closing = false
		list = append(list, w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
	}
	return list, nil
}

// change is an event as the caller sees it; the zero value means that the caller sees nothing.
func (w *Watcher[T]) change(event store.Event) (WatchEvent[T], error) {
	now := w.registry.shownRecord(event.Record)
	if event.Type != store.Updated {
		seen, err := w.sees(now)
		if err != nil || !seen {
			return WatchEvent[T]{}, err
		}
		kind := watch.Added
		if event.Type == store.Deleted {
			kind = watch.Deleted
		}
		return WatchEvent[T]{Type: kind, shown: now}, nil
	}
	// An object that leaves the selection is shown in its last state, with the revision of the change.
	previous := *event.Previous
	previous.Revision = event.Revision
	before := w.registry.shownRecord(previous)
	did, err := w.sees(before)
	if err != nil {
		return WatchEvent[T]{}, err
	}
	does, err := w.sees(now)
	switch {
	case err != nil:
		return WatchEvent[T]{}, err
	case did && does:
		return WatchEvent[T]{Type: watch.Modified, shown: now}, nil
	case does:
		return WatchEvent[T]{Type: watch.Added, shown: now}, nil
	case did:
		return WatchEvent[T]{Type: watch.Deleted, shown: before}, nil
	default:
		return WatchEvent[T]{}, nil
	}
}

// Bookmark returns an event that says how far the watch has come, so that it can be resumed there; ok is false
// where bookmarks are not allowed or the present state has not been shown in full.
func (w *Watcher[T]) Bookmark() (bookmark WatchEvent[T], ok bool) {
	if !w.in.AllowBookmarks || w.reader != nil || len(w.initial) > 0 || w.closing {
		return WatchEvent[T]{}, false
	}
	return w.bookmark(nil), true
}

func (w *Watcher[T]) bookmark(annotations map[string]string) WatchEvent[T] {
	object := w.registry.Definition.New()
	object.GetObjectKind().SetGroupVersionKind(w.registry.Definition.GroupVersionKind())
	object.SetResourceVersion(strconv.FormatInt(w.after, 10))
	object.SetAnnotations(annotations)
	return WatchEvent[T]{Type: watch.Bookmark, shown: &shown[T]{object: object, decoded: true}}
}
