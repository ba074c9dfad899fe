package model

// LastAppliedAnnotation is the annotation in which client-side kubectl apply keeps the whole manifest, secrets included.
// The package k8s.io/api/core/v1 has the same constant, but is too large to link for one constant.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// Annotations of a Config, or of a ConfigRollback, that say how it is written. Source: ADR-0024.
const (
	// ForceAnnotation with the value "true" permits a configuration that locks a user out, or that names a file or a server
	// that cannot be reached. The annotation is not stored.
	ForceAnnotation = GroupName + "/force"
	// ConfirmWithinAnnotation is a Go duration. The platform takes the write back unless a second write confirms it within
	// that time. A write without the annotation confirms.
	ConfirmWithinAnnotation = GroupName + "/confirm-within"
	// ChangeCauseAnnotation is the reason for a write. The history shows it for the write that sets it. kubectl uses the
	// same annotation for the history of a rollout.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
)
