package frame

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

const (
	// operatorPath is the path that the events of operators' commands give. It serves no requests.
	operatorPath = "/operators/"
	// operatorPrefix and the name of a command are the user of its events.
	operatorPrefix = identity.PlatformPrefix + "operator:"
)

// Operate does the work of an operator's command on the state, and records it as the user platform:operator:<command>: each object
// that do writes or removes with the context that it gets, and the command itself, whose verb is run, with attributes that say what
// it was asked for.
//
// Errors: the error of do; Unavailable if the policy refuses what is not recorded. If the command was carried out before that, the
// error says so. Source: ADR-0047.
func (s *Server) Operate(ctx context.Context, command string, do func(context.Context) error, attributes ...slog.Attr) error {
	if s.Audit == nil {
		return do(ctx)
	}
	r := s.running(operatorUser(command), operatorPath+command, time.Now())
	for _, attribute := range attributes {
		r.event.Annotate(model.GroupName+"/"+attribute.Key, attribute.Value.String())
	}
	// The command may change where events are recorded.
	r.held = s.Audit.Hold()
	defer r.release()
	if err := r.record(audit.RequestReceived); err != nil {
		return err
	}
	observed := resource.ObserveWrites(r.watchRemovals(ctx), r.addChange)
	err := do(observed)
	if unrecorded := r.concludeCommand(err); err == nil && unrecorded != nil {
		return fmt.Errorf("the command was carried out and is not recorded: %w", unrecorded)
	}
	return err
}

// operatorUser returns the user of an operator's command.
func operatorUser(command string) audit.User {
	caller := identity.New(identity.Owner{Kind: identity.Subject, Name: operatorPrefix + command}, []string{identity.Admins})
	user := userOf(caller)
	user.Username = caller.Owner.Name
	return user
}

// concludeCommand records an event for each object that a command has written or removed, and one for its outcome.
func (r *recording) concludeCommand(err error) error {
	events := r.eventsOf(r.changes)
	if r.decision.Records(audit.ResponseComplete) {
		event := r.event
		event.Stage, event.StageTimestamp, event.ResponseStatus = audit.ResponseComplete, metav1.NowMicro(), statusOf(err)
		events = append(events, audit.Entry{Decision: r.decision, Event: &event})
	}
	return r.conclusive(events...)
}

// statusOf returns the outcome of work without a request.
func statusOf(err error) *metav1.Status {
	if err == nil {
		return &metav1.Status{Code: http.StatusOK, Status: metav1.StatusSuccess}
	}
	reported := apierror.From(err).Status()
	return &metav1.Status{Code: reported.Code, Status: reported.Status, Reason: reported.Reason, Message: reported.Message}
}
