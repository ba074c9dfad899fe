// Package resource implements the verbs of stored Kubernetes resources: create, get, list, watch, update, patch and delete
// with generated names, server-owned metadata, generation, optimistic versions, preconditions, selectors, paging and dry run.
// All resources share it. A resource adds a Definition and Rules. Source: Spec 2.1, 2.2, 3, 7; ADR-0004.
//
// It knows neither HTTP nor a clock of its own. Package auth decides before an object is read, and Registry.Decide about the
// object, by the rules of its kind (ADR-0023).
package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Object is an object of a stored kind: a pointer to a struct with type and object metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Definition describes a resource without its state: its names and how it is shown. It is the same in every process and
// never changes.
type Definition[T Object] struct {
	// Resource is the group, version and plural name.
	Resource schema.GroupVersionResource
	// Kind is the kind of one object; its list is Kind + "List".
	Kind string
	// Singular and ShortNames are what discovery offers besides the plural name.
	Singular   string
	ShortNames []string
	// Namespaced reports whether objects live in namespaces.
	Namespaced bool
	// ReadAhead reports whether the store returns records as the state has them under the plural name, so that authentication may
	// read the object of a request in the round trip of the caller's key. Source: ADR-0002.
	ReadAhead bool
	// NamePrefix begins the name of an object that is created without one. Source: ADR-0004.
	NamePrefix string
	// New returns an empty object.
	New func() T
	// NewList returns the list object for a page, without its kind.
	NewList func(meta metav1.ListMeta, items []T) runtime.Object
	// Columns and Cells are the Table form. Source: ADR-0004.
	Columns []metav1.TableColumnDefinition
	Cells   func(object T, now time.Time) []any
	// WriteOnly are the paths of fields that clients write and that are never stored. They have no owners.
	WriteOnly [][]string
	// Unfit is the problem of a new object whose secret another object has. Nil: objects have no secrets of clients. It may not
	// say more than the problem of a secret that is refused for another reason. Source: ADR-0022.
	Unfit *field.Error
	// Taken is the problem of an object whose digest, which is no secret, another object has. Nil: the digest is a secret, or
	// there is none. Source: ADR-0029.
	Taken *field.Error
	// Credentials reports whether the objects act for the owner of their record: they are deleted with an owner that has an object.
	// Source: ADR-0029.
	Credentials bool
	// DecodeBody reads an object that a client sent, if the kind is stricter than clients request. Nil: codec.Decode.
	DecodeBody func(body codec.Body) (T, error)
	// Fields are the fields for field selectors, besides metadata.name and metadata.namespace. A field with several values is as Each says.
	Fields func(object T) fields.Set
	// KeysAt is the subresource at which a create makes an access key of the caller. Empty: there is none.
	KeysAt string
	// NamesPeople reports whether objects give rights to users or teams besides the owner of their record. Source: ADR-0047.
	NamesPeople bool
	// Origin returns the part of an object's status that says with which access key it was made. The verbs write it. Nil: objects are
	// credentials, whose rules write it, or no client creates them. Source: ADR-0047.
	Origin func(object T) *model.Origin
	// OwnersIn is the label with the namespace of an object's owners, for objects that are cluster-scoped themselves.
	// Empty: their owners are not namespaced. Source: ADR-0017.
	OwnersIn string
	// WritesStatus reports whether clients write the status as they write the spec of other kinds: it is owned field by field,
	// and generation counts its changes. Source: ADR-0015.
	WritesStatus bool
	// CopyStatus copies the status of one object into another. Nil: the resource has no status subresource, and
	// Rules.Observe sets its status. Source: ADR-0017.
	CopyStatus func(from, into T)
}

// GroupResource is the resource without its version.
func (d *Definition[T]) GroupResource() schema.GroupResource { return d.Resource.GroupResource() }

// Ref names an object in the state. The zero value: no object can have that name.
func (d *Definition[T]) Ref(namespace, name string) store.Ref {
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 || d.Namespaced && len(validation.ValidateNamespaceName(namespace, false)) > 0 {
		return store.Ref{}
	}
	return store.Ref{Resource: d.Resource.Resource, Name: storeName(namespace, name)}
}

// GroupVersionKind is the kind of one object.
func (d *Definition[T]) GroupVersionKind() schema.GroupVersionKind {
	return d.Resource.GroupVersion().WithKind(d.Kind)
}

// Registry is a resource with its state: everything that the verbs need. It is made once and then never changed: what writes
// otherwise than others has a Registry of its own, made by WithFieldManager, WithStrategy or Join. Fields are set before the first use.
// Source: ADR-0049.
type Registry[T Object] struct {
	// Definition is what the resource is.
	Definition *Definition[T]
	// Strategy is what the kind adds to the verbs.
	Strategy[T]
	// Store holds the objects.
	Store store.Store
	// Now is the clock.
	Now func() time.Time
	// Random is the source of names and uids: crypto/rand.Reader, except in tests.
	Random io.Reader
	// Quota bounds what each owner may have. It holds for the objects that clients create and change; what the system writes
	// is within every quota. The zero value is no bound.
	Quota store.Quota

	// Graph joins the resource with the resources whose objects own its objects. Nil: the resource is alone.
	Graph *gc.Graph

	// fields record who set which field. Nil: writes record nothing.
	fields *fieldManagers
	// caches are shared with the copies of the registry that have the same strategy.
	caches atomic.Pointer[caches[T]]
}

// caches are what a registry keeps of texts that it has parsed and of events that it has shown. They never make an answer stale.
type caches[T Object] struct {
	parsed *bounded[string, parsed[T]]
	shown  *bounded[shownKey, *shown[T]]
}

// cache returns the caches of the registry, which the first caller makes.
func (r *Registry[T]) cache() *caches[T] {
	if made := r.caches.Load(); made != nil {
		return made
	}
	r.caches.CompareAndSwap(nil, &caches[T]{
		parsed: newBounded[string, parsed[T]](maxParsed, maxParsedBytes),
		shown:  newBounded[shownKey, *shown[T]](maxShown, maxShownBytes),
	})
	return r.caches.Load()
}

// clone returns a registry of the same state, graph, rules and field managers.
func (r *Registry[T]) clone() *Registry[T] {
	copied := &Registry[T]{
		Definition: r.Definition, Strategy: r.Strategy, Store: r.Store, Now: r.Now, Random: r.Random, Quota: r.Quota, Graph: r.Graph, fields: r.fields,
	}
	copied.caches.Store(r.cache())
	return copied
}

// WithStrategy returns a registry of the same state, graph and field managers with another strategy: for objects that clients cannot
// write themselves.
func (r *Registry[T]) WithStrategy(strategy Strategy[T]) *Registry[T] {
	copied := r.clone()
	copied.Strategy = strategy
	// The strategy decides how a text is parsed.
	copied.caches.Store(nil)
	return copied
}

// invalid returns the error for an object with the given problems.
func (r *Registry[T]) invalid(name string, problems field.ErrorList) error {
	return apierror.Invalid(r.Definition.GroupVersionKind().GroupKind(), name, problems)
}

// translate turns errors of the store into errors of the API.
func (r *Registry[T]) translate(err error, name string) error {
	var over *store.QuotaError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &over):
		return apierror.TooMany(over.TextFor(r.Definition.Resource.Resource), 1).Because(err)
	case errors.Is(err, store.ErrNotFound):
		return apierror.NotFound(r.Definition.GroupResource(), name).Because(err)
	case errors.Is(err, store.ErrExists):
		return apierror.AlreadyExists(r.Definition.GroupResource(), name).Because(err)
	case errors.Is(err, store.ErrConflict):
		return apierror.Modified(r.Definition.GroupResource(), name).Because(err)
	case errors.Is(err, store.ErrUnavailable):
		return apierror.Unavailable().Because(err)
	case errors.Is(err, store.ErrTaken) && r.Definition.Unfit != nil:
		return apierror.Invalid(r.Definition.GroupVersionKind().GroupKind(), name, field.ErrorList{r.Definition.Unfit}).Because(err)
	case errors.Is(err, store.ErrTaken) && r.Definition.Taken != nil:
		return apierror.Invalid(r.Definition.GroupVersionKind().GroupKind(), name, field.ErrorList{r.Definition.Taken}).Because(err)
	default:
		return fmt.Errorf("%s %q: %w", r.Definition.GroupResource(), name, err)
	}
}

// storeName is the object's name in the store.
func storeName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Read returns the object of a name with the record from which it was read. Parse returns from the record what Rules.Observe
// hides. Errors: NotFound, also for an object that the caller may not see; ServiceUnavailable.
func (r *Registry[T]) Read(ctx context.Context, caller identity.Caller, namespace, name string) (T, store.Record, error) {
	return r.ReadAhead(ctx, caller, namespace, name, nil)
}

// ReadAhead is Read with records that authentication read, which are as in GetInput.
func (r *Registry[T]) ReadAhead(
	ctx context.Context, caller identity.Caller, namespace, name string, prefetched map[string]store.Record,
) (T, store.Record, error) {
	record, err := r.fetchAhead(ctx, namespace, name, prefetched)
	if err != nil {
		var none T
		return none, store.Record{}, err
	}
	object, err := r.decodeVisible(ctx, caller, record, name, prefetched)
	return object, record, err
}

// fetchAhead is fetch with records that authentication read.
func (r *Registry[T]) fetchAhead(ctx context.Context, namespace, name string, prefetched map[string]store.Record) (store.Record, error) {
	if record, found := prefetched[storeName(namespace, name)]; found {
		return record, nil
	}
	return r.fetch(ctx, namespace, name)
}

// fetch returns the record of a name, also for callers who may not see it. Errors: NotFound, ServiceUnavailable.
func (r *Registry[T]) fetch(ctx context.Context, namespace, name string) (store.Record, error) {
	ref := r.Definition.Ref(namespace, name)
	if ref.Name == "" {
		return store.Record{}, apierror.NotFound(r.Definition.GroupResource(), name)
	}
	record, err := r.Store.Get(ctx, ref.Name)
	return record, r.translate(err, name)
}

// owners are the owners whose records the store reads for a caller; nil means all.
func (r *Registry[T]) owners(caller identity.Caller) []string {
	if r.Visibility != nil {
		return nil
	}
	return caller.Owners()
}

// decodeVisible returns the object of a record to a caller who may see it. Known are records that were read already. An object whose
// deletion is complete is removed.
func (r *Registry[T]) decodeVisible(
	ctx context.Context, caller identity.Caller, record store.Record, name string, records map[string]store.Record,
) (T, error) {
	var none T
	if seen, err := r.sees(caller, record); err != nil {
		return none, err
	} else if !seen.Allowed {
		return none, seen.Error(r.Definition.GroupResource(), name)
	}
	object, err := r.Decode(record)
	if err == nil && gc.Deleted(object, r.Now()) {
		r.removeDeleted(ctx, record)
		return none, apierror.NotFound(r.Definition.GroupResource(), name)
	}
	if err == nil {
		err = r.translate(r.relate(ctx, []T{object}, records), name)
	}
	return object, err
}

// Decode returns the object of a record, as the API shows it. It is a copy.
func (r *Registry[T]) Decode(record store.Record) (T, error) {
	shared, err := r.Parse(record)
	if err != nil {
		var none T
		return none, err
	}
	object := shared.DeepCopyObject().(T)
	r.stamp(object, record)
	return object, nil
}

// stamp sets the fields of an object that come from its record, not from its JSON.
func (r *Registry[T]) stamp(object T, record store.Record) {
	object.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	object.SetResourceVersion(strconv.FormatInt(record.Revision, 10))
	r.Rules.Observe(object, record)
}

// encode returns the JSON to store. It leaves out the resource version and the status, which the record and the rules
// supply at each read.
func (r *Registry[T]) encode(object T) ([]byte, error) {
	return r.encodeBare(object.DeepCopyObject().(T))
}

// encodeBare is encode for an object whose resource version and status are not needed any more, or are set again.
func (r *Registry[T]) encodeBare(object T) ([]byte, error) {
	object.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	object.SetResourceVersion("")
	r.Rules.Observe(object, store.Record{})
	var text []byte
	var err error
	if r.Format != nil {
		text, err = r.Format.EncodeStored(object)
	} else {
		text, err = json.Marshal(object)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.Definition.GroupResource(), object.GetName(), err)
	}
	return text, nil
}
