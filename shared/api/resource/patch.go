package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// PatchType is the media type of a patch.
type PatchType string

// The patch types. Strategic merge is for types with merge keys, which resources here do not have.
const (
	JSONPatch  PatchType = "application/json-patch+json"
	MergePatch PatchType = "application/merge-patch+json"
	ApplyPatch PatchType = "application/apply-patch+yaml"
)

// PatchTypes are the supported ones, in the order in which an error names them.
var PatchTypes = []PatchType{JSONPatch, MergePatch, ApplyPatch}

// PatchInput is a request to change a part of one object.
type PatchInput struct {
	Caller          identity.Caller
	Namespace, Name string
	// Prefetched is as in UpdateInput.
	Prefetched map[string]store.Record
	Type       PatchType
	// Patch is the patch document, valid UTF-8.
	Patch []byte
	// Validation says what becomes of unknown fields in the patched object.
	Validation codec.Strictness
	// Manager owns the fields that are changed. Empty: unknown. An apply needs one.
	Manager string
	// Force lets an apply take over the fields of other managers.
	Force bool
	// MayCreate returns an error when the caller may not create the object of an apply to an absent name. Nil: callers
	// may.
	MayCreate func() error
	// DryRun does everything but the write.
	DryRun bool
	// Status is as in UpdateInput. An apply to the status of an absent object creates nothing.
	Status bool
}

// target is the object of a patch.
func (in PatchInput) target() target {
	return target{
		caller: in.Caller, namespace: in.Namespace, name: in.Name, prefetched: in.Prefetched,
		manager: in.Manager, dryRun: in.DryRun, status: in.Status,
	}
}

// Patch changes an object and returns it as stored. An apply to an absent name creates the object, unless it is an
// apply to the status. A patch without a resourceVersion is applied again when others write in between.
//
// Errors: the errors of Update; BadRequest for a patch that cannot be read; RequestEntityTooLarge for more than
// 10,000 operations; Invalid for one that cannot be applied, such as a test that fails.
// Conflict with a cause for each field of an apply that another manager owns.
// Source: Spec 4 row 7; ADR-0004, ADR-0008.
func Patch[T Object](ctx context.Context, r *Registry[T], in PatchInput) (Result[T], error) {
	if in.Type == ApplyPatch {
		return r.apply(ctx, in)
	}
	var duplicates []string
	if in.Type == MergePatch {
		var fields map[string]any
		var err error
		if duplicates, err = codec.Decode(codec.Body{JSON: in.Patch}, &fields, in.Validation); err != nil {
			return Result[T]{}, err
		}
	}
	apply, err := ParsePatch(in.Type, in.Patch)
	if err != nil {
		return Result[T]{}, err
	}
	result, err := r.rewrite(ctx, in.target(), r.updatedBy(in.Manager, in.Status), func(current T, record store.Record) (T, []string, error) {
		var none T
		text, err := r.answerText(current, record)
		if err != nil {
			return none, nil, fmt.Errorf("encoding %s %q: %w", r.Definition.GroupResource(), in.Name, err)
		}
		if err := ctx.Err(); err != nil {
			return none, nil, err
		}
		patched, err := apply(text)
		if err != nil {
			return none, nil, err
		}
		object, warnings, err := r.Definition.ReadBody(codec.Body{JSON: patched}, in.Validation)
		if err != nil {
			return none, nil, err
		}
		// A patch that does not change the resourceVersion is unconditional.
		if object.GetResourceVersion() == current.GetResourceVersion() {
			object.SetResourceVersion("")
		}
		return object, warnings, nil
	})
	result.Warnings = append(duplicates, result.Warnings...)
	return result, err
}

// ReadBody returns the object that a client sent, with warnings for its reader. Errors: the errors of codec.Decode, or of
// the definition's own DecodeBody; BadRequest for another kind or API version.
func (d *Definition[T]) ReadBody(body codec.Body, strictness codec.Strictness) (object T, warnings []string, err error) {
	if d.DecodeBody != nil {
		object, err = d.DecodeBody(body)
	} else {
		object = d.New()
		warnings, err = codec.Decode(body, object, strictness)
	}
	if err != nil {
		var none T
		return none, nil, err
	}
	return object, warnings, d.CheckKind(object)
}

// CheckKind refuses an object of another kind or API version. Both may be left out: the endpoint implies
// them. Source: Spec 2.1, 7.
func (d *Definition[T]) CheckKind(object T) error {
	return codec.CheckKind(object, d.GroupVersionKind())
}

// ParsePatch reads a patch document and returns what applies it to the JSON of an object. Errors: those that Patch says of
// a patch, UnsupportedMediaType among them.
func ParsePatch(kind PatchType, document []byte) (func([]byte) ([]byte, error), error) {
	switch kind {
	case JSONPatch:
		patch, err := decodeJSONPatch(document)
		if err != nil {
			return nil, err
		}
		return func(text []byte) ([]byte, error) { return applyJSONPatch(patch, text) }, nil
	case MergePatch:
		if err := codec.Bounded(document); err != nil {
			return nil, err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(document, &fields); err != nil || fields == nil {
			return nil, apierror.BadRequest("the merge patch is not a JSON object", nil).Because(err)
		}
		return func(text []byte) ([]byte, error) { return applyMergePatch(document, text) }, nil
	default:
		offers := make([]string, len(PatchTypes))
		for i, offer := range PatchTypes {
			offers[i] = string(offer)
		}
		return nil, apierror.UnsupportedMediaType(string(kind), strings.Join(offers, ", "))
	}
}

// applyMergePatch applies a merge patch. The library for JSON patches would parse each level of the patch anew.
// Source: RFC 7396.
func applyMergePatch(document, text []byte) ([]byte, error) {
	var trees [2]any
	for i, each := range [][]byte{text, document} {
		decoder := json.NewDecoder(bytes.NewReader(each))
		decoder.UseNumber()
		if err := decoder.Decode(&trees[i]); err != nil {
			return nil, apierror.BadRequest("the merge patch could not be applied: "+err.Error(), nil)
		}
	}
	return json.Marshal(applyMergePatchTo(trees[0], trees[1]))
}

// applyMergePatchTo returns a value with a merge patch applied. It changes the value.
func applyMergePatchTo(value, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		object = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(object, name)
		} else {
			object[name] = applyMergePatchTo(object[name], change)
		}
	}
	return object
}

func decodeJSONPatch(document []byte) (jsonpatch.Patch, error) {
	if err := codec.BoundedPatch(document); err != nil {
		return nil, err
	}
	// The operations are counted before they are read one by one.
	var operations []json.RawMessage
	if err := json.Unmarshal(document, &operations); err != nil || operations == nil {
		return nil, apierror.BadRequest("the JSON patch is not a list of operations", nil).Because(err)
	}
	if len(operations) > limits.PatchOperations {
		return nil, apierror.TooLarge(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", limits.PatchOperations, len(operations)))
	}
	// The library's own decoder says less about what is wrong, and quotes the operation, which may hold a secret.
	patch := make(jsonpatch.Patch, len(operations))
	for i, text := range operations {
		if err := json.Unmarshal(text, &patch[i]); err != nil || patch[i] == nil {
			return nil, wrongOperation(i, "must be an object")
		}
		if err := checkOperation(patch[i]); err != nil {
			return nil, wrongOperation(i, err.Error())
		}
	}
	return patch, nil
}

func wrongOperation(index int, why string) error {
	return apierror.BadRequest(fmt.Sprintf("operation %d of the JSON patch: %s", index, why),
		field.ErrorList{field.Invalid(field.NewPath("patch").Index(index), field.OmitValueType{}, why)})
}

// checkOperation refuses what RFC 6902 does not define, before anything is applied.
func checkOperation(operation jsonpatch.Operation) error {
	kind := operation.Kind()
	pointers := []string{"path"}
	switch kind {
	case "add", "replace", "test":
		if _, ok := operation["value"]; !ok {
			return fmt.Errorf("%q needs a value", kind)
		}
	case "move", "copy":
		pointers = append(pointers, "from")
	case "remove":
	default:
		return fmt.Errorf("unknown op %q; use add, remove, replace, move, copy or test", kind)
	}
	for _, name := range pointers {
		var pointer *string
		raw, ok := operation[name]
		if !ok || raw == nil || json.Unmarshal(*raw, &pointer) != nil || pointer == nil {
			return fmt.Errorf("%q needs a %s that is a string", kind, name)
		}
		if *pointer != "" && (*pointer)[0] != '/' {
			return fmt.Errorf("%s %q is no JSON pointer: it must begin with a slash", name, *pointer)
		}
	}
	return nil
}

func applyJSONPatch(patch jsonpatch.Patch, text []byte) ([]byte, error) {
	text, err := withMetadataMaps(patch, text)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	options.AccumulatedCopySizeLimit = limits.BodyBytes
	patched, err := patch.ApplyWithOptions(text, options)
	if limit, ok := errors.AsType[*jsonpatch.AccumulatedCopySizeError](err); ok {
		return nil, apierror.TooLarge(limit.Error())
	}
	if err != nil {
		// The library formats a cause that is absent.
		return nil, apierror.Unprocessable("the JSON patch could not be applied: " + strings.TrimSuffix(err.Error(), ": %!w(<nil>)"))
	}
	return patched, nil
}

// withMetadataMaps returns the text with empty metadata.annotations and metadata.labels where the patch
// begins by adding an entry to a map that the object does not have. The specification's own example
// relies on it. Source: Spec 4 row 7; ADR-0004.
func withMetadataMaps(patch jsonpatch.Patch, text []byte) ([]byte, error) {
	var missing []string
	for _, name := range []string{"annotations", "labels"} {
		for _, operation := range patch {
			path, err := operation.Path()
			if err != nil || path != "/metadata/"+name && !strings.HasPrefix(path, "/metadata/"+name+"/") {
				continue
			}
			if operation.Kind() == "add" && path != "/metadata/"+name {
				missing = append(missing, name)
			}
			break
		}
	}
	if len(missing) == 0 {
		return text, nil
	}
	var object map[string]json.RawMessage
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("reading the object to patch: %w", err)
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("reading the metadata to patch: %w", err)
	}
	for _, name := range missing {
		if _, there := metadata[name]; !there {
			metadata[name] = json.RawMessage("{}")
		}
	}
	changed, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("adding metadata maps: %w", err)
	}
	object["metadata"] = changed
	return json.Marshal(object)
}
