package signin_test

import (
	"encoding/xml"
	"html"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/crewjam/saml/samlidp"
	dsig "github.com/russellhaering/goxmldsig"
	"golang.org/x/crypto/bcrypt"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/test/signin/providertest"
	"management.platform.sh/test/signin/samltest"
)

var (
	formTarget = regexp.MustCompile(`action="([^"]*)"`)
	formField  = regexp.MustCompile(`name="([^"]+)"[^>]*value="([^"]*)"`)
)

// fill is what a person does at the pages of a SAML provider: it loads the address, fills the form in, and returns the form that the
// provider has the browser post to the platform.
func fill(t *testing.T, address string, typed url.Values) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	method, body := http.MethodGet, ""
	for range 3 {
		request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page := text(t, answer)
		_ = answer.Body.Close()
		form := url.Values{}
		for _, field := range formField.FindAllStringSubmatch(page, -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
		target := formTarget.FindStringSubmatch(page)
		if answer.StatusCode != http.StatusOK || target == nil {
			t.Fatalf("the provider answers %d %s", answer.StatusCode, page)
		}
		next := html.UnescapeString(target[1])
		if form.Has("SAMLResponse") {
			if next != samlCallback {
				t.Errorf("the form goes to %s", next)
			}
			return form
		}
		at, err := answer.Request.URL.Parse(next)
		if err != nil {
			t.Fatal(err)
		}
		for name := range typed {
			form.Set(name, typed.Get(name))
		}
		address, method, body = at.String(), http.MethodPost, form.Encode()
	}
	t.Fatal("the provider does not end its questions")
	return nil
}

// signsIn signs a person in at a provider that others have written, twice, and then tries what it has posted once more.
func (w *samlWorld) signsIn(typed url.Values) {
	w.t.Helper()
	t, isTest := w.t.(*testing.T)
	if !isTest {
		w.t.Fatal("only a test signs in")
	}
	post := func(form url.Values) *http.Response {
		return w.browser().send(samlCallback, form, "Origin", "null", "Sec-Fetch-Site", "cross-site")
	}
	for range 2 {
		b := w.browser()
		begun := b.send(base+"/auth/saml/login?"+asked().Encode(), nil)
		form := fill(t, begun.Header.Get("Location"), typed)
		caller := w.caller(w.fetched(b.confirm(w.resumed(b, post(form)), "allow").Get("code")))
		if caller.Owner != (identity.Owner{Kind: identity.User, Name: "ana"}) || !caller.InGroup("dev") || !caller.InGroup("ops") {
			t.Errorf("%+v", caller)
		}
		if again := post(form); again.StatusCode != http.StatusBadRequest {
			t.Errorf("once more: %d", again.StatusCode)
		}
	}
	if users := w.stored("users"); len(users) != 1 || w.user("ana").Spec.Subject != "1001" || w.user("ana").Spec.Email != "ana@example.com" {
		t.Errorf("%d users, %+v", len(users), w.user("ana").Spec)
	}
	form := fill(t, w.browser().send(base+"/auth/saml/login?"+asked().Encode(), nil).Header.Get("Location"), typed)
	w.config.Auth.SAML.EntityIssuer = "another"
	if answer := post(form); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another audience: %d", answer.StatusCode)
	}
}

// A person signs in at the provider of samlp, which runs in Node. Source: ADR-0038.
func TestSAMLRealNode(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/sso", "/both", "/response"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newSAML(t)
			w.clock.forward(time.Since(w.clock.Now()))
			w.idp = samltest.New(t, w.clock.Now)
			address := providertest.StartSAML(t, "providertest", samltest.Key(t), w.idp.Certificate, samlCallback)
			w.config.Auth.SAML.SSOURL, w.config.Auth.SAML.SSOIssuer, w.config.Auth.SAML.CAData = address+path, address, samltest.CAData(w.idp.Certificate)
			w.signsIn(url.Values{"login": {"ana"}})
		})
	}
}

// A person signs in at SimpleSAMLphp, with a password. Source: ADR-0038.
func TestSAMLRealPHP(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	w.clock.forward(time.Since(w.clock.Now()))
	w.idp = samltest.New(t, w.clock.Now)
	settings := w.config.Auth.SAML
	settings.SSOURL = providertest.StartPHP(t, "providertest", samltest.Key(t), w.idp.Certificate, samlCallback)
	settings.SSOIssuer, settings.EntityIssuer, settings.CAData = "https://idp.example/simplesamlphp", "platform", samltest.CAData(w.idp.Certificate)
	w.signsIn(url.Values{"username": {"ana"}, "password": {"only for tests"}})
}

// persistent has the sessions of a provider name people by an ID that does not change.
type persistent struct{ crewjam.SessionProvider }

func (p persistent) GetSession(out http.ResponseWriter, r *http.Request, request *crewjam.IdpAuthnRequest) *crewjam.Session {
	found := p.SessionProvider.GetSession(out, r, request)
	if found != nil {
		found.NameID, found.NameIDFormat = "1001", samltest.Persistent
	}
	return found
}

// A person signs in at the provider of crewjam/saml, with a password. Source: ADR-0038.
func TestSAMLRealGo(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	w.clock.forward(time.Since(w.clock.Now()))
	w.idp = samltest.New(t, w.clock.Now)
	const entityID = "platform"
	metadata := crewjam.EntityDescriptor{}
	if err := xml.Unmarshal([]byte(`<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="`+entityID+`">
<SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
<AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="`+samlCallback+`" index="0"/>
</SPSSODescriptor></EntityDescriptor>`), &metadata); err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("only for tests"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	state := &samlidp.MemoryStore{}
	for name, object := range map[string]any{
		"/services/platform": &samlidp.Service{Name: "platform", Metadata: metadata},
		"/users/ana":         &samlidp.User{Name: "ana", HashedPassword: hash, Groups: []string{"dev", "ops"}, Email: "ana@example.com"},
	} {
		if err := state.Put(name, object); err != nil {
			t.Fatal(err)
		}
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { handler.ServeHTTP(out, r) }))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	idp, err := samlidp.New(samlidp.Options{
		URL: *at, Key: samltest.Key(t), Certificate: w.idp.Certificate, Store: state, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	idp.IDP.SessionProvider, idp.IDP.SignatureMethod = persistent{idp}, dsig.RSASHA256SignatureMethod
	// Its form goes on with the request, at the address that takes requests.
	idp.IDP.LoginURL = idp.IDP.SSOURL
	handler = idp
	w.config.Auth.SAML = &model.SAMLProvider{
		RedirectURI: samlCallback, SSOURL: server.URL + "/sso", CAData: samltest.CAData(w.idp.Certificate), EntityIssuer: entityID, SSOIssuer: server.URL + "/metadata",
		UsernameAttr: "urn:oid:0.9.2342.19200300.100.1.1", EmailAttr: "urn:oid:1.3.6.1.4.1.5923.1.1.1.6", GroupsAttr: "urn:oid:1.3.6.1.4.1.5923.1.1.1.1", NameIDPolicyFormat: samltest.Persistent,
	}
	w.signsIn(url.Values{"user": {"ana"}, "password": {"only for tests"}})
	if groups := w.user("ana").Spec.SSOGroups; !slices.Equal(groups, []string{"dev", "ops"}) {
		t.Errorf("%v", groups)
	}
}
