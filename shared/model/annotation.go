package model

// LastAppliedAnnotation is the annotation in which client-side kubectl apply keeps the whole manifest, secrets included.
// k8s.io/api/core/v1 has the same constant, and is too large to link for it.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// Annotations of a Config, or of a ConfigRollback, that say how it is written. Source: ADR-0024.
const (
	// ForceAnnotation with the value "true" writes a configuration that locks somebody out or names what cannot be reached. It
	// is not stored.
	ForceAnnotation = GroupName + "/force"
	// ConfirmWithinAnnotation takes a write back if nobody confirms it within this time, a Go duration. A write without the
	// annotation confirms.
	ConfirmWithinAnnotation = GroupName + "/confirm-within"
	// ChangeCauseAnnotation says why somebody writes. The history shows it for the write that sets it. kubectl uses the same for
	// the history of a rollout.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
)
