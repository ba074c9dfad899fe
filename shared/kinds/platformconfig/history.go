package platformconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/lazyjson"
	"management.platform.sh/shared/state/store"
)

// What the history holds: the last minRevisions writes of the configuration and those that are younger than keepRevisions, up
// to maxRevisions. Writes of metadata alone are not in it. Source: ADR-0024.
const (
	minRevisions  = 20
	maxRevisions  = 200
	keepRevisions = 30 * 24 * time.Hour
	// maxReason is how many bytes of a reason are shown.
	maxReason = 500
	// eventsAtOnce and maxEvents bound how many events one step and all steps look at.
	eventsAtOnce = 50
	maxEvents    = 2000
)

// revision is one write: the document that it made, and the one that it replaced.
type revision struct {
	number             int64
	document, previous *document
	changes            []model.ConfigChange
}

// revisions returns the latest writes, newest first, and at the end what was there before the oldest of them. It takes them
// from the event log: each write is one event, which includes the previous record.
func (c *Current) revisions(ctx context.Context) ([]revision, error) {
	record, err := c.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, translateError(err)
	}
	var list []revision
	oldest := c.Now().Add(-keepRevisions)
	var replaced *store.Record
	for end, eventCount := record.Revision, 0; end > store.Beginning && eventCount < maxEvents; {
		events, err := c.eventsUntil(ctx, end)
		if err != nil {
			return nil, translateError(err)
		}
		if len(events) == 0 {
			break
		}
		for _, event := range slices.Backward(events) {
			revision, err := revisionOf(event)
			if err != nil {
				return nil, err
			}
			if len(list) >= minRevisions && (len(list) >= maxRevisions || revision.document.Time.Time.Before(oldest)) {
				return appendReplaced(list, replaced)
			}
			if revision.changesStatus() {
				list = append(list, revision)
				replaced = event.Previous
				if event.Type == store.Created {
					replaced = new(initialRecord())
				}
			}
		}
		eventCount += len(events)
		end = events[0].Follows
	}
	if len(list) == 0 {
		// The log no longer has the write that made the configuration what it is.
		latest, err := revisionOf(store.Event{Revision: record.Revision, Record: record})
		if err != nil {
			return nil, err
		}
		list = append(list, latest)
	}
	return appendReplaced(list, replaced)
}

// appendReplaced adds the record that the oldest revision replaced, if it is known.
func appendReplaced(list []revision, replaced *store.Record) ([]revision, error) {
	if replaced == nil {
		return list, nil
	}
	original, err := decodeRecord(*replaced)
	if err != nil {
		return nil, err
	}
	return append(list, revision{number: replaced.Revision, document: original, previous: original}), nil
}

// eventsUntil returns the last events up to a revision, at most eventsAtOnce, oldest first. There are none if the log does not
// reach back to that revision.
func (c *Current) eventsUntil(ctx context.Context, end int64) ([]store.Event, error) {
	after := max(store.Beginning, end-eventsAtOnce)
	read := func(after int64, limit int64) ([]store.Event, error) {
		return c.Store.Events(ctx, after, int(limit), 0)
	}
	events, err := read(after, end-after)
	// The log is shorter: its beginning is between gone and after.
	for gone := after; errors.Is(err, store.ErrGone) && gone < end; {
		after = end
		for after-gone > 1 {
			middle := gone + (after-gone)/2
			if _, err = read(middle, 1); errors.Is(err, store.ErrGone) {
				gone = middle
			} else if err != nil {
				return nil, err
			} else {
				after = middle
			}
		}
		// An event that is trimmed meanwhile moves the beginning.
		gone = after
		events, err = read(after, end-after)
	}
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	// A page may hold fewer events than were asked for.
	for err == nil && len(events) > 0 && events[len(events)-1].Revision < end {
		last := events[len(events)-1].Revision
		var more []store.Event
		if more, err = read(last, end-last); len(more) == 0 {
			break
		}
		events = append(events, more...)
	}
	return events, err
}

// revisionOf returns the write of an event.
func revisionOf(event store.Event) (revision, error) {
	result := revision{number: event.Revision}
	var err error
	if result.document, err = decodeRecord(event.Record); err != nil {
		return result, err
	}
	switch {
	case event.Type == store.Created:
		result.previous = &document{}
	case event.Previous == nil:
		result.previous = result.document // the earlier record is no longer known
	default:
		if result.previous, err = decodeRecord(*event.Previous); err != nil {
			return result, err
		}
	}
	result.changes, err = difference(result.previous, result.document)
	return result, err
}

// changesStatus reports whether a write changed more than metadata.
func (r *revision) changesStatus() bool {
	return slices.ContainsFunc(r.changes, func(change model.ConfigChange) bool { return strings.HasPrefix(change.Path, "status.") })
}

// reason returns why the write was made, or nothing if the annotation is that of an earlier write.
func (r *revision) reason() string {
	cause := r.document.Metadata.Annotations[model.ChangeCauseAnnotation]
	if cause == r.previous.Metadata.Annotations[model.ChangeCauseAnnotation] {
		return ""
	}
	return strings.ToValidUTF8(cause[:min(len(cause), maxReason)], "")
}

// History returns the latest revisions, each with its author, its time and its changes, and what was there before them.
// Errors: NotFound for another name, ServiceUnavailable. Source: ADR-0015.
func (c *Current) History(ctx context.Context, in resource.GetInput) (*model.ConfigHistory, error) {
	if in.Name != Name {
		return nil, apierror.NotFound(Definition.GroupResource(), in.Name)
	}
	history := &model.ConfigHistory{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	history.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigHistory"))
	if c.FromFile() {
		return history, nil
	}
	revisions, err := c.revisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, revision := range revisions {
		history.Status.Revisions = append(history.Status.Revisions, model.ConfigRevision{
			Revision: strconv.FormatInt(revision.number, 10), Author: revision.document.Author, Time: revision.document.Time,
			RolledBackTo: revision.document.RolledBackTo, Reason: revision.reason(), Changes: revision.changes,
		})
	}
	return history, nil
}

// RollbackResult is the result of a rollback.
type RollbackResult = resource.Result[*model.ConfigRollback]

// Rollback writes the configuration of an earlier revision as a new revision. Labels and annotations stay as they are.
// Errors: NotFound for another name; Invalid for a revision that is not in the history, or whose configuration breaks a
// current rule; otherwise those of Update. Source: ADR-0015.
func (w *Writer) Rollback(ctx context.Context, in resource.SubresourceInput[*model.ConfigRollback]) (RollbackResult, error) {
	target := in.Object.Spec.Revision
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, rolledBackTo: target, dryRun: in.DryRun})
	if err != nil {
		return RollbackResult{}, err
	}
	revisions, err := w.revisions(ctx)
	if err != nil {
		return RollbackResult{}, err
	}
	index := slices.IndexFunc(revisions, func(r revision) bool { return strconv.FormatInt(r.number, 10) == target })
	if index < 0 {
		return RollbackResult{}, apierror.Invalid(model.SchemeGroupVersion.WithKind("ConfigRollback").GroupKind(), in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "revision"), target, knownRevisions(revisions))})
	}
	ring, err := w.keyring(ctx)
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
		// The rollback is asked for with annotations of its own.
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

// maxNamedRevisions is how many revisions an error lists.
const maxNamedRevisions = 20

// knownRevisions says which revisions a rollback can name.
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

// decodeRecord returns the document of a record.
func decodeRecord(stored store.Record) (*document, error) { return decodeBy(json.Unmarshal, stored) }

// decodeFirstRecord is decodeRecord for the first record that a process reads, as part of its start. Later it would be slower.
func decodeFirstRecord(stored store.Record) (*document, error) {
	return decodeBy(lazyjson.Unmarshal, stored)
}

func decodeBy(unmarshal func([]byte, any) error, stored store.Record) (*document, error) {
	decoded := &document{}
	if err := unmarshal(stored.Object, decoded); err != nil {
		return nil, fmt.Errorf("decoding revision %d: %w", stored.Revision, err)
	}
	return decoded, nil
}

// translateError translates the store's error for the caller.
func translateError(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// difference returns the fields in which two documents differ, with marks in place of secrets. A list is one field.
func difference(from, to *document) ([]model.ConfigChange, error) {
	fromLeaves, err := leaves(from)
	if err != nil {
		return nil, err
	}
	toLeaves, err := leaves(to)
	if err != nil {
		return nil, err
	}
	// All marks look the same; the sealed texts tell secrets apart.
	changedPaths := map[string]bool{}
	for _, sealed := range []struct{ of, other map[string]string }{{from.Sealed, to.Sealed}, {to.Sealed, from.Sealed}} {
		for path, value := range sealed.of {
			if sealed.other[path] != value {
				list, _, _ := strings.Cut(path, "[")
				changedPaths["status."+list] = true
			}
		}
	}
	for _, side := range []map[string][]byte{fromLeaves, toLeaves} {
		for path := range side {
			if !bytes.Equal(fromLeaves[path], toLeaves[path]) {
				changedPaths[path] = true
			}
		}
	}
	var changes []model.ConfigChange
	for _, path := range slices.Sorted(maps.Keys(changedPaths)) {
		change := model.ConfigChange{Path: path}
		if value, ok := fromLeaves[path]; ok {
			change.From = &model.JSON{Raw: value}
		}
		if value, ok := toLeaves[path]; ok {
			change.To = &model.JSON{Raw: value}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// leaves returns the fields of a document that are not objects, by path: those of its status, labels and annotations.
func leaves(d *document) (map[string][]byte, error) {
	valuesByPath := map[string][]byte{}
	text, err := json.Marshal(map[string]any{
		"status": d.Status, "metadata": map[string]any{"labels": d.Metadata.Labels, "annotations": d.Metadata.Annotations},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return valuesByPath, collectLeaves(text, "", valuesByPath)
}

func collectLeaves(text []byte, path string, valuesByPath map[string][]byte) error {
	if text[0] != '{' {
		if string(text) != "null" {
			valuesByPath[path] = text
		}
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("comparing configurations: %w", err)
	}
	for name, value := range object {
		if path == "metadata.annotations" && name == model.LastAppliedAnnotation {
			continue // it repeats the other fields
		}
		if err := collectLeaves(value, strings.TrimPrefix(path+"."+name, "."), valuesByPath); err != nil {
			return err
		}
	}
	return nil
}
