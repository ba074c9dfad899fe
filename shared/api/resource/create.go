package resource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// CreateInput is a request to create one object.
type CreateInput[T Object] struct {
	// Caller is the caller of the request.
	Caller identity.Caller
	// Namespace is the namespace of the request; empty for resources without.
	Namespace string
	// Object is the object as the caller sent it. Create changes it.
	Object T
	// Manager owns the fields that are written. Empty: unknown.
	Manager string
	// UserAgent is the client's User-Agent header. Empty: unknown.
	UserAgent string
	// DryRun does everything but the write.
	DryRun bool
	// Random is the source of the name, the uid and the secret of a create that may be repeated. It gives the same
	// bytes at each attempt, so that an existing object with the same uid was created by an earlier attempt; it is then
	// the answer to this one. Nil: the registry's source. Source: ADR-0017.
	Random io.Reader
	// Owners are records of owners that were read for this request, by the uids in the references to them. Create does not
	// read these again. Nil: it reads all of them.
	Owners map[types.UID]store.Record
	// Parent is the name of the object at whose subresource the request is; empty for a request to the resource itself. Create does not
	// look at it.
	Parent string
	// NoQuota stores the object although its owner has no quota left: it is the first admin key. Source: ADR-0020.
	NoQuota bool
}

// Result is the answer to a create, update or patch.
type Result[T Object] struct {
	// Object is the object as stored, with its secret where this answer delivers it.
	Object T
	// Created reports whether the object is new.
	Created bool
	// Warnings are for the caller to read.
	Warnings []string
	// Text is Object in JSON where it was made from the stored text. Nil: it has to be encoded.
	Text []byte
}

// maxNameAttempts bounds how often the server chooses another name when the one that it chose is taken. A kube-apiserver
// has the same bound: with 1,000,000 names of one prefix, all attempts fail less than once in 1,000,000,000 creations.
const maxNameAttempts = 8

// Create stores a new object and returns it as stored, with its secret, which is shown only once. A dry run shows no
// secret: it makes none.
//
// Errors: Invalid with a cause for each bad field, and when the secret is in use; Forbidden where the object asks for more
// than the caller may give; AlreadyExists when the name, or all names that were made from generateName, are taken. A dry run does not
// find out whether the secret is in use. On any error nothing is stored. Source: Spec 2.2, 7; ADR-0004, ADR-0022.
func Create[T Object](ctx context.Context, r *Registry[T], in CreateInput[T]) (Result[T], error) {
	draft, err := Prepare(ctx, r, in)
	if err != nil {
		return Result[T]{}, err
	}
	return draft.Store(ctx)
}

// Draft is a new object that passed all checks and is not stored yet.
type Draft[T Object] struct {
	// Object is what Store writes, with its name, uid and creation time. It is read only.
	Object T

	registry *Registry[T]
	in       CreateInput[T]
	own      ownerRecorder[T]
	sealed   Sealed[T]
}

// Prepare is the first half of Create: it defaults, validates and authorizes a new object, and stores nothing.
// Draft.Store is the second half. Callers that have work to do between the checks and the write, such as a signature,
// call both; all others call Create.
//
// Errors: the errors of Create that do not depend on a stored object of the same name.
func Prepare[T Object](ctx context.Context, r *Registry[T], in CreateInput[T]) (*Draft[T], error) {
	return r.prepare(ctx, in, r.updatedBy(in.Manager, false), "")
}

// Store writes the object of a draft and returns it as stored. When a name that the server chose is taken, it chooses
// another; the uid stays, the creation time may be later. Errors: the errors of Create.
func (d *Draft[T]) Store(ctx context.Context) (Result[T], error) {
	requested, generateName := d.in.Object.GetName(), d.in.Object.GetGenerateName()
	for attempt := 1; ; attempt++ {
		result, err := d.store(ctx)
		switch {
		case !errors.Is(err, store.ErrExists) || requested != "":
			return result, err
		case attempt == maxNameAttempts && generateName != "":
			return result, apierror.GeneratedNameExists(d.registry.Definition.GroupResource(), generateName).Because(err)
		case attempt == maxNameAttempts:
			return result, err
		}
		if d, err = d.registry.prepare(ctx, d.in, d.own, d.Object.GetUID()); err != nil {
			return Result[T]{}, err
		}
	}
}

// prepare checks a copy of the object of a request. UID is the uid that it has already; empty: it gets one.
func (r *Registry[T]) prepare(ctx context.Context, in CreateInput[T], own ownerRecorder[T], uid types.UID) (*Draft[T], error) {
	if problems := boundMetadata(in.Object, nil); len(problems) > 0 {
		return nil, r.invalid(in.Object.GetName(), problems)
	}
	object := in.Object.DeepCopyObject().(T)
	random := in.Random
	if random == nil {
		random = r.Random
	} else if r.Generator != nil {
		if err := r.Generator.GenerateSecret(object, random); err != nil {
			return nil, err
		}
	}
	if given := object.GetNamespace(); r.Definition.Namespaced && given != "" && given != in.Namespace {
		return nil, mismatchError("namespace", given, fmt.Sprintf(
			"the namespace of the provided object (%s) does not match the namespace of the request (%s)", given, in.Namespace))
	}
	if err := r.prepareMetadata(object, in.Namespace, random); err != nil {
		return nil, err
	}
	if uid != "" {
		object.SetUID(uid)
	}
	var none T
	r.Rules.Default(in.Caller, object, none)
	r.recordOrigin(in.Caller, object)
	var refused field.ErrorList
	if r.Provenance != nil {
		var err error
		if refused, err = r.Provenance.RecordProvenance(ctx, in.Caller, object); err != nil {
			return nil, r.translate(err, object.GetName())
		}
	}
	problems := append(r.validateMetadata(object), r.Rules.Validate(object, none)...)
	if len(problems) == 0 {
		refused = slices.Concat(r.excessGrants(in.Caller, object), r.Rules.Authorize(in.Caller, object, none), refused)
	}
	sealed, more := r.seal(object, store.Record{}, in.Manager)
	owners, err := r.validateOwners(ctx, in.Caller, object, none, in.Owners)
	if err != nil {
		return nil, err
	}
	problems = append(problems, owners...)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, r.invalid(object.GetName(), problems)
	}
	if len(refused) > 0 {
		return nil, apierror.Forbidden(r.Definition.GroupResource(), object.GetName(), apierror.Summary(refused), refused)
	}
	return &Draft[T]{Object: object, registry: r, in: in, own: own, sealed: sealed}, nil
}

// store is one attempt of Store.
func (d *Draft[T]) store(ctx context.Context) (Result[T], error) {
	r, in, object := d.registry, d.in, d.Object
	if err := d.own(object, r.emptyObject()); err != nil {
		return Result[T]{}, err
	}
	text, err := r.encodeBare(object)
	if err == nil {
		err = boundObject(text, nil)
	}
	if err != nil {
		return Result[T]{}, err
	}
	record := store.Record{
		Name:    storeName(object.GetNamespace(), object.GetName()),
		Digest:  d.sealed.Digest,
		Drawn:   d.sealed.Drawn,
		Created: object.GetCreationTimestamp().Time,
	}
	record.Object = r.marked(text, object, record, nil)
	r.index(&record, object)
	if !in.NoQuota {
		record.Quota = r.Quota
	}
	var none T
	release, err := r.holdInvariant(ctx, object, none)
	if err != nil {
		return Result[T]{}, r.translate(err, object.GetName())
	}
	defer release()
	if in.DryRun {
		if err := r.checkCreate(ctx, record); err != nil {
			return Result[T]{}, r.createError(ctx, in.Caller, object, err)
		}
	} else if record.Revision, err = r.insert(ctx, in.Caller, record); err != nil {
		earlier, again := r.findRepeated(ctx, in, object.GetUID(), record.Name, err)
		if !again {
			return Result[T]{}, r.createError(ctx, in.Caller, object, err)
		}
		if object, err = r.Decode(earlier); err != nil {
			return Result[T]{}, err
		}
		record = earlier
	} else {
		r.reportWrite(ctx, "create", object)
	}
	r.stamp(object, record)
	// The object is stored: an answer without what it depends on is better than none.
	_ = r.relate(ctx, []T{object}, nil)
	if in.DryRun {
		object.SetResourceVersion("")
	} else if d.sealed.Reveal != nil {
		d.sealed.Reveal(object)
	}
	return Result[T]{Object: object, Created: true, Warnings: append(r.warn(object, none), r.unknownNames(ctx, in.Caller, object, none)...)}, nil
}

// createError is translate for an object that could not be stored. Callers who may see the existing object learn that it
// is being deleted: its name will be free.
func (r *Registry[T]) createError(ctx context.Context, caller identity.Caller, object T, err error) error {
	if errors.Is(err, store.ErrExists) {
		holder, _, unseen := r.Read(ctx, caller, object.GetNamespace(), object.GetName())
		if unseen == nil && holder.GetDeletionTimestamp() != nil {
			return apierror.BeingDeleted(r.Definition.GroupResource(), object.GetName()).Because(err)
		}
	}
	return r.translate(err, object.GetName())
}

// findRepeated reports whether a create failed because an earlier attempt with the same random bytes, and so with the same uid,
// succeeded. It returns the record of that.
func (r *Registry[T]) findRepeated(ctx context.Context, in CreateInput[T], uid types.UID, name string, err error) (store.Record, bool) {
	if in.Random == nil || !errors.Is(err, store.ErrExists) {
		return store.Record{}, false
	}
	earlier, err := r.Store.Get(ctx, name)
	if err != nil {
		return store.Record{}, false
	}
	object, err := r.Parse(earlier)
	return earlier, err == nil && object.GetUID() == uid && !gc.Deleted(object, r.Now())
}

// checkCreate returns the error that the store's Create would, and writes nothing. It does not look for the digest: the answer
// would tell whether a text is the secret of another object.
func (r *Registry[T]) checkCreate(ctx context.Context, record store.Record) error {
	holder, err := r.Store.Get(ctx, record.Name)
	switch {
	case err == nil && !r.isDeleted(holder):
		return store.ErrExists
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	default:
		return r.checkDigest(ctx, record.Digest, record.Name)
	}
}
