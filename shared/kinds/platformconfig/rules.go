package platformconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// rules are the strategy of the Config. Rules for reads have a zero write.
//
// They do not compare what the configuration grants with what the caller has: a caller who may write the configuration
// decides who signs in, and so has the rights of an admin. Source: ADR-0047.
type rules struct {
	resource.GrantsNothing[*model.Config]
	current *Current
	*write
}

// Sees implements resource.Visibility: every authenticated caller may read the configuration. Source: ADR-0015.
func (r *rules) Sees(identity.Caller, *model.Config) auth.Decision {
	return auth.Decision{Allowed: true, Reason: "the configuration can be read without its secrets"}
}

// SeenBy implements resource.Visibility.
func (r *rules) SeenBy() string { return "all authenticated callers" }

// Permits implements resource.Permissions: a caller cannot write a configuration that comes from a file, or through a
// disabled endpoint.
func (r *rules) Permits(_ identity.Caller, verb, subresource string, config *model.Config) auth.Decision {
	switch {
	case verb == "get" || subresource == "history":
		return auth.Decision{Allowed: true, Reason: "it can be read"}
	case r.current.FromFile():
		return auth.Decision{Reason: reasonFile}
	case !r.operator && config.Status.DisableConfigEndpoint:
		return auth.Decision{Reason: "status.disableConfigEndpoint forbids writing through this endpoint"}
	default:
		return auth.Decision{Allowed: true, Reason: "the configuration can be written"}
	}
}

// reasonFile is the reason of a refused write of a configuration that comes from a file.
const reasonFile = "the configuration comes from a file: change that file"

// Decide decides whether a caller may use a verb on the configuration or on a subresource, as the methods of Current and
// Writer decide it for a request. It returns the errors of Get. Source: ADR-0023.
func (c *Current) Decide(ctx context.Context, caller identity.Caller, verb, subresource, namespace, name string) (auth.Decision, error) {
	return c.reader.Decide(ctx, caller, verb, subresource, namespace, name)
}

// Default removes the conditions, which belong to the platform, and the secrets in the manifest that kubectl apply stores.
// The defaults of fields are never stored: Observe shows them.
func (r *rules) Default(_ identity.Caller, config, _ *model.Config) {
	config.Status.Conditions = nil
	r.readAnnotations(config)
	markManifest(config)
}

// Validate returns a problem for each rule that the configuration breaks, as it is written or with its placeholders
// replaced.
func (r *rules) Validate(config, _ *model.Config) field.ErrorList {
	var problems field.ErrorList
	for _, name := range setNames(
		option{"finalizers", len(config.Finalizers) > 0}, option{"generateName", config.GenerateName != ""},
		option{"ownerReferences", len(config.OwnerReferences) > 0},
	) {
		problems = append(problems, field.Forbidden(field.NewPath("metadata", name), "must not be set: the configuration has a fixed name and is never deleted"))
	}
	problems = append(problems, r.validateAnnotations(config)...)
	status := field.NewPath("status")
	statusProblems := append(validate(&config.Status, status), r.current.loader.validatePlaceholders(&config.Status, status)...)
	if len(statusProblems) > 0 {
		return append(problems, statusProblems...)
	}
	if _, _, err := r.current.loader.effective(&config.Status); err != nil {
		problems = append(problems, field.Invalid(status, field.OmitValueType{}, err.Error()))
	}
	return problems
}

// Authorize refuses nothing: callers who may write the configuration may write all of it. Only placeholders need more, which
// the store of the write checks.
func (r *rules) Authorize(identity.Caller, *model.Config, *model.Config) field.ErrorList { return nil }

// Seal brings the configuration into its stored form: secrets are sealed, and defaults that the client repeats are removed.
// A rollback keeps them, because the earlier revision may have had them.
func (r *rules) Seal(config *model.Config, stored store.Record) (resource.Sealed[*model.Config], field.ErrorList) {
	status := field.NewPath("status")
	earlier, err := unmarshalStored(stored.Object)
	if err != nil {
		return resource.Sealed[*model.Config]{}, field.ErrorList{field.InternalError(status, err)}
	}
	result := seal(&config.Status, &earlier.Status, r.ring, status)
	problems := result.problems
	r.placeholders = result.placeholders
	if r.rolledBackTo == "" {
		if err := reopen(&config.Status, &earlier.Status); err != nil {
			problems = append(problems, field.InternalError(status, err))
		}
	}
	return resource.Sealed[*model.Config]{}, problems
}

// Index returns zero values: the configuration has no owner and never expires.
func (r *rules) Index(*model.Config, time.Time) (string, time.Time) { return "", time.Time{} }

// Observe brings the configuration into the form that the API shows: with defaults, marks and conditions.
func (r *rules) Observe(config *model.Config, stored store.Record) {
	config.Status.Conditions = nil
	if stored.Name == "" {
		return
	}
	hide(&config.Status)
	setDefaults(&config.Status)
	config.Status.Conditions = r.current.Conditions()
}

// Warn returns the effects of the write on callers, the connectors at which users cannot sign in, scripts, which no page
// runs, and the time after which the write is taken back unless it is confirmed.
func (r *rules) Warn(config *model.Config) []string {
	warnings := append(slices.Clone(r.warnings), signInWarnings(&config.Status, r.current.Now())...)
	if ui := config.Status.UISettings; ui != nil && len(ui.CustomJavaScript) > 0 {
		warnings = append(warnings, "status.uiSettings.customJavaScript: ignored, because its authors would act as everybody who opens the console")
	}
	if within, exists := config.Annotations[model.ConfirmWithinAnnotation]; exists {
		warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: this write, and those before it that nobody has confirmed, are taken back after %s "+
			"unless the annotation is removed", model.ConfirmWithinAnnotation, within))
	}
	return warnings
}

// EncodeStored implements resource.StorageFormat.
func (r *rules) EncodeStored(config *model.Config) ([]byte, error) { return marshalStored(config) }

// DecodeStored implements resource.StorageFormat.
func (r *rules) DecodeStored(stored []byte) (*model.Config, error) { return unmarshalStored(stored) }

// RemoveObserved implements resource.StorageFormat: an apply sees marks, like every client, but no defaults, which no
// manager owns.
func (r *rules) RemoveObserved(config *model.Config) { hide(&config.Status) }

// markManifest puts marks in place of the secrets in the manifest that kubectl apply stores in an annotation. It removes a
// manifest that is not a valid configuration, because such a manifest may contain secrets.
func markManifest(config *model.Config) {
	manifest, ok := config.Annotations[model.LastAppliedAnnotation]
	if !ok {
		return
	}
	marked, ok := concealManifest(manifest)
	if !ok || !resource.EditApplied(config, func(fields map[string]any) (changed bool) { return putMarks(fields, marked) }) {
		delete(config.Annotations, model.LastAppliedAnnotation)
	}
}

// concealManifest returns the fields of a manifest, with marks in place of secrets. It returns false if the manifest is not a
// valid configuration.
func concealManifest(manifest string) (fields map[string]any, ok bool) {
	config := &model.Config{}
	if _, err := codec.Decode(codec.Body{JSON: []byte(manifest)}, config, codec.Strict); err != nil {
		return nil, false
	}
	conceal(&config.Status)
	text, err := json.Marshal(config)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil, false
	}
	return fields, true
}

// putMarks replaces texts in an object or a list by the marks that another object or list has in the same places, and
// reports whether it replaced any.
func putMarks(fields, marked any) (changed bool) {
	put := func(value, mark any) (any, bool) {
		text, isText := value.(string)
		if markText, ok := mark.(string); ok && isText && markText != text && strings.Contains(markText, secret.Mark) {
			return mark, true
		}
		return value, putMarks(value, mark)
	}
	switch fields := fields.(type) {
	case map[string]any:
		marks, _ := marked.(map[string]any)
		for name := range fields {
			value, replaced := put(fields[name], marks[name])
			fields[name], changed = value, changed || replaced
		}
	case []any:
		marks, _ := marked.([]any)
		for i := range fields[:min(len(fields), len(marks))] {
			value, replaced := put(fields[i], marks[i])
			fields[i], changed = value, changed || replaced
		}
	}
	return changed
}

// reopen removes defaults from next that the client only repeats: fields that are absent in old, and that next has with the
// shown default. So a resource request still follows its limit when the limit changes. Both are in stored form. Source:
// ADR-0015.
func reopen(next, old *model.ConfigStatus) error {
	defaulted := old.DeepCopy()
	setDefaults(defaulted)
	if reflect.DeepEqual(defaulted, old) {
		return nil
	}
	var trees [3]map[string]any
	for i, status := range []*model.ConfigStatus{next, defaulted, old} {
		// This converter, unlike encoding/json, keeps the text of secrets.
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			return fmt.Errorf("comparing with the defaults: %w", err)
		}
		trees[i] = tree
	}
	if !prune(trees[0], trees[1], trees[2]) {
		return nil
	}
	text, err := json.Marshal(trees[0])
	if err != nil {
		return fmt.Errorf("comparing with the defaults: %w", err)
	}
	*next = model.ConfigStatus{}
	if _, err := codec.Decode(codec.Body{JSON: text}, next, codec.Ignore); err != nil {
		return fmt.Errorf("comparing with the defaults: %w", err)
	}
	return nil
}

// prune replaces each field of next that has the value of defaulted by the field of old, and removes it if old does not have
// it. It reports whether it changed next.
func prune(next, defaulted, old map[string]any) bool {
	changed := false
	for name, value := range next {
		defaultedValue, isDefaulted := defaulted[name]
		oldValue, isInOld := old[name]
		inner, isObject := value.(map[string]any)
		defaultedInner, isDefaultedObject := defaultedValue.(map[string]any)
		list, isList := value.([]any)
		switch {
		case !isDefaulted:
		case reflect.DeepEqual(value, defaultedValue):
			if reflect.DeepEqual(oldValue, defaultedValue) {
				continue
			}
			if isInOld {
				next[name] = oldValue
			} else {
				delete(next, name)
			}
			changed = true
		case isObject && isDefaultedObject:
			oldInner, _ := oldValue.(map[string]any)
			changed = prune(inner, defaultedInner, oldInner) || changed
			if !isInOld && len(inner) == 0 {
				delete(next, name)
			}
		case isList && isInOld:
			// An entry that the client repeats is the stored entry, even at another position.
			defaultedList, _ := defaultedValue.([]any)
			oldList, _ := oldValue.([]any)
			for i, entry := range list {
				index := slices.IndexFunc(defaultedList, func(shown any) bool { return reflect.DeepEqual(entry, shown) })
				if index >= 0 && index < len(oldList) && !reflect.DeepEqual(entry, oldList[index]) {
					list[i] = oldList[index]
					changed = true
				}
			}
		}
	}
	return changed
}
