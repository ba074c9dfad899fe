package resource

import (
	"bytes"
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// MaxGracePeriodSeconds is the longest grace period, 68 years: the largest 32-bit number, which every client can read.
// Source: ADR-0009.
const MaxGracePeriodSeconds = 1<<31 - 1

// Due is when the schedule has to look at an object: when it expires or when its grace period ends, whichever is
// first; at once while the next step of its deletion is the collector's; never while finalizers of others hold it. The
// zero time means never. Source: ADR-0009.
func (r *Registry[T]) Due(object T, activity time.Time) time.Time {
	_, expires := r.Rules.Index(object, activity)
	return gc.DueTime(object, expires)
}

// index fills in the fields of a record that the store indexes.
func (r *Registry[T]) index(record *store.Record, object T) {
	owner, expires := r.Rules.Index(object, record.Activity)
	record.Owner, record.Expires = owner, gc.DueTime(object, expires)
	bounding, others := r.ancestors(object)
	record.References = gc.References(object, bounding, others)
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

// isDeleted is gc.Deleted for a record; false for a record that cannot be read.
func (r *Registry[T]) isDeleted(record store.Record) bool {
	object, err := r.Parse(record)
	return err == nil && gc.Deleted(object, r.Now())
}

// rewriteMetadata changes the metadata of a stored object on behalf of the system, and writes it if anything changed.
// When the change completes the deletion, the object is removed. It returns the new object, also as an outcome. The errors
// are the store's: ErrConflict when the record is not the stored one.
func (r *Registry[T]) rewriteMetadata(
	ctx context.Context, record store.Record, dryRun bool, change func(metav1.Object),
) (object T, after gc.Outcome, err error) {
	if object, err = r.Decode(record); err != nil {
		return object, gc.Outcome{}, err
	}
	text, err := r.storedText(object, record)
	if err != nil {
		return object, gc.Outcome{}, err
	}
	change(object)
	after = gc.Outcome{Node: gc.Node{Member: member[T]{r}, Record: record, Object: object}, Gone: gc.Deleted(object, r.Now())}
	if after.Gone {
		if !dryRun {
			questions := r.graph().Questions(after.Node)
			if after.Record.Revision, err = r.Store.Delete(store.WithQuestions(ctx, questions), record.Name, record.Revision); err != nil {
				return object, gc.Outcome{}, err
			}
			after.Dependents = questions
			r.Removed(ctx, object)
		}
		return object, after, nil
	}
	updated, err := r.encode(object)
	if err != nil {
		return object, gc.Outcome{}, err
	}
	if bytes.Equal(text, updated) {
		return object, after, nil
	}
	if after.Record.Object, err = r.replacement(record, text, updated, object); err != nil {
		return object, gc.Outcome{}, err
	}
	r.index(&after.Record, object)
	if !dryRun {
		if after.Record.Revision, err = r.Store.Update(ctx, after.Record); err != nil {
			return object, gc.Outcome{}, err
		}
		r.reportWrite(ctx, "update", object)
	}
	r.stamp(object, after.Record)
	return object, after, nil
}
