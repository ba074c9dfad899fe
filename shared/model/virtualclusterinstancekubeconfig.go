package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualClusterInstanceKubeConfig is a request for a kubeconfig of a virtual cluster instance, and its
// answer. It is created at the kubeconfig subresource of virtualclusterinstances. The server does not store
// it. Source: Spec 2.6, 4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstanceKubeConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Its namespace is the namespace of the instance. Source: Spec 2.2,
	// 2.6.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec describes the kubeconfig to render. It may be empty. Source: Spec 2.6.
	// +optional
	Spec VirtualClusterInstanceKubeConfigSpec `json:"spec"`
	// Status contains the kubeconfig. It is ignored in requests. Source: Spec 2.6.
	// +optional
	Status VirtualClusterInstanceKubeConfigStatus `json:"status"`
}

// VirtualClusterInstanceKubeConfigSpec describes the kubeconfig to render. Source: Spec 2.6.
type VirtualClusterInstanceKubeConfigSpec struct {
	// CertificateTTLSeconds is the lifetime of the credential in the kubeconfig, in seconds. If absent, it is
	// one day (86400). 0 requests no lifetime: the credential is then valid for the signing duration of the
	// cluster, typically one year. Negative values are refused. Source: Spec 2.6, 8.
	// +optional
	CertificateTTLSeconds *int64 `json:"certificateTTL,omitempty"`
	// Server overrides the server address in the kubeconfig. If empty, the ingress endpoint of the instance is
	// used; if the instance has none, the request is refused. Source: Spec 2.6.
	// +optional
	Server string `json:"server,omitempty"`
	// ClientCert requests a generated client certificate instead of a platform token. Defaults to false.
	// Source: Spec 2.6.
	// +optional
	ClientCert bool `json:"clientCert,omitempty"`
}

// VirtualClusterInstanceKubeConfigStatus contains the rendered kubeconfig. Source: Spec 2.6.
type VirtualClusterInstanceKubeConfigStatus struct {
	// KubeConfig is the rendered kubeconfig, as YAML text. It contains a credential. Source: Spec 2.6.
	// +optional
	KubeConfig string `json:"kubeConfig,omitempty" secret:"true"`
	// ExpirationTimestamp is the time at which the credential in the kubeconfig stops working. Source: ADR-0017.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
}
