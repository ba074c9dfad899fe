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
	number    int64
	now, then *document
	changes   []model.ConfigChange
}

// revisions returns the latest writes, newest first, and at the end what was there before the oldest of them. It takes them
// from the event log: each write is one event, which includes the previous record.
func (s *Source) revisions(ctx context.Context) ([]revision, error) {
	record, err := s.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	var list []revision
	oldest := s.Now().Add(-keepRevisions)
	var before *store.Record
	for end, looked := record.Revision, 0; end > store.Beginning && looked < maxEvents; {
		events, err := s.eventsUntil(ctx, end)
		if err != nil {
			return nil, unavailable(err)
		}
		if len(events) == 0 {
			break
		}
		for _, event := range slices.Backward(events) {
			revision, err := revisionOf(event)
			if err != nil {
				return nil, err
			}
			if len(list) >= minRevisions && (len(list) >= maxRevisions || revision.now.Time.Time.Before(oldest)) {
				return withBefore(list, before)
			}
			if revision.changesStatus() {
				list = append(list, revision)
				before = event.Previous
				if event.Type == store.Created {
					before = new(unwritten())
				}
			}
		}
		looked += len(events)
		end = events[0].Follows
	}
	if len(list) == 0 {
		// The log no longer has the write that made the configuration what it is.
		one, err := revisionOf(store.Event{Revision: record.Revision, Record: record})
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return withBefore(list, before)
}

// withBefore adds the record that the oldest revision replaced, if it is known.
func withBefore(list []revision, before *store.Record) ([]revision, error) {
	if before == nil {
		return list, nil
	}
	then, err := decodeRecord(*before)
	if err != nil {
		return nil, err
	}
	return append(list, revision{number: before.Revision, now: then, then: then}), nil
}

// eventsUntil returns the last events up to a revision, at most eventsAtOnce, oldest first. There are none if the log does not
// reach back to that revision.
func (s *Source) eventsUntil(ctx context.Context, end int64) ([]store.Event, error) {
	after := max(store.Beginning, end-eventsAtOnce)
	read := func(after int64, limit int64) ([]store.Event, error) {
		return s.Store.Events(ctx, after, int(limit), 0)
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
	one := revision{number: event.Revision}
	var err error
	if one.now, err = decodeRecord(event.Record); err != nil {
		return one, err
	}
	switch {
	case event.Type == store.Created:
		one.then = &document{}
	case event.Previous == nil:
		one.then = one.now // the earlier record is no longer known
	default:
		if one.then, err = decodeRecord(*event.Previous); err != nil {
			return one, err
		}
	}
	one.changes, err = difference(one.then, one.now)
	return one, err
}

// changesStatus reports whether a write changed more than metadata.
func (r *revision) changesStatus() bool {
	return slices.ContainsFunc(r.changes, func(change model.ConfigChange) bool { return strings.HasPrefix(change.Path, "status.") })
}

// reason returns why the write was made, or nothing if the annotation is that of an earlier write.
func (r *revision) reason() string {
	cause := r.now.Metadata.Annotations[model.ChangeCauseAnnotation]
	if cause == r.then.Metadata.Annotations[model.ChangeCauseAnnotation] {
		return ""
	}
	return strings.ToValidUTF8(cause[:min(len(cause), maxReason)], "")
}

// History returns the latest revisions, each with its author, its time and its changes, and what was there before them.
// Errors: NotFound for another name, ServiceUnavailable. Source: ADR-0015.
func (s *Source) History(ctx context.Context, in resource.GetInput) (*model.ConfigHistory, error) {
	if in.Name != Name {
		return nil, apierror.NotFound(Definition.GroupResource(), in.Name)
	}
	history := &model.ConfigHistory{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	history.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigHistory"))
	if s.FromFile() {
		return history, nil
	}
	revisions, err := s.revisions(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range revisions {
		history.Status.Revisions = append(history.Status.Revisions, model.ConfigRevision{
			Revision: strconv.FormatInt(one.number, 10), Author: one.now.Author, Time: one.now.Time,
			RolledBackTo: one.now.RolledBackTo, Reason: one.reason(), Changes: one.changes,
		})
	}
	return history, nil
}

// Rolled is the result of a rollback.
type Rolled = resource.Result[*model.ConfigRollback]

// Rollback writes the configuration of an earlier revision as a new revision. Labels and annotations stay as they are.
// Errors: NotFound for another name; Invalid for a revision that is not in the history, or whose configuration breaks a
// current rule; otherwise those of Update. Source: ADR-0015.
func (w *Writer) Rollback(ctx context.Context, in resource.SubresourceInput[*model.ConfigRollback]) (Rolled, error) {
	wanted := in.Object.Spec.Revision
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, rolledBackTo: wanted, dryRun: in.DryRun})
	if err != nil {
		return Rolled{}, err
	}
	revisions, err := w.revisions(ctx)
	if err != nil {
		return Rolled{}, err
	}
	index := slices.IndexFunc(revisions, func(r revision) bool { return strconv.FormatInt(r.number, 10) == wanted })
	if index < 0 {
		return Rolled{}, apierror.Invalid(model.SchemeGroupVersion.WithKind("ConfigRollback").GroupKind(), in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "revision"), wanted, knownRevisions(revisions))})
	}
	ring, err := w.keyring(ctx)
	if err != nil {
		return Rolled{}, err
	}
	earlier := revisions[index].now.config()
	if _, err := unseal(&earlier.Status, ring); err != nil {
		return Rolled{}, fmt.Errorf("opening the secrets of revision %s: %w", wanted, err)
	}
	current, stored, err := configs.Read(ctx, in.Caller, "", in.Name)
	if err != nil {
		return Rolled{}, err
	}
	before, err := decodeRecord(stored)
	if err != nil {
		return Rolled{}, err
	}
	object := &model.Config{Status: earlier.Status}
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
		return Rolled{}, err
	}
	answer := &model.ConfigRollback{ObjectMeta: metav1.ObjectMeta{Name: Name}, Spec: in.Object.Spec}
	answer.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigRollback"))
	answer.Status.ResourceVersion = result.Object.ResourceVersion
	answer.Status.Changes, err = difference(before, revisions[index].now)
	return Rolled{Object: answer, Warnings: result.Warnings}, err
}

// maxNamed is how many revisions an error lists.
const maxNamed = 20

// knownRevisions says which revisions a rollback can name.
func knownRevisions(revisions []revision) string {
	if len(revisions) == 0 {
		return "the history is empty: nobody has written the configuration yet"
	}
	names := make([]string, 0, maxNamed)
	for _, one := range revisions[:min(len(revisions), maxNamed)] {
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

// decodeFirst is decodeRecord for the first record that a process reads, as part of its start. Later it would be slower.
func decodeFirst(stored store.Record) (*document, error) { return decodeBy(lazyjson.Unmarshal, stored) }

func decodeBy(unmarshal func([]byte, any) error, stored store.Record) (*document, error) {
	known := &document{}
	if err := unmarshal(stored.Object, known); err != nil {
		return nil, fmt.Errorf("decoding revision %d: %w", stored.Revision, err)
	}
	return known, nil
}

// unavailable translates the store's error for the caller.
func unavailable(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// difference returns the fields in which two documents differ, with marks in place of secrets. A list is one field.
func difference(then, now *document) ([]model.ConfigChange, error) {
	before, err := leaves(then)
	if err != nil {
		return nil, err
	}
	after, err := leaves(now)
	if err != nil {
		return nil, err
	}
	// All marks look the same; the sealed texts tell secrets apart.
	changed := map[string]bool{}
	for _, sealed := range []struct{ of, other map[string]string }{{then.Sealed, now.Sealed}, {now.Sealed, then.Sealed}} {
		for path, value := range sealed.of {
			if sealed.other[path] != value {
				list, _, _ := strings.Cut(path, "[")
				changed["status."+list] = true
			}
		}
	}
	for _, side := range []map[string][]byte{before, after} {
		for path := range side {
			if !bytes.Equal(before[path], after[path]) {
				changed[path] = true
			}
		}
	}
	var changes []model.ConfigChange
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		change := model.ConfigChange{Path: path}
		if value, ok := before[path]; ok {
			change.From = &model.JSON{Raw: value}
		}
		if value, ok := after[path]; ok {
			change.To = &model.JSON{Raw: value}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// leaves returns the fields of a document that are not objects, by path: those of its status, labels and annotations.
func leaves(d *document) (map[string][]byte, error) {
	found := map[string][]byte{}
	text, err := json.Marshal(map[string]any{
		"status": d.Status, "metadata": map[string]any{"labels": d.Metadata.Labels, "annotations": d.Metadata.Annotations},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return found, collectLeaves(text, "", found)
}

func collectLeaves(text []byte, path string, into map[string][]byte) error {
	if text[0] != '{' {
		if string(text) != "null" {
			into[path] = text
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
		if err := collectLeaves(value, strings.TrimPrefix(path+"."+name, "."), into); err != nil {
			return err
		}
	}
	return nil
}
