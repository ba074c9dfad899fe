package auditevent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// selectable has the fields of selectors that compare texts.
var selectable = map[string]func(*model.AuditEvent) string{
	"user":          func(e *model.AuditEvent) string { return e.Status.User.Username },
	"verb":          func(e *model.AuditEvent) string { return e.Status.Verb },
	"resource":      func(e *model.AuditEvent) string { return object(e).Resource },
	"subresource":   func(e *model.AuditEvent) string { return object(e).Subresource },
	"namespace":     func(e *model.AuditEvent) string { return object(e).Namespace },
	"name":          func(e *model.AuditEvent) string { return object(e).Name },
	"accessKey":     accessKey,
	"metadata.name": func(e *model.AuditEvent) string { return e.Name },
}

// The fields of selectors that do not compare texts.
const (
	codeField   = "code"
	afterField  = "after"
	beforeField = "before"
)

// object returns the object of an event's request. Its fields are empty if the request had none.
func object(event *model.AuditEvent) model.AuditEventObject {
	if event.Status.ObjectRef == nil {
		return model.AuditEventObject{}
	}
	return *event.Status.ObjectRef
}

// accessKey returns the name of the access key of an event's request. Empty: the request had another credential, or none.
func accessKey(event *model.AuditEvent) string {
	return strings.Join(event.Status.User.Extra[identity.ExtraAccessKey], ",")
}

// selector selects events.
type selector struct {
	// after and before are exclusive bounds of the stage timestamp. Zero: there is no bound.
	after, before time.Time
	terms         []func(*model.AuditEvent) bool
}

// matches reports whether an event is selected.
func (s *selector) matches(event *model.AuditEvent) bool {
	at := event.Status.StageTimestamp.Time
	if !s.after.IsZero() && !at.After(s.after) || !s.before.IsZero() && !at.Before(s.before) {
		return false
	}
	return !slices.ContainsFunc(s.terms, func(term func(*model.AuditEvent) bool) bool { return !term(event) })
}

// readSelector reads the field selector of a list. Nil selects all. Error: BadRequest for an unknown field or a wrong value.
func readSelector(given fields.Selector) (*selector, error) {
	s := &selector{}
	if given == nil {
		return s, nil
	}
	for _, term := range given.Requirements() {
		if err := s.add(term); err != nil {
			why := err.Error()
			return nil, apierror.BadRequest("fieldSelector: "+why, field.ErrorList{field.Invalid(field.NewPath("fieldSelector"), given.String(), why)})
		}
	}
	return s, nil
}

func (s *selector) add(term fields.Requirement) error {
	differs := term.Operator == selection.NotEquals
	switch term.Field {
	case afterField, beforeField:
		instant, err := time.Parse(time.RFC3339Nano, term.Value)
		if err != nil || differs {
			return fmt.Errorf("%s: must be = and a time such as 2026-01-31T10:00:00Z", term.Field)
		}
		if term.Field == afterField && instant.After(s.after) {
			s.after = instant
		}
		if term.Field == beforeField && (s.before.IsZero() || instant.Before(s.before)) {
			s.before = instant
		}
	case codeField:
		within, err := codes(term.Value)
		if err != nil {
			return err
		}
		s.terms = append(s.terms, func(event *model.AuditEvent) bool {
			return event.Status.ResponseStatus != nil && within(event.Status.ResponseStatus.Code) != differs
		})
	default:
		value, known := selectable[term.Field]
		if !known {
			all := append(slices.Collect(maps.Keys(selectable)), codeField, afterField, beforeField)
			slices.Sort(all)
			return fmt.Errorf("unknown field %q: use %s", term.Field, strings.Join(all, ", "))
		}
		s.terms = append(s.terms, func(event *model.AuditEvent) bool { return (value(event) == term.Value) != differs })
	}
	return nil
}

// codes returns a function that reports whether a status code matches a value: one code, or all codes that begin with a digit.
func codes(value string) (func(int32) bool, error) {
	if class, all := strings.CutSuffix(value, "xx"); all && len(class) == 1 && class >= "1" && class <= "5" {
		return func(code int32) bool { return code/100 == int32(class[0]-'0') }, nil
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil || number < 100 || number > 599 {
		return nil, fmt.Errorf("%s: must be a status code such as 403, or all of a kind such as 4xx", codeField)
	}
	return func(code int32) bool { return code == int32(number) }, nil
}
