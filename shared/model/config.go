package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// Config is the platform configuration. It is cluster scoped, at config and configs; there is one object, of
// the name config, and it is always there. Source: Spec 2.7, 4; writing: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has no fields: the configuration is in status. Source: Spec 2.7.
	// +optional
	Spec ConfigSpec `json:"spec"`
	// Status is the configuration, with a mark in place of each secret. Source: Spec 2.7; the mark:
	// ADR-0003.
	// +optional
	Status ConfigStatus `json:"status"`
}

// ConfigList is the list that holds the one Config. Source: Spec 2.1, 4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the configurations: the one.
	// +listType=atomic
	Items []Config `json:"items"`
}

// ConfigSpec has no fields: the configuration is in status. Source: Spec 2.7.
type ConfigSpec struct{}

// ConfigStatus is the platform configuration. Source: Spec 2.7.
type ConfigStatus struct {
	// Auth is how users sign in. Source: Spec 2.7.
	// +optional
	Auth *ConfigAuth `json:"auth,omitempty"`
	// OIDC is the platform as an OIDC server.
	// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
	// +optional
	OIDC *ConfigOIDCServer `json:"oidc,omitempty"`
	// Apps are the apps that the platform offers. Source: Spec 2.7.
	// +optional
	Apps *ConfigApps `json:"apps,omitempty"`
	// Audit is what is recorded of incoming requests, and where. Source: Spec 2.7, 6.
	// +optional
	Audit *ConfigAudit `json:"audit,omitempty"`
	// PlatformHost is the host of the platform, without scheme. Source: Spec 2.7.
	// +optional
	PlatformHost string `json:"platformHost,omitempty"`
	// ProjectNamespacePrefix is the prefix of project namespaces. Empty or absent means `p-`.
	// Source: Spec 2.7, 8.
	// +optional
	ProjectNamespacePrefix string `json:"projectNamespacePrefix,omitempty"`
	// WorkspaceSubDomain is the domain of workspaces, in the form `*.<sub-domain>`.
	// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
	// +optional
	WorkspaceSubDomain string `json:"workspaceSubDomain,omitempty"`
	// UISettings are the looks of the UI. Source: Spec 2.7.
	// +optional
	UISettings *ConfigUISettings `json:"uiSettings,omitempty"`
	// SecretsStore is the external secrets store. Source: Spec 2.7.
	// +optional
	SecretsStore *ConfigSecretsStore `json:"secretsStore,omitempty"`
	// DisableConfigEndpoint forbids setting the configuration through the UI and the config endpoint.
	// Source: Spec 2.7.
	// +optional
	DisableConfigEndpoint bool `json:"disableConfigEndpoint,omitempty"`
	// AuthenticateVersionEndpoint forces authentication on the /version endpoint. It works only with
	// virtual cluster release 0.27 and later. Source: Spec 2.7, 5, 9.
	// +optional
	AuthenticateVersionEndpoint bool `json:"authenticateVersionEndpoint,omitempty"`
	// Cloud are the settings of the hosted platform. Source: Spec 2.7.
	// +optional
	Cloud *ConfigCloud `json:"cloud,omitempty"`
	// PlatformDB are the settings of the platform's own database. Source: Spec 2.7.
	// +optional
	PlatformDB *ConfigPlatformDB `json:"platformDB,omitempty"`
	// ImageBuilder builds images from devcontainer definitions. Source: Spec 2.7.
	// +optional
	ImageBuilder *ConfigImageBuilder `json:"imageBuilder,omitempty"`
	// Conditions are what the platform makes of the configuration: Loaded is False while a newer version is
	// refused and the one before stays, Resolved is False while secrets or placeholders lack their text. They
	// are the platform's own: what is written to them is ignored. Source: ADR-0015.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConfigApps are the apps that the platform offers. Source: Spec 2.7.
type ConfigApps struct {
	// NoDefault leaves the default apps out. Source: Spec 2.7.
	// +optional
	NoDefault bool `json:"noDefault,omitempty"`
	// Repositories are the chart repositories. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Repositories []AppRepository `json:"repositories,omitempty"`
	// PredefinedApps are apps with a fixed chart. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	PredefinedApps []PredefinedApp `json:"predefinedApps,omitempty"`
}

// AppRepository is a chart repository. Source: Spec 2.7.
type AppRepository struct {
	// Name is how charts refer to the repository. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// URL is where the repository is. Source: Spec 2.7.
	// +optional
	URL string `json:"url,omitempty"`
	// Username is the user of the repository. Empty: no authentication. Source: Spec 2.7.
	// +optional
	Username string `json:"username,omitempty"`
	// Password is the password of that user, a secret. Source: Spec 2.7.
	// +optional
	Password secret.String `json:"password,omitempty"`
	// Insecure switches the verification of the TLS certificate off. Source: Spec 2.7.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// PredefinedApp is an app with a fixed chart. Source: Spec 2.7.
type PredefinedApp struct {
	// Chart is the chart, as repository/chart. Source: Spec 2.7.
	// +optional
	Chart string `json:"chart,omitempty"`
	// InitialVersion is the chart version that is proposed first. Source: Spec 2.7.
	// +optional
	InitialVersion string `json:"initialVersion,omitempty"`
	// InitialValues are the chart values that are proposed first, as YAML text. Source: Spec 2.7.
	// +optional
	InitialValues string `json:"initialValues,omitempty"`
	// Clusters are the connected clusters for which the app is shown. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// Title is the shown name. Empty means the name of the chart. Source: Spec 2.7.
	// +optional
	Title string `json:"title,omitempty"`
	// IconURL is where the icon is. Source: Spec 2.7.
	// +optional
	IconURL string `json:"iconUrl,omitempty"`
	// ReadmeURL is where the description is. Source: Spec 2.7.
	// +optional
	ReadmeURL string `json:"readmeUrl,omitempty"`
}

// ConfigUISettings are the looks of the UI. URLs must be reachable by its clients. Source: Spec 2.7.
type ConfigUISettings struct {
	// PlatformVersion is the current version of the platform. Source: Spec 2.7.
	// +optional
	PlatformVersion string `json:"platformVersion,omitempty"`
	// LogoURL is where the logo is. Source: Spec 2.7.
	// +optional
	LogoURL string `json:"logoURL,omitempty"`
	// FaviconURL is where the icon of the page is. Source: Spec 2.7.
	// +optional
	FaviconURL string `json:"faviconURL,omitempty"`
	// SmallLogoURL is where the small logo is. Source: Spec 2.7.
	// +optional
	SmallLogoURL string `json:"smallLogoURL,omitempty"`
	// LogoBackgroundColor is the colour behind the logo. Source: Spec 2.7.
	// +optional
	LogoBackgroundColor string `json:"logoBackgroundColor,omitempty"`
	// PrimaryColor is the main colour. Source: Spec 2.7.
	// +optional
	PrimaryColor string `json:"primaryColor,omitempty"`
	// SidebarColor is the colour of the side bar. Source: Spec 2.7.
	// +optional
	SidebarColor string `json:"sidebarColor,omitempty"`
	// AccentColor is the colour of accents. Source: Spec 2.7.
	// +optional
	AccentColor string `json:"accentColor,omitempty"`
	// LegalTemplate is HTML that is shown at login. Source: Spec 2.7.
	// +optional
	LegalTemplate string `json:"legalTemplate,omitempty"`
	// CustomCSS are the URLs of further style sheets. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	CustomCSS []string `json:"customCss,omitempty"`
	// CustomJavaScript are the URLs of further scripts. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	CustomJavaScript []string `json:"customJavaScript,omitempty"`
	// NavBarButtons are further buttons of the navigation. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	NavBarButtons []NavBarButton `json:"navBarButtons,omitempty"`
	// ExternalURLs is which external addresses the UI may request. Absent: all. Source: Spec 2.7.
	// +optional
	ExternalURLs *ExternalURLs `json:"externalURLs,omitempty"`
}

// NavBarButton is a button of the navigation. Source: Spec 2.7.
type NavBarButton struct {
	// Position is TopStart, TopEnd, BottomStart or BottomEnd. Empty means BottomEnd. Source: Spec 2.7.
	// +optional
	Position string `json:"position,omitempty"`
	// Text is what the button says. Source: Spec 2.7.
	// +optional
	Text string `json:"text,omitempty"`
	// Link is where it leads. Source: Spec 2.7.
	// +optional
	Link string `json:"link,omitempty"`
	// Icon is the URL of its icon. Source: Spec 2.7.
	// +optional
	Icon string `json:"icon,omitempty"`
}

// ExternalURLs is which external addresses the UI may request. Source: Spec 2.7.
type ExternalURLs struct {
	// Block forbids the UI to request external URLs. Source: Spec 2.7.
	// +optional
	Block bool `json:"block,omitempty"`
	// Allow are exceptions: names of modules such as `vcluster`, `gtm` and `featurebase`, or any URL. It
	// has an effect only when block is true. Source: Spec 2.7, 8.
	// +optional
	// +listType=atomic
	Allow []string `json:"allow,omitempty"`
}

// ConfigSecretsStore is the external secrets store. Source: Spec 2.7.
type ConfigSecretsStore struct {
	// Enabled permits syncing of secrets to and from the store. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Address is where the store is. Empty means what the environment of the platform names.
	// Source: Spec 2.7.
	// +optional
	Address string `json:"address,omitempty"`
	// SkipTLSVerify switches the verification of the TLS certificate off. Source: Spec 2.7.
	// +optional
	SkipTLSVerify bool `json:"skipTLSVerify,omitempty"`
	// Namespace is the namespace in the store. Source: Spec 2.7.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Auth is how the platform signs in to the store. Source: Spec 2.7.
	// +optional
	Auth *SecretsStoreAuth `json:"auth,omitempty"`
	// SyncInterval is the time between two syncs, such as `90s`. Empty means `1m`. Source: Spec 2.7, 8.
	// +optional
	SyncInterval string `json:"syncInterval,omitempty"`
}

// SecretsStoreAuth is how the platform signs in to the secrets store. Source: Spec 2.7.
type SecretsStoreAuth struct {
	// Token is the token of the store, a secret. Source: Spec 2.7.
	// +optional
	Token secret.String `json:"token,omitempty"`
	// TokenSecretRef is where to read the token when token is absent. Source: Spec 2.7.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`
}

// SecretKeyRef names one key of a Kubernetes Secret. Source: Spec 2.7.
type SecretKeyRef struct {
	// Name is the name of the Secret. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// Key is the key in its data, usually `token`. Source: Spec 2.7.
	// +optional
	Key string `json:"key,omitempty"`
	// Optional permits that the Secret or the key does not exist. Source: Spec 2.7.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ConfigPlatformDB are the settings of the platform's own database. Source: Spec 2.7.
type ConfigPlatformDB struct {
	// StorageClass is the storage class of its persistent volume claim. Source: Spec 2.7.
	// +optional
	StorageClass string `json:"storageClass,omitempty"`
}

// ConfigImageBuilder builds images from devcontainer definitions. Source: Spec 2.7.
type ConfigImageBuilder struct {
	// Enabled permits to build images ad hoc from a devcontainer definition. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Replicas is the number of builders. Absent: the platform's choice. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of a builder. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
}
