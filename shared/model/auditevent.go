package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditEvent is the audit event of one stage of a request. It is cluster-scoped and served at auditevents, where it can
// only be read. Callers see the events of their own requests and of the requests of their teams. Admins see all events.
// Source: ADR-0034.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type AuditEvent struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. The name is the position of the event in the data store, and creationTimestamp
	// is the time of the stage. Source: ADR-0034.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has no fields. Source: ADR-0034.
	// +optional
	Spec AuditEventSpec `json:"spec"`
	// Status is the event, with the fields of audit.k8s.io/v1. It contains no secrets. Source: ADR-0016, ADR-0034.
	// +optional
	Status AuditEventStatus `json:"status"`
}

// AuditEventList is one page of events. Source: ADR-0034.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type AuditEventList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. It has no resourceVersion. Source: Spec 2.2; ADR-0034.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the events, the newest first.
	// +listType=atomic
	Items []AuditEvent `json:"items"`
}

// AuditEventSpec has no fields. Source: ADR-0034.
type AuditEventSpec struct{}

// AuditEventStatus is the event, as it is in the data store. Source: ADR-0016.
type AuditEventStatus struct {
	// Level is the amount of detail that is recorded: Metadata, Request or RequestResponse. Source: Spec 2.7.
	Level string `json:"level"`
	// AuditID is the same in all events of one request, and in the header Audit-Id of its response. Source: ADR-0016.
	AuditID string `json:"auditID"`
	// Stage is the point of the request: RequestReceived, ResponseStarted, ResponseComplete or Panic. Source: Spec 2.7.
	Stage string `json:"stage"`
	// RequestURI is the path and query of the request. Source: ADR-0016.
	RequestURI string `json:"requestURI"`
	// Verb is the Kubernetes verb; for a path that is not a resource, it is the HTTP method in lower case. Source:
	// ADR-0016.
	Verb string `json:"verb"`
	// User is the caller. Source: ADR-0016.
	User AuditEventUser `json:"user"`
	// SourceIPs contains the address of the client, as the connection or a trusted proxy reports it. Source: ADR-0016.
	// +optional
	// +listType=atomic
	SourceIPs []string `json:"sourceIPs,omitempty"`
	// UserAgent is the User-Agent header, in which the client names its program. Source: ADR-0016.
	// +optional
	UserAgent string `json:"userAgent,omitempty"`
	// ObjectRef is the object or resource that the request is about. Absent if it is about a path. Source: ADR-0016.
	// +optional
	ObjectRef *AuditEventObject `json:"objectRef,omitempty"`
	// ResponseStatus is the outcome. Absent before the outcome is known. Source: ADR-0016.
	// +optional
	ResponseStatus *AuditEventOutcome `json:"responseStatus,omitempty"`
	// RequestObject is the object of the request, without its secrets. Absent if it is not recorded. Source: ADR-0016.
	// +optional
	RequestObject *JSON `json:"requestObject,omitempty"`
	// ResponseObject is the object of the response, without its secrets. Absent if it is not recorded. Source: ADR-0016.
	// +optional
	ResponseObject *JSON `json:"responseObject,omitempty"`
	// RequestReceivedTimestamp is the time at which the request arrived. Source: ADR-0016.
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	// StageTimestamp is the time of the stage. Source: ADR-0016.
	StageTimestamp metav1.MicroTime `json:"stageTimestamp"`
	// Annotations are further facts about the event. Source: ADR-0016.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// AuditEventUser is the caller of a request, in the form of authentication.k8s.io/v1. Source: ADR-0016.
type AuditEventUser struct {
	// Username is the name of the user, or of a team or subject with its prefix. Source: ADR-0016.
	// +optional
	Username string `json:"username,omitempty"`
	// UID is the kind and the name of the caller, such as `user:ana`. Empty if the credential was not valid.
	// Source: ADR-0016.
	// +optional
	UID string `json:"uid,omitempty"`
	// Groups are the groups of the caller. Source: ADR-0016.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Extra contains the name of the access key. Source: ADR-0016.
	// +optional
	Extra map[string][]string `json:"extra,omitempty"`
}

// AuditEventObject identifies an object, or a resource if there is no name. Source: ADR-0016.
type AuditEventObject struct {
	// Resource is the plural name of the resource. Source: ADR-0016.
	// +optional
	Resource string `json:"resource,omitempty"`
	// Namespace is the namespace of the object. Source: ADR-0016.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object. Source: ADR-0016.
	// +optional
	Name string `json:"name,omitempty"`
	// UID is the uid of the object. Source: ADR-0016.
	// +optional
	UID string `json:"uid,omitempty"`
	// APIGroup is the API group of the resource. Source: ADR-0016.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// APIVersion is the version of the resource. Source: ADR-0016.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// ResourceVersion is the resourceVersion of the object. Source: ADR-0016.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Subresource is the subresource, such as kubeconfig. Source: ADR-0016.
	// +optional
	Subresource string `json:"subresource,omitempty"`
}

// AuditEventOutcome is the outcome of a request. Source: ADR-0016.
type AuditEventOutcome struct {
	// Status is Success or Failure. Source: ADR-0016.
	// +optional
	Status string `json:"status,omitempty"`
	// Message is the message that the caller received. Source: ADR-0016.
	// +optional
	Message string `json:"message,omitempty"`
	// Reason is the reason of a failure, such as Forbidden. Source: ADR-0016.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Code is the HTTP status code. Source: ADR-0016.
	// +optional
	Code int32 `json:"code,omitempty"`
}
