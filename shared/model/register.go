package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of every kind in this package. Source: Spec 2.1.
	GroupName = "management.platform.sh"
	// Version is the only version of the group. Source: Spec 2.1, 9.
	Version = "v1"
)

// SchemeGroupVersion is the group and version under which the kinds are registered. Source: Spec 2.1.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// GroupVersion is SchemeGroupVersion, under the name that controller-runtime projects use.
var GroupVersion = SchemeGroupVersion

var (
	// SchemeBuilder collects the functions that AddToScheme calls.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers every kind of the group and the options of its requests. Clients of client-go and
	// controller-runtime can be built on the scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the plural name of a resource together with the group, as API errors name it.
func Resource(name string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(name).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&AuditEvent{},
		&AuditEventList{},
		&Config{},
		&ConfigHistory{},
		&ConfigList{},
		&ConfigRollback{},
		&CredentialRevocation{},
		&DirectClusterEndpointToken{},
		&DirectClusterEndpointTokenList{},
		&OwnedAccessKey{},
		&OwnedAccessKeyList{},
		&Project{},
		&ProjectList{},
		&ScopePreview{},
		&Self{},
		&SignInTrial{},
		&SyncPatchEvaluation{},
		&Team{},
		&TeamList{},
		&TrustRule{},
		&TrustRuleList{},
		&User{},
		&UserList{},
		&UserPassword{},
		&UserSignOut{},
		&VirtualClusterInstance{},
		&VirtualClusterInstanceKubeConfig{},
		&VirtualClusterInstanceList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
