// Package audit records who asked for what and what became of it: events of audit.k8s.io/v1, by a policy that says
// which requests are recorded and how much of them. It decides, takes secrets out by type, and hands the events to
// sinks through a bounded spool; the packages below it are the sinks. It never refuses a request by itself, and it
// decides nothing about what a caller may do. Source: Spec 2.7 (audit), 6; ADR-0016.
package audit

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// Level is how much of a request is recorded. Source: Spec 2.7; the values are those of audit.k8s.io.
type Level string

// The levels, from nothing to everything.
const (
	// None records nothing.
	None Level = "None"
	// Metadata records who asked for what, when and with what outcome.
	Metadata Level = "Metadata"
	// Request records the object that was sent as well.
	Request Level = "Request"
	// RequestResponse records the object that was answered as well.
	RequestResponse Level = "RequestResponse"
)

var ranks = map[Level]int{None: 0, Metadata: 1, Request: 2, RequestResponse: 3}

// Covers tells whether a level records all that another one does.
func (l Level) Covers(other Level) bool { return ranks[l] >= ranks[other] }

// Stage is how far a request has come when its event is made.
type Stage string

// The stages of audit.k8s.io.
const (
	// RequestReceived comes before anything is done.
	RequestReceived Stage = "RequestReceived"
	// ResponseStarted comes before the first byte of an answer that is sent bit by bit, such as a watch.
	ResponseStarted Stage = "ResponseStarted"
	// ResponseComplete comes before the answer is sent, and at the end of a watch.
	ResponseComplete Stage = "ResponseComplete"
	// Panic stands for ResponseComplete where the operation has panicked.
	Panic Stage = "Panic"
)

// Annotations of events. Source: ADR-0016.
const (
	// RequestOmitted and ResponseOmitted say why an object is not in an event whose level asks for it: decode-failed,
	// too-large, unknown-type or revealed.
	RequestOmitted  = "audit.management.platform.sh/request-object-omitted"
	ResponseOmitted = "audit.management.platform.sh/response-object-omitted"
	// RequestID is the id that the log has of the request.
	RequestID = "management.platform.sh/request-id"
	// Cause is the auditID of the request or run that removed the object of an event, where that has one of its own.
	Cause = "audit.management.platform.sh/cause"
	// Decision is what authorization said, allow or forbid, as a kube-apiserver records it.
	Decision = "authorization.k8s.io/decision"
)

// Event is one event of audit.k8s.io/v1. The names and order of its fields are those of Kubernetes; fields that
// nothing here fills are left out.
type Event struct {
	metav1.TypeMeta `json:",inline"`
	// Level is how much is recorded.
	Level Level `json:"level"`
	// AuditID is the same in all events of one request, and in the header Audit-Id of its answer.
	AuditID string `json:"auditID"`
	Stage   Stage  `json:"stage"`
	// RequestURI is the path and query as they were sent, with values masked that may be anything.
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       User   `json:"user"`
	// SourceIPs are the address of the client and the proxies that it came through, as far as they say so.
	SourceIPs []string `json:"sourceIPs,omitempty"`
	UserAgent string   `json:"userAgent,omitempty"`
	// ObjectRef is what the request is about. Nil: it is about no resource.
	ObjectRef *ObjectReference `json:"objectRef,omitempty"`
	// ResponseStatus is the outcome. Its message is what the caller was told. Nil before there is one.
	ResponseStatus *metav1.Status `json:"responseStatus,omitempty"`
	// RequestObject and ResponseObject are what was sent and answered, without secrets. Nil: not recorded.
	RequestObject            json.RawMessage   `json:"requestObject,omitempty"`
	ResponseObject           json.RawMessage   `json:"responseObject,omitempty"`
	RequestReceivedTimestamp metav1.MicroTime  `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime  `json:"stageTimestamp"`
	Annotations              map[string]string `json:"annotations,omitempty"`
}

// User is who asked, in the form of authentication.k8s.io/v1.
type User struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// Anonymous is who asks without a valid credential.
var Anonymous = User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}

// ObjectReference is an object, or a resource where there is no name.
type ObjectReference struct {
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Subresource     string `json:"subresource,omitempty"`
}

// Annotate adds an annotation.
func (e *Event) Annotate(name, value string) {
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[name] = value
}

// Record is an event as sinks keep it.
type Record struct {
	// AuditID and Stage are unique together.
	AuditID string
	Stage   Stage
	// At is the time of the stage.
	At time.Time
	// JSON is the event on one line, without its end.
	JSON []byte
}

// record encodes an event. No text of hidden is in it, and nothing that looks like a bearer of ours.
func (e *Event) record(hidden []secret.String) (*Record, error) {
	e.Kind, e.APIVersion = "Event", "audit.k8s.io/v1"
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding the audit event: %w", err)
	}
	return &Record{AuditID: e.AuditID, Stage: e.Stage, At: e.StageTimestamp.Time, JSON: mask(text, hidden)}, nil
}
