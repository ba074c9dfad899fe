package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualClusterInstanceKubeConfig is the request for a kubeconfig of a virtual cluster instance, and
// its answer. It is created at the kubeconfig subresource of virtualclusterinstances and is not stored.
// Source: Spec 2.6, 4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstanceKubeConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata; its namespace is that of the instance. Source: Spec 2.2, 2.6.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is which kubeconfig is wanted. It may be empty. Source: Spec 2.6.
	// +optional
	Spec VirtualClusterInstanceKubeConfigSpec `json:"spec"`
	// Status is the kubeconfig; what clients send here is ignored. Source: Spec 2.6.
	// +optional
	Status VirtualClusterInstanceKubeConfigStatus `json:"status"`
}

// VirtualClusterInstanceKubeConfigSpec is which kubeconfig is wanted. Source: Spec 2.6.
type VirtualClusterInstanceKubeConfigSpec struct {
	// CertificateTTLSeconds is the lifetime of the credential in the kubeconfig, in whole seconds.
	// Absent means one day (86400). 0 requests no lifetime: the credential is then valid for the signing
	// duration of the cluster, typically one year. Negative is Invalid. Source: Spec 2.6, 8.
	// +optional
	CertificateTTLSeconds *int64 `json:"certificateTTL,omitempty"`
	// Server overrides the server address in the kubeconfig. Empty means the ingress endpoint of the
	// instance; where it has none the request is refused. Source: Spec 2.6.
	// +optional
	Server string `json:"server,omitempty"`
	// ClientCert asks for a generated client certificate instead of a platform token. Source: Spec 2.6.
	// +optional
	ClientCert bool `json:"clientCert,omitempty"`
}

// VirtualClusterInstanceKubeConfigStatus is the answer. Source: Spec 2.6.
type VirtualClusterInstanceKubeConfigStatus struct {
	// KubeConfig is the final kubeconfig document, as YAML text. It holds a credential.
	// Source: Spec 2.6.
	// +optional
	KubeConfig string `json:"kubeConfig,omitempty" secret:"true"`
	// ExpirationTimestamp is when the credential in the kubeconfig ends. Source: ADR-0017.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
}
