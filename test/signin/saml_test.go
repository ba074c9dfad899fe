package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/test/signin/samltest"
)

const samlCallback = base + "/auth/saml/callback"

// samlWorld is a world with a SAML provider, whose certificate the configuration has.
type samlWorld struct {
	*world
	idp *samltest.Provider
}

func newSAML(t testing.TB) *samlWorld {
	t.Helper()
	w := newWorld(t)
	idp := samltest.New(t, w.clock.Now)
	w.config.Auth.SAML = &model.SAMLProvider{
		RedirectURI: samlCallback, SSOURL: idp.SSO, CAData: samltest.CAData(idp.Certificate), UsernameAttr: "name", EmailAttr: "mail", GroupsAttr: "groups",
		NameIDPolicyFormat: samltest.Persistent,
	}
	return &samlWorld{w, idp}
}

// ask begins a sign-in, and returns what the platform asks the provider.
func (w *samlWorld) ask(b *browser) samltest.Request {
	w.t.Helper()
	answer := b.send(base+"/auth/saml/login?"+asked().Encode(), nil)
	if answer.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("start: %d %s", answer.StatusCode, text(w.t, answer))
	}
	return w.idp.Read(w.t, answer.Header.Get("Location"))
}

// post posts a response as the page of a provider does: a browser sends no cookie along.
func (w *samlWorld) post(response, state string) *http.Response {
	w.t.Helper()
	return w.browser().send(samlCallback, samltest.Form(response, state), "Origin", "https://idp.example", "Sec-Fetch-Site", "cross-site")
}

// prove signs somebody in at the provider. Change changes the response before it is signed.
func (w *samlWorld) prove(b *browser, change func(*samltest.Response)) *http.Response {
	w.t.Helper()
	request := w.ask(b)
	response := w.idp.Answer(request)
	if change != nil {
		change(response)
	}
	return w.resumed(b, w.post(response.XML(w.t), request.RelayState))
}

// resumed follows the answer to a posted response, with the cookies of the browser that has begun.
func (w *samlWorld) resumed(b *browser, posted *http.Response) *http.Response {
	w.t.Helper()
	location := posted.Header.Get("Location")
	if posted.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, base+"/auth/resume?id=") {
		w.t.Fatalf("callback: %d %s %s\n%s", posted.StatusCode, location, text(w.t, posted), w.log.String())
	}
	return b.send(location, nil)
}

// key signs somebody in and returns their key.
func (w *samlWorld) key(change func(*samltest.Response)) *model.OwnedAccessKey {
	w.t.Helper()
	b := w.browser()
	answer := w.fetched(b.confirm(w.prove(b, change), "allow").Get("code"))
	key, _ := answer["access_token"].(string)
	caller, err := accesskey.OpenAuthenticator(w.env).Bearer(w.t.Context(), secret.String(key))
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := resource.Get(w.t.Context(), kinds.AccessKeys(w.env), resource.GetInput{Caller: root, Name: caller.Key})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// A person signs in at a SAML provider: the answer is posted without a cookie, and the browser that began goes on. Nothing but the
// sealed proof is stored before that. Source: ADR-0038.
func TestSAML(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	b := w.browser()
	request := w.ask(b)
	if request.Issuer != samlCallback || request.Callback != samlCallback || request.Policy.Format != samltest.Persistent || !request.Policy.Create {
		t.Errorf("the request is %+v", request)
	}
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records before anybody is known", len(left))
	}
	posted := w.post(w.idp.Answer(request).XML(t), request.RelayState)
	// A sealed text may have three letters by chance, but no "@" and no quotation mark.
	records := w.stored(logins.Resource)
	if len(records) != 1 || len(w.stored("users")) > 0 || strings.Contains(string(records[0].Object), "ana@") || strings.Contains(string(records[0].Object), `"1001`) {
		t.Errorf("%d records and %d users before the browser is back, %s", len(records), len(w.stored("users")), records[0].Object)
	}
	if strings.Contains(posted.Header.Get("Location"), request.RelayState) || len(posted.Cookies()) > 0 {
		t.Errorf("the answer is %v", posted.Header)
	}
	back := b.confirm(w.resumed(b, posted), "allow")
	if back.Get("state") != known || back.Get("iss") != base || len(b.cookies) > 0 {
		t.Errorf("the program gets %v, and the browser keeps %v", back, b.cookies)
	}
	caller := w.caller(w.fetched(back.Get("code")))
	if caller.Owner != (identity.Owner{Kind: identity.User, Name: "ana"}) || !caller.InGroup("dev") || !caller.InGroup("ops") || caller.Admin() {
		t.Errorf("%+v", caller)
	}
	if ana := w.user("ana"); ana.Spec.Connector != "saml" || ana.Spec.Subject != "1001" || ana.Spec.Email != "ana@example.com" || !slices.Equal(ana.Spec.SSOGroups, []string{"dev", "ops"}) {
		t.Errorf("%+v", ana.Spec)
	}
	// The same person finds the same user, whatever their name is now. Another one with the same name and address does not.
	if key := w.key(func(r *samltest.Response) { r.Attributes[0].Values = []string{"anna"} }); key.Spec.User != "ana" {
		t.Errorf("the user is %q", key.Spec.User)
	}
	if key := w.key(func(r *samltest.Response) { r.NameID = "1002" }); key.Spec.User == "ana" || key.Spec.Identity.UserID != "1002" || key.Spec.Identity.EmailVerified {
		t.Errorf("the user is %q, %+v", key.Spec.User, key.Spec.Identity)
	}
}

// What may be signed: the assertion, the response, or both, with keys of two kinds, by one of several certificates, whatever the
// signature says about its key.
func TestSAMLSignatures(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*samltest.Response){
		"the assertion": nil,
		"the response":  func(r *samltest.Response) { r.SignResponse, r.SignAssertion = true, false },
		"both":          func(r *samltest.Response) { r.SignResponse = true },
		"no Issuer":     func(r *samltest.Response) { r.SignResponse, r.Issuer = true, "" },
	} {
		for _, curved := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newSAML(t)
				other := samltest.With(t, curve, w.clock.Now)
				if curved {
					w.idp, other = other, w.idp
				}
				w.config.Auth.SAML.CAData = samltest.CAData(other.Certificate, w.idp.Certificate)
				key := w.key(func(r *samltest.Response) {
					r.KeyInfo = samltest.KeyInfo(other.Certificate)
					if change != nil {
						change(r)
					}
				})
				if key.Spec.User != "ana" {
					t.Errorf("%+v", key.Spec)
				}
			})
		}
	}
}

// Each field of the block has an effect. Source: Spec 2.7.
func TestSAMLFields(t *testing.T) {
	t.Parallel()
	groups := func(names ...string) func(*samltest.Response) {
		return func(r *samltest.Response) { r.Attributes[2].Values = names }
	}
	for name, row := range map[string]struct {
		set     func(*model.SAMLProvider)
		change  func(*samltest.Response)
		refused int
		holds   func(*model.User) bool
	}{
		"entityIssuer is the audience":      {func(p *model.SAMLProvider) { p.EntityIssuer = "platform" }, func(r *samltest.Response) { r.Audiences = []string{"other", "platform"} }, 0, nil},
		"entityIssuer replaces redirectURI": {func(p *model.SAMLProvider) { p.EntityIssuer = "platform" }, func(r *samltest.Response) { r.Audiences = []string{samlCallback} }, 400, nil},
		"ssoIssuer":                         {func(p *model.SAMLProvider) { p.SSOIssuer = "https://idp.example/metadata" }, nil, 0, nil},
		"another ssoIssuer":                 {func(p *model.SAMLProvider) { p.SSOIssuer = "https://another.example" }, nil, 400, nil},
		"usernameAttr":                      {func(p *model.SAMLProvider) { p.UsernameAttr = "mail" }, nil, 0, func(u *model.User) bool { return u.Name == "ana-example-com" }},
		"two user names":                    {nil, func(r *samltest.Response) { r.Attributes[0].Values = []string{"ana", "root"} }, 400, nil},
		"no usernameAttr":                   {func(p *model.SAMLProvider) { p.UsernameAttr = "" }, func(r *samltest.Response) { r.Attributes[1].Values = []string{"bob@example.com"} }, 0, func(u *model.User) bool { return u.Name == "bob" }},
		"emailAttr":                         {func(p *model.SAMLProvider) { p.EmailAttr = "" }, nil, 0, func(u *model.User) bool { return u.Spec.Email == "" }},
		"no email":                          {nil, func(r *samltest.Response) { r.Attributes[1].Values = nil }, 0, func(u *model.User) bool { return u.Spec.Email == "" }},
		"groupsAttr":                        {func(p *model.SAMLProvider) { p.GroupsAttr = "" }, nil, 0, func(u *model.User) bool { return len(u.Spec.SSOGroups) == 0 }},
		"no groupsDelim":                    {nil, groups("dev;ops"), 0, func(u *model.User) bool { return slices.Equal(u.Spec.SSOGroups, []string{"dev;ops"}) }},
		"groupsDelim":                       {func(p *model.SAMLProvider) { p.GroupsDelim = ";" }, groups("dev; ops;;", "qa"), 0, func(u *model.User) bool { return slices.Equal(u.Spec.SSOGroups, []string{"dev", "ops", "qa"}) }},
		"allowedGroups":                     {func(p *model.SAMLProvider) { p.AllowedGroups = []string{"ops", "qa"} }, nil, 0, func(u *model.User) bool { return slices.Equal(u.Spec.SSOGroups, []string{"dev", "ops"}) }},
		"not in allowedGroups":              {func(p *model.SAMLProvider) { p.AllowedGroups = []string{"qa"} }, nil, 403, nil},
		"allowed by a part":                 {func(p *model.SAMLProvider) { p.AllowedGroups = []string{"de"} }, nil, 403, nil},
		"filterGroups":                      {func(p *model.SAMLProvider) { p.AllowedGroups, p.FilterGroups = []string{"ops", "qa"}, true }, nil, 0, func(u *model.User) bool { return slices.Equal(u.Spec.SSOGroups, []string{"ops"}) }},
		"groups of the platform":            {nil, groups("platform:admins", "system:masters", "dev"), 0, func(u *model.User) bool { return slices.Equal(u.Spec.SSOGroups, []string{"dev"}) }},
		"500 groups":                        {nil, groups(numbered(200)...), 0, func(u *model.User) bool { return len(u.Spec.SSOGroups) == 200 }},
		"another format":                    {nil, func(r *samltest.Response) { r.Format = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress" }, 400, nil},
		"the format that is set": {func(p *model.SAMLProvider) {
			p.NameIDPolicyFormat = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
		},
			func(r *samltest.Response) { r.Format = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress" }, 0, nil},
		"no format":           {nil, func(r *samltest.Response) { r.Format = "" }, 0, nil},
		"transient":           {func(p *model.SAMLProvider) { p.NameIDPolicyFormat = samltest.Transient }, func(r *samltest.Response) { r.Format = samltest.Transient }, 400, nil},
		"no usable caData":    {func(p *model.SAMLProvider) { p.CAData = "aGVsbG8=" }, nil, -400, nil},
		"a ca that is absent": {func(p *model.SAMLProvider) { p.CAData, p.CA = "", "/nowhere/ca.pem" }, nil, -400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSAML(t)
			if row.set != nil {
				row.set(w.config.Auth.SAML)
			}
			b := w.browser()
			if row.refused < 0 {
				w.wantRefused(name, b.send(base+"/auth/saml/login?"+asked().Encode(), nil), -row.refused)
				return
			}
			request := w.ask(b)
			if request.Policy.Format != w.config.Auth.SAML.NameIDPolicyFormat || w.config.Auth.SAML.EntityIssuer != "" && request.Issuer != w.config.Auth.SAML.EntityIssuer {
				t.Errorf("%+v", request)
			}
			response := w.idp.Answer(request)
			if row.change != nil {
				row.change(response)
			}
			posted := w.post(response.XML(t), request.RelayState)
			switch row.refused {
			case 0:
				w.resumed(b, posted)
				records := w.stored("users")
				if len(records) != 1 {
					t.Fatalf("%d users\n%s", len(records), w.log.String())
				}
				if found := w.user(records[0].Name); row.holds != nil && !row.holds(found) {
					t.Errorf("%s %+v", found.Name, found.Spec)
				}
			case http.StatusForbidden:
				refused := w.resumed(b, posted)
				if body := text(t, refused); refused.StatusCode != row.refused || len(w.stored("users")) > 0 {
					t.Errorf("%d %s", refused.StatusCode, body)
				}
			default:
				w.wantRefused(name, posted, row.refused)
			}
		})
	}
	// The certificate may be in a file, and the address is that of the provider, with what its query has.
	w := newSAML(t)
	file := filepath.Join(t.TempDir(), "idp.crt")
	if err := os.WriteFile(file, w.idp.Certificate.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	w.config.Auth.SAML.CAData, w.config.Auth.SAML.CA = "", file
	if key := w.key(nil); key.Spec.User != "ana" {
		t.Errorf("%+v", key.Spec)
	}
}

func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, "group-"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	return names
}

// A key ends with the session at the provider, if that says when it ends, and nobody gets one after that.
func TestSAMLSession(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	at := func(after time.Duration) func(*samltest.Response) {
		return func(r *samltest.Response) { r.SessionEnds = w.clock.Now().Add(after).UTC().Format(time.RFC3339) }
	}
	if ttl := w.key(nil).Spec.TTLSeconds; ttl != 3600 {
		t.Errorf("without an end: %d", ttl)
	}
	if ttl := w.key(at(5 * time.Minute)).Spec.TTLSeconds; ttl != 300 {
		t.Errorf("with an end: %d", ttl)
	}
	if ttl := w.key(at(5 * time.Hour)).Spec.TTLSeconds; ttl != 3600 {
		t.Errorf("with a late end: %d", ttl)
	}
	none := int64(0)
	w.config.Auth.LoginAccessKeyTTLSeconds = &none
	if ttl := w.key(at(5 * time.Hour)).Spec.TTLSeconds; ttl != 5*3600 {
		t.Errorf("without a lifetime of its own: %d", ttl)
	}
	b := w.browser()
	code := b.confirm(w.prove(b, at(30*time.Second)), "allow").Get("code")
	w.clock.forward(30 * time.Second)
	if status, answer := w.fetch(code, nil); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("after its end: %d %v", status, answer)
	}
}

// The response of one browser helps no other, works once, and only at the connector and with the settings of its request.
func TestSAMLBinding(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	attacker, victim := w.browser(), w.browser()
	w.ask(victim)
	request := w.ask(attacker)
	response := w.idp.Answer(request).XML(t)
	posted := w.post(response, request.RelayState)
	location := posted.Header.Get("Location")
	if refused := victim.send(location, nil); refused.StatusCode != http.StatusBadRequest || len(w.stored("users")) > 0 {
		t.Errorf("in another browser: %d", refused.StatusCode)
	}
	if again := w.post(response, request.RelayState); again.StatusCode != http.StatusBadRequest {
		t.Errorf("the response again: %d", again.StatusCode)
	}
	// A page of the platform that needs a proof does not take one that is not resumed.
	at, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	if early := attacker.send(base+"/auth/confirm?id="+at.Query().Get("id"), nil); early.StatusCode != http.StatusBadRequest {
		t.Errorf("confirmed before: %d", early.StatusCode)
	}
	if first := attacker.send(location, nil); first.StatusCode != http.StatusSeeOther {
		t.Errorf("resumed: %d", first.StatusCode)
	}
	if again := attacker.send(location, nil); again.StatusCode != http.StatusBadRequest {
		t.Errorf("resumed again: %d", again.StatusCode)
	}
	for name, send := range map[string]func() *http.Response{
		"not posted yet": func() *http.Response {
			b := w.browser()
			w.ask(b)
			for cookie := range b.cookies {
				return b.send(base+"/auth/resume?id="+strings.TrimPrefix(cookie, "__Host-signin-"), nil)
			}
			return nil
		},
		"no id":              func() *http.Response { return w.browser().send(base+"/auth/resume", nil) },
		"two ids":            func() *http.Response { return w.browser().send(base+"/auth/resume?id=a&id=b", nil) },
		"without RelayState": func() *http.Response { return w.post(response, "") },
		"another RelayState": func() *http.Response { return w.post(response, w.ask(w.browser()).RelayState) },
		"by GET": func() *http.Response {
			b := w.browser()
			request := w.ask(b)
			form := samltest.Form(w.idp.Answer(request).XML(t), request.RelayState)
			form.Set("state", request.RelayState)
			return b.send(samlCallback+"?"+form.Encode(), nil)
		},
		"settings that have changed since": func() *http.Response {
			b := w.browser()
			request := w.ask(b)
			w.config.Auth.SAML.EmailAttr = "email"
			posted := w.post(w.idp.Answer(request).XML(t), request.RelayState)
			w.config.Auth.SAML.EmailAttr = "mail"
			return w.resumed(b, posted)
		},
		"settings that change after": func() *http.Response {
			b := w.browser()
			request := w.ask(b)
			posted := w.post(w.idp.Answer(request).XML(t), request.RelayState)
			w.config.Auth.SAML.SSOIssuer = w.idp.Entity
			defer func() { w.config.Auth.SAML.SSOIssuer = "" }()
			return w.resumed(b, posted)
		},
		"ten minutes later": func() *http.Response {
			b := w.browser()
			request := w.ask(b)
			posted := w.post(w.idp.Answer(request).XML(t), request.RelayState)
			w.clock.forward(10 * time.Minute)
			return w.resumed(b, posted)
		},
	} {
		before := len(w.stored("users"))
		if answer := send(); answer.StatusCode != http.StatusBadRequest || len(w.stored("users")) != before {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text(t, answer))
		}
	}
	// A connector that answers with a GET takes no posted answer, and one that does not exist takes none.
	for id, status := range map[string]int{"oidc": 404, "away": 404} {
		request := w.ask(w.browser())
		form := samltest.Form(w.idp.Answer(request).XML(t), request.RelayState)
		if answer := w.browser().send(base+"/auth/"+id+"/callback", form, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != status {
			t.Errorf("at %s: %d", id, answer.StatusCode)
		}
	}
	// Another connector has another address.
	other := *w.config.Auth.SAML
	other.RedirectURI = base + "/auth/other/callback"
	w.config.Auth.Connectors = []model.AuthConnector{{ID: "other", IdentityProviders: model.IdentityProviders{SAML: &other}}}
	request = w.ask(w.browser())
	form := samltest.Form(w.idp.Answer(request).XML(t), request.RelayState)
	if answer := w.browser().send(base+"/auth/other/callback", form, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("at another connector: %d", answer.StatusCode)
	}
}

// Signatures are not looked at if the configuration says so and the deployment allows it, and only then. Source: ADR-0038.
func TestSAMLUnsigned(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	w.config.Auth.SAML.CAData, w.config.Auth.SAML.InsecureSkipSignatureValidation = "", true
	unsigned := func(r *samltest.Response) { r.SignAssertion = false }
	w.env.LocalSigners = false
	w.wantRefused("a deployed function", w.browser().send(base+"/auth/saml/login?"+asked().Encode(), nil), http.StatusBadRequest)
	w.env.UnsignedSAML = settings.On
	b := w.browser()
	asks := w.prove(b, unsigned)
	if page := text(t, b.send(asks.Header.Get("Location"), nil)); !strings.Contains(page, "not verified") {
		t.Errorf("the page does not warn: %s", page)
	}
	w.env.UnsignedSAML, w.env.LocalSigners = settings.Off, true
	if key := w.key(unsigned); key.Spec.User != "ana" {
		t.Errorf("%+v", key.Spec)
	}
	request := w.ask(w.browser())
	response := w.idp.Answer(request)
	unsigned(response)
	response.Audiences = []string{"other"}
	if answer := w.post(response.XML(t), request.RelayState); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another audience: %d", answer.StatusCode)
	}
}

// Namespaces that nothing uses may stay in what is signed: in the element, in the SignedInfo, or in both. Source: Exclusive XML Canonicalization 1.0, 3.
func TestInclusiveNamespaces(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	request := w.ask(w.browser())
	for about, change := range map[string]func(*samltest.Response){
		"in the SignedInfo": func(r *samltest.Response) { r.InfoPrefixes = "xs" },
		"in the element":    func(r *samltest.Response) { r.ContentPrefixes = "xs" },
		"in both":           func(r *samltest.Response) { r.InfoPrefixes, r.ContentPrefixes = "xs", "xs" },
	} {
		for _, signsResponse := range []bool{false, true} {
			response := w.idp.Answer(request)
			response.SignResponse, response.SignAssertion = signsResponse, !signsResponse
			change(response)
			right := response.XML(t)
			if read, err := w.read(t, right, request.RelayState); err != nil || read.Subject != "1001" {
				t.Errorf("%s, response signed: %v: %+v, %v", about, signsResponse, read, err)
			}
			for _, wrong := range []string{
				strings.Replace(right, `PrefixList="xs"`, `PrefixList="xs ds"`, 1),
				strings.Replace(right, `PrefixList="xs"`, `PrefixList=""`, 1),
				strings.ReplaceAll(right, "http://www.w3.org/2001/XMLSchema", "urn:another"),
				strings.Replace(right, "1001", "1002", 1),
			} {
				w.wantUnread(t, about, wrong, request.RelayState)
			}
		}
	}
}
