package platformconfig_test

import (
	"strings"
	"testing"

	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
)

// limit returns the limit on all keys. -1: the configuration has no block auth.
func limit(config *model.ConfigStatus) int64 {
	if config.Auth == nil {
		return -1
	}
	return config.Auth.AccessKeyMaxTTLSeconds
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		section  string
		sentence string
		text     string
		ok       bool
		limit    int64
	}{
		{"ADR-0015", "the fields of status at the top level", "auth: {accessKeyMaxTTLSeconds: 60}\n", true, 60},
		{"Spec 2.7", "a whole Config", "apiVersion: management.platform.sh/v1\nkind: Config\nmetadata: {name: config}\nstatus: {auth: {accessKeyMaxTTLSeconds: 60}}\n", true, 60},
		{"Spec 2.7", "a Config without a status", "kind: Config\n", true, -1},
		{"Spec 2.7", "JSON", `{"auth":{"accessKeyMaxTTLSeconds":60}}`, true, 60},
		{"ADR-0015", "an empty file", "", true, -1},
		{"ADR-0015", "an empty line", "\n", true, -1},
		{"ADR-0015", "a comment", "# to do\n", true, -1},
		{"ADR-0015", "an empty document", "---\n", true, -1},
		{"ADR-0015", "an empty object", "{}\n", true, -1},
		{"Spec 8", "a cap of 0 means no cap", "auth: {accessKeyMaxTTLSeconds: 0}\n", true, 0},
		{"Spec 2.7", "an unknown field", "colour: red\n", false, 0},
		{"Spec 2.7", "an unknown field inside", "auth: {accessKeyMaxTTL: 60}\n", false, 0},
		{"Spec 2.7", "an unknown field of a Config", "kind: Config\nstatus: {colour: red}\n", false, 0},
		{"Spec 2.7", "a field of the status beside it", "kind: Config\nauth: {accessKeyMaxTTLSeconds: 60}\n", false, 0},
		{"Spec 2.7", "a status without a kind", "status: {auth: {accessKeyMaxTTLSeconds: 60}}\n", false, 0},
		{"Spec 2.7", "another kind", "apiVersion: v1\nkind: ConfigMap\ndata: {}\n", false, 0},
		{"Spec 2.7", "another version", "apiVersion: management.platform.sh/v2\nkind: Config\n", false, 0},
		{"Spec 2.7", "another name", "kind: Config\nmetadata: {name: other}\n", false, 0},
		{"Spec 2.7", "a kind that is no text", "kind: 5\n", false, 0},
		{"Spec 2.7", "a name with another case", "Auth: {accessKeyMaxTTLSeconds: 60}\n", false, 0},
		{"ADR-0015", "a field twice", "auth: {accessKeyMaxTTLSeconds: 60}\nauth: {accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"ADR-0015", "a field twice inside", "auth: {accessKeyMaxTTLSeconds: 60, accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"ADR-0015", "two documents", "auth: {accessKeyMaxTTLSeconds: 60}\n---\nauth: {accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"ADR-0015", "conditions", "conditions: [{type: Loaded, status: 'True'}]\n", false, 0},
		{"Spec 2.7", "a cap that is no number", "auth: {accessKeyMaxTTLSeconds: 1h}\n", false, 0},
		{"Spec 2.7", "a list", "- auth\n", false, 0},
		{"Spec 2.7", "a text", "auth\n", false, 0},
		{"Spec 2.7", "what is no YAML", "auth: {\n", false, 0},
		{"Spec 2.7", "what is no text", "auth: \xff\n", false, 0},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			t.Parallel()
			config, err := platformconfig.Parse([]byte(row.text))
			if (err == nil) != row.ok {
				t.Fatalf("config %v, error %v", config, err)
			}
			if err == nil && limit(&config.Status) != row.limit {
				t.Errorf("the cap is %d, want %d", limit(&config.Status), row.limit)
			}
		})
	}
}

// Each row breaks one rule: the message names its field and no other field. Source: Spec 2.7.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sentence string
		text     string
		// field is the field that the message must name. Empty: the configuration is valid.
		field string
	}{
		{"an unknown field", "uiSettings: {logo: x}", "uiSettings.logo"},
		{"an unknown field in a list", "apps: {predefinedApps: [{chart: a/b}, {chart: a/b, x: 1}]}", "apps.predefinedApps[1].x"},
		{"a wrong type", "audit: {enabled: 'yes'}", "audit.enabled"},
		{"a wrong type of a list", "auth: {groupsFilters: a}", "auth.groupsFilters"},
		{"a wrong type in a list", "auth: {groupsFilters: [a, 5]}", "auth.groupsFilters[1]"},
		{"a wrong type in a map", "auth: {customHttpHeaders: {X-A: 1}}", "auth.customHttpHeaders[X-A]"},
		{"a wrong type of a map", "auth: {customHttpHeaders: [a]}", "auth.customHttpHeaders"},
		{"a wrong type of an object", "auth: {oidc: a}", "auth.oidc"},
		{"a wrong type of a secret", "auth: {oidc: {clientSecret: 5}}", "auth.oidc.clientSecret"},
		{"a fraction", "audit: {maxAge: 1.5}", "audit.maxAge"},
		{"a number that is too large", "audit: {maxAge: 3000000000}", "audit.maxAge"},
		{"no quantity", "imageBuilder: {resources: {limits: {cpu: much}}}", "imageBuilder.resources.limits[cpu]"},
		{"null is absent", "auth: null\naudit: {level: null}", ""},

		{"platformHost without scheme", "platformHost: https://platform.example.com", "platformHost"},
		{"platformHost without path", "platformHost: platform.example.com/a", "platformHost"},
		{"platformHost with a valid port", "platformHost: platform.example.com:65536", "platformHost"},
		{"platformHost with a port after the colon", "platformHost: 'platform.example.com:'", "platformHost"},
		{"a URL with a valid port", "auth: {gitforge2: {baseURL: 'https://git.example.com:0'}}", "auth.gitforge2.baseURL"},
		{"a good platformHost", "platformHost: platform.example.com:8443", ""},
		{"projectNamespacePrefix", "projectNamespacePrefix: P_", "projectNamespacePrefix"},
		{"a long projectNamespacePrefix", "projectNamespacePrefix: " + strings.Repeat("a", 41), "projectNamespacePrefix"},
		{"a projectNamespacePrefix that begins with a dash", "projectNamespacePrefix: -team", "projectNamespacePrefix"},
		{"a good projectNamespacePrefix", "projectNamespacePrefix: team-", ""},
		{"workspaceSubDomain has the form *.<sub-domain>", "workspaceSubDomain: work.example.com", "workspaceSubDomain"},
		{"a good workspaceSubDomain", "workspaceSubDomain: '*.work.example.com'", ""},

		{"a negative cap", "auth: {accessKeyMaxTTLSeconds: -1}", "auth.accessKeyMaxTTLSeconds"},
		{"a negative cap in a Config", "kind: Config\nstatus: {auth: {accessKeyMaxTTLSeconds: -1}}", "status.auth.accessKeyMaxTTLSeconds"},
		{"a negative lifetime of login keys", "auth: {loginAccessKeyTTLSeconds: -1}", "auth.loginAccessKeyTTLSeconds"},
		{"0 disables it", "auth: {loginAccessKeyTTLSeconds: 0}", ""},
		{"an invalid header name", "auth: {customHttpHeaders: {'a b': c}}", "auth.customHttpHeaders[a b]"},
		{"a header of the platform's own", "auth: {customHttpHeaders: {content-type: c}}", "auth.customHttpHeaders[content-type]"},
		{"a header of two lines", `auth: {customHttpHeaders: {X-A: "a\nb"}}`, "auth.customHttpHeaders[X-A]"},
		{"one header twice", "auth: {customHttpHeaders: {X-A: a, x-a: b}}", "auth.customHttpHeaders[x-a]"},
		{"a good header", "auth: {customHttpHeaders: {X-Frame-Options: DENY}}", ""},
		{"a header of a proxy", "auth: {customHttpHeaders: {x-accel-redirect: /a}}", "auth.customHttpHeaders[x-accel-redirect]"},
		{"a cookie", "auth: {customHttpHeaders: {set-cookie: __Host-platform=a}}", "auth.customHttpHeaders[set-cookie]"},
		{"a header that leads elsewhere", "auth: {customHttpHeaders: {Refresh: '0;url=https://evil.example/'}}", "auth.customHttpHeaders[Refresh]"},
		{"a header that ends sessions", "auth: {customHttpHeaders: {Clear-Site-Data: '\"*\"'}}", "auth.customHttpHeaders[Clear-Site-Data]"},
		{"a header that lets other sites read", "auth: {customHttpHeaders: {Access-Control-Allow-Origin: '*'}}", "auth.customHttpHeaders[Access-Control-Allow-Origin]"},
		{"a header that ends TLS", "auth: {customHttpHeaders: {Strict-Transport-Security: max-age=0}}", "auth.customHttpHeaders[Strict-Transport-Security]"},
		{"a header that ends TLS at last", "auth: {customHttpHeaders: {Strict-Transport-Security: 'max-age=9; max-age=0'}}", "auth.customHttpHeaders[Strict-Transport-Security]"},
		{"a header that keeps TLS", "auth: {customHttpHeaders: {Strict-Transport-Security: 'max-age=31536000; includeSubDomains'}}", ""},
		{"regexes compile", "auth: {groupsFilters: ['^ok$', '(']}", "auth.groupsFilters[1]"},
		{"a connector has an id", "auth: {connectors: [{oidc: {}}]}", "auth.connectors[0].id"},
		{"the id is a part of URLs", "auth: {connectors: [{id: a/b, oidc: {}}]}", "auth.connectors[0].id"},
		{"unique connector ids", "auth: {connectors: [{id: a, oidc: {}}, {id: b, oidc: {}}, {id: a, idp2: {}}]}", "auth.connectors[2].id"},
		{"a provider block per connector", "auth: {connectors: [{id: a}]}", "auth.connectors[0]"},
		{"one provider block per connector", "auth: {connectors: [{id: a, oidc: {}, idp2: {}}]}", "auth.connectors[0].idp2"},
		{"rules hold in connectors", "auth: {connectors: [{id: a, oidc: {issuerUrl: 'http://a.example'}}]}", "auth.connectors[0].oidc.issuerUrl"},

		{"issuerUrl is https", "auth: {oidc: {issuerUrl: 'http://issuer.example.com'}}", "auth.oidc.issuerUrl"},
		{"issuerUrl is a URL", "auth: {oidc: {issuerUrl: issuer}}", "auth.oidc.issuerUrl"},
		{"issuerUrl has no query", "auth: {oidc: {issuerUrl: 'https://issuer.example.com?a=b'}}", "auth.oidc.issuerUrl"},
		{"a good issuerUrl", "auth: {oidc: {issuerUrl: 'https://issuer.example.com/realm'}}", ""},
		{"redirectURI is a URL", "auth: {oidc: {redirectURI: /callback}}", "auth.oidc.redirectURI"},
		{"postLogoutRedirectURI is a URL", "auth: {oidc: {postLogoutRedirectURI: 'javascript:alert(1)'}}", "auth.oidc.postLogoutRedirectURI"},
		{"no empty scope", "auth: {oidc: {scopes: ['']}}", "auth.oidc.scopes[0]"},
		{"no empty group", "auth: {oidc: {groups: [a, '']}}", "auth.oidc.groups[1]"},
		{"rootCA is for the enterprise-hosted variant", "auth: {gitforge1: {rootCA: /ca.pem}}", "auth.gitforge1.hostName"},
		{"rootCA with hostName", "auth: {gitforge1: {rootCA: /ca.pem, hostName: git.example.com}}", ""},
		{"rootCA is optional", "auth: {gitforge1: {hostName: git.example.com}}", ""},
		{"hostName is a host", "auth: {gitforge1: {hostName: 'https://git.example.com'}}", "auth.gitforge1.hostName"},
		{"redirectURI of gitforge1", "auth: {gitforge1: {redirectURI: x}}", "auth.gitforge1.redirectURI"},
		{"orgs have names", "auth: {gitforge1: {orgs: [{teams: [a]}]}}", "auth.gitforge1.orgs[0].name"},
		{"teams have names", "auth: {gitforge1: {orgs: [{name: a, teams: ['']}]}}", "auth.gitforge1.orgs[0].teams[0]"},
		{"baseURL is a URL", "auth: {gitforge2: {baseURL: git.example.com}}", "auth.gitforge2.baseURL"},
		{"redirectURI of gitforge2", "auth: {gitforge2: {redirectURI: x}}", "auth.gitforge2.redirectURI"},
		{"groups of gitforge2", "auth: {gitforge2: {groups: ['']}}", "auth.gitforge2.groups[0]"},
		{"adminEmail with serviceAccountFilePath", "auth: {idp1: {serviceAccountFilePath: /sa.json}}", "auth.idp1.adminEmail"},
		{"adminEmail is an address", "auth: {idp1: {serviceAccountFilePath: /sa.json, adminEmail: root}}", "auth.idp1.adminEmail"},
		{"both", "auth: {idp1: {serviceAccountFilePath: /sa.json, adminEmail: root@example.com}}", ""},
		{"hostedDomains are domains", "auth: {idp1: {hostedDomains: ['@example.com']}}", "auth.idp1.hostedDomains[0]"},
		{"redirectURI of idp1", "auth: {idp1: {redirectURI: x}}", "auth.idp1.redirectURI"},
		{"tenant values", "auth: {idp2: {tenant: 'my tenant'}}", "auth.idp2.tenant"},
		{"tenant organizations", "auth: {idp2: {tenant: organizations}}", ""},
		{"tenant id", "auth: {idp2: {tenant: 72F988BF-86f1-41af-91ab-2d7cd011db47}}", ""},
		{"tenant name", "auth: {idp2: {tenant: contoso.example.com}}", ""},
		{"redirectURI of idp2", "auth: {idp2: {redirectURI: x}}", "auth.idp2.redirectURI"},
		{"one of caData, ca and insecureSkipSignatureValidation", "auth: {saml: {ssoURL: 'https://sso.example.com'}}", "auth.saml.caData"},
		{"not two of them", "auth: {saml: {ca: /ca.pem, insecureSkipSignatureValidation: true}}", "auth.saml.insecureSkipSignatureValidation"},
		{"caData is a certificate", "auth: {saml: {caData: aGVsbG8=}}", "auth.saml.caData"},
		{"caData is base64", "auth: {saml: {caData: '-----BEGIN'}}", "auth.saml.caData"},
		{"ca alone", "auth: {saml: {ca: /ca.pem}}", ""},
		{"ssoURL", "auth: {saml: {ca: /ca.pem, ssoURL: sso}}", "auth.saml.ssoURL"},
		{"redirectURI of saml", "auth: {saml: {ca: /ca.pem, redirectURI: sso}}", "auth.saml.redirectURI"},
		{"nameIDPolicyFormat", "auth: {saml: {ca: /ca.pem, nameIDPolicyFormat: mail}}", "auth.saml.nameIDPolicyFormat"},
		{"nameIDPolicyFormat of another version", "auth: {saml: {ca: /ca.pem, nameIDPolicyFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:emailAddress'}}", "auth.saml.nameIDPolicyFormat"},
		{"the last part of nameIDPolicyFormat", "auth: {saml: {ca: /ca.pem, nameIDPolicyFormat: emailAddress}}", ""},
		{"nameIDPolicyFormat in full", "auth: {saml: {ca: /ca.pem, nameIDPolicyFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'}}", ""},
		{"the host of the cluster manager", "auth: {clustermanager: {host: 'https://a'}}", "auth.clustermanager.host"},
		{"a mark is no secret", "auth: {oidc: {clientSecret: '***'}}", "auth.oidc.clientSecret"},

		{"clientIds of the OIDC server differ", "oidc: {clients: [{clientId: a}, {clientId: a}]}", "oidc.clients[1].clientId"},
		{"* needs wildcardRedirect", "oidc: {clients: [{clientId: a, redirectURIs: ['https://*.example.com']}]}", "oidc.clients[0].redirectURIs[0]"},
		{"* alone with wildcardRedirect", "oidc: {wildcardRedirect: true, clients: [{clientId: a, redirectURIs: ['*']}]}", ""},
		{"* with wildcardRedirect", "oidc: {wildcardRedirect: true, clients: [{clientId: a, redirectURIs: ['https://*.example.com']}]}", ""},
		{"redirectURIs of clients", "oidc: {clients: [{clientId: a, redirectURIs: [x]}]}", "oidc.clients[0].redirectURIs[0]"},

		{"repositories have a URL", "apps: {repositories: [{name: a}]}", "apps.repositories[0].url"},
		{"it is a URL", "apps: {repositories: [{name: a, url: charts}]}", "apps.repositories[0].url"},
		{"an OCI URL", "apps: {repositories: [{name: a, url: 'oci://charts.example.com/x'}]}", ""},
		{"names of repositories differ", "apps: {repositories: [{name: a, url: 'https://a.example'}, {name: a, url: 'https://b.example'}]}", "apps.repositories[1].name"},
		{"a chart is repository/chart", "apps: {predefinedApps: [{chart: nginx}]}", "apps.predefinedApps[0].chart"},
		{"an app has a chart", "apps: {predefinedApps: [{title: a}]}", "apps.predefinedApps[0].chart"},
		{"iconUrl", "apps: {predefinedApps: [{chart: a/b, iconUrl: x}]}", "apps.predefinedApps[0].iconUrl"},
		{"readmeUrl", "apps: {predefinedApps: [{chart: a/b, readmeUrl: x}]}", "apps.predefinedApps[0].readmeUrl"},
		{"clusters of an app", "apps: {predefinedApps: [{chart: a/b, clusters: ['']}]}", "apps.predefinedApps[0].clusters[0]"},

		{"path is required when enabled", "audit: {enabled: true}", "audit.path"},
		{"path may stay when disabled", "audit: {enabled: false, path: /var/log}", ""},
		{"level excludes policy", "audit: {level: 1, policy: {rules: [{level: None}]}}", "audit.level"},
		{"level excludes omitStages", "audit: {level: 1, policy: {omitStages: [Panic]}}", "audit.level"},
		{"an empty policy does not count", "audit: {level: 1, policy: {rules: []}}", ""},
		{"the highest level", "audit: {level: 5}", "audit.level"},
		{"a negative level", "audit: {level: -1}", "audit.level"},
		{"dataStoreTTL", "audit: {dataStoreTTL: -1}", "audit.dataStoreTTL"},
		{"a dataStoreTTL that no clock can count", "audit: {dataStoreTTL: 10000000}", "audit.dataStoreTTL"},
		{"maxAge", "audit: {maxAge: -1}", "audit.maxAge"},
		{"maxBackups", "audit: {maxBackups: -1}", "audit.maxBackups"},
		{"maxSize", "audit: {maxSize: -1}", "audit.maxSize"},
		{"dataStoreEndpoint", "audit: {dataStoreEndpoint: 'host=a user=b'}", "audit.dataStoreEndpoint"},
		{"dataStoreEndpoint of another store", "audit: {dataStoreEndpoint: 'https://a.example'}", "audit.dataStoreEndpoint"},
		{"a good dataStoreEndpoint", "audit: {dataStoreEndpoint: 'postgres://a:b@db.example/audit'}", ""},
		{"a rule has a level", "audit: {policy: {rules: [{users: [a]}]}}", "audit.policy.rules[0].level"},
		{"one of the levels", "audit: {policy: {rules: [{level: All}]}}", "audit.policy.rules[0].level"},
		{"failurePolicy of a rule", "audit: {policy: {rules: [{level: None, failurePolicy: Sometimes}]}}", "audit.policy.rules[0].failurePolicy"},
		{"a good failurePolicy", "audit: {policy: {rules: [{level: None, failurePolicy: Fail}]}}", ""},
		{"stages of the policy", "audit: {policy: {omitStages: [End]}}", "audit.policy.omitStages[0]"},
		{"stages of a rule", "audit: {policy: {rules: [{level: None, omitStages: [End]}]}}", "audit.policy.rules[0].omitStages[0]"},
		{"targets of a rule", "audit: {policy: {rules: [{level: None, requestTargets: [Moon]}]}}", "audit.policy.rules[0].requestTargets[0]"},
		{"URLs of a rule", "audit: {policy: {rules: [{level: None, nonResourceURLs: ['/a*b']}]}}", "audit.policy.rules[0].nonResourceURLs[0]"},
		{"a star is at the end", "audit: {policy: {rules: [{level: None, nonResourceURLs: ['/a/*/b']}]}}", "audit.policy.rules[0].nonResourceURLs[0]"},
		{"one star", "audit: {policy: {rules: [{level: None, nonResourceURLs: ['/a**']}]}}", "audit.policy.rules[0].nonResourceURLs[0]"},
		{"a URL begins with a slash", "audit: {policy: {rules: [{level: None, nonResourceURLs: [healthz*]}]}}", "audit.policy.rules[0].nonResourceURLs[0]"},
		{"resourceNames need resources", "audit: {policy: {rules: [{level: None, resources: [{group: '', resourceNames: [a]}]}]}}", "audit.policy.rules[0].resources[0].resources"},
		{"resources with wildcards do not overlap", "audit: {policy: {rules: [{level: None}, {level: None, resources: [{resources: ['pods/*', pods/log]}]}]}}", "audit.policy.rules[1].resources[0].resources[1]"},
		{"resources are patterns", "audit: {policy: {rules: [{level: None, resources: [{resources: ['pod*']}]}]}}", "audit.policy.rules[0].resources[0].resources[0]"},
		{"groups are domains", "audit: {policy: {rules: [{level: None, resources: [{group: a/b}]}]}}", "audit.policy.rules[0].resources[0].group"},
		{"any group", "audit: {policy: {rules: [{level: None, resources: [{group: '*', resources: ['*/scale', pods], resourceNames: [a]}, {group: apps}]}]}}", ""},
		{"namespaces have names", "audit: {policy: {rules: [{level: None, namespaces: ['', '*']}]}}", "audit.policy.rules[0].namespaces[1]"},
		{"rules that differ in users alone", "audit: {policy: {rules: [{level: None, users: [a], verbs: ['*']}, {level: None, users: [b], verbs: ['*']}]}}", ""},
		{"good URLs of a rule", "audit: {policy: {rules: [{level: None, nonResourceURLs: ['/a/*', '*', /version, '/api*', '/livez*', '/*', /logs/]}]}}", ""},
		{"no empty user", "audit: {policy: {rules: [{level: None, users: ['']}]}}", "audit.policy.rules[0].users[0]"},
		{"no empty group of users", "audit: {policy: {rules: [{level: None, userGroups: ['']}]}}", "audit.policy.rules[0].userGroups[0]"},
		{"no empty verb", "audit: {policy: {rules: [{level: None, verbs: ['']}]}}", "audit.policy.rules[0].verbs[0]"},
		{"no empty cluster", "audit: {policy: {rules: [{level: None, clusters: ['']}]}}", "audit.policy.rules[0].clusters[0]"},

		{"logoURL", "uiSettings: {logoURL: logo.png}", "uiSettings.logoURL"},
		{"faviconURL", "uiSettings: {faviconURL: 'ftp://a.example/x'}", "uiSettings.faviconURL"},
		{"smallLogoURL", "uiSettings: {smallLogoURL: x}", "uiSettings.smallLogoURL"},
		{"logoBackgroundColor", "uiSettings: {logoBackgroundColor: '#12'}", "uiSettings.logoBackgroundColor"},
		{"primaryColor", "uiSettings: {primaryColor: '#gggggg'}", "uiSettings.primaryColor"},
		{"sidebarColor", "uiSettings: {sidebarColor: 'red;}'}", "uiSettings.sidebarColor"},
		{"accentColor", "uiSettings: {accentColor: 'url(x)'}", "uiSettings.accentColor"},
		{"a word that is no colour", "uiSettings: {primaryColor: bluish}", "uiSettings.primaryColor"},
		{"rgb has numbers", "uiSettings: {primaryColor: 'rgb(a, b, c)'}", "uiSettings.primaryColor"},
		{"rgb has three", "uiSettings: {primaryColor: 'rgb(1, 2)'}", "uiSettings.primaryColor"},
		{"more good colours", "uiSettings: {primaryColor: RebeccaPurple, sidebarColor: 'hsl(120deg 50% 25% / 50%)', accentColor: 'HSL(0, 0%, 100%)', logoBackgroundColor: transparent}", ""},
		{"good colours", "uiSettings: {primaryColor: '#fff', sidebarColor: teal, accentColor: 'rgba(1, 2, 3, 0.5)', logoBackgroundColor: '#11223344'}", ""},
		{"customCss", "uiSettings: {customCss: ['https://a.example/a.css', b]}", "uiSettings.customCss[1]"},
		{"customJavaScript", "uiSettings: {customJavaScript: ['']}", "uiSettings.customJavaScript[0]"},
		{"positions of buttons", "uiSettings: {navBarButtons: [{position: Left}]}", "uiSettings.navBarButtons[0].position"},
		{"links of buttons", "uiSettings: {navBarButtons: [{link: 'javascript:alert(1)'}]}", "uiSettings.navBarButtons[0].link"},
		{"icons of buttons", "uiSettings: {navBarButtons: [{icon: x}]}", "uiSettings.navBarButtons[0].icon"},
		{"a good button", "uiSettings: {navBarButtons: [{position: TopStart, text: Docs, link: /docs, icon: 'https://a.example/i.svg'}]}", ""},
		{"allow only with block", "uiSettings: {externalURLs: {allow: [vcluster]}}", "uiSettings.externalURLs.allow"},
		{"what is allowed", "uiSettings: {externalURLs: {block: true, allow: ['a b']}}", "uiSettings.externalURLs.allow[0]"},
		{"modules and URLs", "uiSettings: {externalURLs: {block: true, allow: [vcluster, gtm, 'https://a.example']}}", ""},

		{"the address of the secrets store", "secretsStore: {address: vault}", "secretsStore.address"},
		{"syncInterval is a duration of Go", "secretsStore: {syncInterval: 5 minutes}", "secretsStore.syncInterval"},
		{"syncInterval is above zero", "secretsStore: {syncInterval: 0s}", "secretsStore.syncInterval"},
		{"a good syncInterval", "secretsStore: {syncInterval: 1m30s}", ""},
		{"its key is one of a Secret", "secretsStore: {auth: {tokenSecretRef: {name: a, key: a/b}}}", "secretsStore.auth.tokenSecretRef.key"},
		{"tokenSecretRef has a name", "secretsStore: {auth: {tokenSecretRef: {key: token}}}", "secretsStore.auth.tokenSecretRef.name"},

		{"day names", "cloud: {maintenanceWindow: {dayOfWeek: Someday}}", "cloud.maintenanceWindow.dayOfWeek"},
		{"day names in any case", "cloud: {maintenanceWindow: {dayOfWeek: sunday}}", ""},
		{"HH:MM-HH:MM", "cloud: {maintenanceWindow: {timeWindow: '1:00-2:00'}}", "cloud.maintenanceWindow.timeWindow"},
		{"24 hours", "cloud: {maintenanceWindow: {timeWindow: '23:00-24:00'}}", "cloud.maintenanceWindow.timeWindow"},
		{"60 minutes", "cloud: {maintenanceWindow: {timeWindow: '22:00-22:60'}}", "cloud.maintenanceWindow.timeWindow"},
		{"a window is not empty", "cloud: {maintenanceWindow: {timeWindow: '22:00-22:00'}}", "cloud.maintenanceWindow.timeWindow"},
		{"a window over midnight", "cloud: {maintenanceWindow: {timeWindow: '23:30-01:00'}}", ""},
		{"retention", "cloud: {costControl: {global: {metrics: {retention: long}}}}", "cloud.costControl.global.metrics.retention"},
		{"good retention", "cloud: {costControl: {cluster: {metrics: {retention: 90d}}}}", ""},
		{"requests not above limits", "cloud: {costControl: {global: {metrics: {resources: {limits: {cpu: 1}, requests: {cpu: 1100m}}}}}}", "cloud.costControl.global.metrics.resources.requests[cpu]"},
		{"requests as high as limits", "cloud: {costControl: {global: {metrics: {resources: {limits: {cpu: 1}, requests: {cpu: 1000m}}}}}}", ""},
		{"negative limits", "cloud: {costControl: {cluster: {metrics: {resources: {limits: {cpu: -1}}}}}}", "cloud.costControl.cluster.metrics.resources.limits[cpu]"},
		{"limits are of resources", "imageBuilder: {resources: {limits: {a b: 1}}}", "imageBuilder.resources.limits[a b]"},
		{"requests are of resources", "imageBuilder: {resources: {requests: {'': 1}}}", "imageBuilder.resources.requests[]"},
		{"a resource of another vendor", "imageBuilder: {resources: {limits: {example.com/gpu: 1}}}", ""},
		{"negative requests", "cloud: {costControl: {cluster: {costEngine: {resources: {requests: {cpu: -1}}}}}}", "cloud.costControl.cluster.costEngine.resources.requests[cpu]"},
		{"claims have names", "cloud: {costControl: {cluster: {costEngine: {resources: {claims: [{request: a}]}}}}}", "cloud.costControl.cluster.costEngine.resources.claims[0].name"},
		{"names of claims differ", "imageBuilder: {resources: {claims: [{name: a}, {name: a}]}}", "imageBuilder.resources.claims[1].name"},
		{"replicas of metrics", "cloud: {costControl: {global: {metrics: {replicas: -1}}}}", "cloud.costControl.global.metrics.replicas"},
		{"replicas of the cost engine", "cloud: {costControl: {cluster: {costEngine: {replicas: -1}}}}", "cloud.costControl.cluster.costEngine.replicas"},
		{"storageClass of metrics", "cloud: {costControl: {global: {metrics: {storage: {storageClass: A_B}}}}}", "cloud.costControl.global.metrics.storage.storageClass"},
		{"- and empty are storage classes of metrics", "cloud: {costControl: {global: {metrics: {storage: {storageClass: '-'}}}, cluster: {metrics: {storage: {storageClass: ''}}}}}", ""},
		{"size of metrics", "cloud: {costControl: {global: {metrics: {storage: {size: big}}}}}", "cloud.costControl.global.metrics.storage.size"},
		{"prices are objects", "cloud: {costControl: {settings: {averageCPUPricePerNode: 31}}}", "cloud.costControl.settings.averageCPUPricePerNode"},
		{"the other price too", "cloud: {costControl: {settings: {averageRAMPricePerNode: [31]}}}", "cloud.costControl.settings.averageRAMPricePerNode"},
		{"their fields are free", "cloud: {costControl: {settings: {averageCPUPricePerNode: {price: 31, timePeriod: Monthly}}}}", ""},
		{"storageClass of the database", "platformDB: {storageClass: A_B}", "platformDB.storageClass"},
		{"replicas of the image builder", "imageBuilder: {replicas: -1}", "imageBuilder.replicas"},

		{"placeholders are judged when they have a value", "auth: {oidc: {issuerUrl: '${ISSUER}'}}", ""},
		{"two dollars are not a placeholder", "uiSettings: {legalTemplate: 'a $${PLATFORM_REDIS_URL}'}", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			t.Parallel()
			_, err := platformconfig.Parse([]byte(row.text + "\n"))
			switch {
			case row.field == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case row.field != "" && (err == nil || !strings.HasPrefix(err.Error(), row.field+": ")):
				t.Errorf("the error is %v, and not of %s alone", err, row.field)
			}
		})
	}
}

// One response names all mistakes, of form and of rules, each with its field. Source: Spec 2.7.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := platformconfig.Parse([]byte(`
colour: red
platformHost: https://a
auth:
  accessKeyMaxTTLSeconds: soon
  groupsFilters: ['(']
  oidc: {issuerUrl: 'http://a.example', clientSecret: [hunter2]}
  connectors: [{id: a, shade: 1, oidc: {}}, {id: a, idp1: {serviceAccountFilePath: /x}}]
audit: {enabled: true, level: 9, maxAge: old}
apps: {repositories: [{name: a, url: 'ftp://ana:hunter2@a.example?token=hunter2'}]}
`))
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, path := range []string{
		"colour", "platformHost", "auth.accessKeyMaxTTLSeconds", "auth.groupsFilters[0]", "auth.oidc.issuerUrl", "auth.oidc.clientSecret",
		"auth.connectors[0].shade", "auth.connectors[1].id", "auth.connectors[1].idp1.adminEmail", "audit.path", "audit.level", "audit.maxAge",
		"apps.repositories[0].url",
	} {
		if !strings.Contains(err.Error(), path+": ") {
			t.Errorf("%s is not named in %v", path, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is quoted: %v", err)
	}
	_, err = platformconfig.Parse([]byte("audit: {dataStoreEndpoint: 'postgres://ana:hunter2/x@db.example/audit'}"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed URL: %v", err)
	}
}

// FuzzParse checks that each text is a configuration or an error, and that a configuration is valid when it is written and
// parsed again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "auth: {accessKeyMaxTTLSeconds: 60}", "kind: Config\nstatus: {audit: {level: 1}}", "auth: {oidc: {clientSecret: '${A}'}}", "a: [",
		"apps: {repositories: [{url: 'https://a:b@c'}]}", "auth: {connectors: [{id: a, saml: {ca: x}}]}", "auth: {accessKeyMaxTTLSeconds: 1e3}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := platformconfig.Parse(text)
		if err == nil && config == nil {
			t.Fatal("neither a configuration nor an error")
		}
	})
}
