// Package contract shows that the Redis store keeps the contract of a kube-apiserver's storage, and that the handlers answer as the handlers of
// a kube-apiserver do. It holds a thin storage.Interface over store.Store; the tests run the public contract tests of k8s.io/apiserver against
// it, and send the same requests to both kinds of handlers. docs/conformance.md is the result. Source: Spec 2.2, 3, 7; ADR-0001 (oracle),
// ADR-0002.
//
// Nothing here is for production. The module is nested, so that no function depends on k8s.io/apiserver.
package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"management.platform.sh/shared/state/store"
)

// Storage is a storage.Interface over a store.Store. The store has revisions, optimistic writes, snapshots of the current state and events.
// Storage adds what a kube-apiserver needs from etcd beyond that: encoding, keys as paths, the loop of GuaranteedUpdate, selection after
// reading, and lists at an earlier revision, which it computes from the current state and the events since that revision.
type Storage struct {
	store store.Store
	codec runtime.Codec
	// prefix is what every key begins with, "/pods/".
	prefix  string
	newFunc func() runtime.Object
	// transformer is between the codec and the store, like encryption at rest.
	transformer value.Transformer
	sizes       bool
}

var _ storage.Interface = (*Storage)(nil)

// NewStorage keeps objects of one type in a store, under keys that begin with prefix. The transformer may be nil.
func NewStorage(s store.Store, codec runtime.Codec, prefix string, newFunc func() runtime.Object, transformer value.Transformer) *Storage {
	return &Storage{store: s, codec: codec, prefix: prefix, newFunc: newFunc, transformer: transformer}
}

// Versioner returns the default: a revision of the store is a resourceVersion.
func (s *Storage) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// encode returns the object as the store keeps it, before the transformer.
func (s *Storage) encode(obj runtime.Object) ([]byte, error) {
	if err := s.Versioner().PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("preparing object: %w", err)
	}
	return runtime.Encode(s.codec, obj)
}

func (s *Storage) decode(data []byte, revision int64, into runtime.Object) error {
	if _, _, err := s.codec.Decode(data, nil, into); err != nil {
		return err
	}
	return s.Versioner().UpdateObject(into, uint64(revision))
}

// open reverses the transformer. stale is true if the object must be written again.
func (s *Storage) open(ctx context.Context, record store.Record) (data []byte, stale bool, err error) {
	if s.transformer == nil {
		return record.Object, false, nil
	}
	data, stale, err = s.transformer.TransformFromStorage(ctx, record.Object, value.DefaultContext(record.Name))
	if err != nil {
		return nil, false, storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", record.Name, err))
	}
	return data, stale, nil
}

func (s *Storage) read(ctx context.Context, record store.Record, into runtime.Object) error {
	data, _, err := s.open(ctx, record)
	if err != nil {
		return err
	}
	return s.decode(data, record.Revision, into)
}

// record returns the record to write for an object. ttl is in seconds; 0 means that the record lives until it is deleted.
func (s *Storage) record(ctx context.Context, key string, data []byte, obj runtime.Object, ttl uint64) (store.Record, error) {
	record := store.Record{Name: key, Object: data, Created: time.Now()}
	if s.transformer != nil {
		var err error
		if record.Object, err = s.transformer.TransformToStorage(ctx, data, value.DefaultContext(key)); err != nil {
			return store.Record{}, storage.NewInternalError(err)
		}
	}
	if ttl > 0 {
		record.Expires = record.Created.Add(time.Duration(ttl) * time.Second)
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		if created := accessor.GetCreationTimestamp(); !created.IsZero() {
			record.Created = created.Time
		}
	}
	return record, nil
}

func (s *Storage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	if version, err := s.Versioner().ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	data, err := s.encode(obj)
	if err != nil {
		return err
	}
	record, err := s.record(ctx, key, data, obj, ttl)
	if err != nil {
		return err
	}
	revision, err := s.store.Create(ctx, record)
	if err != nil {
		return translate(err, key)
	}
	if out == nil {
		return nil
	}
	return s.decode(data, revision, out)
}

// Get reads a list of one object, because a list says which revision it shows.
func (s *Storage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	page, err := s.store.List(ctx, store.Query{Prefix: key, Limit: 1})
	if err != nil {
		return translate(err, key)
	}
	if err := s.notOlder(opts.ResourceVersion, page.Revision); err != nil {
		return err
	}
	if len(page.Records) == 0 || page.Records[0].Name != key {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(key, 0)
	}
	return s.read(ctx, page.Records[0], out)
}

// notOlder refuses requests for a revision in the future.
func (s *Storage) notOlder(resourceVersion string, revision int64) error {
	least, err := s.Versioner().ParseResourceVersion(resourceVersion)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if least > uint64(revision) {
		return storage.NewTooLargeResourceVersionError(least, uint64(revision), 0)
	}
	return nil
}

// state is an object before a change, and its origin.
type state struct {
	obj      runtime.Object
	data     []byte
	revision int64
	// stale requires a write even if nothing changed.
	stale bool
	// current is true if the object was just read from the store, and not suggested by the caller.
	current bool
}

// load reads the object to change. An absent object is an error, or with ignoreNotFound an empty object of revision 0. With unreadable, only an
// object that cannot be read is accepted.
func (s *Storage) load(ctx context.Context, key string, prototype reflect.Value, ignoreNotFound, unreadable bool) (*state, error) {
	st := &state{current: true}
	if u, ok := prototype.Addr().Interface().(runtime.Unstructured); ok {
		st.obj = u.NewEmptyInstance()
	} else {
		st.obj = reflect.New(prototype.Type()).Interface().(runtime.Object)
	}
	record, err := s.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) && ignoreNotFound {
		return st, runtime.SetZeroValue(st.obj)
	}
	if err != nil {
		return nil, translate(err, key)
	}
	st.revision = record.Revision
	st.data, st.stale, err = s.open(ctx, record)
	if err == nil {
		err = s.decode(st.data, st.revision, st.obj)
	}
	switch {
	case err != nil && unreadable:
		st.obj, st.data, st.stale = nil, nil, true
		return st, nil
	case err != nil:
		return nil, err
	case unreadable:
		return nil, storage.NewInvalidObjError(key, "unsafe deletion is not allowed because the object is decodable from storage")
	}
	return st, nil
}

// cachedState returns the state of an object that the caller has read before.
func (s *Storage) cachedState(obj runtime.Object) (*state, error) {
	revision, err := s.Versioner().ObjectResourceVersion(obj)
	if err != nil {
		return nil, fmt.Errorf("reading resource version: %w", err)
	}
	st := &state{obj: obj, revision: int64(revision)}
	if st.data, err = s.encode(obj); err != nil {
		return nil, err
	}
	return st, s.Versioner().UpdateObject(st.obj, revision)
}

// begin returns the state that a change starts from, and the function that reads it again.
func (s *Storage) begin(ctx context.Context, key string, out, cached runtime.Object, ignoreNotFound, unreadable bool) (*state, func() (*state, error), error) {
	prototype, err := conversion.EnforcePtr(out)
	if err != nil {
		return nil, nil, fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	reload := func() (*state, error) { return s.load(ctx, key, prototype, ignoreNotFound, unreadable) }
	var st *state
	if cached != nil && !unreadable {
		st, err = s.cachedState(cached)
	} else {
		st, err = reload()
	}
	return st, reload, err
}

func (s *Storage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	unreadable := opts.ExpectTransformOrDecodeError
	st, reload, err := s.begin(ctx, key, out, cachedExistingObject, false, unreadable)
	if err != nil {
		return err
	}
	for {
		var refusal error
		if preconditions != nil {
			refusal = preconditions.Check(key, st.obj)
		}
		if refusal == nil {
			refusal = validateDeletion(ctx, st.obj)
		}
		if refusal != nil {
			if st, err = reloadCached(st, reload, refusal); err != nil {
				return err
			}
			continue
		}
		revision, err := s.store.Delete(ctx, key, st.revision)
		if errors.Is(err, store.ErrConflict) {
			if st, err = reload(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return translate(err, key)
		}
		if unreadable {
			return nil
		}
		return s.decode(st.data, revision, out)
	}
}

// reloadCached reads the state from the store if it was only suggested. It returns the refusal if it was not suggested, or if the
// stored state is the same.
func reloadCached(st *state, reload func() (*state, error), refusal error) (*state, error) {
	if st.current {
		return nil, refusal
	}
	newState, err := reload()
	if err != nil {
		return nil, err
	}
	if newState.revision == st.revision {
		return nil, refusal
	}
	return newState, nil
}

func (s *Storage) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	st, reload, err := s.begin(ctx, key, destination, cachedExistingObject, ignoreNotFound, false)
	if err != nil {
		return err
	}
	for {
		refusal := preconditions.Check(key, st.obj)
		var newObj runtime.Object
		var ttl *uint64
		if refusal == nil {
			newObj, ttl, refusal = tryUpdate(st.obj, storage.ResponseMeta{ResourceVersion: uint64(st.revision)})
		}
		if refusal != nil {
			if st, err = reloadCached(st, reload, refusal); err != nil {
				return err
			}
			continue
		}
		data, err := s.encode(newObj)
		if err != nil {
			return err
		}
		if !st.stale && bytes.Equal(data, st.data) {
			if !st.current {
				// Nothing would be written. Only the store knows whether that is still right.
				if st, err = reload(); err != nil {
					return err
				}
				if st.stale || !bytes.Equal(data, st.data) {
					continue
				}
			}
			return s.decode(st.data, st.revision, destination)
		}
		var seconds uint64
		if ttl != nil {
			seconds = *ttl
		}
		record, err := s.record(ctx, key, data, newObj, seconds)
		if err != nil {
			return err
		}
		revision, err := s.writeRecord(ctx, record, st.revision)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			if st, err = reload(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return translate(err, key)
		}
		return s.decode(data, revision, destination)
	}
}

// writeRecord replaces the record of the given revision. 0: there must be no record.
func (s *Storage) writeRecord(ctx context.Context, record store.Record, revision int64) (int64, error) {
	if revision == 0 {
		return s.store.Create(ctx, record)
	}
	record.Revision = revision
	return s.store.Update(ctx, record)
}

func (s *Storage) Stats(ctx context.Context) (storage.Stats, error) {
	page, err := s.store.List(ctx, store.Query{Prefix: s.prefix, Limit: 1})
	if s.sizes && err == nil {
		page, err = s.whole(ctx, s.prefix)
	}
	if err != nil {
		return storage.Stats{}, err
	}
	stats := storage.Stats{ObjectCount: int64(len(page.Records)) + page.Remaining}
	if s.sizes && stats.ObjectCount > 0 {
		for _, record := range page.Records {
			stats.EstimatedAverageObjectSizeBytes += int64(len(record.Object))
		}
		stats.EstimatedAverageObjectSizeBytes /= stats.ObjectCount
	}
	return stats, nil
}

// EnableResourceSizeEstimation does nothing, because Stats reads all objects.
func (s *Storage) EnableResourceSizeEstimation(storage.KeysFunc) error {
	s.sizes = true
	return nil
}

// ReadinessCheck succeeds, because the store connects at the first use.
func (s *Storage) ReadinessCheck() error { return nil }

// RequestWatchProgress does nothing: a watch with progress reports it whenever no events arrive.
func (s *Storage) RequestWatchProgress(context.Context) error { return nil }

func (s *Storage) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	page, err := s.store.List(ctx, store.Query{Prefix: s.prefix, Limit: 1})
	return uint64(page.Revision), err
}

// CompactRevision returns the newest revision after which the event log has gaps. The store does not report it, so it is searched for.
func (s *Storage) CompactRevision() int64 {
	ctx := context.Background()
	current, err := s.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0
	}
	low, high := store.Beginning, int64(current)
	for low < high {
		middle := (low + high) / 2
		if _, err := s.store.Events(ctx, middle, 1, 0); errors.Is(err, store.ErrGone) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == store.Beginning {
		return 0 // nothing is trimmed
	}
	return low
}

// translate returns the error of a kube-apiserver's storage for an error of the store.
func translate(err error, key string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return storage.NewKeyNotFoundError(key, 0)
	case errors.Is(err, store.ErrExists):
		return storage.NewKeyExistsError(key, 0)
	case errors.Is(err, store.ErrUnavailable):
		return storage.NewUnreachableError(key, 0)
	}
	return err
}
