package platformconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// maxDocument is the largest configuration, as it is stored: every function reads it.
	maxDocument = 256 << 10
	// maxConflicts is how often a write that insists on no resourceVersion is tried against a newer configuration.
	maxConflicts = 32
)

// Written is what a write of the configuration answers.
type Written = resource.Result[*model.Config]

// Update replaces the configuration, and returns it as the API shows it. A mark in place of a secret keeps the
// secret. What the request repeats of the defaults stays open.
//
// Errors: NotFound for another name; Forbidden where the endpoint is disabled or a file holds the configuration;
// Conflict when resourceVersion or uid are not the current ones; Invalid with a cause for each field that breaks a
// rule; ServiceUnavailable when the state or the key for secrets is away. On any error nothing is stored.
// Source: Spec 2.7; ADR-0015.
func (s *Source) Update(ctx context.Context, in resource.UpdateInput[*model.Config]) (Written, error) {
	return s.write(ctx, in.Caller, in.Name, in.DryRun, func(*model.Config) (*model.Config, error) {
		return in.Object.DeepCopy(), nil
	})
}

// Patch changes a part of the configuration, by JSON patch or merge patch, as the API shows it: a patch sees marks
// and never secrets. Errors: those of Update, and those that resource.Patch says of a patch.
func (s *Source) Patch(ctx context.Context, in resource.PatchInput) (Written, error) {
	if in.Type == resource.ApplyPatch {
		return Written{}, apierror.UnsupportedMediaType(string(in.Type), string(resource.JSONPatch)+", "+string(resource.MergePatch))
	}
	apply, err := resource.ParsePatch(in.Type, in.Patch)
	if err != nil {
		return Written{}, err
	}
	return s.write(ctx, in.Caller, in.Name, in.DryRun, func(shown *model.Config) (*model.Config, error) {
		text, err := json.Marshal(shown)
		if err != nil {
			return nil, fmt.Errorf("encoding the configuration: %w", err)
		}
		patched, err := apply(text)
		if err != nil {
			return nil, err
		}
		object, err := Decode(codec.Body{JSON: patched})
		if err != nil {
			return nil, err
		}
		if err := Definition.CheckKind(object); err != nil {
			return nil, err
		}
		// A patch that leaves the resourceVersion alone does not insist on it.
		if object.ResourceVersion == shown.ResourceVersion {
			object.ResourceVersion = ""
		}
		return object, nil
	})
}

// Install replaces the configuration on behalf of an operator, who writes where the endpoint is disabled too.
// Errors: those of Update but for that. Source: ADR-0015.
func (s *Source) Install(ctx context.Context, operator identity.Caller, config *model.Config) (Written, error) {
	return s.rewrite(ctx, operator, Name, false, true, func(*model.Config) (*model.Config, error) { return config.DeepCopy(), nil })
}

// held is the configuration as the state has it at the moment of a write.
type held struct {
	record   store.Record
	document *document
	version  *version
}

// held reads the state, for a write. A configuration that was never written is there all the same.
func (s *Source) held(ctx context.Context) (held, error) {
	record, err := s.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		empty, err := s.build(&model.Config{}, store.Beginning, nil, nil)
		return held{version: empty}, err
	}
	if err != nil {
		return held{}, translate(err)
	}
	kept, err := read(record)
	if err != nil {
		return held{}, err
	}
	ring, err := s.Keyring(ctx)
	if err != nil {
		return held{}, translate(err)
	}
	config, _, err := kept.unseal(ring)
	if err != nil {
		return held{}, fmt.Errorf("opening the secrets of the configuration: %w", err)
	}
	// What is held may break a rule of today, and be mended by this very write.
	return held{record, kept, &version{revision: record.Revision, written: config, since: s.Now()}}, nil
}

// open refuses writes through the API where the configuration forbids them.
func (h *held) open() error {
	if !h.version.written.Status.DisableConfigEndpoint {
		return nil
	}
	return apierror.Forbidden(Definition.GroupResource(), Name, "status.disableConfigEndpoint forbids writing through this endpoint", nil)
}

func translate(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// write replaces the configuration by what replace makes of it, again and again while others write in between and
// the replacement insists on no resourceVersion.
func (s *Source) write(
	ctx context.Context, caller identity.Caller, name string, dryRun bool, replace func(shown *model.Config) (*model.Config, error),
) (Written, error) {
	return s.rewrite(ctx, caller, name, dryRun, false, replace)
}

func (s *Source) rewrite(
	ctx context.Context, caller identity.Caller, name string, dryRun, operator bool, replace func(shown *model.Config) (*model.Config, error),
) (Written, error) {
	if err := s.writable(name); err != nil {
		return Written{}, err
	}
	for attempt := 1; ; attempt++ {
		now, err := s.held(ctx)
		if err != nil {
			return Written{}, err
		}
		if !operator {
			if err := now.open(); err != nil {
				return Written{}, err
			}
		}
		object, err := replace(s.show(now.version, false))
		if err != nil {
			return Written{}, err
		}
		insists := object.ResourceVersion != "" && object.ResourceVersion != "0"
		next, err := s.prepare(object, now)
		if err != nil {
			return Written{}, err
		}
		shown, err := s.store(ctx, caller, now, next, "", dryRun)
		switch {
		case err == nil:
			return Written{Object: shown}, nil
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists):
			return Written{}, translate(err)
		case insists || attempt == maxConflicts:
			return Written{}, apierror.Modified(Definition.GroupResource(), Name).Because(err)
		}
	}
}

// writable refuses writes of another name, and those of a file.
func (s *Source) writable(name string) error {
	switch {
	case name != Name:
		return apierror.NotFound(Definition.GroupResource(), name)
	case s.FromFile():
		return apierror.Forbidden(Definition.GroupResource(), name, "a file holds the configuration: change that", nil)
	default:
		return nil
	}
}

// prepare makes of what a client sent what is to be stored, and refuses what breaks a rule.
func (s *Source) prepare(object *model.Config, now held) (*model.Config, error) {
	old := now.version.written
	switch {
	case object.Name != "" && object.Name != Name:
		return nil, apierror.BadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", object.Name, Name),
			field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), object.Name, "is not the name on the URL")})
	case object.Namespace != "":
		return nil, apierror.BadRequest(fmt.Sprintf("the namespace of the object (%s) is one too many: configs are in none", object.Namespace),
			field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), object.Namespace, "configs are in none")})
	case object.UID != "" && object.UID != old.UID:
		return nil, apierror.Conflict(Definition.GroupResource(), Name, fmt.Sprintf(
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", object.UID, old.UID))
	case object.ResourceVersion != "" && object.ResourceVersion != "0" && object.ResourceVersion != strconv.FormatInt(now.version.revision, 10):
		return nil, apierror.Modified(Definition.GroupResource(), Name)
	}
	metadata := field.NewPath("metadata")
	var problems field.ErrorList
	for name, given := range map[string]bool{
		"finalizers": len(object.Finalizers) > 0, "ownerReferences": len(object.OwnerReferences) > 0, "generateName": object.GenerateName != "",
	} {
		if given {
			problems = append(problems, field.Forbidden(metadata.Child(name), "the configuration is never deleted, and has one name"))
		}
	}
	next := &model.Config{Status: object.Status}
	next.ObjectMeta = metav1.ObjectMeta{
		Name: Name, UID: old.UID, CreationTimestamp: old.CreationTimestamp, Generation: old.Generation,
		Labels: object.Labels, Annotations: forgetManifest(object.Annotations),
	}
	problems = append(problems, metav1validation.ValidateLabels(next.Labels, metadata.Child("labels"))...)
	problems = append(problems, apivalidation.ValidateAnnotations(next.Annotations, metadata.Child("annotations"))...)
	next.Status.Conditions = nil
	status := field.NewPath("status")
	unknown := restore(&next.Status, secrets(&old.Status), status)
	if err := reopen(&next.Status, &old.Status); err != nil {
		return nil, err
	}
	problems = append(problems, unknown...)
	problems = append(problems, beside(validate(&next.Status, status), unknown)...)
	if len(problems) > 0 {
		return nil, apierror.Invalid(groupKind, Name, problems)
	}
	return next, nil
}

// store seals and writes a configuration, puts it into effect here, and returns it as the API shows it. One that
// says what is stored already is not written. Errors are those of the store, and Invalid or ServiceUnavailable.
func (s *Source) store(
	ctx context.Context, caller identity.Caller, now held, next *model.Config, rolledBackTo string, dryRun bool,
) (*model.Config, error) {
	old := now.version.written
	sameStatus := apiequality.Semantic.DeepEqual(next.Status, withoutConditions(&old.Status))
	if now.document != nil && sameStatus && apiequality.Semantic.DeepEqual(next.Labels, old.Labels) &&
		apiequality.Semantic.DeepEqual(next.Annotations, old.Annotations) {
		return s.show(now.version, false), nil
	}
	if !sameStatus || now.document == nil {
		next.Generation++
	}
	at := metav1.NewTime(s.Now().UTC().Truncate(1e9))
	if now.document == nil {
		uid, err := resource.NewUID(s.Random)
		if err != nil {
			return nil, err
		}
		next.UID, next.CreationTimestamp = uid, at
	}
	// What placeholders stand for here is judged, before it is stored.
	version, err := s.build(next, now.version.revision, nil, nil)
	if err != nil {
		return nil, apierror.Invalid(groupKind, Name, field.ErrorList{
			field.Invalid(field.NewPath("status"), field.OmitValueType{}, err.Error())})
	}
	if dryRun {
		return s.show(version, false), nil
	}
	ring, err := s.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	made, err := seal(next, ring, now.document)
	if errors.Is(err, encryption.ErrNoKey) {
		return nil, apierror.Invalid(groupKind, Name, field.ErrorList{
			field.Forbidden(field.NewPath("status"), "has secrets, and this function has no key to seal them with: "+err.Error())})
	}
	if err != nil {
		return nil, err
	}
	made.Author, made.Time, made.RolledBackTo = caller.Owner.String(), at, rolledBackTo
	record := store.Record{Name: Name, Revision: now.record.Revision, Created: next.CreationTimestamp.Time}
	if record.Object, err = json.Marshal(made); err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	if len(record.Object) > maxDocument {
		return nil, apierror.TooLarge(fmt.Sprintf("the configuration is larger than %d bytes", maxDocument))
	}
	if now.document == nil {
		record.Revision, err = s.Store.Create(ctx, record)
	} else {
		record.Revision, err = s.Store.Update(ctx, record)
	}
	if err != nil {
		return nil, err
	}
	version.revision = record.Revision
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.current.Load(); current == nil || current.revision < version.revision {
		s.install(ctx, version)
	}
	return s.show(version, false), nil
}

func withoutConditions(status *model.ConfigStatus) model.ConfigStatus {
	plain := *status
	plain.Conditions = nil
	return plain
}

// forgetManifest puts marks for the secrets of the manifest that kubectl apply keeps in an annotation. One that
// cannot be read goes, since nobody can tell what is in it.
func forgetManifest(annotations map[string]string) map[string]string {
	manifest, ok := annotations[model.LastAppliedAnnotation]
	if !ok {
		return annotations
	}
	kept := map[string]string{}
	for name, value := range annotations {
		if name != model.LastAppliedAnnotation {
			kept[name] = value
		}
	}
	config := &model.Config{}
	var sent map[string]any
	if _, err := codec.Decode(codec.Body{JSON: []byte(manifest)}, config, codec.Strict); err != nil || json.Unmarshal([]byte(manifest), &sent) != nil {
		return kept
	}
	// Only the fields that were sent, or the next apply would take the others for removed.
	conceal(&config.Status)
	text, err := json.Marshal(config)
	if err != nil {
		return kept
	}
	var marked map[string]any
	if json.Unmarshal(text, &marked) != nil {
		return kept
	}
	if text, err = json.Marshal(common(sent, marked)); err == nil {
		kept[model.LastAppliedAnnotation] = string(text) + "\n"
	}
	return kept
}

// common returns what of an object stands in another one too.
func common(sent, marked map[string]any) map[string]any {
	both := map[string]any{}
	for name, value := range sent {
		other, ok := marked[name]
		inner, isObject := value.(map[string]any)
		otherInner, bothObjects := other.(map[string]any)
		switch {
		case !ok:
		case isObject && bothObjects:
			both[name] = common(inner, otherInner)
		default:
			both[name] = other
		}
	}
	return both
}

// reopen leaves open again what was open and was shown with its default, and came back as it was shown: a change of
// a limit then still moves the request that follows it. Source: ADR-0015.
func reopen(next, old *model.ConfigStatus) error {
	filled := old.DeepCopy()
	setDefaults(filled)
	if reflect.DeepEqual(filled, old) {
		return nil
	}
	var trees [3]map[string]any
	for i, status := range []*model.ConfigStatus{next, filled, old} {
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

// prune puts what old has in place of what next has the same as filled, nothing included, and tells whether that
// was anything.
func prune(next, filled, old map[string]any) bool {
	pruned := false
	for name, value := range next {
		shown, isFilled := filled[name]
		before, was := old[name]
		inner, isObject := value.(map[string]any)
		filledInner, filledObject := shown.(map[string]any)
		list, isList := value.([]any)
		switch {
		case !isFilled:
		case reflect.DeepEqual(value, shown):
			if reflect.DeepEqual(before, shown) {
				continue
			}
			if was {
				next[name] = before
			} else {
				delete(next, name)
			}
			pruned = true
		case isObject && filledObject:
			oldInner, _ := before.(map[string]any)
			pruned = prune(inner, filledInner, oldInner) || pruned
			if !was && len(inner) == 0 {
				delete(next, name)
			}
		case isList && was:
			// An entry that came back as it was shown is as it was stored, wherever it stands now.
			filledList, _ := shown.([]any)
			oldList, _ := before.([]any)
			for i, entry := range list {
				from := slices.IndexFunc(filledList, func(shown any) bool { return reflect.DeepEqual(entry, shown) })
				if from >= 0 && from < len(oldList) && !reflect.DeepEqual(entry, oldList[from]) {
					list[i] = oldList[from]
					pruned = true
				}
			}
		}
	}
	return pruned
}
