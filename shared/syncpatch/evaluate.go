package syncpatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch/expression"
)

// change is the effect of a patch on one value.
type change struct {
	value  any
	remove bool
	// skip reports whether the patch does nothing; reason says why.
	skip   bool
	reason string
}

func skipChange(reason string) change { return change{skip: true, reason: reason} }

// Evaluate applies the patches of a request to its object. If a patch fails, the result has an Error and the original
// object. The only error that Evaluate itself returns is the error of ctx. The limits of time and size are enforced
// between paths, and within expressions between the operations of the interpreter. Limits.Memory is not enforced here.
// Evaluate is safe for concurrent use. Source: Spec 2.8; ADR-0013.
func Evaluate(ctx context.Context, checked *Checked, limits Limits) (*Result, error) {
	return checked.evaluate(ctx, limits, false)
}

// EvaluateInPlace is Evaluate for a caller that no longer needs the object of the request: the object is changed, not
// copied, unless the request has checks, which compare with it. With an Error, the object of the result is not usable.
func EvaluateInPlace(ctx context.Context, checked *Checked, limits Limits) (*Result, error) {
	return checked.evaluate(ctx, limits, len(checked.request.Checks) == 0)
}

func (c *Checked) evaluate(ctx context.Context, limits Limits, inPlace bool) (*Result, error) {
	limits = limits.WithDefaults()
	tooLong := limits.Exceeded(expression.LimitTotal)
	within, cancel := context.WithTimeoutCause(ctx, limits.Object, tooLong)
	defer cancel()
	object := c.request.Object
	if !inPlace {
		object = runtime.DeepCopyJSON(object)
	}
	result, err := evaluate(within, c, object, limits)
	if err != nil {
		return nil, err
	}
	result.Checks, err = c.verify(within, result, limits)
	return result, err
}

// evaluation is the evaluation of the patches in one direction.
type evaluation struct {
	checked    *Checked
	limits     Limits
	machine    *expression.Machine
	references *references
	labels     *labels
	object     any
	// grown is the number of bytes of JSON that the patches have added to the object.
	grown int64
	// traced is the size of the trace in bytes.
	traced int64
	result *Result
}

// evaluate evaluates in one direction, and changes the object. It returns the error of ctx, unless ctx ended because of
// Limits.Object.
func evaluate(ctx context.Context, checked *Checked, object map[string]any, limits Limits) (*Result, error) {
	request := &checked.request
	machine := expression.NewMachine(limits.expressions(), checked.globals())
	e := &evaluation{
		checked: checked, limits: limits, machine: machine,
		object: object,
		result: &Result{Object: request.Object, Patches: make([]model.SyncPatchTrace, len(request.Patches))},
	}
	for i := range request.Patches {
		trace := &e.result.Patches[i]
		*trace = model.SyncPatchTrace{Index: int32(i), Path: request.Patches[i].Path, Outcome: model.PatchSkipped}
		switch {
		case request.Disabled != "":
			trace.Reason = request.Disabled
		case e.result.Error != nil:
			trace.Reason = fmt.Sprintf("patch %d failed", e.result.Error.Index)
		default:
			if err := e.patch(ctx, &checked.patches[i], trace); err != nil {
				return nil, err
			}
		}
		if trace.Outcome == model.PatchSkipped && len(trace.Matches) == 0 {
			trace.Matches = []model.SyncPatchMatch{{Path: trace.Path, Outcome: trace.Outcome, Reason: trace.Reason}}
		}
	}
	if e.references != nil {
		e.result.References = e.references.found
	}
	if e.result.Error != nil {
		e.result.References = nil
		return e.result, nil
	}
	e.result.Object, _ = e.object.(map[string]any)
	return e.result, nil
}

// patch applies one patch at every match of its path.
func (e *evaluation) patch(ctx context.Context, patch *patch, trace *model.SyncPatchTrace) error {
	rule, idle := e.rule(patch)
	if rule == nil {
		trace.Reason = idle
		return nil
	}
	w := walk{path: patch.path}
	var failedAt string
	progress := progressOf(ctx)
	w.visit = func(at string, value any) (any, bool, error) {
		failedAt = at
		progress(Place{Patch: int(trace.Index), Path: at})
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return e.match(rule, trace, at, value)
	}
	object, remove, err := w.run(e.object)
	if _, isObject := object.(map[string]any); err == nil && (remove || !isObject) {
		err = newValueError("the empty path is the whole object, which must stay an object")
		if len(trace.Matches) > 0 {
			trace.Matches[0].Outcome, trace.Matches[0].Reason = model.PatchFailed, err.Error()
		}
	}
	if err != nil {
		return e.fail(err, trace, failedAt)
	}
	e.object = object
	if trace.Outcome == model.PatchSkipped && trace.Reason == "" {
		trace.Reason = nothingMatches(&w, &e.checked.request)
	}
	return nil
}

// rule returns the effect of a patch on a value, or the reason why it does nothing in this direction.
func (e *evaluation) rule(patch *patch) (rule func(concretePath string, value any) (change, error), idle string) {
	toTenant := e.checked.request.Direction == model.HostToTenant
	switch {
	case patch.reference != nil:
		if e.references == nil {
			e.references = newReferences(&e.checked.request, e.checked.names)
		}
		return func(_ string, value any) (change, error) { return e.references.rewrite(patch.reference, value) }, ""
	case patch.labels:
		if e.checked.names.multi {
			return nil, "labels are the same on both sides in multi-namespace mode"
		}
		if e.labels == nil {
			e.labels = newLabels(e.checked.names, namespaceInTenant(&e.checked.request), toTenant)
		}
		return func(_ string, value any) (change, error) { return e.labels.rewrite(value) }, ""
	}
	compiled := patch.forward
	if toTenant {
		compiled = patch.backward
	}
	switch {
	case compiled == nil && toTenant:
		return nil, "the patch has no reverseExpression, so it does nothing from host to tenant"
	case compiled == nil:
		return nil, "the patch has no expression, so it does nothing from tenant to host"
	}
	return func(at string, value any) (change, error) {
		result, remove, err := e.machine.Run(compiled, value, true, at)
		if failed := (*expression.Error)(nil); errors.As(err, &failed) && e.lacksVCluster(compiled, failed) {
			failed.Message += vclusterHint
		}
		return change{value: result, remove: remove, reason: "the expression returned the value unchanged"}, err
	}, ""
}

// vclusterHint is added to the error of an expression that was written for the other naming.
const vclusterHint = "; use context.tenant, or the naming vcluster, which has context.vcluster; context also has hostObject, virtualObject and path"

// lacksVCluster reports whether an expression may have failed because context.vcluster is undefined.
func (e *evaluation) lacksVCluster(compiled *expression.Expression, failed *expression.Error) bool {
	return !e.checked.names.vcluster && compiled.Mentions("context.vcluster") && strings.Contains(failed.Message, "of undefined")
}

// match applies a rule at one path and records it in the trace.
func (e *evaluation) match(rule func(string, any) (change, error), trace *model.SyncPatchTrace, concretePath string, value any) (any, bool, error) {
	m := model.SyncPatchMatch{Path: concretePath}
	if concretePath == "metadata.name" || concretePath == "metadata.namespace" {
		m.Outcome, m.Reason = model.PatchSkipped, identityStays
		e.trace(trace, m, nil, nil)
		return value, false, nil
	}
	before, err := json.Marshal(value)
	if err != nil {
		return nil, false, err
	}
	var after []byte
	c, err := rule(concretePath, value)
	if err == nil && !c.skip && !c.remove {
		if after, err = json.Marshal(c.value); err == nil {
			e.grown += int64(len(after) - len(before))
		}
	}
	if err == nil && e.grown > e.limits.Result {
		err = e.limits.Exceeded(expression.LimitResult)
	}
	switch {
	case err != nil:
		m.Outcome, m.Reason = model.PatchFailed, err.Error()
		e.trace(trace, m, before, nil)
		return nil, false, err
	case c.skip:
		m.Outcome, m.Reason = model.PatchSkipped, c.reason
		c.value, after = value, before
	case c.remove:
		m.Outcome = model.PatchDeleted
		e.grown -= int64(len(before))
	case bytes.Equal(before, after):
		m.Outcome, m.Reason = model.PatchUnchanged, c.reason
	default:
		m.Outcome = model.PatchApplied
	}
	e.trace(trace, m, before, after)
	return c.value, c.remove, nil
}

// ranks order the outcomes of matches. A patch has the outcome of its highest match.
var ranks = map[string]int{
	model.PatchSkipped: 1, model.PatchUnchanged: 2, model.PatchDeleted: 3, model.PatchApplied: 4, model.PatchFailed: 5,
}

// trace adds a match to the trace of its patch, if there is room.
func (e *evaluation) trace(trace *model.SyncPatchTrace, m model.SyncPatchMatch, before, after []byte) {
	if first := len(trace.Matches) == 0 && trace.OmittedMatches == 0; first || ranks[m.Outcome] > ranks[trace.Outcome] {
		trace.Outcome, trace.Reason = m.Outcome, m.Reason
	}
	if e.traced += int64(len(m.Path) + len(m.Reason)); e.traced > e.limits.Trace {
		trace.OmittedMatches++
		return
	}
	if e.traced+int64(len(before)+len(after)) <= e.limits.Trace {
		e.traced += int64(len(before) + len(after))
		m.Before, m.After = raw(before), raw(after)
	}
	trace.Matches = append(trace.Matches, m)
}

// raw returns a text of JSON, or nil for nil.
func raw(text []byte) *model.JSON {
	if text == nil {
		return nil
	}
	return &model.JSON{Raw: text}
}

// fail ends the evaluation with the error of a patch, and returns any other error.
func (e *evaluation) fail(err error, trace *model.SyncPatchTrace, concretePath string) error {
	var unsuitable *valueError
	var failed *expression.Error
	switch {
	case errors.As(err, &unsuitable):
		failed = &expression.Error{}
	case !errors.As(err, &failed):
		return err
	}
	trace.Outcome, trace.Reason = model.PatchFailed, err.Error()
	e.result.Error = &model.SyncPatchError{
		Index: trace.Index, Path: concretePath, Message: err.Error(), Line: int32(failed.Line), Column: int32(failed.Column),
	}
	return nil
}

// valueError says why a patch cannot use a value.
type valueError struct{ message string }

func (e *valueError) Error() string { return e.message }

func newValueError(format string, args ...any) error {
	return &valueError{fmt.Sprintf(format, args...)}
}

type progressKey struct{}

// Place is the point that a check or an evaluation has reached.
type Place struct {
	// Reading is the field whose text is parsed. Empty means that the patches are evaluated.
	Reading string
	// Data reports whether the text is no expression, so that only the time of the object counts.
	Data bool
	// Patch and Path are the patch and the concrete path that are evaluated.
	Patch int
	Path  string
}

// WithProgress returns a context in which a check and an evaluation report each place before they work there. A caller
// that ends them from outside can then name the place.
func WithProgress(ctx context.Context, progress func(Place)) context.Context {
	return context.WithValue(ctx, progressKey{}, progress)
}

func progressOf(ctx context.Context) func(Place) {
	if progress, ok := ctx.Value(progressKey{}).(func(Place)); ok {
		return progress
	}
	return func(Place) {}
}

func readingOf(ctx context.Context) func(field string, data bool) {
	progress := progressOf(ctx)
	return func(field string, data bool) { progress(Place{Reading: field, Data: data}) }
}
