package model

// LastAppliedAnnotation is the annotation in which client-side kubectl apply keeps the whole manifest, secrets included.
// k8s.io/api/core/v1 has the same constant, and is too large to link for it.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
