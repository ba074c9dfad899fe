package contract

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"management.platform.sh/shared/state/store"
)

// progress is the time without events after which a watch that requested it gets its progress.
const progress = 200 * time.Millisecond

// bookmarks is the interval of bookmarks in a watch that allows them.
const bookmarks = time.Second

// Watch sends a list of the current objects if the request wants one, then the events after it.
func (s *Storage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	revision, err := s.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	initial := revision == 0
	if opts.SendInitialEvents != nil {
		initial = *opts.SendInitialEvents
	}
	if revision == 0 && !initial {
		if revision, err = s.GetCurrentResourceVersion(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{storage: s, key: key, opts: opts, revision: int64(revision), cancel: cancel, results: make(chan watch.Event, 100)}
	go func() {
		defer close(w.results)
		defer cancel()
		if err := w.follow(ctx, initial); ctx.Err() == nil {
			w.send(ctx, watch.Error, statusOf(err))
		}
	}()
	flowcontrol.WatchInitialized(ctx)
	return w, nil
}

// watcher is one watch.
type watcher struct {
	storage *Storage
	key     string
	opts    storage.ListOptions
	// revision is the last revision that was handled.
	revision int64
	cancel   context.CancelFunc
	results  chan watch.Event
}

func (w *watcher) Stop() { w.cancel() }

func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// send waits until the client takes the event. The next read notices the end of the watch.
func (w *watcher) send(ctx context.Context, event watch.EventType, obj runtime.Object) {
	select {
	case w.results <- watch.Event{Type: event, Object: obj}:
	case <-ctx.Done():
	}
}

// follow returns the error that ends the watch.
func (w *watcher) follow(ctx context.Context, initial bool) error {
	if initial {
		if err := w.sendCurrent(ctx); err != nil {
			return err
		}
	} else if _, err := w.storage.store.Events(ctx, w.revision, 1, 0); err != nil {
		// As in resource.Watch, only the log decides where a watch can begin, not the memory of this process.
		return expiredError(err)
	}
	lastBookmark := time.Now()
	for {
		events, err := w.storage.store.Events(ctx, w.revision, batch, progress)
		if err != nil {
			return expiredError(err)
		}
		for _, event := range events {
			w.revision = event.Revision
			if err := w.deliver(ctx, event); err != nil {
				return err
			}
		}
		due := w.opts.Predicate.AllowWatchBookmarks && time.Since(lastBookmark) >= bookmarks
		if due || len(events) == 0 && w.opts.ProgressNotify {
			lastBookmark = time.Now()
			if err := w.bookmark(ctx, false); err != nil {
				return err
			}
		}
	}
}

// expiredError returns the error of a kube-apiserver's storage for trimmed events.
func expiredError(err error) error {
	if errors.Is(err, store.ErrGone) {
		return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	return err
}

// sendCurrent sends the current objects, and then a bookmark if the request wants one.
func (w *watcher) sendCurrent(ctx context.Context) error {
	p, err := w.storage.page(ctx, w.key, w.opts.Recursive, "", 0, 0)
	if err != nil {
		return err
	}
	if w.revision > p.revision {
		return storage.NewTooLargeResourceVersionError(uint64(w.revision), uint64(p.revision), 1)
	}
	w.revision = p.revision
	for _, record := range p.records {
		obj, matched, err := w.read(ctx, record)
		if err != nil {
			return err
		}
		if matched {
			w.send(ctx, watch.Added, obj)
		}
	}
	if w.opts.SendInitialEvents != nil && w.opts.Predicate.AllowWatchBookmarks {
		return w.bookmark(ctx, true)
	}
	return nil
}

func (w *watcher) bookmark(ctx context.Context, initialEventsEnd bool) error {
	obj := w.storage.newFunc()
	if err := w.storage.Versioner().UpdateObject(obj, uint64(w.revision)); err != nil {
		return err
	}
	if initialEventsEnd {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return err
		}
	}
	w.send(ctx, watch.Bookmark, obj)
	return nil
}

// read decodes a record and reports whether it is selected.
func (w *watcher) read(ctx context.Context, record store.Record) (runtime.Object, bool, error) {
	obj := w.storage.newFunc()
	if err := w.storage.read(ctx, record, obj); err != nil {
		return nil, false, err
	}
	if w.opts.Predicate.Empty() {
		return obj, true, nil
	}
	matched, err := w.opts.Predicate.Matches(obj)
	return obj, err == nil && matched, nil
}

// deliver sends an event as this watch sees it: an object that enters the selection is added; an object that leaves the selection is deleted,
// in its earlier form and with the revision of the change.
func (w *watcher) deliver(ctx context.Context, event store.Event) error {
	name := event.Record.Name
	if w.opts.Recursive && !strings.HasPrefix(name, w.key) || !w.opts.Recursive && name != w.key {
		return nil
	}
	var obj, old runtime.Object
	var is, was bool
	var err error
	if event.Type != store.Deleted {
		if obj, is, err = w.read(ctx, event.Record); err != nil {
			return err
		}
	}
	if event.Previous != nil {
		previous := *event.Previous
		previous.Revision = event.Revision
		if old, was, err = w.read(ctx, previous); err != nil {
			return err
		}
	}
	switch {
	case is && was:
		w.send(ctx, watch.Modified, obj)
	case is:
		w.send(ctx, watch.Added, obj)
	case was:
		w.send(ctx, watch.Deleted, old)
	}
	return nil
}

// statusOf returns the Status that the last event of a watch carries for an error.
func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return &s
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	}
}
