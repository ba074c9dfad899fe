package signin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/describelogin"
	"management.platform.sh/shared/model"
)

// withoutVariable is the environment variable that names a field of the configuration, whose effect is taken out in every world: the
// platform sees no value there.
const withoutVariable = "TEST_WITHOUT_FIELD"

// another makes the platform see another value of the field, because nobody signs in without one.
const another = "another "

// effects names, for each field of the configuration that has an effect on the sign-in, a test that fails without that effect. What
// begins with another is tried with another value. Source: Spec 2.7; ADR-0031, ADR-0035.
var effects = map[string]string{
	"auth.oidc.issuerUrl": another + "TestSignIn", "auth.oidc.clientId": another + "TestSignIn", "auth.oidc.clientSecret": another + "TestSignIn",
	"auth.oidc.redirectURI": another + "TestSignIn", "auth.oidc.postLogoutRedirectURI": "TestLogoutAtTheProvider", "auth.oidc.caFile": "TestSignIn",
	"auth.oidc.insecureCa": "TestInsecureCA", "auth.oidc.preferredUsername": "TestClaims", "auth.oidc.platformUsernameClaim": "TestClaims",
	"auth.oidc.usernameClaim": "TestClaims", "auth.oidc.emailClaim": "TestClaims", "auth.oidc.allowedExtraClaims": "TestClaims",
	"auth.oidc.usernamePrefix": "TestClaims", "auth.oidc.groupsClaim": "TestGroups", "auth.oidc.groups": "TestProviderRefused",
	"auth.oidc.scopes": "TestRenewed", "auth.oidc.getUserInfo": "TestClaims", "auth.oidc.groupsPrefix": "TestGroups", "auth.oidc.type": "TestShownType",
	"auth.oidc.resource":      "TestResource",
	"auth.gitforge1.clientId": another + "TestCodeHostClient", "auth.gitforge1.clientSecret": another + "TestCodeHostClient",
	"auth.gitforge1.redirectURI": another + "TestCodeHostClient", "auth.gitforge1.orgs": "TestGitForge1", "auth.gitforge1.orgs.name": another + "TestGitForge1",
	"auth.gitforge1.orgs.teams": "TestGitForge1", "auth.gitforge1.hostName": "TestGitForge1Email", "auth.gitforge1.rootCA": "TestGitForge1Email",
	"auth.gitforge2.clientId": another + "TestCodeHostClient", "auth.gitforge2.clientSecret": another + "TestCodeHostClient",
	"auth.gitforge2.redirectURI": another + "TestCodeHostClient", "auth.gitforge2.baseURL": "TestGitForge2", "auth.gitforge2.groups": "TestGitForge2",
	"auth.idp1.clientId": another + "TestIDP1", "auth.idp1.clientSecret": another + "TestIDP1", "auth.idp1.redirectURI": another + "TestIDP1",
	"auth.idp1.scopes": "TestIDP1", "auth.idp1.hostedDomains": "TestIdentityProviderRefused", "auth.idp1.groups": "TestIdentityProviderRefused",
	"auth.idp1.serviceAccountFilePath": "TestIDP1", "auth.idp1.adminEmail": another + "TestIDP1",
	"auth.idp2.clientId": another + "TestIDP2", "auth.idp2.clientSecret": another + "TestIDP2", "auth.idp2.redirectURI": another + "TestIDP2",
	"auth.idp2.tenant": "TestIdentityProviderRefused", "auth.idp2.groups": "TestIdentityProviderRefused", "auth.idp2.onlySecurityGroups": "TestIDP2",
	"auth.idp2.useGroupsAsWhitelist": "TestIDP2",
	"auth.saml.redirectURI":          another + "TestSAML", "auth.saml.ssoURL": another + "TestSAML", "auth.saml.caData": "TestSAML", "auth.saml.ca": "TestSAMLFields",
	"auth.saml.insecureSkipSignatureValidation": "TestSAMLUnsigned", "auth.saml.usernameAttr": "TestSAMLFields", "auth.saml.emailAttr": "TestSAML",
	"auth.saml.groupsAttr": "TestSAML", "auth.saml.entityIssuer": "TestSAMLFields", "auth.saml.ssoIssuer": "TestSAMLFields", "auth.saml.groupsDelim": "TestSAMLFields",
	"auth.saml.allowedGroups": "TestSAMLFields", "auth.saml.filterGroups": "TestSAMLFields", "auth.saml.nameIDPolicyFormat": "TestSAML",
	"auth.clustermanager.host": another + "TestClusterManager", "auth.clustermanager.bearerToken": "TestRenewedAtClusterManager",
	"auth.clustermanager.insecure": "TestClusterManagerInsecure",
	"auth.password.disabled":       "TestPasswordDisabled", "auth.connectors.id": another + "TestConnectors", "auth.connectors.displayName": "TestConnectors",
	"auth.disableTeamCreation": "TestTeams", "auth.disableUserCreation": "TestProviderRefused", "auth.accessKeyMaxTTLSeconds": "TestLifetimes",
	"auth.loginAccessKeyTTLSeconds": "TestLifetimes", "auth.customHttpHeaders": "TestCustomHeaders", "auth.groupsFilters": "TestGroups",
	"platformHost": another + "TestPasswordOfABrowser", "uiSettings.logoURL": "TestPage", "uiSettings.primaryColor": "TestPage", "uiSettings.legalTemplate": "TestPage",
}

// sees returns the configuration of a world as the platform sees it.
func sees(t testing.TB, config *model.ConfigStatus) *model.ConfigStatus {
	field := os.Getenv(withoutVariable)
	if field == "" {
		return config
	}
	config = config.DeepCopy()
	takeOut(t, reflect.ValueOf(config), strings.Split(field, "."), strings.HasPrefix(effects[field], another))
	if path, is := strings.CutPrefix(field, "auth."); is && config.Auth != nil && strings.Contains(path, ".") {
		for i := range config.Auth.Connectors {
			takeOut(t, reflect.ValueOf(&config.Auth.Connectors[i]), strings.Split(path, "."), strings.HasPrefix(effects[field], another))
		}
	}
	return config
}

// takeOut removes or changes the value at a path of names of JSON, in all elements of a list.
func takeOut(t testing.TB, at reflect.Value, path []string, change bool) {
	for at.Kind() == reflect.Pointer && (len(path) > 0 || change) {
		if at.IsNil() {
			return
		}
		at = at.Elem()
	}
	switch {
	case len(path) > 0 && at.Kind() == reflect.Slice:
		for i := range at.Len() {
			takeOut(t, at.Index(i), path, change)
		}
	case len(path) > 0:
		for _, field := range reflect.VisibleFields(at.Type()) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == path[0] {
				takeOut(t, at.FieldByIndex(field.Index), path[1:], change)
			}
		}
	case !change:
		at.SetZero()
	case at.String() == "":
	case strings.HasPrefix(at.String(), base):
		at.SetString(strings.Replace(at.String(), base, "https://another.example", 1))
	default:
		at.SetString("another-" + at.String())
		if _, after, is := strings.Cut(at.String(), "https://"); is {
			at.SetString("https://another." + after)
		}
	}
}

// With the effect of any field taken out, the test that the table names fails.
func TestFieldsHaveEffects(t *testing.T) {
	if os.Getenv(withoutVariable) != "" {
		t.Fatal("the table names this test")
	}
	if testing.Short() {
		t.Skip("it runs a test for each field")
	}
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for field, held := range effects {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			held = strings.TrimPrefix(held, another)
			run := exec.CommandContext(t.Context(), program, "-test.run=^"+held+"$")
			run.Env = append(os.Environ(), withoutVariable+"="+field)
			if said, err := run.CombinedOutput(); err == nil || !strings.Contains(string(said), "--- FAIL: "+held) {
				t.Errorf("%s holds without the effect of the field: %v\n%s", held, err, said)
			}
		})
	}
}

// Every field of auth is in the table.
func TestFieldsAreListed(t *testing.T) {
	t.Parallel()
	var found []string
	var walk func(of reflect.Type, path string)
	walk = func(of reflect.Type, path string) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			found = append(found, path)
			return
		}
		for _, field := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			inConnector := path == "auth.connectors" && len(field.Index) > 1
			if name == "" || field.Anonymous || inConnector {
				continue
			}
			walk(field.Type, path+"."+name)
		}
	}
	walk(reflect.TypeFor[model.ConfigAuth](), "auth")
	for _, field := range found {
		if effects[field] == "" && field != "auth.gitforge1.orgs" {
			t.Errorf("%s has no test", field)
		}
	}
	for field := range effects {
		if strings.HasPrefix(field, "auth.") && field != "auth.gitforge1.orgs" && !slices.Contains(found, field) {
			t.Errorf("there is no field %s", field)
		}
	}
}

// A connector in the list has its ID in its addresses and with its users, and its name where people choose. Source: Spec 2.7 (connectors).
func TestConnectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := *w.config.Auth.OIDC
	settings.RedirectURI = base + "/auth/second/callback"
	w.config.Auth.OIDC = nil
	w.config.Auth.Connectors = []model.AuthConnector{{ID: "second", DisplayName: "Second & last", IdentityProviders: model.IdentityProviders{OIDC: &settings}}}
	var info describelogin.Output
	if err := json.Unmarshal([]byte(text(t, w.browser().send(base+"/auth/info", nil))), &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Methods.SSO) != 1 || info.Methods.SSO[0].ID != "second" || info.Methods.SSO[0].DisplayName != "Second & last" ||
		info.Methods.SSO[0].LoginEndpoint != base+"/auth/second/login" {
		t.Errorf("%+v", info.Methods.SSO)
	}
	if user := w.admitted("second", w.provider.login); user.Spec.Connector != "second" || user.Spec.Subject != "1001" {
		t.Errorf("%+v", user.Spec)
	}
}

// The key of a sign-in lives for as long as the configuration says: 20 days if it says nothing, for good with 0, and never longer than
// any key. Source: Spec 2.7 (loginAccessKeyTTLSeconds, accessKeyMaxTTLSeconds), 8.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for about, row := range map[string]struct {
		login   *int64
		longest int64
		want    any
	}{
		"nothing":       {nil, 0, 20 * 24 * 3600.0},
		"a time":        {new(int64(600)), 0, 600.0},
		"for good":      {new(int64(0)), 0, nil},
		"at most":       {nil, 3600, 3600.0},
		"no longer":     {new(int64(7200)), 3600, 3600.0},
		"for good, not": {new(int64(0)), 3600, 3600.0},
	} {
		w.config.Auth.LoginAccessKeyTTLSeconds, w.config.Auth.AccessKeyMaxTTLSeconds = row.login, row.longest
		b := w.browser()
		if status, answer := w.fetch(b.confirm(b.prove(), "allow").Get("code"), nil); status != http.StatusOK || answer["expires_in"] != row.want {
			t.Errorf("%s: %d, %v", about, status, answer["expires_in"])
		}
	}
}

// The client, its secret and the callback URL of a code host are those of the settings.
func TestCodeHostClient(t *testing.T) {
	t.Parallel()
	for kind, prepare := range map[string]func(*world) *codeHost{"gitforge1": (*world).gitForge1, "gitforge2": (*world).gitForge2} {
		w := newWorld(t)
		h := prepare(w)
		user := w.admitted(kind, h.login)
		if user.Name != "ana" || h.asked.Get("client_id") != clientID || h.asked.Get("redirect_uri") != base+"/auth/"+kind+"/callback" ||
			h.sent.Get("client_secret") != clientSecret || h.sent.Get("client_id") != clientID || h.sent.Get("redirect_uri") != base+"/auth/"+kind+"/callback" {
			t.Errorf("%s: asked %v", kind, h.asked)
		}
	}
}

// Programs that offer the connectors learn the type that the settings show.
func TestShownType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Auth.OIDC.Type = "corporate"
	if info := text(t, w.browser().send(base+"/auth/info", nil)); !strings.Contains(info, `"type":"corporate"`) {
		t.Error(info)
	}
}
