package signin_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
)

// effects names the tests that fail when the effect of a field of the configuration is taken out. Source: Spec 2.7; ADR-0035.
var effects = map[string]string{
	"oidc.issuerUrl": "TestUnreachable", "oidc.clientId": "TestSignIn", "oidc.clientSecret": "TestSignIn", "oidc.redirectURI": "TestSignIn",
	"oidc.postLogoutRedirectURI": "TestLogoutAtTheProvider", "oidc.caFile": "TestUnreachable", "oidc.insecureCa": "TestInsecureCA",
	"oidc.preferredUsername": "TestClaims", "oidc.platformUsernameClaim": "TestClaims", "oidc.usernameClaim": "TestClaims",
	"oidc.emailClaim": "TestClaims", "oidc.allowedExtraClaims": "TestClaims", "oidc.usernamePrefix": "TestClaims", "oidc.groupsClaim": "TestGroups",
	"oidc.groups": "TestProviderRefused", "oidc.scopes": "TestRenewed", "oidc.getUserInfo": "TestClaims", "oidc.groupsPrefix": "TestGroups",
	"oidc.type": "TestShownType", "oidc.resource": "TestResource",
	"gitforge1.clientId": "TestCodeHostClient", "gitforge1.clientSecret": "TestCodeHostClient", "gitforge1.redirectURI": "TestCodeHostClient",
	"gitforge1.orgs": "TestGitForge1", "gitforge1.hostName": "TestGitForge1Email", "gitforge1.rootCA": "TestGitForge1Email",
	"gitforge2.clientId": "TestCodeHostClient", "gitforge2.clientSecret": "TestCodeHostClient", "gitforge2.redirectURI": "TestCodeHostClient",
	"gitforge2.baseURL": "TestGitForge2", "gitforge2.groups": "TestGitForge2",
	"idp1.clientId": "TestIDP1", "idp1.clientSecret": "TestIDP1", "idp1.redirectURI": "TestIDP1", "idp1.scopes": "TestIDP1",
	"idp1.hostedDomains": "TestIdentityProviderRefused", "idp1.groups": "TestIdentityProviderRefused",
	"idp1.serviceAccountFilePath": "TestIDP1", "idp1.adminEmail": "TestIdentityProviderRefused",
	"idp2.clientId": "TestIDP2", "idp2.clientSecret": "TestIDP2", "idp2.redirectURI": "TestIDP2", "idp2.tenant": "TestIdentityProviderRefused",
	"idp2.groups": "TestIdentityProviderRefused", "idp2.onlySecurityGroups": "TestIdentityProviderRefused", "idp2.useGroupsAsWhitelist": "TestIDP2",
	"clustermanager.host": "TestClusterManager", "clustermanager.bearerToken": "TestRenewedAtClusterManager", "clustermanager.insecure": "TestClusterManagerInsecure",
}

// Each field of the blocks of these kinds has a test of its effect.
func TestFieldsHaveEffects(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	left := len(effects)
	for kind, block := range map[string]reflect.Type{
		"oidc": reflect.TypeFor[model.OIDCProvider](), "gitforge1": reflect.TypeFor[model.GitForge1Provider](), "gitforge2": reflect.TypeFor[model.GitForge2Provider](),
		"idp1": reflect.TypeFor[model.IDP1Provider](), "idp2": reflect.TypeFor[model.IDP2Provider](), "clustermanager": reflect.TypeFor[model.ClusterManagerProvider](),
	} {
		for i := range block.NumField() {
			name, _, _ := strings.Cut(block.Field(i).Tag.Get("json"), ",")
			held := effects[kind+"."+name]
			if left--; held == "" || !strings.Contains(source.String(), "\nfunc "+held+"(") {
				t.Errorf("%s.%s has no test: %q", kind, name, held)
			}
		}
	}
	if left != 0 {
		t.Errorf("%d entries too many", left)
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
