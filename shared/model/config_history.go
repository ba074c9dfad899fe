package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigHistory contains the latest revisions of the configuration. It is the response of
// config/{name}/history. Source: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigHistory struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Only its name is set. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has no fields. Source: ADR-0015.
	// +optional
	Spec ConfigHistorySpec `json:"spec"`
	// Status contains the revisions. Source: ADR-0015.
	// +optional
	Status ConfigHistoryStatus `json:"status"`
}

// ConfigHistorySpec has no fields. Source: ADR-0015.
type ConfigHistorySpec struct{}

// ConfigHistoryStatus contains the latest revisions of the configuration. Source: ADR-0015.
type ConfigHistoryStatus struct {
	// Revisions are the latest revisions, the newest first: the last 20, and all of the last 30 days up to 200. Writes that
	// change only labels and annotations are left out. The last entry is the configuration before the other entries;
	// revision 1 is the configuration before the first write. Empty means that the configuration was never written. Source:
	// ADR-0015, ADR-0024.
	// +optional
	// +listType=atomic
	Revisions []ConfigRevision `json:"revisions,omitempty"`
}

// ConfigRevision is one write of the configuration. Source: ADR-0015.
type ConfigRevision struct {
	// Revision is the resourceVersion that the write produced. A rollback can name it. Source: ADR-0015.
	Revision string `json:"revision"`
	// Author is the author of the revision, as kind and name, such as `user:ana`. Empty for revision 1.
	// Source: ADR-0015.
	// +optional
	Author string `json:"author,omitempty"`
	// Time is the time of the write. Null for revision 1. Source: ADR-0015.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// RolledBackTo is the revision that the write restored. Empty if the write was not a rollback.
	// Source: ADR-0015.
	// +optional
	RolledBackTo string `json:"rolledBackTo,omitempty"`
	// Reason says why the configuration was written. It is the annotation `kubernetes.io/change-cause`, if the write set
	// it. At most 500 bytes are shown. Source: ADR-0024.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Changes are the fields that differ from the previous revision, in the order of their paths.
	// Source: ADR-0015.
	// +optional
	// +listType=atomic
	Changes []ConfigChange `json:"changes,omitempty"`
}

// ConfigChange is one field that a write changed. A mark stands in place of each secret. Source: ADR-0015.
type ConfigChange struct {
	// Path is the path of the field, such as `status.auth.accessKeyMaxTTLSeconds`. Source: ADR-0015.
	Path string `json:"path"`
	// From is the value before the write. Absent if the field had none. Source: ADR-0015.
	// +optional
	From *JSON `json:"from,omitempty"`
	// To is the value after the write. Absent if the field has none. Source: ADR-0015.
	// +optional
	To *JSON `json:"to,omitempty"`
}

// ConfigRollback restores the configuration of an earlier revision as a new revision. It is the request and
// the response of config/{name}/rollback. Source: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigRollback struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. If it contains a resourceVersion, it must be the current resourceVersion of the
	// configuration. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec selects the revision to restore. Source: ADR-0015.
	// +optional
	Spec ConfigRollbackSpec `json:"spec"`
	// Status is the result of the rollback. Source: ADR-0015.
	// +optional
	Status ConfigRollbackStatus `json:"status"`
}

// ConfigRollbackSpec selects the revision of the configuration to restore. Source: ADR-0015.
type ConfigRollbackSpec struct {
	// Revision is the revision to restore, as the history names it. Source: ADR-0015.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ConfigRollbackStatus is the result of a rollback. Source: ADR-0015.
type ConfigRollbackStatus struct {
	// ResourceVersion is the resourceVersion of the configuration after the rollback. Source: ADR-0015.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Changes are the fields that the rollback changed. Empty means that the configuration was the same already.
	// Source: ADR-0015.
	// +optional
	// +listType=atomic
	Changes []ConfigChange `json:"changes,omitempty"`
}
