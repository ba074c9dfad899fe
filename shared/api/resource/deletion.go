package resource

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// MaxGracePeriodSeconds is the longest grace period, 68 years: the largest 32-bit number, which every client can read.
// Source: ADR-0009.
const MaxGracePeriodSeconds = 1<<31 - 1

// deleteTerms say how an object is to be deleted.
type deleteTerms struct {
	// grace is how many seconds longer the object stays usable. Nil: 0, or what an earlier delete set.
	grace *int64
	// propagation is what becomes of the dependents. Empty: what the finalizers say, else Background.
	propagation metav1.DeletionPropagation
}

// Deleted reports whether the deletion of an object is complete: it was requested, the grace period has passed, and no
// finalizer is left. The object may still be stored; it then counts as absent. Source: Spec 3; ADR-0009.
func Deleted(object metav1.Object, now time.Time) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && !hasGracePeriod(object, now)
}

// hasGracePeriod reports whether an object that is being deleted has some of its grace period left. Without a grace period
// the clocks of two functions need not agree.
func hasGracePeriod(object metav1.Object, now time.Time) bool {
	end, grace := object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds()
	return end != nil && grace != nil && *grace > 0 && now.Before(end.Time)
}

// markDeleted marks an object as being deleted: since when, how long it stays usable, and what becomes of its
// dependents. A running grace period can only be shortened; unless it is, the finalizers stay as they are. Source: Spec
// 2.2, 3; ADR-0009.
func markDeleted(object metav1.Object, asked deleteTerms, now time.Time) {
	switch begun := object.GetDeletionTimestamp(); {
	case begun == nil:
		grace := ptr.Deref(asked.grace, 0)
		object.SetDeletionTimestamp(&metav1.Time{Time: now.UTC().Truncate(time.Second).Add(time.Duration(grace) * time.Second)})
		object.SetDeletionGracePeriodSeconds(&grace)
		object.SetGeneration(object.GetGeneration() + 1)
	case hasGracePeriod(object, now):
		before := *object.GetDeletionGracePeriodSeconds()
		if asked.grace == nil || *asked.grace >= before {
			return
		}
		object.SetDeletionTimestamp(&metav1.Time{Time: begun.Add(time.Duration(*asked.grace-before) * time.Second)})
		object.SetDeletionGracePeriodSeconds(new(*asked.grace))
	}
	switch asked.propagation {
	case metav1.DeletePropagationOrphan:
		setPropagation(object, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		setPropagation(object, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationBackground:
		setPropagation(object, "")
	}
}

// setPropagation leaves one, or none, of the finalizers that say what becomes of the dependents.
func setPropagation(object metav1.Object, finalizer string) {
	if finalizer != "" && slices.Contains(object.GetFinalizers(), finalizer) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), isPropagation)
	if finalizer != "" {
		list = append(list, finalizer)
	}
	object.SetFinalizers(list)
}

// isPropagation reports whether the collector removes a finalizer.
func isPropagation(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// needsPropagation reports whether an object is being deleted and the next step is the collector's: to orphan or delete
// the dependents.
func needsPropagation(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.ContainsFunc(object.GetFinalizers(), isPropagation)
}

// Due is when the schedule has to look at an object: when it expires or when its grace period ends, whichever is
// first; at once while the next step of its deletion is the collector's; never while finalizers of others hold it. The
// zero time means never. Source: ADR-0009.
func (r *Registry[T]) Due(object T, activity time.Time) time.Time {
	_, expires := r.Rules.Index(object, activity)
	return dueTime(object, expires)
}

// dueTime is Due for an object whose own expiry is known; zero means that it has none.
func dueTime(object metav1.Object, expires time.Time) time.Time {
	end := object.GetDeletionTimestamp()
	switch {
	case end == nil:
		return expires
	case needsPropagation(object):
		// Since the deletion was requested.
		return end.Add(-time.Duration(ptr.Deref(object.GetDeletionGracePeriodSeconds(), 0)) * time.Second)
	case len(object.GetFinalizers()) > 0:
		return time.Time{}
	case !expires.IsZero() && expires.Before(end.Time):
		return expires
	default:
		return end.Time
	}
}

// index fills in the fields of a record that the store indexes.
func (r *Registry[T]) index(record *store.Record, object T) {
	owner, expires := r.Rules.Index(object, record.Activity)
	record.Owner, record.Expires = owner, dueTime(object, expires)
	record.References = nil
	for _, owner := range object.GetOwnerReferences() {
		if !slices.Contains(record.References, string(owner.UID)) {
			record.References = append(record.References, string(owner.UID))
		}
	}
	record.References = append(record.References, r.lineageReferences(object)...)
}

// removeDeleted removes an object whose deletion is complete, when a request comes across it. It is best effort: such
// an object counts as absent anyway, and the schedule removes what is left.
func (r *Registry[T]) removeDeleted(ctx context.Context, record store.Record) bool {
	_, err := r.Store.Delete(ctx, record.Name, record.Revision)
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	if object, err := r.Parse(record); err == nil {
		r.Removed(withConsequences(ctx), object)
	}
	return true
}

// insert is the store's Create for a caller, whose credential must still work when the object is written. It removes an object
// in its way whose deletion is complete.
func (r *Registry[T]) insert(ctx context.Context, caller identity.Caller, record store.Record) (int64, error) {
	record.Requires = r.requiredVersion(caller)
	for attempt := 1; ; attempt++ {
		revision, err := r.Store.Create(ctx, record)
		var holder store.Record
		var lookup error
		switch {
		case attempt == maxNameAttempts:
			return revision, err
		case errors.Is(err, store.ErrStale):
			// Only rules with a lineage require anything.
			if record.Requires, err = r.Lineage.Current(ctx, caller); err != nil {
				return 0, err
			}
			continue
		case errors.Is(err, store.ErrExists):
			holder, lookup = r.Store.Get(ctx, record.Name)
		case errors.Is(err, store.ErrTaken):
			holder, lookup = r.Store.GetByDigest(ctx, record.Digest)
		default:
			return revision, err
		}
		if lookup != nil || !r.isDeleted(holder) || !r.removeDeleted(ctx, holder) {
			return revision, err
		}
	}
}

// isDeleted is Deleted for a record; false for a record that cannot be read.
func (r *Registry[T]) isDeleted(record store.Record) bool {
	object, err := r.Parse(record)
	return err == nil && Deleted(object, r.Now())
}

// rewriteMetadata changes the metadata of a stored object on behalf of the system, and writes it if anything changed.
// When the change completes the deletion, the object is removed. It returns the new object, also as an outcome. The errors
// are the store's: ErrConflict when the record is not the stored one.
func (r *Registry[T]) rewriteMetadata(
	ctx context.Context, record store.Record, dryRun bool, change func(metav1.Object),
) (object T, after outcome, err error) {
	if object, err = r.Decode(record); err != nil {
		return object, outcome{}, err
	}
	text, err := r.storedText(object, record)
	if err != nil {
		return object, outcome{}, err
	}
	change(object)
	after = outcome{node: node{member: r, record: record, object: object}, gone: Deleted(object, r.Now())}
	if after.gone {
		if !dryRun {
			questions := r.graph().questions(after)
			if after.record.Revision, err = r.Store.Delete(store.WithQuestions(ctx, questions), record.Name, record.Revision); err != nil {
				return object, outcome{}, err
			}
			after.answered = questions
			r.Removed(ctx, object)
		}
		return object, after, nil
	}
	updated, err := r.encode(object)
	if err != nil {
		return object, outcome{}, err
	}
	if bytes.Equal(text, updated) {
		return object, after, nil
	}
	if after.record.Object, err = r.replacement(record, text, updated, object); err != nil {
		return object, outcome{}, err
	}
	r.index(&after.record, object)
	if !dryRun {
		if after.record.Revision, err = r.Store.Update(ctx, after.record); err != nil {
			return object, outcome{}, err
		}
		r.reportWrite(ctx, "update", object)
	}
	r.stamp(object, after.record)
	return object, after, nil
}
