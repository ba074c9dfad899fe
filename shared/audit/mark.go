package audit

import (
	"encoding/json"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

const (
	// Log is the annotation for what a mark records about the log itself: Begun, Changed or Ended.
	Log = "audit.management.platform.sh/log"
	// Reason is the annotation for why a log ended or changed: configuration or process.
	Reason = "audit.management.platform.sh/reason"
)

// The values of the annotation Log.
const (
	// Begun is the first event that a process writes to a directory.
	Begun = "begun"
	// Changed is the event of a process that records by another policy from then on.
	Changed = "changed"
	// Ended is the last event that a process writes to a sink. A process that is killed writes none.
	Ended = "ended"
)

// The values of the annotation Reason.
const (
	byConfiguration = "configuration"
	byProcess       = "process"
)

// markPath is the request URI of marks. No request has this path.
const markPath = "/audit"

// NewMark returns an event about the log itself: Begun, Changed or Ended. Reason may be empty. Config is the audit
// configuration that the event leads to, or nil; the event contains it without its secrets.
func NewMark(verb, reason string, config *model.ConfigAudit) *Record {
	now := metav1.NowMicro()
	event := &Event{
		Level: Request, AuditID: uuid.NewString(), Stage: ResponseComplete, RequestURI: markPath, Verb: verb,
		User:                     User{Username: identity.Owner{Kind: identity.Subject, Name: "audit"}.Username()},
		RequestReceivedTimestamp: now, StageTimestamp: now,
	}
	event.Annotate(Log, verb)
	if reason != "" {
		event.Annotate(Reason, reason)
	}
	if config != nil {
		// The only secret of the configuration is a secret.String, which encodes as a mark.
		event.RequestObject, _ = json.Marshal(map[string]any{"status": map[string]any{"audit": config}})
	}
	record, _ := event.record(nil) // an event of plain texts can always be encoded
	return record
}
