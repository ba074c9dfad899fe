package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// maxApplies bounds how often an apply starts over because its object disappears and reappears.
const maxApplies = 3

// application is an apply request after parsing.
type application struct {
	// fields are exactly those that the manager wants to own.
	fields map[string]any
	// writeOnly are the fields that are written and not stored, as JSON. Nil: there are none.
	writeOnly []byte
	// meta is the metadata among them.
	meta     metav1.ObjectMeta
	warnings []string
}

// apply merges the fields of an apply into the object, or creates the object. Source: Spec 2.2; ADR-0008.
func (r *Registry[T]) apply(ctx context.Context, in PatchInput) (Result[T], error) {
	applied, err := r.readApplication(in)
	if err != nil {
		return Result[T]{}, err
	}
	for attempt := 1; ; attempt++ {
		result, err := r.rewrite(ctx, in.target(), keepOwners[T], func(current T, record store.Record) (T, []string, error) {
			if err := ctx.Err(); err != nil {
				return current, nil, err
			}
			live, err := r.withoutObserved(current.DeepCopyObject().(T), record)
			if err != nil {
				return live, nil, err
			}
			object, err := r.merge(live, applied, in)
			return object, nil, err
		})
		// The next attempt reads the object anew.
		in.Prefetched = nil
		if apierrors.IsNotFound(err) && !in.Status {
			result, err = r.applyNew(ctx, in, applied)
			if errors.Is(err, store.ErrExists) && attempt < maxApplies {
				continue
			}
		}
		result.Warnings = append(applied.warnings, result.Warnings...)
		return result, err
	}
}

// applyNew creates the object of an apply. The manager owns the applied fields; the fields that the server fills in have no owner.
func (r *Registry[T]) applyNew(ctx context.Context, in PatchInput, applied *application) (Result[T], error) {
	if in.MayCreate != nil {
		if err := in.MayCreate(); err != nil {
			return Result[T]{}, err
		}
	}
	switch {
	case applied.meta.Name == "":
		const why = "a new object needs its name in the object to apply"
		return Result[T]{}, apierror.BadRequest("metadata.name: "+why, field.ErrorList{field.Required(field.NewPath("metadata", "name"), why)})
	case applied.meta.UID != "":
		return Result[T]{}, apierror.Conflict(r.Definition.GroupResource(), in.Name, fmt.Sprintf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", applied.meta.UID))
	case applied.meta.ResourceVersion != "":
		return Result[T]{}, apierror.Modified(r.Definition.GroupResource(), in.Name)
	}
	object, err := r.merge(r.emptyObject(), applied, in)
	if err != nil {
		return Result[T]{}, err
	}
	entries := object.GetManagedFields()
	draft, err := r.prepare(ctx, CreateInput[T]{
		Caller: in.Caller, Namespace: in.Namespace, Object: object, Manager: in.Manager, DryRun: in.DryRun,
	}, func(object, _ T) error {
		object.SetManagedFields(entries)
		return nil
	}, "")
	if err != nil {
		return Result[T]{}, err
	}
	return draft.Store(ctx)
}

// withoutObserved is the object that an apply is merged into.
func (r *Registry[T]) withoutObserved(current T, record store.Record) (T, error) {
	if r.Format == nil {
		return current, nil
	}
	restored, err := r.Parse(record)
	if err != nil {
		return restored, err
	}
	object := restored.DeepCopyObject().(T)
	object.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	object.SetResourceVersion(current.GetResourceVersion())
	r.Format.RemoveObserved(object)
	return object, nil
}

// merge is the object with what is applied to it.
func (r *Registry[T]) merge(current T, applied *application, in PatchInput) (T, error) {
	var none T
	fields, err := r.fieldManager(in.Status)
	if err != nil {
		return none, err
	}
	merged, err := fields.Apply(current, runtime.DeepCopyJSON(applied.fields), in.Manager, in.Force, r.Now())
	if err != nil {
		return none, err
	}
	object, ok := merged.(T)
	if !ok {
		return none, fmt.Errorf("applying to %s %q made a %T", r.Definition.GroupResource(), in.Name, merged)
	}
	if applied.writeOnly != nil {
		if err := json.Unmarshal(applied.writeOnly, object); err != nil {
			return none, fmt.Errorf("applying to %s %q: %w", r.Definition.GroupResource(), in.Name, err)
		}
	}
	// An apply without a resourceVersion is unconditional.
	object.SetResourceVersion(applied.meta.ResourceVersion)
	return object, nil
}

// readApplication parses the body of an apply: one YAML document; JSON is YAML too.
func (r *Registry[T]) readApplication(in PatchInput) (*application, error) {
	fields, err := r.fieldManager(in.Status)
	switch {
	case err != nil:
		return nil, err
	case fields == nil:
		return nil, fmt.Errorf("applying to %s: the registry is not managed", r.Definition.GroupResource())
	case in.Manager == "":
		return nil, apierror.BadRequest("an apply needs a field manager", nil)
	}
	media := codec.YAML
	if text := bytes.TrimSpace(in.Patch); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		media = codec.JSON
	}
	body, err := codec.Read(media, in.Patch)
	if err != nil {
		return nil, err
	}
	applied := &application{}
	object, warnings, err := r.Definition.ReadBody(body, in.Validation)
	if err != nil {
		return nil, err
	}
	applied.warnings = warnings
	// An apply to the status may repeat the whole object.
	if problems := boundMetadata(object, nil); len(problems) > 0 {
		return nil, r.invalid(in.Name, problems)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body.JSON, &applied.fields); err != nil {
		return nil, apierror.BadRequest("the body could not be read: "+err.Error(), nil)
	}
	var missing field.ErrorList
	for _, name := range []string{"apiVersion", "kind"} {
		if value, _ := applied.fields[name].(string); value == "" {
			missing = append(missing, field.Required(field.NewPath(name), "an object to apply needs one"))
		}
	}
	if len(missing) > 0 {
		return nil, apierror.BadRequest(apierror.Summary(missing), missing)
	}
	if name := object.GetName(); name != "" && name != in.Name {
		return nil, mismatchError("name", name, fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", name, in.Name))
	}
	if object.GetManagedFields() != nil {
		return nil, apierror.BadRequest("metadata.managedFields must be nil", field.ErrorList{
			field.Forbidden(field.NewPath("metadata", "managedFields"), "must not be applied"),
		})
	}
	applied.meta = metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}
	fields.Prune(applied.fields)
	applied.writeOnly, err = takeOut(applied.fields, r.Definition.WriteOnly)
	return applied, err
}

// takeOut removes the values at some paths from fields, and returns them as the JSON of an object. Nil: there were
// none. Merging would otherwise lose them when the manager stops owning their parent.
func takeOut(fields map[string]any, paths [][]string) ([]byte, error) {
	taken := map[string]any{}
	for _, path := range paths {
		value, found, err := unstructured.NestedFieldNoCopy(fields, path...)
		if err != nil || !found {
			continue
		}
		unstructured.RemoveNestedField(fields, path...)
		if err := unstructured.SetNestedField(taken, value, path...); err != nil {
			return nil, fmt.Errorf("reading %s: %w", strings.Join(path, "."), err)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	return json.Marshal(taken)
}
