package platformconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// The shortest and longest time for a confirmation. The longest time ends before the grace period of a lowered limit on
// keys, so that a mistaken write ends no key. Source: ADR-0024.
const (
	minConfirm = time.Second
	maxConfirm = 23 * time.Hour
)

// trial is the part of a document whose write waits for its confirmation.
type trial struct {
	// Until is the time at which Before takes effect again.
	Until metav1.Time `json:"until"`
	// Before is the last confirmed document. Revision is its revision.
	Before   json.RawMessage `json:"before"`
	Revision int64           `json:"revision"`
}

// readAnnotations takes the options of the write from the annotations of the configuration, and removes the options that
// are not stored.
func (w *write) readAnnotations(config *model.Config) {
	w.force = config.Annotations[model.ForceAnnotation]
	delete(config.Annotations, model.ForceAnnotation)
	resource.ForgetApplied(config, Definition.WriteOnly)
}

// validateAnnotations returns a problem for each invalid option of the write in the annotations.
func (w *write) validateAnnotations(config *model.Config) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("metadata", "annotations")
	if w.force != "" && w.force != "true" && w.force != "false" {
		problems = append(problems, field.NotSupported(path.Key(model.ForceAnnotation), w.force, []string{"true", "false"}))
	}
	if text, given := config.Annotations[model.ConfirmWithinAnnotation]; given {
		if within, err := time.ParseDuration(text); err != nil || within < minConfirm || within > maxConfirm {
			problems = append(problems, field.Invalid(path.Key(model.ConfirmWithinAnnotation), text,
				fmt.Sprintf("must be a duration from %s to %s, such as 10m", minConfirm, maxConfirm)))
		}
	}
	return problems
}

// newTrial returns the trial of a write, or nil if the write needs no confirmation. If the base is itself on trial, the new
// trial goes back to the same confirmed document.
func newTrial(base store.Record, baseDocument *document, newContent *content, now time.Time) (*trial, error) {
	text, exists := newContent.Metadata.Annotations[model.ConfirmWithinAnnotation]
	if !exists {
		return nil, nil
	}
	within, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("reading the time for a confirmation: %w", err)
	}
	result := &trial{Until: metav1.NewTime(now.Add(within).UTC().Truncate(time.Second)), Before: base.Object, Revision: base.Revision}
	if baseDocument.Trial != nil {
		result.Before, result.Revision = baseDocument.Trial.Before, baseDocument.Trial.Revision
	}
	var fields map[string]json.RawMessage
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := errors.Join(json.Unmarshal(result.Before, &fields), json.Unmarshal(result.Before, &object)); err != nil {
		return nil, fmt.Errorf("decoding revision %d: %w", result.Revision, err)
	}
	// The object stays the same, and going back is a change of it.
	object.Metadata.UID, object.Metadata.CreationTimestamp = newContent.Metadata.UID, newContent.Metadata.CreationTimestamp
	object.Metadata.Generation = newContent.Metadata.Generation + 1
	delete(object.Metadata.Annotations, model.ChangeCauseAnnotation)
	if fields["metadata"], err = json.Marshal(object.Metadata); err == nil {
		result.Before, err = json.Marshal(fields)
	}
	return result, err
}

// recordInForce returns the record with the document that is in force. TrialEnded reports whether that is the document before
// the write, because the time for a confirmation is over.
func (l loader) recordInForce(stored store.Record) (record store.Record, trialEnded bool) {
	if !bytes.Contains(stored.Object, []byte(`"trial"`)) {
		return stored, false
	}
	document, err := decodeRecord(stored)
	if err != nil || document.Trial == nil || l.Now().Before(document.Trial.Until.Time) {
		return stored, false
	}
	stored.Object = document.Trial.Before
	return stored, true
}

// RevertUnconfirmed writes the earlier configuration again if a write was not confirmed in time, and reports whether it did.
// Until then, every process uses the earlier configuration already. It returns the errors of the state. Source: ADR-0024.
func (w *Writer) RevertUnconfirmed(ctx context.Context, author identity.Owner) (bool, error) {
	if w.current.FromFile() {
		return false, nil
	}
	stored, err := w.current.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the platform configuration: %w", err)
	}
	record, trialEnded := w.current.loader.recordInForce(stored)
	if !trialEnded {
		return false, nil
	}
	unconfirmed, err := decodeRecord(stored)
	if err != nil {
		return false, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(record.Object, &fields); err != nil {
		return false, fmt.Errorf("decoding revision %d: %w", unconfirmed.Trial.Revision, err)
	}
	for name, value := range map[string]any{
		"author": author.String(), "time": metav1.NewTime(w.current.Now().UTC().Truncate(time.Second)),
		"rolledBackTo": strconv.FormatInt(unconfirmed.Trial.Revision, 10),
	} {
		if fields[name], err = json.Marshal(value); err != nil {
			return false, fmt.Errorf("encoding the configuration: %w", err)
		}
	}
	if record.Object, err = json.Marshal(fields); err != nil {
		return false, fmt.Errorf("encoding the configuration: %w", err)
	}
	_, err = records{w.current.Store, w.current}.Update(ctx, record)
	if errors.Is(err, store.ErrConflict) {
		// Another process has written it meanwhile, based on the configuration in force.
		return false, nil
	}
	return err == nil, err
}

// confirmation returns the condition Confirmed of a version, or nil if the version needs no confirmation.
func (v *version) confirmation() *metav1.Condition {
	condition := &metav1.Condition{Type: ConditionConfirmed, Status: metav1.ConditionFalse}
	switch {
	case v.trialEnded:
		condition.Reason = "TakenBack"
		condition.Message = fmt.Sprintf("nobody confirmed revision %d in time: the configuration before it is in effect", v.revision)
	case v.trial != nil:
		condition.Reason = "Waiting"
		condition.Message = fmt.Sprintf("revision %d takes effect again at %s; remove the annotation %s to keep this one",
			v.trial.Revision, v.trial.Until.UTC().Format(time.RFC3339), model.ConfirmWithinAnnotation)
	default:
		return nil
	}
	return condition
}
