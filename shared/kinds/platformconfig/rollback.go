package platformconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// RollbackResult is the result of a rollback.
type RollbackResult = resource.Result[*model.ConfigRollback]

// Rollback writes the configuration of an earlier revision as a new revision. Labels and annotations stay as they are.
// Errors: NotFound for another name; Invalid for a revision that is not in the history, or whose configuration breaks a
// current rule; otherwise the errors of Update. Source: ADR-0015.
func (w *Writer) Rollback(ctx context.Context, in resource.SubresourceInput[*model.ConfigRollback]) (RollbackResult, error) {
	target := in.Object.Spec.Revision
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, rolledBackTo: target, dryRun: in.DryRun})
	if err != nil {
		return RollbackResult{}, err
	}
	revisions, err := w.current.revisions(ctx)
	if err != nil {
		return RollbackResult{}, err
	}
	index := slices.IndexFunc(revisions, func(r revision) bool { return strconv.FormatInt(r.number, 10) == target })
	if index < 0 {
		return RollbackResult{}, apierror.Invalid(model.SchemeGroupVersion.WithKind("ConfigRollback").GroupKind(), in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "revision"), target, knownRevisions(revisions))})
	}
	ring, err := w.current.keyring(ctx)
	if err != nil {
		return RollbackResult{}, err
	}
	restored := revisions[index].document.config()
	if _, err := unseal(&restored.Status, ring); err != nil {
		return RollbackResult{}, fmt.Errorf("opening the secrets of revision %s: %w", target, err)
	}
	current, record, err := configs.Read(ctx, in.Caller, "", in.Name)
	if err != nil {
		return RollbackResult{}, err
	}
	currentDocument, err := decodeRecord(record)
	if err != nil {
		return RollbackResult{}, err
	}
	object := &model.Config{Status: restored.Status}
	object.Labels, object.Annotations, object.UID = current.Labels, maps.Clone(current.Annotations), in.Object.UID
	for _, name := range []string{model.ForceAnnotation, model.ConfirmWithinAnnotation, model.ChangeCauseAnnotation} {
		// The request for the rollback has its own annotations for these.
		delete(object.Annotations, name)
		if value, given := in.Object.Annotations[name]; given {
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, name, value)
		}
	}
	if object.ResourceVersion = in.Object.ResourceVersion; object.ResourceVersion == "" || object.ResourceVersion == "0" {
		object.ResourceVersion = current.ResourceVersion
	}
	result, err := resource.Update(ctx, configs, resource.UpdateInput[*model.Config]{
		Caller: in.Caller, Name: in.Name, Object: object, Manager: in.Manager,
	})
	if err != nil {
		return RollbackResult{}, err
	}
	rollback := &model.ConfigRollback{ObjectMeta: metav1.ObjectMeta{Name: Name}, Spec: in.Object.Spec}
	rollback.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigRollback"))
	rollback.Status.ResourceVersion = result.Object.ResourceVersion
	rollback.Status.Changes, err = difference(currentDocument, revisions[index].document)
	return RollbackResult{Object: rollback, Warnings: result.Warnings}, err
}

// maxNamedRevisions bounds how many revisions an error lists.
const maxNamedRevisions = 20

// knownRevisions returns the part of an error that lists the revisions that a rollback can name.
func knownRevisions(revisions []revision) string {
	if len(revisions) == 0 {
		return "the history is empty: nobody has written the configuration yet"
	}
	names := make([]string, 0, maxNamedRevisions)
	for _, one := range revisions[:min(len(revisions), maxNamedRevisions)] {
		names = append(names, strconv.FormatInt(one.number, 10))
	}
	text := "must be a revision in the history: " + strings.Join(names, ", ")
	if more := len(revisions) - len(names); more > 0 {
		text += fmt.Sprintf(", and %d older ones", more)
	}
	return text
}
