package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigHistory is the latest revisions of the configuration: the answer of config/{name}/history.
// Source: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigHistory struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata; of it name is set. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has no fields. Source: ADR-0015.
	// +optional
	Spec ConfigHistorySpec `json:"spec"`
	// Status is the history. Source: ADR-0015.
	// +optional
	Status ConfigHistoryStatus `json:"status"`
}

// ConfigHistorySpec has no fields. Source: ADR-0015.
type ConfigHistorySpec struct{}

// ConfigHistoryStatus is the latest revisions of the configuration. Source: ADR-0015.
type ConfigHistoryStatus struct {
	// Revisions are at most twenty, the latest first. Empty: the configuration was never written through the
	// API. Source: ADR-0015.
	// +optional
	// +listType=atomic
	Revisions []ConfigRevision `json:"revisions,omitempty"`
}

// ConfigRevision is one write of the configuration. Source: ADR-0015.
type ConfigRevision struct {
	// Revision is the resourceVersion that the write made, which a rollback can name. Source: ADR-0015.
	Revision string `json:"revision"`
	// Author is who wrote it, as kind and name, such as `user:ana`. Source: ADR-0015.
	// +optional
	Author string `json:"author,omitempty"`
	// Time is when it was written. Source: ADR-0015.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// RolledBackTo is the revision whose configuration the write brought back. Empty: it was no rollback.
	// Source: ADR-0015.
	// +optional
	RolledBackTo string `json:"rolledBackTo,omitempty"`
	// Changes are the fields in which it differs from the revision before, in the order of their paths.
	// Source: ADR-0015.
	// +optional
	// +listType=atomic
	Changes []ConfigChange `json:"changes,omitempty"`
}

// ConfigChange is one field that a write changed, with a mark in place of each secret. Source: ADR-0015.
type ConfigChange struct {
	// Path is the field, such as `status.auth.accessKeyMaxTTLSeconds`. Source: ADR-0015.
	Path string `json:"path"`
	// From is the value before. Absent: there was none. Source: ADR-0015.
	// +optional
	From *JSON `json:"from,omitempty"`
	// To is the value after. Absent: there is none. Source: ADR-0015.
	// +optional
	To *JSON `json:"to,omitempty"`
}

// ConfigRollback brings the configuration of an earlier revision back, as a new revision: the body and the
// answer of config/{name}/rollback. Source: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigRollback struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata; a resourceVersion in it must be that of the configuration.
	// Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says which revision. Source: ADR-0015.
	// +optional
	Spec ConfigRollbackSpec `json:"spec"`
	// Status is what became of it. Source: ADR-0015.
	// +optional
	Status ConfigRollbackStatus `json:"status"`
}

// ConfigRollbackSpec says which revision of the configuration to bring back. Source: ADR-0015.
type ConfigRollbackSpec struct {
	// Revision is one of the history. Source: ADR-0015.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ConfigRollbackStatus is what became of a rollback. Source: ADR-0015.
type ConfigRollbackStatus struct {
	// ResourceVersion is that of the configuration after the rollback. Source: ADR-0015.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Changes are the fields that the rollback changed. Empty: the configuration was the same already.
	// Source: ADR-0015.
	// +optional
	// +listType=atomic
	Changes []ConfigChange `json:"changes,omitempty"`
}
