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
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// maxRevisions is how many revisions the history has. Source: ADR-0015.
const maxRevisions = 20

// revision is one write, and what it replaced.
type revision struct {
	number    int64
	now, then *document
}

// revisions are the latest writes, the latest first. The log of events has them: each write is one event, with the
// record before it.
func (s *Source) revisions(ctx context.Context) ([]revision, error) {
	record, err := s.Store.Get(ctx, Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, translate(err)
	}
	after := max(store.Beginning, record.Revision-maxRevisions)
	events, err := s.Store.Events(ctx, after, maxRevisions, 0)
	for errors.Is(err, store.ErrGone) && after < record.Revision {
		// The log is shorter.
		after++
		events, err = s.Store.Events(ctx, after, maxRevisions, 0)
	}
	if err != nil {
		return nil, translate(err)
	}
	if len(events) == 0 {
		events = []store.Event{{Revision: record.Revision, Record: record}}
	}
	var list []revision
	for _, event := range slices.Backward(events) {
		one := revision{number: event.Revision}
		if one.now, err = read(event.Record); err != nil {
			return nil, err
		}
		switch {
		case event.Type == store.Created:
			one.then = &document{}
		case event.Previous == nil:
			one.then = one.now // what was before is not known any more
		default:
			if one.then, err = read(*event.Previous); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// History returns the latest revisions, each with its author, its time and its difference from the one before.
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

// Rollback writes the configuration of an earlier revision as a new one. Labels and annotations stay.
// Errors: NotFound for another name; Invalid for a revision that is not in the history, or whose configuration
// breaks a rule of today; else those of Update. Source: ADR-0015.
func (s *Source) Rollback(ctx context.Context, caller identity.Caller, name string, in *model.ConfigRollback, dryRun bool) (*model.ConfigRollback, error) {
	if err := s.writable(name); err != nil {
		return nil, err
	}
	revisions, err := s.revisions(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(revisions, func(r revision) bool { return strconv.FormatInt(r.number, 10) == in.Spec.Revision })
	if at < 0 {
		return nil, apierror.Invalid(model.SchemeGroupVersion.WithKind("ConfigRollback").GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "revision"), in.Spec.Revision, "is not in the history of "+name)})
	}
	ring, err := s.Keyring(ctx)
	if err != nil {
		return nil, translate(err)
	}
	earlier, _, err := revisions[at].now.unseal(ring)
	if err != nil {
		return nil, fmt.Errorf("opening the secrets of revision %s: %w", in.Spec.Revision, err)
	}
	now, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	if err := now.open(); err != nil {
		return nil, err
	}
	object := &model.Config{Status: earlier.Status}
	object.Labels, object.Annotations = now.version.written.Labels, now.version.written.Annotations
	object.ResourceVersion, object.UID = in.ResourceVersion, in.UID
	next, err := s.prepare(object, now)
	if err != nil {
		return nil, err
	}
	// As it was, not as the defaults of the present one would have it.
	next.Status = *earlier.Status.DeepCopy()
	shown, err := s.store(ctx, caller, now, next, in.Spec.Revision, dryRun)
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrExists):
		return nil, apierror.Modified(Definition.GroupResource(), Name).Because(err)
	case err != nil:
		return nil, translate(err)
	}
	answer := &model.ConfigRollback{ObjectMeta: metav1.ObjectMeta{Name: Name}, Spec: in.Spec}
	answer.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigRollback"))
	answer.Status.ResourceVersion = shown.ResourceVersion
	answer.Status.Changes, err = difference(now.document, revisions[at].now)
	return answer, err
}

// difference lists the fields in which two documents differ, as the API shows them. A list is one field.
func difference(then, now *document) ([]model.ConfigChange, error) {
	before, err := leaves(then)
	if err != nil {
		return nil, err
	}
	after, err := leaves(now)
	if err != nil {
		return nil, err
	}
	// Marks are alike: what is sealed tells secrets apart.
	changed := map[string]bool{}
	for _, sealed := range []struct{ of, other map[string]string }{{sealedOf(then), sealedOf(now)}, {sealedOf(now), sealedOf(then)}} {
		for path, value := range sealed.of {
			if sealed.other[path] != value {
				list, _, _ := strings.Cut(path, "[")
				changed["status."+list] = true
			}
		}
	}
	for path, value := range before {
		if other, ok := after[path]; !ok || !bytes.Equal(value, other) {
			changed[path] = true
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			changed[path] = true
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

func sealedOf(d *document) map[string]string {
	if d == nil {
		return nil
	}
	return d.Sealed
}

// leaves are the fields of a document that are no objects, by their paths: of its status, labels and annotations.
func leaves(d *document) (map[string][]byte, error) {
	found := map[string][]byte{}
	if d == nil {
		return found, nil
	}
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
			continue // the other fields say it
		}
		if err := collectLeaves(value, strings.TrimPrefix(path+"."+name, "."), into); err != nil {
			return err
		}
	}
	return nil
}
