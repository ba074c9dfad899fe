package platformconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/model/secret"
)

// customHeaders are the standard headers that the configuration may set: they make a browser stricter, or say how it
// reports. None of them sets a cookie, redirects, opens a response to other sites or deletes what a browser stores. Source:
// ADR-0015, ADR-0047.
var customHeaders = []string{
	"Content-Language", "Content-Security-Policy", "Content-Security-Policy-Report-Only", "Cross-Origin-Embedder-Policy",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Nel", "Origin-Agent-Cluster", "Permissions-Policy", "Referrer-Policy",
	"Report-To", "Reporting-Endpoints", "Strict-Transport-Security", "Via",
}

// proxyHeaders are the prefixes of nonstandard headers on which proxies act, and of headers that the platform sets itself.
var proxyHeaders = []string{"X-Accel-", "X-Lighttpd-", "X-Litespeed-", "X-Request-Id", "X-Reproxy-", "X-Sendfile"}

// isCustomHeader reports whether the configuration may set a header: a listed header, or a nonstandard header, which
// browsers ignore.
func isCustomHeader(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return slices.Contains(customHeaders, name) || strings.HasPrefix(name, "X-") &&
		!slices.ContainsFunc(proxyHeaders, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// keepsTLS matches a value of Strict-Transport-Security that keeps browsers on TLS: one with a max-age above 0. Source: RFC
// 6797, 6.1.1.
var keepsTLS = lazyregexp.New(`(?i)^\s*max-age\s*=\s*"?0*[1-9][0-9]*"?\s*(;\s*(includeSubDomains|preload)\s*)*;?\s*$`)

func (c *checker) auth(auth *model.ConfigAuth, path *field.Path) {
	c.notNegative(auth.AccessKeyMaxTTLSeconds, path.Child("accessKeyMaxTTLSeconds"))
	if auth.LoginAccessKeyTTLSeconds != nil {
		c.notNegative(*auth.LoginAccessKeyTTLSeconds, path.Child("loginAccessKeyTTLSeconds"))
	}
	seenNames := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(auth.CustomHTTPHeaders)) {
		fieldPath := path.Child("customHttpHeaders").Key(name)
		// If a header has two spellings, the one that is set would be random.
		c.unique(seenNames, textproto.CanonicalMIMEHeaderKey(name), fieldPath)
		switch {
		case !headerName(name):
			c.add(field.Invalid(fieldPath, field.OmitValueType{}, "must be the name of an HTTP header"))
		case !isCustomHeader(name):
			c.add(field.Forbidden(fieldPath, "is neither a header that makes browsers stricter nor an X- header; docs/configuration.md lists them"))
		case strings.EqualFold(name, "Strict-Transport-Security") && !keepsTLS().MatchString(auth.CustomHTTPHeaders[name]):
			c.add(field.Invalid(fieldPath, field.OmitValueType{}, "must begin with a max-age above 0: without one, browsers forget to use TLS"))
		}
		if strings.ContainsFunc(auth.CustomHTTPHeaders[name], unicode.IsControl) {
			c.add(field.Invalid(fieldPath, field.OmitValueType{}, "must not contain control characters"))
		}
	}
	for i, filter := range auth.GroupsFilters {
		c.required(filter, path.Child("groupsFilters").Index(i), func(value string) bool {
			_, err := regexp.Compile(value)
			return err == nil
		}, "must be a regular expression in RE2 syntax")
	}
	c.providers(&auth.IdentityProviders, path)
	seen := map[string]bool{}
	for i := range auth.Connectors {
		connector, fieldPath := &auth.Connectors[i], path.Child("connectors").Index(i)
		c.required(connector.ID, fieldPath.Child("id"), connectorID, "must have only letters, digits and . _ ~ -, because it is part of URLs")
		c.unique(seen, connector.ID, fieldPath.Child("id"))
		switch names := providerNames(&connector.IdentityProviders); len(names) {
		case 0:
			c.add(field.Required(fieldPath, "must have one provider: oidc, gitforge1, gitforge2, idp1, idp2, saml or clustermanager"))
		case 1:
		default:
			c.add(field.Forbidden(fieldPath.Child(names[1]), "a connector can have only one provider, and "+names[0]+" is set too"))
		}
		c.providers(&connector.IdentityProviders, fieldPath)
	}
}

// providerNames returns the names of the providers that are set.
func providerNames(providers *model.IdentityProviders) []string {
	return setNames(
		option{"oidc", providers.OIDC != nil}, option{"gitforge1", providers.GitForge1 != nil}, option{"gitforge2", providers.GitForge2 != nil},
		option{"idp1", providers.IDP1 != nil}, option{"idp2", providers.IDP2 != nil}, option{"saml", providers.SAML != nil},
		option{"clustermanager", providers.ClusterManager != nil},
	)
}

// option is a field that may be set.
type option struct {
	name string
	set  bool
}

// setNames returns the names of the fields that are set.
func setNames(options ...option) []string {
	var names []string
	for _, o := range options {
		if o.set {
			names = append(names, o.name)
		}
	}
	return names
}

func (c *checker) providers(providers *model.IdentityProviders, path *field.Path) {
	if block, fieldPath := providers.OIDC, path.Child("oidc"); block != nil {
		c.text(block.IssuerURL, fieldPath.Child("issuerUrl"), func(value string) bool {
			return isURL("https")(value) && !strings.ContainsAny(value, "?#")
		}, "must be an https URL without query and fragment")
		c.webURL(block.RedirectURI, fieldPath.Child("redirectURI"))
		c.webURL(block.PostLogoutRedirectURI, fieldPath.Child("postLogoutRedirectURI"))
		c.names(block.Scopes, fieldPath.Child("scopes"))
		c.names(block.Groups, fieldPath.Child("groups"))
	}
	if block, fieldPath := providers.GitForge1, path.Child("gitforge1"); block != nil {
		c.webURL(block.RedirectURI, fieldPath.Child("redirectURI"))
		c.text(block.HostName, fieldPath.Child("hostName"), isHost, "must be a host without scheme and path")
		if block.RootCA != "" && block.HostName == "" {
			c.add(field.Required(fieldPath.Child("hostName"), "required with rootCA: the host of the enterprise-hosted variant"))
		}
		for i, org := range block.Orgs {
			if org.Name == "" {
				c.add(field.Required(fieldPath.Child("orgs").Index(i).Child("name"), "an organization must have a name"))
			}
			c.names(org.Teams, fieldPath.Child("orgs").Index(i).Child("teams"))
		}
	}
	if block, fieldPath := providers.GitForge2, path.Child("gitforge2"); block != nil {
		c.webURL(block.RedirectURI, fieldPath.Child("redirectURI"))
		c.webURL(block.BaseURL, fieldPath.Child("baseURL"))
		c.names(block.Groups, fieldPath.Child("groups"))
	}
	if block, fieldPath := providers.IDP1, path.Child("idp1"); block != nil {
		c.webURL(block.RedirectURI, fieldPath.Child("redirectURI"))
		for i, domain := range block.HostedDomains {
			c.required(domain, fieldPath.Child("hostedDomains").Index(i), isSubdomain, "must be a domain, such as example.com")
		}
		if block.ServiceAccountFilePath != "" && block.AdminEmail == "" {
			c.add(field.Required(fieldPath.Child("adminEmail"), "required with serviceAccountFilePath: the user to impersonate"))
		}
		c.text(block.AdminEmail, fieldPath.Child("adminEmail"), email, "must be an email address such as admin@example.com")
	}
	if block, fieldPath := providers.IDP2, path.Child("idp2"); block != nil {
		c.webURL(block.RedirectURI, fieldPath.Child("redirectURI"))
		c.text(block.Tenant, fieldPath.Child("tenant"), func(value string) bool { return isSubdomain(strings.ToLower(value)) },
			"must be common, consumers, organizations, or the id or domain name of a tenant")
	}
	if block, fieldPath := providers.SAML, path.Child("saml"); block != nil {
		c.saml(block, fieldPath)
	}
	if block, fieldPath := providers.ClusterManager, path.Child("clustermanager"); block != nil {
		c.text(block.Host, fieldPath.Child("host"), isHost, "must be a host without scheme and path")
	}
}

func (c *checker) saml(block *model.SAMLProvider, path *field.Path) {
	c.webURL(block.RedirectURI, path.Child("redirectURI"))
	c.webURL(block.SSOURL, path.Child("ssoURL"))
	switch fields := setNames(
		option{"caData", block.CAData != ""}, option{"ca", block.CA != ""},
		option{"insecureSkipSignatureValidation", block.InsecureSkipSignatureValidation},
	); len(fields) {
	case 0:
		c.add(field.Required(path.Child("caData"), "one of caData, ca and insecureSkipSignatureValidation must be set"))
	case 1:
	default:
		c.add(field.Forbidden(path.Child(fields[1]), "only one of caData, ca and insecureSkipSignatureValidation can be set, and "+fields[0]+" is set too"))
	}
	c.text(block.CAData, path.Child("caData"), isCertificate, "must be a PEM certificate in base64")
	c.text(block.NameIDPolicyFormat, path.Child("nameIDPolicyFormat"), func(value string) bool {
		_, known := nameIDFormat(value)
		return known
	}, "must be a SAML NameID format, in full or only its last part: "+strings.Join(slices.Sorted(maps.Keys(nameIDFormats)), ", "))
}

// isCertificate accepts base64 of certificates in PEM, or of one certificate in DER.
func isCertificate(value string) bool {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return false
	}
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	_, err = x509.ParseCertificate(data)
	return err == nil
}

// nameIDFormats are the versions of SAML that defined a format, by the last part of the format.
var nameIDFormats = map[string]string{
	"unspecified": "1.1", "emailAddress": "1.1", "X509SubjectName": "1.1", "WindowsDomainQualifiedName": "1.1",
	"encrypted": "2.0", "entity": "2.0", "kerberos": "2.0", "persistent": "2.0", "transient": "2.0",
}

// nameIDFormat returns a format in full, and reports whether it is known. Source: Spec 2.7.
func nameIDFormat(value string) (string, bool) {
	last := value[strings.LastIndex(value, ":")+1:]
	version, known := nameIDFormats[last]
	full := "urn:oasis:names:tc:SAML:" + version + ":nameid-format:" + last
	return full, known && (value == last || value == full)
}

// Values of an audit policy. Source: Spec 2.7; ADR-0003.
var (
	auditLevels          = []string{"None", "Metadata", "Request", "RequestResponse"}
	auditStages          = []string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}
	auditFailurePolicies = []string{"Fail", "Ignore"}
	// auditStores are the URL schemes of the stores for events.
	auditStores = []string{
		"redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel", "postgres", "postgresql",
	}
)

const (
	// maxAuditLevel is the highest level, whose built-in policy records the most.
	maxAuditLevel = 4
	// maxHours is the longest time.Duration in hours.
	maxHours = int64(math.MaxInt64 / time.Hour)
)

func (c *checker) audit(audit *model.ConfigAudit, path *field.Path) {
	if audit.Enabled && audit.Path == "" {
		c.add(field.Required(path.Child("path"), "required when audit is enabled"))
	}
	if audit.Level != nil {
		if *audit.Level < 0 || *audit.Level > maxAuditLevel {
			c.invalid(path.Child("level"), *audit.Level, "must be a number from 0 to 4")
		}
		if policy := audit.Policy; policy != nil && (len(policy.Rules) > 0 || len(policy.OmitStages) > 0) {
			c.add(field.Forbidden(path.Child("level"), "cannot be combined with policy"))
		}
	}
	if hours := audit.DataStoreTTLHours; hours < 0 || hours > maxHours {
		c.invalid(path.Child("dataStoreTTL"), hours, fmt.Sprintf("must be a number from 0 to %d", maxHours))
	}
	c.notNegative(int64(audit.MaxAgeDays), path.Child("maxAge"))
	c.notNegative(int64(audit.MaxBackups), path.Child("maxBackups"))
	c.notNegative(int64(audit.MaxSizeMegabytes), path.Child("maxSize"))
	c.text(audit.DataStoreEndpoint.Reveal(), path.Child("dataStoreEndpoint"), func(value string) bool {
		// The mark is replaced by its secret before the configuration is stored.
		return value == secret.Mark || isURL(auditStores...)(value) || strings.HasPrefix(value, "unix:///")
	}, "must be a URL with one of the schemes "+strings.Join(auditStores, ", ")+", unix")
	if audit.Policy == nil {
		return
	}
	fieldPath := path.Child("policy")
	c.stages(audit.Policy.OmitStages, fieldPath)
	for i := range audit.Policy.Rules {
		c.auditRule(&audit.Policy.Rules[i], fieldPath.Child("rules").Index(i))
	}
}

func (c *checker) stages(stages []string, path *field.Path) {
	for i, stage := range stages {
		if !slices.Contains(auditStages, stage) {
			c.add(field.NotSupported(path.Child("omitStages").Index(i), stage, auditStages))
		}
	}
}

func (c *checker) auditRule(rule *model.AuditRule, path *field.Path) {
	if rule.Level == "" {
		c.add(field.Required(path.Child("level"), "must be one of "+strings.Join(auditLevels, ", ")))
	} else {
		c.oneOf(rule.Level, path.Child("level"), auditLevels)
	}
	c.oneOf(rule.FailurePolicy, path.Child("failurePolicy"), auditFailurePolicies)
	c.stages(rule.OmitStages, path)
	c.names(rule.Users, path.Child("users"))
	c.names(rule.UserGroups, path.Child("userGroups"))
	c.names(rule.Verbs, path.Child("verbs"))
	c.names(rule.Clusters, path.Child("clusters"))
	resources := slices.Clone(rule.Resources)
	for i := range resources {
		// Only audit rules can name any group. Source: ADR-0016.
		if resources[i].Group == "*" {
			resources[i].Group = ""
		}
	}
	c.problems = append(c.problems, scope.ValidateAuditRule(model.ScopeRule{
		Resources: resources, Namespaces: rule.Namespaces, NonResourceURLs: rule.NonResourceURLs, RequestTargets: rule.RequestTargets,
	}, path)...)
}

func isQuantity(value string) bool {
	quantity, err := resource.ParseQuantity(value)
	return err == nil && quantity.Sign() > 0
}

func (c *checker) replicas(replicas *int32, path *field.Path) {
	if replicas != nil {
		c.notNegative(int64(*replicas), path.Child("replicas"))
	}
}

func (c *checker) resources(resources *model.ComputeResources, path *field.Path) {
	if resources == nil {
		return
	}
	for _, list := range []struct {
		name    string
		amounts map[string]resource.Quantity
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.amounts)) {
			amount, fieldPath := list.amounts[name], path.Child(list.name).Key(name)
			if len(validation.IsQualifiedName(name)) > 0 {
				c.add(field.Invalid(fieldPath, field.OmitValueType{}, "must be the name of a resource, such as cpu or example.com/gpu"))
			}
			if amount.Sign() < 0 {
				c.invalid(fieldPath, amount.String(), "must not be negative")
			}
			if limit, limited := resources.Limits[name]; limited && amount.Cmp(limit) > 0 {
				c.invalid(fieldPath, amount.String(), "must not be above the limit of "+limit.String())
			}
		}
	}
	seen := map[string]bool{}
	for i, claim := range resources.Claims {
		fieldPath := path.Child("claims").Index(i).Child("name")
		if claim.Name == "" {
			c.add(field.Required(fieldPath, "must be the name of a resource claim of the pod"))
		}
		c.unique(seen, claim.Name, fieldPath)
	}
}
