package platformconfig

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/csscolor"
	"management.platform.sh/shared/model/lazyregexp"
)

// validate returns a problem for each rule that a configuration breaks. It checks a text with a placeholder only after the
// placeholder is replaced. Path is the path of the configuration. Nil: the top of a file. Source: Spec 2.7; ADR-0015.
func validate(config *model.ConfigStatus, path *field.Path) field.ErrorList {
	c := &checker{}
	everyText(config, func(t text) string {
		if strings.Contains(t.value, seam) {
			c.add(field.Invalid(path.Child(t.fieldPath), field.OmitValueType{}, "must not contain the character NUL"))
		}
		return t.value
	})
	c.text(config.PlatformHost, path.Child("platformHost"), isHost, "must be a host without scheme and path, such as platform.example.com")
	c.text(config.ProjectNamespacePrefix, path.Child("projectNamespacePrefix"), isNamespacePrefix,
		"must have at most 40 characters, only lower-case letters, digits and -, and begin with a letter or digit")
	c.text(config.WorkspaceSubDomain, path.Child("workspaceSubDomain"),
		func(value string) bool { return len(validation.IsWildcardDNS1123Subdomain(value)) == 0 }, "must have the form *.<sub-domain>")
	if config.Auth != nil {
		c.auth(config.Auth, path.Child("auth"))
	}
	if config.OIDC != nil {
		c.oidcServer(config.OIDC, path.Child("oidc"))
	}
	if config.Apps != nil {
		c.apps(config.Apps, path.Child("apps"))
	}
	if config.Audit != nil {
		c.audit(config.Audit, path.Child("audit"))
	}
	if config.UISettings != nil {
		c.ui(config.UISettings, path.Child("uiSettings"))
	}
	if config.SecretsStore != nil {
		c.secretsStore(config.SecretsStore, path.Child("secretsStore"))
	}
	if config.Cloud != nil {
		c.cloud(config.Cloud, path.Child("cloud"))
	}
	if config.PlatformDB != nil {
		c.text(config.PlatformDB.StorageClass, path.Child("platformDB", "storageClass"), isSubdomain, "must be the name of a storage class")
	}
	if builder := config.ImageBuilder; builder != nil {
		fieldPath := path.Child("imageBuilder")
		c.replicas(builder.Replicas, fieldPath)
		c.resources(builder.Resources, fieldPath.Child("resources"))
	}
	return c.problems
}

// checker collects problems.
type checker struct{ problems field.ErrorList }

func (c *checker) add(problem *field.Error) { c.problems = append(c.problems, problem) }

// maxShown is the maximum length of a text that a problem quotes, in bytes.
const maxShown = 256

func (c *checker) invalid(path *field.Path, value any, why string) {
	if shown, ok := value.(string); ok {
		hidden, _ := concealSecret(shown)
		value = hidden
		if strings.Contains(hidden, "@") || len(hidden) > maxShown {
			// A malformed URL may have a password in an unexpected place, and a long text hides the reason.
			value = field.OmitValueType{}
		}
	}
	c.add(field.Invalid(path, value, why))
}

// text checks an optional text.
func (c *checker) text(value string, path *field.Path, ok func(string) bool, why string) {
	if value != "" && !hasPlaceholder(value) && !ok(value) {
		c.invalid(path, value, why)
	}
}

// required checks a required text.
func (c *checker) required(value string, path *field.Path, ok func(string) bool, why string) {
	if value == "" {
		c.add(field.Required(path, why))
		return
	}
	c.text(value, path, ok, why)
}

// unique adds a value to the values of a list that were seen before, and reports a duplicate.
func (c *checker) unique(seen map[string]bool, value string, path *field.Path) {
	if value != "" && seen[value] {
		c.add(field.Duplicate(path, value))
	}
	seen[value] = true
}

func (c *checker) notNegative(value int64, path *field.Path) {
	if value < 0 {
		c.invalid(path, value, "must not be negative")
	}
}

var (
	connectorID     = matching(`^[A-Za-z0-9][A-Za-z0-9._~-]*$`)
	headerName      = matching("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	repositoryChart = matching(`^[^/\s]+/\S+$`)
	moduleName      = matching(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	timeWindow      = matching(`^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$`)
	retention       = matching(`^[1-9][0-9]*(s|m|h|d|w|M|y)$`)
	email           = matching(`^[^@\s]+@[^@\s]+$`)
)

// matching returns a function that reports whether a text matches a regular expression.
func matching(pattern string) func(string) bool {
	compiled := lazyregexp.New(pattern)
	return func(value string) bool { return compiled().MatchString(value) }
}

// isNamespacePrefix accepts the beginning of a label that leaves room for the name of a project.
func isNamespacePrefix(value string) bool {
	return len(value) <= 40 && len(validation.IsDNS1123Label(value+"x")) == 0
}

func isSubdomain(value string) bool { return len(validation.IsDNS1123Subdomain(value)) == 0 }

// isHost accepts a host, with or without a port.
func isHost(value string) bool {
	parsed, err := url.Parse("//" + value)
	if err != nil || parsed.Host != value || strings.HasSuffix(value, ":") || !isPort(parsed.Port()) {
		return false
	}
	name := parsed.Hostname()
	_, err = netip.ParseAddr(name)
	return err == nil || isSubdomain(strings.ToLower(name))
}

// isPort accepts a port number, or an empty text.
func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && number > 0
}

// isURL accepts an absolute URL with a host and one of the schemes.
func isURL(schemes ...string) func(string) bool {
	return func(value string) bool {
		parsed, err := url.Parse(value)
		return err == nil && parsed.Hostname() != "" && isPort(parsed.Port()) && slices.Contains(schemes, parsed.Scheme)
	}
}

var isWebURL = isURL("http", "https")

const mustBeWebURL = "must be an absolute URL with http or https"

func (c *checker) webURL(value string, path *field.Path) { c.text(value, path, isWebURL, mustBeWebURL) }

func (c *checker) webURLs(values []string, path *field.Path) {
	for i, value := range values {
		c.required(value, path.Index(i), isWebURL, mustBeWebURL)
	}
}

// names refuses empty entries of a list of names.
func (c *checker) names(values []string, path *field.Path) {
	for i, value := range values {
		if strings.TrimSpace(value) == "" {
			c.add(field.Required(path.Index(i), "must not be empty"))
		}
	}
}

func (c *checker) oneOf(value string, path *field.Path, values []string) {
	if value != "" && !hasPlaceholder(value) && !slices.Contains(values, value) {
		c.add(field.NotSupported(path, value, values))
	}
}

func (c *checker) oidcServer(server *model.ConfigOIDCServer, path *field.Path) {
	seen := map[string]bool{}
	for i, client := range server.Clients {
		fieldPath := path.Child("clients").Index(i)
		c.unique(seen, client.ClientID, fieldPath.Child("clientId"))
		for j, uri := range client.RedirectURIs {
			fieldPath := fieldPath.Child("redirectURIs").Index(j)
			if strings.Contains(uri, "*") && !server.WildcardRedirect {
				c.invalid(fieldPath, uri, "must not contain * unless wildcardRedirect is true")
				continue
			}
			c.required(uri, fieldPath, func(value string) bool {
				parsed, err := url.Parse(strings.ReplaceAll(value, "*", "x"))
				return value == "*" || err == nil && parsed.Scheme != "" && parsed.Fragment == ""
			}, "must be an absolute URL without a fragment")
		}
	}
}

func (c *checker) apps(apps *model.ConfigApps, path *field.Path) {
	seen := map[string]bool{}
	for i, repository := range apps.Repositories {
		fieldPath := path.Child("repositories").Index(i)
		c.unique(seen, repository.Name, fieldPath.Child("name"))
		c.required(repository.URL, fieldPath.Child("url"), isURL("http", "https", "oci"), "must be an absolute URL with http, https or oci")
	}
	for i, app := range apps.PredefinedApps {
		fieldPath := path.Child("predefinedApps").Index(i)
		c.required(app.Chart, fieldPath.Child("chart"), repositoryChart, "must have the form repository/chart")
		c.names(app.Clusters, fieldPath.Child("clusters"))
		c.webURL(app.IconURL, fieldPath.Child("iconUrl"))
		c.webURL(app.ReadmeURL, fieldPath.Child("readmeUrl"))
	}
}

var positions = []string{"TopStart", "TopEnd", "BottomStart", "BottomEnd"}

func (c *checker) ui(ui *model.ConfigUISettings, path *field.Path) {
	c.webURL(ui.LogoURL, path.Child("logoURL"))
	c.webURL(ui.FaviconURL, path.Child("faviconURL"))
	c.webURL(ui.SmallLogoURL, path.Child("smallLogoURL"))
	for _, color := range []struct{ name, value string }{
		{"logoBackgroundColor", ui.LogoBackgroundColor}, {"primaryColor", ui.PrimaryColor},
		{"sidebarColor", ui.SidebarColor}, {"accentColor", ui.AccentColor},
	} {
		c.text(color.value, path.Child(color.name), csscolor.Valid, "must be a CSS colour, such as #1f6feb or teal")
	}
	c.webURLs(ui.CustomCSS, path.Child("customCss"))
	c.webURLs(ui.CustomJavaScript, path.Child("customJavaScript"))
	for i, button := range ui.NavBarButtons {
		fieldPath := path.Child("navBarButtons").Index(i)
		c.oneOf(button.Position, fieldPath.Child("position"), positions)
		c.text(button.Link, fieldPath.Child("link"), func(value string) bool {
			return isWebURL(value) || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "mailto:")
		}, mustBeWebURL+", a mailto: address, or a path")
		c.webURL(button.Icon, fieldPath.Child("icon"))
	}
	if external := ui.ExternalURLs; external != nil {
		fieldPath := path.Child("externalURLs", "allow")
		if len(external.Allow) > 0 && !external.Block {
			c.add(field.Forbidden(fieldPath, "has an effect only when block is true"))
		}
		for i, entry := range external.Allow {
			c.required(entry, fieldPath.Index(i), func(value string) bool { return moduleName(value) || isWebURL(value) },
				"must be the name of a module, or an absolute URL with http or https")
		}
	}
}

func (c *checker) secretsStore(store *model.ConfigSecretsStore, path *field.Path) {
	c.webURL(store.Address, path.Child("address"))
	c.text(store.SyncInterval, path.Child("syncInterval"), func(value string) bool {
		interval, err := time.ParseDuration(value)
		return err == nil && interval > 0
	}, "must be a duration above zero, such as 1m30s")
	if store.Auth != nil && store.Auth.TokenSecretRef != nil {
		fieldPath := path.Child("auth", "tokenSecretRef")
		c.required(store.Auth.TokenSecretRef.Name, fieldPath.Child("name"), isSubdomain, "must be the name of a Secret")
		c.text(store.Auth.TokenSecretRef.Key, fieldPath.Child("key"), func(value string) bool { return len(validation.IsConfigMapKey(value)) == 0 },
			"must be a key of a Secret: letters, digits, -, _ and .")
	}
}

var days = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

func (c *checker) cloud(cloud *model.ConfigCloud, path *field.Path) {
	if window := cloud.MaintenanceWindow; window != nil {
		fieldPath := path.Child("maintenanceWindow")
		weekday := window.DayOfWeek
		if i := slices.IndexFunc(days, func(known string) bool { return strings.EqualFold(known, weekday) }); i >= 0 {
			weekday = days[i]
		}
		c.oneOf(weekday, fieldPath.Child("dayOfWeek"), days)
		c.text(window.TimeWindow, fieldPath.Child("timeWindow"), func(value string) bool {
			from, to, _ := strings.Cut(value, "-")
			return timeWindow(value) && from != to
		}, "must be HH:MM-HH:MM in 24-hour UTC, and not empty")
	}
	cost := cloud.CostControl
	if cost == nil {
		return
	}
	fieldPath := path.Child("costControl")
	if cost.Global != nil {
		c.metrics(cost.Global.Metrics, fieldPath.Child("global", "metrics"))
	}
	if cost.Cluster != nil {
		c.metrics(cost.Cluster.Metrics, fieldPath.Child("cluster", "metrics"))
		if engine := cost.Cluster.CostEngine; engine != nil {
			fieldPath := fieldPath.Child("cluster", "costEngine")
			c.replicas(engine.Replicas, fieldPath)
			c.resources(engine.Resources, fieldPath.Child("resources"))
		}
	}
	if cost.Settings != nil {
		fieldPath := fieldPath.Child("settings")
		c.object(cost.Settings.AverageCPUPricePerNode, fieldPath.Child("averageCPUPricePerNode"))
		c.object(cost.Settings.AverageRAMPricePerNode, fieldPath.Child("averageRAMPricePerNode"))
	}
}

func (c *checker) object(value *model.JSON, path *field.Path) {
	if value != nil && !strings.HasPrefix(strings.TrimSpace(string(value.Raw)), "{") && string(value.Raw) != "null" {
		c.add(field.TypeInvalid(path, field.OmitValueType{}, "must be an object"))
	}
}

func (c *checker) metrics(metrics *model.MetricsBackend, path *field.Path) {
	if metrics == nil {
		return
	}
	c.replicas(metrics.Replicas, path)
	c.resources(metrics.Resources, path.Child("resources"))
	c.text(metrics.Retention, path.Child("retention"), retention, "must be a number above zero followed by s, m, h, d, w, M or y, such as 90d")
	if storage := metrics.Storage; storage != nil {
		if class := storage.StorageClass; class != nil && *class != "-" {
			c.text(*class, path.Child("storage", "storageClass"), isSubdomain, "must be the name of a storage class, or -")
		}
		c.text(storage.Size, path.Child("storage", "size"), isQuantity, "must be a quantity above zero, such as 60Gi")
	}
}
