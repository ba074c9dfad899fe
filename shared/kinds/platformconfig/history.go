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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

// maxRevisions is the number of revisions in the history. Source: ADR-0015.
const maxRevisions = 20

// revision is one write: the document that it made, and the one that it replaced.
type revision struct {
	number    int64
	now, then *document
}

// revisions returns the latest writes, newest first. It takes them from the event log: each write is one event, which
// includes the previous record.
func (s *Source) revisions(ctx context.Context) ([]revision, error) {
	record, err := s.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	after := max(store.Beginning, record.Revision-maxRevisions)
	events, err := s.Store.Events(ctx, after, maxRevisions, 0)
	for errors.Is(err, store.ErrGone) && after < record.Revision {
		// The log is shorter.
		after++
		events, err = s.Store.Events(ctx, after, maxRevisions, 0)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	if len(events) == 0 {
		events = []store.Event{{Revision: record.Revision, Record: record}}
	}
	var list []revision
	for _, event := range slices.Backward(events) {
		one := revision{number: event.Revision}
		if one.now, err = decodeRecord(event.Record); err != nil {
			return nil, err
		}
		switch {
		case event.Type == store.Created:
			one.then = &document{}
		case event.Previous == nil:
			one.then = one.now // the earlier record is no longer known
		default:
			if one.then, err = decodeRecord(*event.Previous); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// History returns the latest revisions, each with its author, its time and its changes.
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
		changes, err := difference(one.then, one.now)
		if err != nil {
			return nil, err
		}
		history.Status.Revisions = append(history.Status.Revisions, model.ConfigRevision{
			Revision: strconv.FormatInt(one.number, 10), Author: one.now.Author, Time: one.now.Time,
			RolledBackTo: one.now.RolledBackTo, Changes: changes,
		})
	}
	return history, nil
}

// Rollback writes the configuration of an earlier revision as a new revision. Labels and annotations stay as they are.
// Errors: NotFound for another name; Invalid for a revision that is not in the history, or whose configuration breaks a
// current rule; otherwise those of Update. Source: ADR-0015.
func (s *Source) Rollback(ctx context.Context, in resource.SubresourceInput[*model.ConfigRollback]) (*model.ConfigRollback, error) {
	wanted := in.Object.Spec.Revision
	configs, err := s.writer(ctx, in.Name, write{author: in.Caller.Owner, rolledBackTo: wanted})
	if err != nil {
		return nil, err
	}
	revisions, err := s.revisions(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(revisions, func(r revision) bool { return strconv.FormatInt(r.number, 10) == wanted })
	if at < 0 {
		return nil, apierror.Invalid(model.SchemeGroupVersion.WithKind("ConfigRollback").GroupKind(), in.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "revision"), wanted, "must be a revision in the history of "+in.Name)})
	}
	ring, err := s.keyring(ctx)
	if err != nil {
		return nil, err
	}
	earlier := revisions[at].now.config()
	if _, err := unseal(&earlier.Status, ring); err != nil {
		return nil, fmt.Errorf("opening the secrets of revision %s: %w", wanted, err)
	}
	current, stored, err := configs.Read(ctx, in.Caller, "", in.Name)
	if err != nil {
		return nil, err
	}
	before, err := decodeRecord(stored)
	if err != nil {
		return nil, err
	}
	object := &model.Config{Status: earlier.Status}
	object.Labels, object.Annotations, object.UID = current.Labels, current.Annotations, in.Object.UID
	if object.ResourceVersion = in.Object.ResourceVersion; object.ResourceVersion == "" || object.ResourceVersion == "0" {
		object.ResourceVersion = current.ResourceVersion
	}
	written, err := resource.Update(ctx, configs, resource.UpdateInput[*model.Config]{
		Caller: in.Caller, Name: in.Name, Object: object, Manager: in.Manager, DryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	answer := &model.ConfigRollback{ObjectMeta: metav1.ObjectMeta{Name: Name}, Spec: in.Object.Spec}
	answer.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigRollback"))
	answer.Status.ResourceVersion = written.Object.ResourceVersion
	answer.Status.Changes, err = difference(before, revisions[at].now)
	return answer, err
}

// decodeRecord returns the document of a record.
func decodeRecord(stored store.Record) (*document, error) {
	known := &document{}
	if err := json.Unmarshal(stored.Object, known); err != nil {
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
