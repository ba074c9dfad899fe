package model

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/secret"
)

// Config is the platform configuration. It is cluster-scoped and served at config and configs. There is
// exactly one object; its name is config, and it always exists. Source: Spec 2.7, 4; writing: ADR-0015.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec has no fields. The configuration is in status. Source: Spec 2.7.
	// +optional
	Spec ConfigSpec `json:"spec"`
	// Status is the configuration. A mark stands in place of each secret. Source: Spec 2.7; the mark: ADR-0003.
	// +optional
	Status ConfigStatus `json:"status"`
}

// ConfigList is a list that contains the only Config. Source: Spec 2.1, 4.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items contain the only Config.
	// +listType=atomic
	Items []Config `json:"items"`
}

// ConfigSpec has no fields. The configuration is in status. Source: Spec 2.7.
type ConfigSpec struct{}

// ConfigStatus is the platform configuration. Source: Spec 2.7.
type ConfigStatus struct {
	// Auth configures how users sign in. Source: Spec 2.7.
	// +optional
	Auth *ConfigAuth `json:"auth,omitempty"`
	// OIDC has no effect: the platform is not an OIDC server for other programs.
	// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
	// +optional
	OIDC *ConfigOIDCServer `json:"oidc,omitempty" storedOnly:"true"`
	// Apps configures the apps that the platform offers. Source: Spec 2.7.
	// +optional
	Apps *ConfigApps `json:"apps,omitempty" storedOnly:"true"`
	// Audit configures which incoming requests are recorded, and where. Source: Spec 2.7, 6.
	// +optional
	Audit *ConfigAudit `json:"audit,omitempty"`
	// PlatformHost is the host of the platform, without a scheme, such as `platform.example.com`. Source: Spec
	// 2.7.
	// +optional
	PlatformHost string `json:"platformHost,omitempty"`
	// ProjectNamespacePrefix is the prefix of project namespaces, at most 40 characters. Defaults to `p-`.
	// Source: Spec 2.7, 8.
	// +optional
	ProjectNamespacePrefix string `json:"projectNamespacePrefix,omitempty"`
	// WorkspaceSubDomain is the domain of workspaces, in the form `*.<sub-domain>`.
	// Deprecated: kept for old configurations. Source: Spec 2.7, 9.
	// +optional
	WorkspaceSubDomain string `json:"workspaceSubDomain,omitempty"`
	// UISettings configures the appearance of the UI. Source: Spec 2.7.
	// +optional
	UISettings *ConfigUISettings `json:"uiSettings,omitempty"`
	// SecretsStore configures the external secrets store. Source: Spec 2.7.
	// +optional
	SecretsStore *ConfigSecretsStore `json:"secretsStore,omitempty" storedOnly:"true"`
	// DisableConfigEndpoint prevents changes to the configuration through the UI and the config endpoint.
	// Defaults to false. Source: Spec 2.7.
	// +optional
	DisableConfigEndpoint bool `json:"disableConfigEndpoint,omitempty"`
	// AuthenticateVersionEndpoint requires authentication at the /version endpoint. It works only with virtual
	// cluster release 0.27 and later. Defaults to false. Source: Spec 2.7, 5, 9.
	// +optional
	AuthenticateVersionEndpoint bool `json:"authenticateVersionEndpoint,omitempty"`
	// Cloud configures the hosted platform. Source: Spec 2.7.
	// +optional
	Cloud *ConfigCloud `json:"cloud,omitempty" storedOnly:"true"`
	// PlatformDB configures the platform's own database. Source: Spec 2.7.
	// +optional
	PlatformDB *ConfigPlatformDB `json:"platformDB,omitempty" storedOnly:"true"`
	// ImageBuilder configures the building of images from devcontainer definitions. Source: Spec 2.7.
	// +optional
	ImageBuilder *ConfigImageBuilder `json:"imageBuilder,omitempty" storedOnly:"true"`
	// Conditions report the state of the configuration. Loaded is False while a newer version is refused and the
	// previous one stays in effect. Resolved is False while the values of secrets or placeholders are missing.
	// Only the platform writes conditions; they are ignored in requests. Source: ADR-0015.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StoredBlocks returns the names of the blocks of ConfigStatus that the platform only stores, for other components. Their fields have the tag
// storedOnly.
func StoredBlocks() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ConfigStatus]()) {
		if field.Tag.Get("storedOnly") == "true" {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// ConfigApps configures the apps that the platform offers. Source: Spec 2.7.
type ConfigApps struct {
	// NoDefault leaves out the default apps. Defaults to false. Source: Spec 2.7.
	// +optional
	NoDefault bool `json:"noDefault,omitempty"`
	// Repositories are the chart repositories. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Repositories []AppRepository `json:"repositories,omitempty"`
	// PredefinedApps are apps with a predefined chart. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	PredefinedApps []PredefinedApp `json:"predefinedApps,omitempty"`
}

// AppRepository is a chart repository. Source: Spec 2.7.
type AppRepository struct {
	// Name is the name by which charts refer to the repository. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// URL is the address of the repository, with http, https or oci. Required. Source: Spec 2.7.
	// +optional
	URL string `json:"url,omitempty" sentTo:"insecure"`
	// Username is the user name for the repository. Empty means no authentication. Source: Spec 2.7.
	// +optional
	Username string `json:"username,omitempty"`
	// Password is the password for the repository, a secret. Source: Spec 2.7.
	// +optional
	Password secret.String `json:"password,omitempty" sentTo:"url,insecure"`
	// Insecure disables the verification of the TLS certificate. Defaults to false. Source: Spec 2.7.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// PredefinedApp is an app with a predefined chart. Source: Spec 2.7.
type PredefinedApp struct {
	// Chart is the chart, in the form `repository/chart`. Required. Source: Spec 2.7.
	// +optional
	Chart string `json:"chart,omitempty"`
	// InitialVersion is the chart version that the UI suggests first. Source: Spec 2.7.
	// +optional
	InitialVersion string `json:"initialVersion,omitempty"`
	// InitialValues are the chart values that the UI suggests first, as YAML text. Source: Spec 2.7.
	// +optional
	InitialValues string `json:"initialValues,omitempty"`
	// Clusters are the connected clusters for which the UI shows the app. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// Title is the name shown in the UI. Defaults to the name of the chart. Source: Spec 2.7.
	// +optional
	Title string `json:"title,omitempty"`
	// IconURL is the address of the icon. Source: Spec 2.7.
	// +optional
	IconURL string `json:"iconUrl,omitempty"`
	// ReadmeURL is the address of the readme. Source: Spec 2.7.
	// +optional
	ReadmeURL string `json:"readmeUrl,omitempty"`
}

// ConfigUISettings configures the appearance of the UI. The clients of the UI must be able to reach the
// URLs. Source: Spec 2.7.
type ConfigUISettings struct {
	// PlatformVersion is the current version of the platform. Source: Spec 2.7.
	// +optional
	PlatformVersion string `json:"platformVersion,omitempty"`
	// LogoURL is the address of the logo. Source: Spec 2.7.
	// +optional
	LogoURL string `json:"logoURL,omitempty"`
	// FaviconURL is the address of the favicon. Source: Spec 2.7.
	// +optional
	FaviconURL string `json:"faviconURL,omitempty"`
	// SmallLogoURL is the address of the small logo. Source: Spec 2.7.
	// +optional
	SmallLogoURL string `json:"smallLogoURL,omitempty"`
	// LogoBackgroundColor is the color behind the logo, a CSS color. Source: Spec 2.7.
	// +optional
	LogoBackgroundColor string `json:"logoBackgroundColor,omitempty"`
	// PrimaryColor is the main color, a CSS color. Source: Spec 2.7.
	// +optional
	PrimaryColor string `json:"primaryColor,omitempty"`
	// SidebarColor is the color of the sidebar, a CSS color. Source: Spec 2.7.
	// +optional
	SidebarColor string `json:"sidebarColor,omitempty"`
	// AccentColor is the color of accents, a CSS color. Source: Spec 2.7.
	// +optional
	AccentColor string `json:"accentColor,omitempty"`
	// LegalTemplate is HTML that is shown at login. Source: Spec 2.7.
	// +optional
	LegalTemplate string `json:"legalTemplate,omitempty"`
	// CustomCSS are the URLs of additional style sheets. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	CustomCSS []string `json:"customCss,omitempty"`
	// CustomJavaScript are the URLs of additional scripts. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	CustomJavaScript []string `json:"customJavaScript,omitempty"`
	// NavBarButtons are additional buttons in the navigation bar. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	NavBarButtons []NavBarButton `json:"navBarButtons,omitempty"`
	// ExternalURLs restricts the external URLs that the UI may request. If absent, the UI may request all of
	// them. Source: Spec 2.7.
	// +optional
	ExternalURLs *ExternalURLs `json:"externalURLs,omitempty"`
}

// NavBarButton is a button in the navigation bar. Source: Spec 2.7.
type NavBarButton struct {
	// Position is TopStart, TopEnd, BottomStart or BottomEnd. Defaults to BottomEnd. Source: Spec 2.7.
	// +optional
	Position string `json:"position,omitempty"`
	// Text is the label of the button. Source: Spec 2.7.
	// +optional
	Text string `json:"text,omitempty"`
	// Link is the target of the button: a URL, a `mailto:` address or a path. Source: Spec 2.7.
	// +optional
	Link string `json:"link,omitempty"`
	// Icon is the URL of the icon. Source: Spec 2.7.
	// +optional
	Icon string `json:"icon,omitempty"`
}

// ExternalURLs restricts the external URLs that the UI may request. Source: Spec 2.7.
type ExternalURLs struct {
	// Block stops the UI from requesting external URLs. Defaults to false. Source: Spec 2.7.
	// +optional
	Block bool `json:"block,omitempty"`
	// Allow are the exceptions to block: names of modules such as `vcluster`, `gtm` and `featurebase`, or any
	// URLs. It is refused unless block is true. Source: Spec 2.7, 8.
	// +optional
	// +listType=atomic
	Allow []string `json:"allow,omitempty"`
}

// ConfigSecretsStore configures the external secrets store. Source: Spec 2.7.
type ConfigSecretsStore struct {
	// Enabled turns on the syncing of secrets to and from the store. Defaults to false. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Address is the URL of the store. If empty, it is taken from the environment of the platform. Source: Spec
	// 2.7.
	// +optional
	Address string `json:"address,omitempty" sentTo:"skipTLSVerify"`
	// SkipTLSVerify disables the verification of the TLS certificate. Defaults to false. Source: Spec 2.7.
	// +optional
	SkipTLSVerify bool `json:"skipTLSVerify,omitempty"`
	// Namespace is the namespace within the store. Source: Spec 2.7.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Auth configures how the platform authenticates to the store. Source: Spec 2.7.
	// +optional
	Auth *SecretsStoreAuth `json:"auth,omitempty"`
	// SyncInterval is the time between two syncs, as a Go duration such as `90s`. Defaults to `1m`. Source: Spec
	// 2.7, 8.
	// +optional
	SyncInterval string `json:"syncInterval,omitempty"`
}

// SecretsStoreAuth configures how the platform authenticates to the secrets store. Source: Spec 2.7.
type SecretsStoreAuth struct {
	// Token is the token for the store, a secret. Source: Spec 2.7.
	// +optional
	Token secret.String `json:"token,omitempty" sentTo:"^address,^skipTLSVerify,^namespace"`
	// TokenSecretRef names the Secret that contains the token. It is used if token is absent. Source: Spec 2.7.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`
}

// SecretKeyRef selects one key of a Kubernetes Secret. Source: Spec 2.7.
type SecretKeyRef struct {
	// Name is the name of the Secret. Required. Source: Spec 2.7.
	// +optional
	Name string `json:"name,omitempty"`
	// Key is the key in the data of the Secret, usually `token`. Source: Spec 2.7.
	// +optional
	Key string `json:"key,omitempty"`
	// Optional allows the Secret or the key to be missing. Defaults to false. Source: Spec 2.7.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ConfigPlatformDB configures the platform's own database. Source: Spec 2.7.
type ConfigPlatformDB struct {
	// StorageClass is the storage class of the persistent volume claim of the database. Source: Spec 2.7.
	// +optional
	StorageClass string `json:"storageClass,omitempty"`
}

// ConfigImageBuilder configures the building of images from devcontainer definitions. Source: Spec 2.7.
type ConfigImageBuilder struct {
	// Enabled turns on ad-hoc builds of images from devcontainer definitions. Defaults to false. Source: Spec
	// 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Replicas is the number of builders. If absent, the platform chooses it. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of each builder. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
}
