package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// VirtualClusterInstance is a virtual cluster of a project: where it runs, how it is reached, who may
// use it and who signs its client certificates. Its namespace is that of the project. Kubeconfigs are
// rendered from it. Source: Spec 2.6 names it; its fields: ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstance struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec is what the instance is. Source: ADR-0003.
	// +optional
	Spec VirtualClusterInstanceSpec `json:"spec"`
	// Status is what the server observed; what clients send here is ignored. Source: ADR-0003.
	// +optional
	Status VirtualClusterInstanceStatus `json:"status"`
}

// VirtualClusterInstanceList is a page of virtual cluster instances. Source: Spec 2.1; ADR-0003.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type VirtualClusterInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the instances, in order of their namespaces and names, without the secrets of their
	// signers.
	// +listType=atomic
	Items []VirtualClusterInstance `json:"items"`
}

// VirtualClusterInstanceSpec is what an instance is. Source: ADR-0003.
type VirtualClusterInstanceSpec struct {
	// DisplayName is the name shown in the UI. Source: ADR-0003.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text. Source: ADR-0003.
	// +optional
	Description string `json:"description,omitempty"`
	// Owner is the user or team that may do everything with the instance. Absent: nobody beyond access.
	// Source: ADR-0003.
	// +optional
	Owner *InstanceOwner `json:"owner,omitempty"`
	// ClusterRef is where the virtual cluster runs. Absent: not on a connected cluster.
	// Source: ADR-0003.
	// +optional
	ClusterRef *InstanceClusterRef `json:"clusterRef,omitempty"`
	// AccessPoint is how clients reach the virtual cluster. Source: ADR-0003.
	// +optional
	AccessPoint *InstanceAccessPoint `json:"accessPoint,omitempty"`
	// Access gives users and teams verbs on this instance. The entries are alternatives.
	// Source: ADR-0003.
	// +optional
	// +listType=atomic
	Access []InstanceAccess `json:"access,omitempty"`
	// Signer is who signs client certificates. Absent: kubeconfigs with client certificates are refused.
	// Source: ADR-0003.
	// +optional
	Signer *InstanceSigner `json:"signer,omitempty"`
}

// InstanceOwner is one user or one team. Source: ADR-0003.
type InstanceOwner struct {
	// User is the name of the owning user. Exactly one of user and team is set. Source: ADR-0003.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the owning team. Source: ADR-0003.
	// +optional
	Team string `json:"team,omitempty"`
}

// InstanceClusterRef is where a virtual cluster runs. Source: ADR-0003.
type InstanceClusterRef struct {
	// Cluster is the name of the connected cluster. Source: ADR-0003.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Namespace is the namespace in the connected cluster. Source: ADR-0003.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// VirtualCluster is the name of the virtual cluster in that namespace. Source: ADR-0003.
	// +optional
	VirtualCluster string `json:"virtualCluster,omitempty"`
}

// InstanceAccessPoint is how clients reach a virtual cluster. Source: ADR-0003.
type InstanceAccessPoint struct {
	// Ingress is the ingress endpoint. Absent: none. Source: Spec 1, 4; its fields: ADR-0003.
	// +optional
	Ingress *InstanceIngress `json:"ingress,omitempty"`
}

// InstanceIngress is the ingress endpoint of a virtual cluster. Source: ADR-0003.
type InstanceIngress struct {
	// Enabled tells whether the endpoint is configured. Source: Spec 4; ADR-0003.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Host is the host name of the endpoint, with a port where it is not 443. Required when enabled.
	// Source: ADR-0003.
	// +optional
	Host string `json:"host,omitempty"`
	// CAData is the certificate authority of the endpoint, PEM in base64. Empty means the roots that the
	// client's system trusts. Source: ADR-0003.
	// +optional
	CAData []byte `json:"caData,omitempty"`
}

// InstanceAccess gives verbs to users and teams. Source: ADR-0003.
type InstanceAccess struct {
	// Verbs are `use` (ask for a kubeconfig), `update`, `delete`, or `*` for all. Source: ADR-0003.
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// Users are the names of users who have the verbs. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// Teams are the names of teams whose members have the verbs. Source: ADR-0003.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
}

// InstanceSigner signs the client certificates of a virtual cluster. At most one of ca and kubeconfig is
// set in a request; both are write-only, encrypted at rest and in no answer. A request that leaves them
// out keeps what is stored. Source: ADR-0003, ADR-0017.
type InstanceSigner struct {
	// Type is which signer there is: `CA`, `Kubeconfig` or `None`. Absent in a request, or left as it was, means the one whose
	// material is given, or else the stored one. `None` removes the stored material. Source: ADR-0017.
	// +optional
	Type string `json:"type,omitempty"`
	// CA is the client certificate authority of the virtual cluster. Source: ADR-0003.
	// +optional
	CA *InstanceSignerCA `json:"ca,omitempty"`
	// Kubeconfig is a kubeconfig for the virtual cluster, as YAML text, whose user may create and approve
	// certificate signing requests. Source: ADR-0003.
	// +optional
	Kubeconfig secret.WriteOnly `json:"kubeconfig,omitempty" secret:"true"`
	// CertificateDuration is the signing duration: how long a certificate lives for which no lifetime
	// was requested, such as `8760h`. Absent means one year. Source: Spec 8; ADR-0003.
	// +optional
	CertificateDuration *metav1.Duration `json:"certificateDuration,omitempty"`
}

// InstanceSignerCA is a certificate authority with its private key. Source: ADR-0003.
type InstanceSignerCA struct {
	// CertData is the certificate of the authority, PEM in base64. Source: ADR-0003.
	// +optional
	CertData []byte `json:"certData,omitempty"`
	// KeyData is the private key of the authority, PEM in base64. Source: ADR-0003.
	// +optional
	KeyData secret.WriteOnlyBytes `json:"keyData,omitempty" secret:"true"`
}

// VirtualClusterInstanceStatus is what the server observed of an instance. Source: ADR-0003.
type VirtualClusterInstanceStatus struct {
	// Phase is the conditions in one word: Pending, Ready or Failed. Empty means unknown.
	// Source: ADR-0003.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Ingress is the endpoint as it is published: what kubeconfigs name. Absent: there is none.
	// Source: ADR-0017.
	// +optional
	Ingress *InstancePublishedIngress `json:"ingress,omitempty"`
	// Conditions are single observations: `IngressReady`, `SignerReady`, and what others report.
	// Source: ADR-0003, ADR-0017.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstancePublishedIngress is an ingress endpoint as clients reach it. Source: ADR-0017.
type InstancePublishedIngress struct {
	// Host is the host name of the endpoint, with a port where it is not 443. Source: ADR-0017.
	Host string `json:"host"`
	// CAData is the certificate authority of the endpoint, PEM in base64. Empty means the roots that the
	// client's system trusts. Source: ADR-0017.
	// +optional
	CAData []byte `json:"caData,omitempty"`
}

// The values of spec.signer.type. Source: ADR-0017.
const (
	// InstanceSignerTypeCA is a certificate authority whose key the platform has.
	InstanceSignerTypeCA = "CA"
	// InstanceSignerTypeKubeconfig is the virtual cluster itself, which is asked to sign.
	InstanceSignerTypeKubeconfig = "Kubeconfig"
	// InstanceSignerTypeNone is no signer.
	InstanceSignerTypeNone = "None"
)

// The values of status.phase. Source: ADR-0003.
const (
	// InstancePending is the phase of an instance without an endpoint.
	InstancePending = "Pending"
	// InstanceReady is the phase of an instance that clients reach.
	InstanceReady = "Ready"
	// InstanceFailed is a phase that is reported, and never the server's own finding.
	InstanceFailed = "Failed"
)

// The conditions that the server writes. Source: ADR-0017.
const (
	// InstanceIngressReady tells whether there is an endpoint.
	InstanceIngressReady = "IngressReady"
	// InstanceSignerReady tells whether there is a signer.
	InstanceSignerReady = "SignerReady"
)
