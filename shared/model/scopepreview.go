package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopePreview says what an access key with a scope would permit, before the key is created, or who may make a request. It is
// cluster-scoped and created at scopepreviews. The server does not store it. Source: ADR-0030, ADR-0057.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ScopePreview struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec selects the scope to preview. Source: ADR-0030.
	// +optional
	Spec ScopePreviewSpec `json:"spec"`
	// Status is the answer. It is ignored in requests. Source: ADR-0030.
	// +optional
	Status ScopePreviewStatus `json:"status"`
}

// ScopePreviewSpec selects the scope to preview. Source: ADR-0030.
type ScopePreviewSpec struct {
	// Scope is the scope of an access key that the caller could create. If absent, status says what the caller itself may
	// do. Source: Spec 2.3.
	// +optional
	Scope *Scope `json:"scope,omitempty"`
	// Namespace is the namespace that the rules apply to, such as the namespace of a project. If empty, the rules apply to
	// requests for all namespaces. Source: ADR-0030.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Request is a request to decide. If absent, no request is decided. Source: ADR-0030.
	// +optional
	Request *ScopePreviewRequest `json:"request,omitempty"`
	// WhoCan is a request for a resource: status.subjects says who may make it. The other fields must then be absent. Source:
	// ADR-0057.
	// +optional
	WhoCan *ScopePreviewRequest `json:"whoCan,omitempty"`
}

// ScopePreviewRequest is a request to this API: for a resource, or for a path. Source: ADR-0030.
type ScopePreviewRequest struct {
	// Verb is the Kubernetes verb, such as list; for a path, it is the HTTP method in lower case. `*` is every verb.
	// Source: ADR-0023.
	Verb string `json:"verb"`
	// Group is the API group of the resource. Source: ADR-0023.
	// +optional
	Group string `json:"group,omitempty"`
	// Resource is the plural name of the resource. Source: ADR-0023.
	// +optional
	Resource string `json:"resource,omitempty"`
	// Subresource is the subresource, such as kubeconfig. Source: ADR-0023.
	// +optional
	Subresource string `json:"subresource,omitempty"`
	// Namespace is the namespace of the object. Source: ADR-0023.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object. Source: ADR-0023.
	// +optional
	Name string `json:"name,omitempty"`
	// Path is the path of a request that is not for a resource. Set either path or resource. Source: ADR-0023.
	// +optional
	Path string `json:"path,omitempty"`
}

// ScopePreviewStatus says what a scope permits. Source: ADR-0030.
type ScopePreviewStatus struct {
	// Rules are the requests that the key could make in the namespace. A request for a single object can still be refused,
	// because callers see and change only their own objects. Source: ADR-0023.
	// +optional
	// +listType=atomic
	Rules []ScopePreviewRule `json:"rules,omitempty"`
	// Incomplete is true if the scope names more objects than the rules show, or if more subjects may make the request of
	// spec.whoCan than subjects has. Source: ADR-0023, ADR-0057.
	// +optional
	Incomplete bool `json:"incomplete,omitempty"`
	// Excess are the entries of the scope that permit more than the caller may do. A key with such entries is refused.
	// Source: ADR-0005.
	// +optional
	// +listType=atomic
	Excess []ScopePreviewExcess `json:"excess,omitempty"`
	// Decision is the decision about spec.request. Absent without a request. Source: ADR-0023.
	// +optional
	Decision *ScopePreviewDecision `json:"decision,omitempty"`
	// Subjects are the teams and the users who may make the request of spec.whoCan with a credential without a scope, and the owners
	// who may with the groups of an access key. Source: ADR-0057.
	// +optional
	// +listType=atomic
	Subjects []ScopePreviewSubject `json:"subjects,omitempty"`
}

// ScopePreviewSubject is a user, a team or a subject that may make a request. Source: ADR-0057.
type ScopePreviewSubject struct {
	// User is the name of the user. Exactly one of user, team and subject is set. Source: ADR-0057.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the team. Source: ADR-0057.
	// +optional
	Team string `json:"team,omitempty"`
	// Subject is the name of the subject of an access key. Source: ADR-0057.
	// +optional
	Subject string `json:"subject,omitempty"`
	// AccessKey is the access key whose groups permit the request, if the owner without this key may not make it. Source: ADR-0057.
	// +optional
	AccessKey string `json:"accessKey,omitempty"`
	// DisplayName is the name that people read. Source: ADR-0029.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Teams are the teams of the user that may make the request as well. Source: ADR-0057.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
	// Source is what gives the right: Admin, Owner, Project (a role in it) or Access (spec.access). Absent: the request is permitted
	// to every caller. Source: ADR-0057.
	// +optional
	Source string `json:"source,omitempty"`
	// Reason names the rule that permits the request. Source: ADR-0023.
	Reason string `json:"reason"`
	// Also are the other rules that permit the request. Each of them suffices, so that the request is permitted until all of them are
	// gone. Source: ADR-0057.
	// +optional
	// +listType=atomic
	Also []ScopePreviewGrant `json:"also,omitempty"`
}

// ScopePreviewGrant is a rule that permits a request. Source: ADR-0057.
type ScopePreviewGrant struct {
	// Source is what gives the right, as in the subject. Source: ADR-0057.
	// +optional
	Source string `json:"source,omitempty"`
	// Reason names the rule. Source: ADR-0023.
	Reason string `json:"reason"`
}

// ScopePreviewRule is a set of requests. Source: ADR-0030.
type ScopePreviewRule struct {
	// Verbs are the verbs of the requests. Source: ADR-0023.
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// Group is the API group of the resource. Source: ADR-0023.
	// +optional
	Group string `json:"group,omitempty"`
	// Resource is the resource, with its subresource after a slash. Empty if the rule is about paths. Source: ADR-0023.
	// +optional
	Resource string `json:"resource,omitempty"`
	// Names are the names of the objects. Empty means every object. Source: ADR-0023.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
	// Paths are the paths of the requests, if the rule is about paths. Source: ADR-0023.
	// +optional
	// +listType=atomic
	Paths []string `json:"paths,omitempty"`
}

// ScopePreviewExcess is an entry of a scope that is too wide. Source: ADR-0030.
type ScopePreviewExcess struct {
	// Field is the path of the entry. Source: ADR-0005.
	Field string `json:"field"`
	// Message says why the entry is too wide. Source: ADR-0005.
	Message string `json:"message"`
}

// ScopePreviewDecision says whether a request is permitted, and why. Source: ADR-0023.
type ScopePreviewDecision struct {
	// Allowed is true if the request is permitted. Source: ADR-0023.
	Allowed bool `json:"allowed"`
	// Reason names the rule that decided. For a refusal, it says what would permit the request. Source: ADR-0023.
	Reason string `json:"reason"`
}
