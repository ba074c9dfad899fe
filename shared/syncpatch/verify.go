package syncpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/model"
)

// verify runs the checks of the request on its result. RoundTrip evaluates the result in the other direction and
// compares with the object. Fixpoint evaluates the result of RoundTrip forward again and compares with the first
// result. Objects that are synced from the host only pass both. Source: Spec 2.8 rule 2; ADR-0013.
func (c *Checked) verify(ctx context.Context, result *Result, limits Limits) ([]model.SyncPatchCheck, error) {
	r := &c.request
	var back *Result
	if result.Error == nil && len(r.Checks) > 0 && !r.OneWay {
		var err error
		if back, err = c.leg(ctx, r.Object, result, true, limits); err != nil {
			return nil, err
		}
	}
	var answers []model.SyncPatchCheck
	for _, check := range r.Checks {
		answer := model.SyncPatchCheck{Type: check}
		switch {
		case result.Error != nil:
			answer.Reason = "the evaluation failed, so there is no result to compare"
		case r.OneWay:
			answer.Passed, answer.Reason = true, "there is no way back: "+oneWay
		case back.Error != nil:
			answer.Reason = "on the way back, " + failure(back.Error)
		case check == model.CheckRoundTrip:
			compare(&answer, r.Object, back.Object, limits, "the way back does not restore the object")
		default:
			second, err := c.leg(ctx, result.Object, back, false, limits)
			if err != nil {
				return nil, err
			}
			if second.Error != nil {
				answer.Reason = "in the second round, " + failure(second.Error)
				break
			}
			compare(&answer, result.Object, second.Object, limits, "the second round changes the object again, so the two sides would update each other forever")
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// compare adds the differences between two objects to the result of the check, as far as there is room.
func compare(answer *model.SyncPatchCheck, want, got map[string]any, limits Limits, meaning string) {
	d := differences{room: limits.Trace}
	d.compare(want, got)
	answer.Differences, answer.Passed = d.found, d.count == 0
	if answer.Passed {
		return
	}
	answer.Reason = meaning
	if omitted := d.count - len(d.found); omitted > 0 {
		answer.Reason += fmt.Sprintf("; %d more differences are not listed", omitted)
	}
}

func failure(e *model.SyncPatchError) string {
	return fmt.Sprintf("patch %d failed at %q: %s", e.Index, e.Path, e.Message)
}

// leg evaluates a result again, backward or in the direction of the request. from is the object that the result was
// made from.
func (c *Checked) leg(ctx context.Context, object map[string]any, result *Result, back bool, limits Limits) (*Result, error) {
	checked := *c
	next := &checked.request
	next.Object = result.Object
	if back {
		next.Direction = map[string]string{model.TenantToHost: model.HostToTenant, model.HostToTenant: model.TenantToHost}[next.Direction]
	}
	next.Context.VirtualObject, next.Context.HostObject = result.Object, object
	if next.Direction == model.HostToTenant {
		next.Context.VirtualObject, next.Context.HostObject = object, result.Object
	}
	next.Context.References = slices.Concat(result.References, next.Context.References)
	return evaluate(ctx, &checked, runtime.DeepCopyJSON(next.Object), limits)
}

// differences are the paths where two JSON values differ, as far as there is room.
type differences struct {
	found []model.SyncPatchDifference
	count int
	room  int64
	at    []byte
}

func (d *differences) compare(want, got any) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			d.objects(want, got)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			d.arrays(want, got)
			return
		}
	default:
		if sameScalar(want, got) {
			return
		}
	}
	d.add(encode(want), encode(got))
}

func (d *differences) objects(want, got map[string]any) {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		length := len(d.at)
		d.at = appendKey(d.at, key)
		wanted, isWanted := want[key]
		have, isThere := got[key]
		d.pair(wanted, have, isWanted, isThere)
		d.at = d.at[:length]
	}
}

func (d *differences) arrays(want, got []any) {
	for i := range max(len(want), len(got)) {
		length := len(d.at)
		d.at = strconv.AppendInt(join(d.at), int64(i), 10)
		var expected, have any
		if i < len(want) {
			expected = want[i]
		}
		if i < len(got) {
			have = got[i]
		}
		d.pair(expected, have, i < len(want), i < len(got))
		d.at = d.at[:length]
	}
}

func (d *differences) pair(want, got any, isWanted, isThere bool) {
	switch {
	case isWanted && isThere:
		d.compare(want, got)
	case isWanted:
		d.add(encode(want), nil)
	default:
		d.add(nil, encode(got))
	}
}

func (d *differences) add(want, got []byte) {
	d.count++
	if d.room -= int64(len(d.at) + len(want) + len(got)); d.room >= 0 {
		d.found = append(d.found, model.SyncPatchDifference{Path: string(d.at), Want: raw(want), Got: raw(got)})
	}
}

func encode(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}

// sameScalar compares two values; the first is not an array or an object. An int64 and a float64 of the same number are
// equal.
func sameScalar(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if a == b {
		return true
	}
	whole, isWhole := a.(int64)
	fraction, isFraction := b.(float64)
	if !isWhole {
		whole, isWhole = b.(int64)
		fraction, isFraction = a.(float64)
	}
	return isWhole && isFraction && float64(whole) == fraction
}
