// Package auditevent serves the events of the audit as a read-only resource: pages of events that a caller may see, the newest
// first, from the data store of the audit. Package audit records and stores the events. Source: Spec 2.7 (audit); ADR-0034.
package auditevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// Definition is the resource auditevents. Source: ADR-0034.
var Definition = &resource.Definition[*model.AuditEvent]{
	Resource: model.SchemeGroupVersion.WithResource("auditevents"),
	Kind:     "AuditEvent",
	Singular: "auditevent",
	New:      func() *model.AuditEvent { return &model.AuditEvent{} },
	NewList: func(meta metav1.ListMeta, items []*model.AuditEvent) runtime.Object {
		return &model.AuditEventList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns: columns,
	Cells:   cells,
}

// Log reads events. It is safe for concurrent use.
type Log struct {
	// Created returns the creation times of the caller's user and teams, by the owner in the form of identity.Owner.String. An
	// earlier user or team of the same name is not the caller's. It returns the errors of the state.
	Created func(ctx context.Context, caller identity.Caller) (map[string]time.Time, error)
	// Read opens the data store of the audit, for one request. Errors: audit.ErrUnreadable, with a text for the caller.
	Read func() (audit.Reader, error)
}

// Open returns the log of an environment. It opens no data store yet.
//
//go:noinline
func Open(env *platform.Environment) *Log {
	return &Log{
		Created: func(ctx context.Context, caller identity.Caller) (map[string]time.Time, error) {
			return directory.Open(env).CreationTimes(ctx, caller)
		},
		Read: func() (audit.Reader, error) {
			if env.AuditEvents == nil {
				return audit.ReadWith(nil, env.Config)()
			}
			return env.AuditEvents()
		},
	}
}

// unavailable returns the error of the API for an error of the data store.
func unavailable(err error) error {
	switch {
	case errors.Is(err, audit.ErrUnreadable):
		return apierror.NotImplemented(err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("reading audit events: %w", err)
	default:
		return apierror.Upstream("the data store of the audit cannot be read now; try again").Because(err)
	}
}

// Get returns one event. Errors: NotFound if the caller sees no event with the name; NotImplemented if events cannot be read
// here; ServiceUnavailable.
func (l *Log) Get(ctx context.Context, in resource.GetInput) (*model.AuditEvent, error) {
	reader, err := l.Read()
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = reader.Close() }()
	stored, found, err := reader.Lookup(ctx, in.Name)
	if err != nil {
		return nil, unavailable(err)
	}
	absent := apierror.NotFound(Definition.GroupResource(), in.Name)
	if !found {
		return nil, absent
	}
	event, err := decode(stored)
	if err != nil {
		return nil, err
	}
	created, err := l.Created(ctx, in.Caller)
	if err != nil {
		return nil, err
	}
	if !sees(in.Caller, created, event) {
		return nil, absent
	}
	return event, nil
}

// List returns a page of the events that the caller may see, the newest first. A page may hold fewer events than the limit, or
// none, and still not be the last one. Errors: BadRequest for a selector, a continue token or a resourceVersion that cannot be
// used; NotImplemented if events cannot be read here; ServiceUnavailable.
func (l *Log) List(ctx context.Context, in resource.ListInput) (runtime.Object, error) {
	if in.ResourceVersion != "" && in.ResourceVersion != "0" {
		why := "audit events have no versions: leave it out"
		return nil, apierror.BadRequest("resourceVersion: "+why, field.ErrorList{field.Invalid(field.NewPath("resourceVersion"), in.ResourceVersion, why)})
	}
	selected, err := readSelector(in.Fields)
	if err != nil {
		return nil, err
	}
	// The text of a parsed selector is in canonical form.
	var selector string
	if in.Fields != nil {
		selector = in.Fields.String()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", Definition.GroupResource().String(), in.Caller.Owners(), selector))
	query := hex.EncodeToString(sum[:8])
	p := page{query: audit.Range{After: selected.after, Before: selected.before, Bytes: limits.PageBytes}, limit: limits.PageObjects}
	if in.Limit > 0 {
		p.limit = int(min(in.Limit, limits.PageObjects))
	}
	if in.Continue != "" {
		from, err := in.ContinueKeys.Open(ctx, in.Continue, query)
		if err != nil {
			return nil, err
		}
		p.query.Behind = from.After
	}
	reader, err := l.Read()
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = reader.Close() }()
	created, err := l.Created(ctx, in.Caller)
	if err != nil {
		return nil, err
	}
	if in.Labels == nil || in.Labels.Matches(labels.Set{}) { // events have no labels
		if err := p.read(ctx, reader, func(event *model.AuditEvent) bool { return sees(in.Caller, created, event) && selected.matches(event) }); err != nil {
			return nil, err
		}
	}
	var meta metav1.ListMeta
	if p.more {
		if meta.Continue, err = in.ContinueKeys.Seal(ctx, continuetoken.Position{Revision: 1, After: p.query.Behind, Query: query}); err != nil {
			return nil, err
		}
	}
	list := Definition.NewList(meta, p.events)
	list.GetObjectKind().SetGroupVersionKind(Definition.Resource.GroupVersion().WithKind(Definition.Kind + "List"))
	return list, nil
}

// page is a page of a list that is being read.
type page struct {
	// query says where the next page of the data store begins.
	query audit.Range
	limit int
	// events are the events of the page. more reports whether the list continues after query.
	events []*model.AuditEvent
	more   bool
}

// read adds the events for which shown is true, until the page is full or the request has read enough pages and bytes.
func (p *page) read(ctx context.Context, reader audit.Reader, shown func(*model.AuditEvent) bool) error {
	bytes := 0
	for range limits.ListPages {
		p.query.Events = limits.PageObjects
		stored, more, err := reader.Page(ctx, p.query)
		if err != nil {
			return unavailable(err)
		}
		for i, one := range stored {
			event, err := decode(one)
			if err != nil {
				return err
			}
			if shown(event) {
				if bytes += len(one.JSON); bytes > limits.PageBytes && len(p.events) > 0 {
					p.more = true
					return nil
				}
				p.events = append(p.events, event)
			}
			p.query.Behind = one.Name
			if len(p.events) == p.limit {
				p.more = more || i < len(stored)-1
				return nil
			}
		}
		if p.more = more; !more {
			return nil
		}
	}
	return nil
}

// decode returns the object of a stored event.
func decode(stored audit.Stored) (*model.AuditEvent, error) {
	event := &model.AuditEvent{}
	if err := json.Unmarshal(stored.JSON, &event.Status); err != nil {
		return nil, fmt.Errorf("reading the audit event %q: %w", stored.Name, err)
	}
	event.GetObjectKind().SetGroupVersionKind(Definition.GroupVersionKind())
	event.Name = stored.Name
	event.UID = types.UID(event.Status.AuditID + "/" + event.Status.Stage)
	event.CreationTimestamp = metav1.NewTime(event.Status.StageTimestamp.Truncate(time.Second))
	return event, nil
}

// sees reports whether a caller may see an event: the event is of a request of the caller or of one of their teams, or the caller
// is an admin. Created is the result of Log.Created: events before the creation of an owner are of an earlier owner with the same
// name.
func sees(caller identity.Caller, created map[string]time.Time, event *model.AuditEvent) bool {
	owner := event.Status.User.UID
	return auth.Owned(caller, owner).Allowed && !event.Status.StageTimestamp.Time.Before(created[owner])
}
