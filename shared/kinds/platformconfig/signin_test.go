package platformconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// certificate returns a certificate with a period of validity, in the form of caData.
func certificate(t *testing.T, from, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	text, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}))
}

// A write of the configuration warns about each connector at which users cannot sign in, with its field.
func TestSignInWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)
	current := &Current{Options: Options{Now: func() time.Time { return now }}}
	saml := func(from, until time.Duration, more string) string {
		return "auth: {saml: {" + more + "ssoURL: 'https://a.example/sso', redirectURI: 'https://p.example/auth/saml/callback', caData: '" + certificate(t, now.Add(from), now.Add(until)) + "'}}"
	}
	const good = "issuerUrl: 'https://a.example', clientId: p, redirectURI: 'https://p.example/auth/"
	for about, row := range map[string]struct {
		text string
		want []string
	}{
		"none":                    {"platformHost: p.example", nil},
		"other settings of auth":  {"auth: {disableUserCreation: true}", nil},
		"a good one":              {"platformHost: p.example\nauth: {oidc: {" + good + "oidc/callback'}}", nil},
		"without platformHost":    {"auth: {oidc: {" + good + "oidc/callback'}}", nil},
		"below a path":            {"platformHost: p.example\nauth: {oidc: {issuerUrl: 'https://a.example', clientId: p, redirectURI: 'https://p.example/b/auth/oidc/callback'}}", nil},
		"scripts of others":       {"uiSettings: {customJavaScript: ['https://a.example/own.js']}", []string{"status.uiSettings.customJavaScript"}},
		"a good connector":        {"auth: {connectors: [{id: a, oidc: {" + good + "a/callback'}}]}", nil},
		"oidc as the only":        {"auth: {connectors: [{id: oidc, oidc: {" + good + "oidc/callback'}}]}", nil},
		"no issuer":               {"auth: {oidc: {clientId: p}}", []string{"status.auth.oidc.issuerUrl"}},
		"no client":               {"auth: {oidc: {issuerUrl: 'https://a.example'}}", []string{"status.auth.oidc.clientId"}},
		"no redirectURI":          {"auth: {oidc: {issuerUrl: 'https://a.example', clientId: p}}", []string{"status.auth.oidc.redirectURI"}},
		"redirectURI elsewhere":   {"auth: {oidc: {" + good + "other/callback'}}", []string{"status.auth.oidc.redirectURI"}},
		"redirectURI without TLS": {"auth: {oidc: {issuerUrl: 'https://a.example', clientId: p, redirectURI: 'http://p.example/auth/oidc/callback'}}", []string{"status.auth.oidc.redirectURI"}},
		"another host":            {"platformHost: q.example\nauth: {oidc: {" + good + "oidc/callback'}}", []string{"status.auth.oidc.redirectURI"}},
		"oidc twice": {
			"auth: {oidc: {" + good + "oidc/callback'}, connectors: [{id: oidc, oidc: {" + good + "oidc/callback'}}, {id: b, oidc: {" + good + "c/callback'}}]}",
			[]string{"status.auth.connectors[0].id", "status.auth.connectors[1].oidc.redirectURI"},
		},
		"oidc beside another kind": {
			"auth: {oidc: {" + good + "oidc/callback'}, connectors: [{id: oidc, idp2: {}}]}", []string{"status.auth.connectors[0].id"},
		},
		"code hosts": {
			"auth: {gitforge1: {clientId: p, redirectURI: 'https://p.example/auth/gitforge1/callback'}, gitforge2: {clientId: p, redirectURI: 'https://p.example/auth/x/callback'}}",
			[]string{"status.auth.gitforge2.redirectURI"},
		},
		"a page as connector": {"auth: {connectors: [{id: password, gitforge1: {clientId: p, redirectURI: 'https://p.example/auth/password/callback'}}]}", []string{"status.auth.connectors[0].id"}},
		"groups without a directory": {
			"auth: {idp1: {clientId: p, groups: [a], redirectURI: 'https://p.example/auth/idp1/callback'}}", []string{"status.auth.idp1.serviceAccountFilePath"},
		},
		"groups of any tenant": {"auth: {idp2: {clientId: p, groups: [a], redirectURI: 'https://p.example/auth/idp2/callback'}}", []string{"status.auth.idp2.tenant"}},
		"any certificate":      {"auth: {oidc: {insecureCa: true, " + good + "oidc/callback'}}", []string{"status.auth.oidc.insecureCa"}},
		"an address as ID":     {"auth: {oidc: {usernameClaim: email, " + good + "oidc/callback'}}", []string{"status.auth.oidc.usernameClaim"}},
		"another ID":           {"auth: {oidc: {usernameClaim: employee_id, " + good + "oidc/callback'}}", nil},
		"names of groups": {
			"auth: {idp2: {clientId: p, tenant: a.example, groups: [dev], redirectURI: 'https://p.example/auth/idp2/callback'}}", []string{"status.auth.idp2.groups"},
		},
		"IDs of groups": {
			"auth: {idp2: {clientId: p, tenant: a.example, groups: [11111111-2222-3333-4444-555555555555], redirectURI: 'https://p.example/auth/idp2/callback'}}", nil,
		},
		"unsigned responses": {
			"auth: {saml: {insecureSkipSignatureValidation: true, ssoURL: 'https://a.example/sso', redirectURI: 'https://p.example/auth/saml/callback'}}",
			[]string{"status.auth.saml.insecureSkipSignatureValidation"},
		},
		"required groups without a claim": {"auth: {oidc: {groups: [a], " + good + "oidc/callback'}}", []string{"status.auth.oidc.groupsClaim"}},
		"required groups of a claim":      {"auth: {oidc: {groups: [a], groupsClaim: g, " + good + "oidc/callback'}}", nil},
		"a good SAML provider":            {saml(-time.Hour, time.Hour, ""), nil},
		"allowed groups without a name":   {saml(-time.Hour, time.Hour, "allowedGroups: [a], "), []string{"status.auth.saml.groupsAttr"}},
		"allowed groups":                  {saml(-time.Hour, time.Hour, "allowedGroups: [a], groupsAttr: g, "), nil},
		"a transient ID":                  {saml(-time.Hour, time.Hour, "nameIDPolicyFormat: transient, "), []string{"status.auth.saml.nameIDPolicyFormat"}},
		"an address as NameID": {
			saml(-time.Hour, time.Hour, "nameIDPolicyFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress', "), []string{"status.auth.saml.nameIDPolicyFormat"},
		},
		"an expired certificate":    {saml(-2*time.Hour, -time.Hour, ""), []string{"status.auth.saml.caData"}},
		"a certificate of tomorrow": {saml(time.Hour, 2*time.Hour, ""), []string{"status.auth.saml.caData"}},
		"a sign-in without TLS": {
			"auth: {saml: {ssoURL: 'http://a.example/sso', ca: /idp.crt, redirectURI: 'https://p.example/auth/saml/callback'}}", []string{"status.auth.saml.ssoURL"},
		},
		"no clients": {"auth: {gitforge1: {}, gitforge2: {}, idp1: {}, idp2: {}}", []string{
			"status.auth.gitforge1.clientId", "status.auth.gitforge2.clientId", "status.auth.idp1.clientId", "status.auth.idp2.clientId",
		}},
	} {
		config, err := Parse([]byte(row.text))
		if err != nil {
			t.Errorf("%s: %v", about, err)
			continue
		}
		var fields []string
		for _, warning := range (&rules{current: current, write: &write{}}).Warn(config) {
			name, _, _ := strings.Cut(warning, ": ")
			fields = append(fields, name)
		}
		if !slices.Equal(fields, row.want) {
			t.Errorf("%s: warnings for %q, want %q", about, fields, row.want)
		}
	}
}
