package resource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/api/resource/stored"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// UpdateInput is a request to replace one object.
type UpdateInput[T Object] struct {
	Caller          identity.Caller
	Namespace, Name string
	// Object is the whole new object. Its resourceVersion, when set, must be the stored one's.
	Object T
	// Prefetched is as in GetInput. Only a write rests on it, because the store compares revisions: what would be refused, or
	// writes nothing, is read again.
	Prefetched map[string]store.Record
	// Manager owns the fields that are changed. Empty: unknown.
	Manager string
	// DryRun does everything but the write.
	DryRun bool
	// Private replaces the private part of the object. Empty: it stays. It is for kinds without a Splicer.
	Private string
	// Status replaces the status alone. Otherwise everything but the status is replaced. It is for resources with a
	// status subresource. Source: ADR-0017.
	Status bool
}

// Update replaces an object and returns it as stored. An update that changes nothing writes nothing.
//
// Errors: NotFound when there is no such object for the caller; Conflict when resourceVersion or uid are
// not the stored ones; BadRequest when the name in the object is another; Invalid and Forbidden as in
// Create, and Invalid for a changed immutable field. On any error nothing is stored. Source: Spec 2.2, 3.
func Update[T Object](ctx context.Context, r *Registry[T], in UpdateInput[T]) (Result[T], error) {
	target := target{
		caller: in.Caller, namespace: in.Namespace, name: in.Name, prefetched: in.Prefetched,
		manager: in.Manager, dryRun: in.DryRun, status: in.Status, private: in.Private,
	}
	return r.rewrite(ctx, target, r.updatedBy(in.Manager, in.Status), func(T, store.Record) (T, []string, error) {
		return in.Object.DeepCopyObject().(T), nil, nil
	})
}

// target is the object of a write, and how it is written.
type target struct {
	caller                   identity.Caller
	namespace, name, manager string
	prefetched               map[string]store.Record
	dryRun, status           bool
	private                  string
}

// replacer returns the replacement of an object, which is another object, and warnings about it.
type replacer[T Object] func(current T, record store.Record) (T, []string, error)

// rewrite reads an object, asks for its replacement, and writes that. It starts over while others write in between, unless
// the replacement has a resourceVersion.
func (r *Registry[T]) rewrite(ctx context.Context, in target, own ownerRecorder[T], replace replacer[T]) (Result[T], error) {
	if written, done, err := r.rewritePrefetched(ctx, in, own, replace); done {
		return written, err
	}
	in.prefetched = nil
	var written Result[T]
	outrun := false
	err := store.Retry(ctx, func(error) bool { return outrun }, func() error {
		written, outrun = Result[T]{}, false
		record, err := r.fetch(ctx, in.namespace, in.name)
		if err != nil {
			return err
		}
		change, err := r.planUpdate(ctx, in, own, replace, record)
		if err != nil {
			return err
		}
		written, err = r.commit(ctx, in, change)
		outrun = !change.conditional && errors.Is(err, store.ErrConflict)
		return err
	})
	return written, err
}

// rewritePrefetched is rewrite with the record that was read together with the caller's key. Not done: there is no such record,
// or it is out of date. Requests read their body after that, so that a refusal, and an answer that writes nothing, need to see
// that the record is still the same.
func (r *Registry[T]) rewritePrefetched(
	ctx context.Context, in target, own ownerRecorder[T], replace replacer[T],
) (result Result[T], done bool, err error) {
	record, known := in.prefetched[storeName(in.namespace, in.name)]
	// The use of the caller's own key was noted after it was read.
	if !known || in.name == in.caller.Key {
		return result, false, nil
	}
	change, err := r.planUpdate(ctx, in, own, replace, record)
	if err == nil && !change.same && !in.dryRun {
		result, err = r.commit(ctx, in, change)
		return result, !errors.Is(err, store.ErrConflict), err
	}
	now, failed := r.fetch(ctx, in.namespace, in.name)
	switch {
	case failed != nil:
		return result, true, failed
	case now.Revision != record.Revision || !now.Activity.Equal(record.Activity):
		return result, false, nil
	case err == nil:
		result, err = r.commit(ctx, in, change)
	}
	return result, true, err
}

// change is a write that was checked.
type change[T Object] struct {
	object, old  T
	record, next store.Record
	warnings     []string
	// conditional reports whether the replacement has a resourceVersion.
	conditional bool
	// same reports whether nothing is to be written, and gone whether the object is to be removed.
	same, gone bool
}

// planUpdate checks the replacement of the object of a record, and returns the write of it.
func (r *Registry[T]) planUpdate(ctx context.Context, in target, own ownerRecorder[T], replace replacer[T], record store.Record) (*change[T], error) {
	old, err := r.decodeVisible(ctx, in.caller, record, in.name, in.prefetched)
	if err != nil {
		return nil, err
	}
	part := ""
	if in.status {
		part = status
	}
	if err := r.Admit(in.caller, "update", part, old); err != nil {
		return nil, err
	}
	object, warnings, err := replace(old, record)
	if err != nil {
		return nil, err
	}
	if object.GetResourceVersion() == "0" {
		object.SetResourceVersion("")
	}
	planned := &change[T]{old: old, record: record, warnings: warnings, conditional: object.GetResourceVersion() != ""}
	return planned, r.prepareUpdate(ctx, in, own, object, planned)
}

// prepareUpdate checks a replacement against the stored object, and completes the write of it.
func (r *Registry[T]) prepareUpdate(ctx context.Context, in target, own ownerRecorder[T], object T, planned *change[T]) error {
	old, record := planned.old, planned.record
	name := old.GetName()
	if object.GetName() == "" {
		object.SetName(name)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(old.GetNamespace())
	}
	if object.GetName() != name {
		return mismatchError("name", object.GetName(), fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), name))
	}
	if given := object.GetNamespace(); given != "" && !r.Definition.Namespaced {
		return mismatchError("namespace", given, "metadata.namespace must be empty: "+r.Definition.Resource.Resource+" are cluster-scoped")
	}
	if object.GetNamespace() != old.GetNamespace() {
		return mismatchError("namespace", object.GetNamespace(), fmt.Sprintf(
			"the namespace of the object (%s) does not match the namespace on the request (%s)",
			object.GetNamespace(), old.GetNamespace()))
	}
	if err := r.checkPreconditions(old, object.GetUID(), object.GetResourceVersion()); err != nil {
		return err
	}
	if problems := boundMetadata(object, old); len(problems) > 0 {
		return r.invalid(name, problems)
	}
	stored := old
	text, canonical := r.canonical(record.Object)
	if canonical {
		text = append(bytes.Clone(text), '}')
	} else {
		var err error
		if stored, err = r.sealed(old, record); err != nil {
			return err
		}
	}
	var digest string
	var err error
	if in.status {
		object, digest, err = r.prepareStatus(in.caller, own, object, old, record)
	} else {
		digest, err = r.prepareReplacement(ctx, in, own, object, old, stored, record)
	}
	if err != nil {
		return err
	}
	// Of managers that apply, the library keeps all.
	if problems := boundMetadata(object, old); len(problems) > 0 {
		return r.invalid(name, problems)
	}
	if !canonical {
		if text, err = r.encodeBare(stored); err != nil {
			return err
		}
	}
	if old.GetUID() == "" {
		if err := r.initMetadata(object); err != nil {
			return err
		}
	}
	updated, err := r.encodeOnTime(object, old, text)
	if err != nil {
		return err
	}
	if r.desiredChanged(updated, text) {
		if updated, err = r.raiseGeneration(object, updated, old.GetGeneration()+1); err != nil {
			return err
		}
	}
	next := record
	next.Digest = digest
	if next.Created.IsZero() {
		next.Created = object.GetCreationTimestamp().Time
	}
	r.index(&next, object)
	planned.object, planned.next = object, next
	if planned.same = bytes.Equal(text, updated) && next.Owner == record.Owner && in.private == ""; planned.same {
		return nil
	}
	if planned.next.Object, err = r.replacement(record, text, updated, object); err != nil {
		return err
	}
	if in.private != "" {
		if planned.next.Object, err = withPrivate(planned.next.Object, in.private); err != nil {
			return err
		}
	}
	planned.gone = gc.Deleted(object, r.Now())
	return boundObject(planned.next.Object, record.Object)
}

// commit writes a change, unless there is nothing to write or the request is a dry run, and returns the answer.
func (r *Registry[T]) commit(ctx context.Context, in target, planned *change[T]) (Result[T], error) {
	object, next := planned.object, planned.next
	if planned.same {
		next = planned.record
	} else {
		var err error
		if next.Revision, err = r.storeChange(ctx, in, planned); err != nil {
			return Result[T]{}, r.translate(err, planned.old.GetName())
		}
		if !in.dryRun && !planned.gone {
			r.reportWrite(ctx, "update", object)
		}
	}
	r.stamp(object, next)
	_ = r.relate(ctx, []T{object}, in.prefetched)
	if planned.gone && !in.dryRun {
		r.Removed(ctx, object)
		r.collect(ctx, gc.Outcome{Node: gc.Node{Member: member[T]{r}, Record: next, Object: object}, Gone: true})
	}
	written := r.updateResult(object, planned.old, next)
	written.Warnings = append(planned.warnings, written.Warnings...)
	if !planned.same {
		written.Warnings = append(written.Warnings, r.unknownNames(ctx, in.caller, object, planned.old)...)
	}
	return written, nil
}

// storeChange writes a change that is not the same, unless the request is a dry run, and returns the revision.
func (r *Registry[T]) storeChange(ctx context.Context, in target, planned *change[T]) (int64, error) {
	release, err := r.holdInvariant(ctx, planned.object, planned.old)
	if err != nil {
		return 0, err
	}
	defer release()
	next := planned.next
	switch {
	case in.dryRun && next.Digest != planned.record.Digest:
		return next.Revision, r.checkDigest(ctx, next.Digest, next.Name)
	case in.dryRun:
		return next.Revision, nil
	case planned.gone:
		return r.Store.Delete(ctx, next.Name, planned.record.Revision)
	default:
		next.Quota = r.Quota
		return r.Store.Update(ctx, next)
	}
}

// updateResult is the answer to an update that has stored an object, or found it stored.
func (r *Registry[T]) updateResult(object, old T, record store.Record) Result[T] {
	text, _ := r.textOf(record)
	return Result[T]{Object: object, Text: text.JSON, Warnings: r.warn(object, old)}
}

// raiseGeneration gives an object another generation, and returns its text with that.
func (r *Registry[T]) raiseGeneration(object T, text []byte, generation int64) ([]byte, error) {
	const name = `"generation":`
	before := strconv.FormatInt(object.GetGeneration(), 10)
	object.SetGeneration(generation)
	// It is in the metadata, after names and the uid, whose texts have no quotes.
	index := bytes.Index(text, []byte(name+before+","))
	if _, end, found := stored.UID(text); !found || index != end+len(",") {
		return r.encodeBare(object)
	}
	raised := append(make([]byte, 0, len(text)+1), text[:index+len(name)]...)
	raised = strconv.AppendInt(raised, generation, 10)
	return append(raised, text[index+len(name)+len(before):]...), nil
}

// mismatchError is the answer for an object whose metadata does not match the request.
func mismatchError(child, given, why string) error {
	return apierror.BadRequest(why, field.ErrorList{field.Invalid(field.NewPath("metadata", child), given, why)})
}

// prepareReplacement validates a replacement of everything but the status, and completes it for the store. It returns
// its digest. Stored is the old object as it is stored.
func (r *Registry[T]) prepareReplacement(
	ctx context.Context, in target, own ownerRecorder[T], object, old, stored T, record store.Record,
) (string, error) {
	keepMetadata(object, old)
	r.keepForegroundFinalizer(object, old)
	if r.RepeatedSecret != nil && in.dryRun {
		r.RepeatedSecret.RemoveSecret(object)
	}
	if err := r.requestManagedFields(object, old, false); err != nil {
		return "", err
	}
	if r.Definition.CopyStatus != nil {
		r.Definition.CopyStatus(old, object)
	}
	r.Rules.Default(in.caller, object, old)
	r.keepOrigin(object, old)
	problems := append(r.validateMetadataUpdate(object, old), r.validateReplacement(object, old)...)
	var excess field.ErrorList
	if len(problems) == 0 {
		excess = append(r.newExcessGrants(in.caller, object, old), r.Rules.Authorize(in.caller, object, old)...)
		if r.OwnerChange != nil {
			more, err := r.OwnerChange.RecordOwner(ctx, in.caller, object, old)
			if err != nil {
				return "", r.translate(err, old.GetName())
			}
			excess = append(excess, more...)
		}
	}
	sealed, more := r.seal(object, record, in.manager)
	owners, err := r.validateOwners(ctx, in.caller, object, old, nil)
	if err != nil {
		return "", err
	}
	problems = append(problems, owners...)
	if problems = append(problems, more...); len(problems) > 0 {
		return "", r.invalid(old.GetName(), problems)
	}
	if len(excess) > 0 {
		return "", apierror.Forbidden(r.Definition.GroupResource(), old.GetName(), apierror.Summary(excess), excess)
	}
	if r.Format != nil {
		// Seal has given the object the form in which it is stored.
		old = stored
	}
	return sealed.Digest, own(object, old)
}

// prepareStatus returns the stored object with the status of another, ready for the store, and its digest. Of the rest
// of the other object it uses only the owners of the status fields. Source: ADR-0008, ADR-0017.
func (r *Registry[T]) prepareStatus(caller identity.Caller, own ownerRecorder[T], object, old T, record store.Record) (T, string, error) {
	updated := old.DeepCopyObject().(T)
	r.Definition.CopyStatus(object, updated)
	r.keepOrigin(updated, old)
	updated.SetManagedFields(object.GetManagedFields())
	if err := r.requestManagedFields(updated, old, true); err != nil {
		return updated, "", err
	}
	var problems, excess field.ErrorList
	if r.Status != nil {
		problems = r.Status.ValidateStatus(updated, old)
		excess = append(r.newExcessGrants(caller, updated, old), r.Status.AuthorizeStatus(caller, updated, old)...)
	}
	sealed, more := r.Rules.Seal(updated, record)
	if problems = append(problems, more...); len(problems) > 0 {
		return updated, "", r.invalid(old.GetName(), problems)
	}
	if len(excess) > 0 {
		return updated, "", apierror.Forbidden(r.Definition.GroupResource(), old.GetName(), apierror.Summary(excess), excess)
	}
	return updated, sealed.Digest, own(updated, old)
}

// sealed returns a stored object with its secrets, so that a comparison sees changed secrets.
func (r *Registry[T]) sealed(old T, record store.Record) (T, error) {
	stored := old.DeepCopyObject().(T)
	if _, problems := r.Rules.Seal(stored, record); len(problems) > 0 {
		return stored, fmt.Errorf("reading the secrets of %s %q: %w", r.Definition.GroupResource(), old.GetName(), problems.ToAggregate())
	}
	return stored, nil
}

// initMetadata gives an object that existed before anybody wrote it the metadata of a new one: this is its first write.
func (r *Registry[T]) initMetadata(object T) error {
	uid, err := NewUID(r.Random)
	if err != nil {
		return err
	}
	object.SetUID(uid)
	object.SetCreationTimestamp(metav1.Time{Time: r.Now().UTC().Truncate(time.Second)})
	object.SetGeneration(1)
	return nil
}
