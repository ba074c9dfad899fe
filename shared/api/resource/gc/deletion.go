package gc

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Terms say how an object is to be deleted.
type Terms struct {
	// GracePeriodSeconds is how much longer the object stays usable. Nil: 0, or what an earlier delete set.
	GracePeriodSeconds *int64
	// Propagation is what becomes of the dependents. Empty: what the finalizers say, else Background.
	Propagation metav1.DeletionPropagation
}

// Deleted reports whether the deletion of an object is complete: it was requested, the grace period has passed, and no
// finalizer is left. The object may still be stored; it then counts as absent. Source: Spec 3; ADR-0009.
func Deleted(object metav1.Object, now time.Time) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && !HasGracePeriod(object, now)
}

// HasGracePeriod reports whether an object that is being deleted has some of its grace period left. Without a grace period
// the clocks of two functions need not agree.
func HasGracePeriod(object metav1.Object, now time.Time) bool {
	end, grace := object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds()
	return end != nil && grace != nil && *grace > 0 && now.Before(end.Time)
}

// MarkDeleted marks an object as being deleted: since when, how long it stays usable, and what becomes of its
// dependents. A running grace period can only be shortened; unless it is, the finalizers stay as they are. Source: Spec
// 2.2, 3; ADR-0009.
func MarkDeleted(object metav1.Object, terms Terms, now time.Time) {
	switch begun := object.GetDeletionTimestamp(); {
	case begun == nil:
		grace := ptr.Deref(terms.GracePeriodSeconds, 0)
		object.SetDeletionTimestamp(&metav1.Time{Time: now.UTC().Truncate(time.Second).Add(time.Duration(grace) * time.Second)})
		object.SetDeletionGracePeriodSeconds(&grace)
		object.SetGeneration(object.GetGeneration() + 1)
	case HasGracePeriod(object, now):
		before := *object.GetDeletionGracePeriodSeconds()
		if terms.GracePeriodSeconds == nil || *terms.GracePeriodSeconds >= before {
			return
		}
		object.SetDeletionTimestamp(&metav1.Time{Time: begun.Add(time.Duration(*terms.GracePeriodSeconds-before) * time.Second)})
		object.SetDeletionGracePeriodSeconds(new(*terms.GracePeriodSeconds))
	}
	switch terms.Propagation {
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
	list := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), IsPropagation)
	if finalizer != "" {
		list = append(list, finalizer)
	}
	object.SetFinalizers(list)
}

// IsPropagation reports whether the collector removes a finalizer.
func IsPropagation(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// NeedsPropagation reports whether an object is being deleted and the next step is the collector's: to orphan or delete
// the dependents.
func NeedsPropagation(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.ContainsFunc(object.GetFinalizers(), IsPropagation)
}

// DueTime is when the schedule has to look at an object that expires at a time, as resource.Registry.Due says. Zero: never.
func DueTime(object metav1.Object, expires time.Time) time.Time {
	end := object.GetDeletionTimestamp()
	switch {
	case end == nil:
		return expires
	case NeedsPropagation(object):
		// Due since the deletion was requested.
		return end.Add(-time.Duration(ptr.Deref(object.GetDeletionGracePeriodSeconds(), 0)) * time.Second)
	case len(object.GetFinalizers()) > 0:
		return time.Time{}
	case !expires.IsZero() && expires.Before(end.Time):
		return expires
	default:
		return end.Time
	}
}
