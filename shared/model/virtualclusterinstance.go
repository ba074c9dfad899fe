package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// VirtualClusterInstance is a virtual cluster of a project: where it runs, how clients reach it, who may use
// it and which signer issues its client certificates. It lives in the namespace of its project. Kubeconfigs
// are rendered from it. Source: Spec 2.6 names it; its fields: ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstance struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec describes the virtual cluster. Source: ADR-0003.
	// +optional
	Spec VirtualClusterInstanceSpec `json:"spec"`
	// Status is what the server observes. It is ignored in requests, except at the status subresource.
	// Source: ADR-0003.
	// +optional
	Status VirtualClusterInstanceStatus `json:"status"`
}

// VirtualClusterInstanceList is one page of virtual cluster instances. Source: Spec 2.1; ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the instances in the order of their namespaces and names. They do not contain the secrets of
	// their signers.
	// +listType=atomic
	Items []VirtualClusterInstance `json:"items"`
}

// VirtualClusterInstanceSpec describes a virtual cluster. Source: ADR-0003.
type VirtualClusterInstanceSpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: ADR-0003.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text, at most 4096 bytes. Source: ADR-0003.
	// +optional
	Description string `json:"description,omitempty"`
	// Owner is the user or team that may do everything with the instance. If absent, only admins and the users
	// and teams in access may use the instance. Source: ADR-0003.
	// +optional
	Owner *InstanceOwner `json:"owner,omitempty"`
	// ClusterRef is the place where the virtual cluster runs. Absent if it does not run in a connected cluster.
	// Source: ADR-0003.
	// +optional
	ClusterRef *InstanceClusterRef `json:"clusterRef,omitempty"`
	// AccessPoint describes how clients reach the virtual cluster. Source: ADR-0003.
	// +optional
	AccessPoint *InstanceAccessPoint `json:"accessPoint,omitempty"`
	// Access grants verbs on this instance to users and teams. The entries are alternatives. At most 100 entries
	// are allowed. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Access []InstanceAccess `json:"access,omitempty"`
	// Signer issues client certificates for the virtual cluster. If absent, requests for kubeconfigs with client
	// certificates are refused. Source: ADR-0003.
	// +optional
	Signer *InstanceSigner `json:"signer,omitempty"`
}

// InstanceOwner is the user or the team that owns an instance. Source: ADR-0003.
type InstanceOwner struct {
	// User is the name of the owning user. Exactly one of user and team must be set. Source: ADR-0003.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the owning team. Source: ADR-0003.
	// +optional
	Team string `json:"team,omitempty"`
}

// InstanceClusterRef is the place where a virtual cluster runs. Source: ADR-0003.
type InstanceClusterRef struct {
	// Cluster is the name of the connected cluster. Source: ADR-0003.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Namespace is the namespace of the virtual cluster in the connected cluster. Source: ADR-0003.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// VirtualCluster is the name of the virtual cluster in that namespace. Source: ADR-0003.
	// +optional
	VirtualCluster string `json:"virtualCluster,omitempty"`
}

// InstanceAccessPoint describes how clients reach a virtual cluster. Source: ADR-0003.
type InstanceAccessPoint struct {
	// Ingress is the ingress endpoint. Absent if there is none. Source: Spec 1, 4; its fields: ADR-0003.
	// +optional
	Ingress *InstanceIngress `json:"ingress,omitempty"`
}

// InstanceIngress is the ingress endpoint of a virtual cluster. Source: ADR-0003.
type InstanceIngress struct {
	// Enabled is true if the endpoint is configured. Defaults to false. Source: Spec 4; ADR-0003.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Host is the host name of the endpoint, followed by `:` and the port if the port is not 443. Required if
	// enabled is true. Source: ADR-0003.
	// +optional
	Host string `json:"host,omitempty"`
	// CAData contains the certificate authority of the endpoint, in PEM format and encoded in base64. Empty
	// means the root certificates that the client's system trusts. Source: ADR-0003.
	// +optional
	CAData []byte `json:"caData,omitempty"`
}

// InstanceAccess grants verbs to users and teams. Source: ADR-0003.
type InstanceAccess struct {
	// Verbs are the granted verbs: `use` (request a kubeconfig), `update`, `delete`, or `*` for all of them. At
	// least one is required. Source: ADR-0003.
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// Users are the names of the users that have the verbs, at most 256. An entry must name at least one user or
	// team. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// Teams are the names of the teams whose members have the verbs, at most 256. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
}

// InstanceSigner issues the client certificates of a virtual cluster. A request can set at most one of ca
// and kubeconfig. Both are write-only: they are encrypted at rest, and responses do not contain them. A
// request that leaves them out keeps the stored values. Source: ADR-0003, ADR-0017.
type InstanceSigner struct {
	// Type is the type of the signer: `CA`, `Kubeconfig` or `None`. If a request leaves it out or unchanged, it
	// follows from the field that is set, ca or kubeconfig; if neither is set, it stays as it is. `None` removes
	// the stored secrets. Source: ADR-0017.
	// +optional
	Type string `json:"type,omitempty"`
	// CA is the client certificate authority of the virtual cluster. Required for type `CA` unless it is stored
	// already. Source: ADR-0003.
	// +optional
	CA *InstanceSignerCA `json:"ca,omitempty"`
	// Kubeconfig is a kubeconfig for the virtual cluster, as YAML text. Its user must be allowed to create and
	// approve certificate signing requests. Required for type `Kubeconfig` unless it is stored already.
	// Source: ADR-0003.
	// +optional
	Kubeconfig secret.WriteOnly `json:"kubeconfig,omitempty" secret:"true"`
	// CertificateDuration is the lifetime of a certificate for which no lifetime was requested, such as `8760h`.
	// It must be from one second to ten years. If absent, it is one year. Source: Spec 8; ADR-0003.
	// +optional
	CertificateDuration *metav1.Duration `json:"certificateDuration,omitempty"`
}

// InstanceSignerCA is a certificate authority with its private key. Source: ADR-0003.
type InstanceSignerCA struct {
	// CertData contains the certificate of the authority, in PEM format and encoded in base64. Required together
	// with keyData. Source: ADR-0003.
	// +optional
	CertData []byte `json:"certData,omitempty"`
	// KeyData contains the private key of the authority, in PEM format and encoded in base64. Required together
	// with certData. Source: ADR-0003.
	// +optional
	KeyData secret.WriteOnlyBytes `json:"keyData,omitempty" secret:"true"`
}

// VirtualClusterInstanceStatus is what the server observes of an instance. Source: ADR-0003.
type VirtualClusterInstanceStatus struct {
	// Phase summarizes the conditions in one word: Pending, Ready or Failed. Empty means that the phase is not known.
	// Source: ADR-0003.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Ingress is the published endpoint, which kubeconfigs point to. Absent if there is none. Source: ADR-0017.
	// +optional
	Ingress *InstancePublishedIngress `json:"ingress,omitempty"`
	// SignerNotAfter is when the client certificate authority of the signer expires. Absent if no such authority signs.
	// Source: ADR-0017.
	// +optional
	SignerNotAfter *metav1.Time `json:"signerNotAfter,omitempty"`
	// Conditions are the latest observations. The server writes `IngressReady` and `SignerReady`; clients may report more.
	// Source: ADR-0003, ADR-0017.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Origin     `json:",inline"`
}

// InstancePublishedIngress is an ingress endpoint as clients reach it. Source: ADR-0017.
type InstancePublishedIngress struct {
	// Host is the host name of the endpoint, followed by `:` and the port if the port is not 443.
	// Source: ADR-0017.
	Host string `json:"host"`
	// CAData contains the certificate authority of the endpoint, in PEM format and encoded in base64. Empty
	// means the root certificates that the client's system trusts. Source: ADR-0017.
	// +optional
	CAData []byte `json:"caData,omitempty"`
}

// The values of spec.signer.type. Source: ADR-0017.
const (
	// InstanceSignerTypeCA is a certificate authority whose private key the platform stores.
	InstanceSignerTypeCA = "CA"
	// InstanceSignerTypeKubeconfig is the virtual cluster itself: the platform sends it signing requests.
	InstanceSignerTypeKubeconfig = "Kubeconfig"
	// InstanceSignerTypeNone means that there is no signer.
	InstanceSignerTypeNone = "None"
)

// The values of status.phase. Source: ADR-0003.
const (
	// InstancePending is the phase of an instance without an endpoint.
	InstancePending = "Pending"
	// InstanceReady is the phase of an instance that clients can reach.
	InstanceReady = "Ready"
	// InstanceFailed is a phase that clients report. The server itself never sets it.
	InstanceFailed = "Failed"
)

// The conditions that the server writes. Source: ADR-0017.
const (
	// InstanceIngressReady is True if there is an endpoint.
	InstanceIngressReady = "IngressReady"
	// InstanceSignerReady is True if there is a signer.
	InstanceSignerReady = "SignerReady"
)
