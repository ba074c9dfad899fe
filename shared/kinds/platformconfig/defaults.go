package platformconfig

import (
	"cmp"
	"maps"
	"strings"

	"management.platform.sh/shared/model"
)

// Defaults. Package model has the defaults that other packages use too. Source: Spec 2.7, 8.
const (
	defaultAuditMaxSize  = 100
	defaultSyncInterval  = "1m"
	defaultRetention     = "1y"
	defaultTenant        = "common"
	defaultPosition      = "BottomEnd"
	defaultNameIDFormat  = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	secretsStoreVariable = "SECRETS_STORE_ADDR"
	secretsStoreAddress  = "secretsStore.address"
)

// setDefaults sets absent fields to their defaults, in the blocks that the configuration has. It adds the block auth if it
// is absent.
func setDefaults(config *model.ConfigStatus) {
	config.ProjectNamespacePrefix = cmp.Or(config.ProjectNamespacePrefix, model.DefaultProjectNamespacePrefix)
	if config.Auth == nil {
		config.Auth = &model.ConfigAuth{}
	}
	if config.Auth.LoginAccessKeyTTLSeconds == nil {
		ttl := int64(model.DefaultLoginAccessKeyTTLSeconds)
		config.Auth.LoginAccessKeyTTLSeconds = &ttl
	}
	setProviderDefaults(&config.Auth.IdentityProviders)
	for i := range config.Auth.Connectors {
		setProviderDefaults(&config.Auth.Connectors[i].IdentityProviders)
	}
	if config.Audit != nil && config.Audit.MaxSizeMegabytes == 0 {
		config.Audit.MaxSizeMegabytes = defaultAuditMaxSize
	}
	if store := config.SecretsStore; store != nil {
		store.SyncInterval = cmp.Or(store.SyncInterval, defaultSyncInterval)
		if store.Enabled {
			store.Address = cmp.Or(store.Address, "${"+secretsStoreVariable+"}")
		}
	}
	if apps := config.Apps; apps != nil {
		for i := range apps.PredefinedApps {
			app := &apps.PredefinedApps[i]
			app.Title = cmp.Or(app.Title, app.Chart[strings.LastIndex(app.Chart, "/")+1:])
		}
	}
	if ui := config.UISettings; ui != nil {
		for i := range ui.NavBarButtons {
			ui.NavBarButtons[i].Position = cmp.Or(ui.NavBarButtons[i].Position, defaultPosition)
		}
	}
	if builder := config.ImageBuilder; builder != nil {
		setResourceDefaults(builder.Resources)
	}
	if config.Cloud != nil && config.Cloud.CostControl != nil {
		setCostDefaults(config.Cloud.CostControl)
	}
}

func setProviderDefaults(providers *model.IdentityProviders) {
	if providers.OIDC != nil && len(providers.OIDC.Scopes) == 0 {
		providers.OIDC.Scopes = []string{"email", "profile"}
	}
	if providers.IDP1 != nil && len(providers.IDP1.Scopes) == 0 {
		providers.IDP1.Scopes = []string{"profile", "email"}
	}
	if providers.IDP2 != nil {
		providers.IDP2.Tenant = cmp.Or(providers.IDP2.Tenant, defaultTenant)
	}
	if providers.SAML != nil {
		format := cmp.Or(providers.SAML.NameIDPolicyFormat, defaultNameIDFormat)
		if full, known := nameIDFormat(format); known {
			format = full
		}
		providers.SAML.NameIDPolicyFormat = format
	}
}

func setCostDefaults(cost *model.CostControl) {
	if cost.Global != nil {
		setMetricsDefaults(cost.Global.Metrics)
	}
	if cost.Cluster != nil {
		setMetricsDefaults(cost.Cluster.Metrics)
		if cost.Cluster.CostEngine != nil {
			setResourceDefaults(cost.Cluster.CostEngine.Resources)
		}
	}
}

func setMetricsDefaults(metrics *model.MetricsBackend) {
	if metrics != nil {
		metrics.Retention = cmp.Or(metrics.Retention, defaultRetention)
		setResourceDefaults(metrics.Resources)
	}
}

// setResourceDefaults sets absent requests to the limits.
func setResourceDefaults(resources *model.ComputeResources) {
	if resources != nil && len(resources.Requests) == 0 {
		resources.Requests = maps.Clone(resources.Limits)
	}
}
