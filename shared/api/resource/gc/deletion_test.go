package gc_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource/gc"
)

// Each row is a state, a delete request and the state after it. Times are seconds after the start.
// Source: Spec 2.2, 3; ADR-0009.
func TestMarkDeleted(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)
	const (
		background = metav1.DeletePropagationBackground
		foreground = metav1.DeletePropagationForeground
		orphan     = metav1.DeletePropagationOrphan
		a, o, f    = "a.b/c", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
		never      = -1
	)
	type state struct {
		end, grace int64 // never: not asked for
		generation int64
		finalizers []string
	}
	fresh := func(finalizers ...string) state { return state{never, 0, 1, finalizers} }
	for _, row := range []struct {
		about       string
		before      state
		grace       int64 // never: not given
		propagation metav1.DeletionPropagation
		at          int64
		after       state
		ended       bool
	}{
		{"at once", fresh(), never, "", 0, state{0, 0, 2, nil}, true},
		{"at once, by 0", fresh(), 0, "", 0, state{0, 0, 2, nil}, true},
		{"at once, held", fresh(a), never, "", 5, state{5, 0, 2, []string{a}}, false},
		{"with a grace period", fresh(), 60, "", 5, state{65, 60, 2, nil}, false},
		{"with a grace period, held", fresh(a), 60, "", 5, state{65, 60, 2, []string{a}}, false},

		{"pending: nothing said", state{60, 60, 2, nil}, never, "", 10, state{60, 60, 2, nil}, false},
		{"pending: the same again", state{60, 60, 2, nil}, 60, "", 10, state{60, 60, 2, nil}, false},
		{"pending: longer", state{60, 60, 2, nil}, 100, "", 10, state{60, 60, 2, nil}, false},
		{"pending: shorter", state{60, 60, 2, nil}, 30, "", 10, state{30, 30, 2, nil}, false},
		{"pending: shorter than what has passed", state{60, 60, 2, nil}, 5, "", 10, state{5, 5, 2, nil}, true},
		{"pending: at once", state{60, 60, 2, nil}, 0, "", 10, state{0, 0, 2, nil}, true},
		{"pending and held: at once", state{60, 60, 2, []string{a}}, 0, "", 10, state{0, 0, 2, []string{a}}, false},
		{"pending: the finalizers stay", state{60, 60, 2, nil}, never, foreground, 10, state{60, 60, 2, nil}, false},
		{"pending: unless the time is shortened", state{60, 60, 2, nil}, 30, foreground, 10, state{30, 30, 2, []string{f}}, false},
		{"passed and held: nothing changes", state{60, 60, 2, []string{a}}, 90, "", 70, state{60, 60, 2, []string{a}}, false},

		{"foreground", fresh(), never, foreground, 0, state{0, 0, 2, []string{f}}, false},
		{"orphan", fresh(a), never, orphan, 0, state{0, 0, 2, []string{a, o}}, false},
		{"background", fresh(a), never, background, 0, state{0, 0, 2, []string{a}}, false},
		{"as its finalizers say", fresh(o), never, "", 0, state{0, 0, 2, []string{o}}, false},
		{"whatever its finalizers say", fresh(o, a), never, foreground, 0, state{0, 0, 2, []string{a, f}}, false},
		{"background takes them away", fresh(o), never, background, 0, state{0, 0, 2, nil}, true},
		{"another way while it waits", state{0, 0, 2, []string{f, a}}, never, orphan, 9, state{0, 0, 2, []string{a, o}}, false},
		{"enough of waiting", state{0, 0, 2, []string{f}}, never, background, 9, state{0, 0, 2, nil}, true},
		{"the same way twice", state{0, 0, 2, []string{f, a}}, never, foreground, 9, state{0, 0, 2, []string{f, a}}, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			object := &metav1.ObjectMeta{Generation: row.before.generation, Finalizers: slices.Clone(row.before.finalizers)}
			if row.before.end != never {
				object.DeletionTimestamp = &metav1.Time{Time: start.Truncate(time.Second).Add(time.Duration(row.before.end) * time.Second)}
				object.DeletionGracePeriodSeconds = &row.before.grace
			}
			terms := gc.Terms{Propagation: row.propagation}
			if row.grace != never {
				terms.GracePeriodSeconds = &row.grace
			}
			now := start.Add(time.Duration(row.at) * time.Second)
			gc.MarkDeleted(object, terms, now)
			got := state{
				end:        int64(object.DeletionTimestamp.Sub(start.Truncate(time.Second)).Seconds()),
				grace:      *object.DeletionGracePeriodSeconds,
				generation: object.Generation, finalizers: object.Finalizers,
			}
			if got.end != row.after.end || got.grace != row.after.grace || got.generation != row.after.generation || !slices.Equal(got.finalizers, row.after.finalizers) {
				t.Errorf("got %+v, want %+v", got, row.after)
			}
			if ended := gc.Deleted(object, now); ended != row.ended {
				t.Errorf("ended: %v", ended)
			}
		})
	}
}
