// Package audit records who requested what and what the result was: events of audit.k8s.io/v1, according to a policy
// that says which requests are recorded and in how much detail. It applies the policy, removes secrets by type, and
// passes the events to sinks through a bounded spool. The packages below it are the sinks. It never refuses a request
// itself, and it does not decide what a caller may do. Source: Spec 2.7 (audit), 6; ADR-0016.
package audit

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// Level is how much of a request is recorded. Source: Spec 2.7; the values come from audit.k8s.io.
type Level string

// The levels, from nothing to everything.
const (
	// None records nothing.
	None Level = "None"
	// Metadata records who requested what, when, and with what outcome.
	Metadata Level = "Metadata"
	// Request also records the object of the request.
	Request Level = "Request"
	// RequestResponse also records the object of the response.
	RequestResponse Level = "RequestResponse"
)

var ranks = map[Level]int{None: 0, Metadata: 1, Request: 2, RequestResponse: 3}

// Covers reports whether a level records everything that another level records.
func (l Level) Covers(other Level) bool { return ranks[l] >= ranks[other] }

// Stage is the point of a request at which an event is created.
type Stage string

// The stages of audit.k8s.io.
const (
	// RequestReceived is the stage before the operation starts.
	RequestReceived Stage = "RequestReceived"
	// ResponseStarted is the stage before the first byte of a streamed response, such as a watch.
	ResponseStarted Stage = "ResponseStarted"
	// ResponseComplete is the stage before the response is sent, and at the end of a watch.
	ResponseComplete Stage = "ResponseComplete"
	// Panic takes the place of ResponseComplete if the operation panicked.
	Panic Stage = "Panic"
)

// Annotations of events. Source: ADR-0016.
const (
	// RequestOmitted and ResponseOmitted say why an event does not contain an object although its level requires it:
	// decode-failed, too-large, unknown-type or revealed.
	RequestOmitted  = "audit.management.platform.sh/request-object-omitted"
	ResponseOmitted = "audit.management.platform.sh/response-object-omitted"
	// RequestID is the id of the request in the log.
	RequestID = "management.platform.sh/request-id"
	// Cause is the auditID of the request or run that caused the removal that the event records.
	Cause = "audit.management.platform.sh/cause"
	// Claimed are the addresses in X-Forwarded-For and X-Real-Ip that no trusted proxy set, separated by commas. Any
	// client can write them.
	Claimed = "audit.management.platform.sh/claimed-source-ips"
	// Revoked are the credentials that a request without a credential revoked: the resource, the name and the uid of each.
	Revoked = "audit.management.platform.sh/revoked"
	// AuthorizationDecision is the result of authorization, allow or forbid, as a kube-apiserver records it.
	AuthorizationDecision = "authorization.k8s.io/decision"
)

// Event is one event of audit.k8s.io/v1. Its fields have the names and the order of Kubernetes. Fields that are
// never set here are left out.
type Event struct {
	metav1.TypeMeta `json:",inline"`
	Level           Level `json:"level"`
	// AuditID is the same in all events of one request, and in the header Audit-Id of its response.
	AuditID string `json:"auditID"`
	Stage   Stage  `json:"stage"`
	// RequestURI is the path and query as they were sent. Values with arbitrary content are masked.
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       User   `json:"user"`
	// SourceIPs is the address of the client, as the connection or a trusted proxy gives it. The annotation Claimed has
	// the addresses that the client itself sent.
	SourceIPs []string `json:"sourceIPs,omitempty"`
	UserAgent string   `json:"userAgent,omitempty"`
	// ObjectRef is the object or resource that the request is about. Nil means a non-resource request.
	ObjectRef *ObjectReference `json:"objectRef,omitempty"`
	// ResponseStatus is the outcome, with the message that the caller received. Nil before the outcome is known.
	ResponseStatus *metav1.Status `json:"responseStatus,omitempty"`
	// RequestObject and ResponseObject are the objects of the request and the response, without secrets. Nil means that
	// the object is not recorded.
	RequestObject            json.RawMessage   `json:"requestObject,omitempty"`
	ResponseObject           json.RawMessage   `json:"responseObject,omitempty"`
	RequestReceivedTimestamp metav1.MicroTime  `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime  `json:"stageTimestamp"`
	Annotations              map[string]string `json:"annotations,omitempty"`
}

// User is the caller, in the form of authentication.k8s.io/v1.
type User struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// Anonymous is a caller without a valid credential.
var Anonymous = User{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}

// ObjectReference identifies an object, or a resource if there is no name.
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

func (e *Event) Annotate(name, value string) {
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[name] = value
}

// Record is an event as sinks store it.
type Record struct {
	// AuditID and Stage are unique together.
	AuditID string
	Stage   Stage
	At      time.Time
	// JSON is the event on one line, without the newline.
	JSON []byte
}

// record encodes an event. The result contains none of the hidden texts, and nothing that looks like a bearer token of
// the platform.
func (e *Event) record(hidden []secret.String) (*Record, error) {
	e.Kind, e.APIVersion = "Event", "audit.k8s.io/v1"
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding the audit event: %w", err)
	}
	return &Record{AuditID: e.AuditID, Stage: e.Stage, At: e.StageTimestamp.Time, JSON: mask(text, hidden)}, nil
}
