package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/signin/saml"
	"management.platform.sh/test/signin/samltest"
)

// connector is the connector of the provider.
func (w *samlWorld) connector(t testing.TB) provider.Connector {
	t.Helper()
	for _, one := range method.Connectors(w.config) {
		if one.ID == "saml" {
			return one
		}
	}
	t.Fatal("nobody can sign in at the provider")
	return provider.Connector{}
}

// read has a response read as the answer to the request of a state.
func (w *samlWorld) read(t testing.TB, response, state string) (provider.Person, error) {
	t.Helper()
	return saml.Open(w.env).HandleCallback(t.Context(), w.connector(t), provider.Response{
		Request: provider.Request{State: state}, Values: samltest.Form(response, state),
	})
}

// wantUnread fails the test unless a response is refused, for a reason that quotes nothing of it.
func (w *samlWorld) wantUnread(t testing.TB, about, response, state string) {
	t.Helper()
	read, err := w.read(t, response, state)
	var refusal *refusal.Refusal
	if err == nil || !errors.As(err, &refusal) || strings.Contains(err.Error(), "mallory") || strings.Contains(err.Error(), "1001") {
		t.Errorf("%s: %+v, %v\n%s", about, read, err, response)
	}
}

// What an assertion says must fit the request, the time and the platform. Each row breaks one rule of a response that is signed as it
// is. Source: ADR-0038; SAML 2.0 Profiles, 4.1.4.3.
func TestSAMLRules(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	request := w.ask(w.browser())
	state := request.RelayState
	at := func(after time.Duration) string { return w.clock.Now().Add(after).UTC().Format(time.RFC3339) }
	if read, err := w.read(t, w.idp.Answer(request).XML(t), state); err != nil || read.Subject != "1001" {
		t.Fatalf("%+v, %v", read, err)
	}
	evil := "https://evil.example/auth/saml/callback"
	for name, change := range map[string]func(*samltest.Response){
		"another Destination":             func(r *samltest.Response) { r.Destination = evil },
		"no Destination":                  func(r *samltest.Response) { r.Destination = "" },
		"a Destination that begins alike": func(r *samltest.Response) { r.Destination = samlCallback + "/" },
		"another Recipient":               func(r *samltest.Response) { r.Recipient = evil },
		"no Recipient":                    func(r *samltest.Response) { r.Recipient = "" },
		"another Audience":                func(r *samltest.Response) { r.Audiences = []string{evil} },
		"no Audience":                     func(r *samltest.Response) { r.Audiences = nil },
		"a second restriction without us": func(r *samltest.Response) {
			r.More["Conditions"] = "<saml:AudienceRestriction><saml:Audience>x</saml:Audience></saml:AudienceRestriction>"
		},
		"an empty restriction": func(r *samltest.Response) {
			r.More["Conditions"] = "<saml:AudienceRestriction></saml:AudienceRestriction>"
		},
		"a condition that nobody knows":   func(r *samltest.Response) { r.More["Conditions"] = "<saml:Condition></saml:Condition>" },
		"no InResponseTo of the response": func(r *samltest.Response) { r.InResponseTo = "" },
		"no InResponseTo of the subject":  func(r *samltest.Response) { r.ConfirmedFor = "" },
		"another request":                 func(r *samltest.Response) { r.InResponseTo, r.ConfirmedFor = "_x", "_x" },
		"another request of the subject":  func(r *samltest.Response) { r.ConfirmedFor = "_x" },
		"nobody asked":                    func(r *samltest.Response) { r.InResponseTo, r.ConfirmedFor = "", "" },
		"expired":                         func(r *samltest.Response) { r.Until = at(-time.Minute) },
		"no NotOnOrAfter":                 func(r *samltest.Response) { r.Until = "" },
		"NotOnOrAfter is no time":         func(r *samltest.Response) { r.Until = "tomorrow" },
		"conditions that have expired":    func(r *samltest.Response) { r.NotOnOrAfter = at(-time.Minute) },
		"conditions of tomorrow":          func(r *samltest.Response) { r.NotBefore = at(time.Minute + time.Second) },
		"issued later":                    func(r *samltest.Response) { r.AssertionIssued = at(time.Minute + time.Second) },
		"issued long ago":                 func(r *samltest.Response) { r.AssertionIssued = at(-11*time.Minute - time.Second) },
		"not issued":                      func(r *samltest.Response) { r.AssertionIssued = "" },
		"a session that has ended":        func(r *samltest.Response) { r.SessionEnds = at(0) },
		"not authenticated":               func(r *samltest.Response) { r.Authenticated = "" },
		"not by a bearer":                 func(r *samltest.Response) { r.Method = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key" },
		"no NameID":                       func(r *samltest.Response) { r.NameID = "" },
		"a NameID of blanks":              func(r *samltest.Response) { r.NameID = " \t" },
		"a status that is no success":     func(r *samltest.Response) { r.Status = "urn:oasis:names:tc:SAML:2.0:status:Requester" },
		"no Issuer of the assertion":      func(r *samltest.Response) { r.AssertionIssuer = "" },
		"two Issuers":                     func(r *samltest.Response) { r.AssertionIssuer = "https://evil.example" },
		"no ID":                           func(r *samltest.Response) { r.AssertionID = "" },
		"an ID twice":                     func(r *samltest.Response) { r.ID = r.AssertionID },
		"nothing is signed":               func(r *samltest.Response) { r.SignAssertion = false },
		"an ID in a namespace": func(r *samltest.Response) {
			r.More["Assertion"] = `<saml:AuthzDecisionStatement xml:id="x"></saml:AuthzDecisionStatement>`
		},
		"an element in a wrong place": func(r *samltest.Response) {
			r.More["AfterSubject"] = "<saml:AttributeStatement></saml:AttributeStatement>"
		},
		"a statement that nobody knows": func(r *samltest.Response) { r.More["Assertion"] = "<saml:Statement></saml:Statement>" },
		"an assertion as advice":        func(r *samltest.Response) { r.More["Assertion"] = "<saml:Advice></saml:Advice>" },
		"a second subject confirmation": func(r *samltest.Response) {
			r.Method, r.More["Subject"] = "x", `<saml:SubjectConfirmation Method="`+samltest.Bearer+`"><saml:NameID>mallory</saml:NameID></saml:SubjectConfirmation>`
		},
		"a text between elements":         func(r *samltest.Response) { r.More["Subject"] = "mallory" },
		"SHA-1 in the signature":          func(r *samltest.Response) { r.Method1 = "http://www.w3.org/2000/09/xmldsig#rsa-sha1" },
		"SHA-1 in the digest":             func(r *samltest.Response) { r.Digest1 = "http://www.w3.org/2000/09/xmldsig#sha1" },
		"HMAC":                            func(r *samltest.Response) { r.Method1 = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256" },
		"another canonicalization":        func(r *samltest.Response) { r.Canonical = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315" },
		"canonicalization with comments":  func(r *samltest.Response) { r.Canonical = samltest.Exclusive + "WithComments" },
		"a transform with comments":       func(r *samltest.Response) { r.NextTransform = samltest.Exclusive + "WithComments" },
		"a transform by a program":        func(r *samltest.Response) { r.NextTransform = "http://www.w3.org/TR/1999/REC-xslt-19991116" },
		"a transform by a path":           func(r *samltest.Response) { r.FirstTransform = "http://www.w3.org/TR/1999/REC-xpath-19991116" },
		"the transforms in another order": func(r *samltest.Response) { r.FirstTransform, r.NextTransform = r.NextTransform, r.FirstTransform },
		"several references": func(r *samltest.Response) {
			r.References = `<ds:Reference URI="#_response"><ds:Transforms><ds:Transform Algorithm="` + samltest.Enveloped + `"></ds:Transform><ds:Transform Algorithm="` + samltest.Exclusive +
				`"></ds:Transform></ds:Transforms><ds:DigestMethod Algorithm="` + samltest.SHA256 + `"></ds:DigestMethod><ds:DigestValue>AAAA</ds:DigestValue></ds:Reference>`
		},
		"a second key": func(r *samltest.Response) { r.KeyInfo = strings.Repeat(samltest.KeyInfo(w.idp.Certificate), 2) },
		"an object":    func(r *samltest.Response) { r.KeyInfo = "<ds:Object>x</ds:Object>" },
	} {
		for _, signed := range []bool{false, true} {
			response := w.idp.Answer(request)
			response.SignResponse = signed && name != "nothing is signed"
			change(response)
			w.wantUnread(t, fmt.Sprint(name, ", response signed: ", signed), response.XML(t), state)
		}
	}
	// A minute is accepted, because clocks differ.
	for name, change := range map[string]func(*samltest.Response){
		"issued a minute later":        func(r *samltest.Response) { r.AssertionIssued, r.NotBefore = at(time.Minute), at(time.Minute) },
		"expired half a minute ago":    func(r *samltest.Response) { r.Until, r.NotOnOrAfter = at(-30*time.Second), at(-30*time.Second) },
		"conditions without times":     func(r *samltest.Response) { r.NotBefore, r.NotOnOrAfter = "", "" },
		"conditions that are harmless": func(r *samltest.Response) { r.More["Conditions"] = "<saml:OneTimeUse></saml:OneTimeUse>" },
	} {
		response := w.idp.Answer(request)
		change(response)
		if read, err := w.read(t, response.XML(t), state); err != nil || read.Subject != "1001" {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
	}
	w.wantUnread(t, "the state of another request", w.idp.Answer(request).XML(t), w.ask(w.browser()).RelayState)
}

// Texts that are changed after they were signed, and texts that two readers understand differently, are refused.
func TestSAMLTexts(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	request := w.ask(w.browser())
	right := w.idp.Answer(request).XML(t)
	replace := func(old, now string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, now, 1) }
	}
	nested := strings.Repeat("<x>", 40) + strings.Repeat("</x>", 40)
	for name, change := range map[string]func(string) string{
		"another NameID":              replace(">1001<", ">mallory<"),
		"another group":               replace(">ops<", ">root<"),
		"a comment in the NameID":     replace(">1001<", ">10<!-- x -->01<"),
		"a comment at its end":        replace(">1001<", ">1001<!-- x -->.evil<"),
		"a comment elsewhere":         replace("<samlp:Status>", "<!-- x --><samlp:Status>"),
		"a processing instruction":    replace(">1001<", ">10<?x y?>01<"),
		"a declaration in the middle": replace("<samlp:Status>", `<?xml version="1.0"?><samlp:Status>`),
		"a document type":             func(text string) string { return `<!DOCTYPE x [<!ENTITY e "mallory">]>` + text },
		"an entity": func(text string) string {
			return `<!DOCTYPE x [<!ENTITY e "mallory">]>` + strings.Replace(text, ">1001<", ">&e;<", 1)
		},
		"an entity of nobody":             replace(">1001<", ">&e;<"),
		"an external entity":              func(text string) string { return `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + text },
		"another encoding":                func(text string) string { return `<?xml version="1.0" encoding="UTF-7"?>` + text },
		"two roots":                       func(text string) string { return text + text },
		"a text after the root":           func(text string) string { return text + "x" },
		"no end":                          func(text string) string { return strings.TrimSuffix(text, "</samlp:Response>") },
		"an attribute twice":              replace("<samlp:Response ", `<samlp:Response ID="_x" `),
		"an attribute twice, by a prefix": replace("<samlp:Response ", `<samlp:Response xmlns:q="`+"urn:q"+`" q:ID="_x" `),
		"a name with two colons":          replace("<samlp:Status>", "<samlp:Status><a:b:c></a:b:c>"),
		"a name that begins with a colon": replace("<samlp:Status>", "<samlp:Status><:c></:c>"),
		"an attribute that is a colon":    replace("<samlp:Status>", `<samlp:Status :="x">`),
		"a signature that is not base64":  replace("<ds:SignatureValue>", "<ds:SignatureValue>*"),
		"a signature of another length":   replace("<ds:SignatureValue>", "<ds:SignatureValue>AAAA"),
		"an empty signature": func(text string) string {
			a, rest, _ := strings.Cut(text, "<ds:SignatureValue>")
			_, b, _ := strings.Cut(rest, "</ds:SignatureValue>")
			return a + "<ds:SignatureValue></ds:SignatureValue>" + b
		},
		"a signature without its value": func(text string) string {
			a, rest, _ := strings.Cut(text, "<ds:SignatureValue>")
			_, b, _ := strings.Cut(rest, "</ds:SignatureValue>")
			return a + b
		},
		"a digest of something else":  replace("<ds:DigestValue>", "<ds:DigestValue>AAAA"),
		"a reference to the response": replace(`URI="#_assertion"`, `URI="#_response"`),
		"a reference to everything":   replace(`URI="#_assertion"`, `URI=""`),
		"a reference without a mark":  replace(`URI="#_assertion"`, `URI="_assertion"`),
		"a reference to a path":       replace(`URI="#_assertion"`, `URI="#xpointer(id('_assertion'))"`),
		"a signature in another namespace": func(text string) string {
			return strings.ReplaceAll(text, "http://www.w3.org/2000/09/xmldsig#\"", "urn:x\"")
		},
		"a response of SAML 1.1":          replace(`Version="2.0"`, `Version="1.1"`),
		"a response in another namespace": replace("urn:oasis:names:tc:SAML:2.0:protocol", "urn:oasis:names:tc:SAML:1.0:protocol"),
		"an encrypted assertion":          replace("<samlp:Status>", "<samlp:Status></samlp:Status><saml:EncryptedAssertion xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\"></saml:EncryptedAssertion><samlp:Status>"),
		"an encrypted assertion alone": func(text string) string {
			return strings.NewReplacer("<saml:Assertion ", "<saml:EncryptedAssertion ", "</saml:Assertion>", "</saml:EncryptedAssertion>").Replace(text)
		},
		"an extension":    replace("<samlp:Status>", "<samlp:Extensions></samlp:Extensions><samlp:Status>"),
		"nested deeply":   replace("<samlp:Status>", "<samlp:Status>"+nested),
		"many attributes": replace("<samlp:Response ", "<samlp:Response "+attributes(40)),
		"many elements":   replace("<samlp:Status>", "<samlp:Status>"+strings.Repeat("<x></x>", 1000)),
		"many prefixes": func(text string) string {
			var more strings.Builder
			for i := range 40 {
				fmt.Fprintf(&more, `<x xmlns:p%d="u"></x>`, i)
			}
			return strings.Replace(text, "<samlp:Status>", "<samlp:Status>"+more.String(), 1)
		},
		"nothing": func(string) string { return "" },
		"a text":  func(string) string { return "mallory" },
		"an assertion alone": func(text string) string {
			return text[strings.Index(text, "<saml:Assertion "):strings.Index(text, "</samlp:Response>")]
		},
		"bytes of no text": func(string) string { return "<a>\xff\xfe</a>" },
		"the request, back": func(string) string {
			return `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"></samlp:AuthnRequest>`
		},
		"a null in the text":  replace(">1001<", ">10\x0001<"),
		"a response in a box": func(text string) string { return "<x>" + text + "</x>" },
	} {
		changed := change(right)
		if changed == right {
			t.Fatalf("%s changes nothing", name)
		}
		w.wantUnread(t, name, changed, request.RelayState)
	}
	// White space and a declaration do not change what was signed, nor does the form of an empty element.
	for name, change := range map[string]func(string) string{
		"a declaration":    func(text string) string { return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + text + "\n" },
		"an empty element": replace(`Value="`+samltest.Success+`"></samlp:StatusCode>`, `Value="`+samltest.Success+`"/>`),
		"single quotes":    replace(`Version="2.0"`, `Version='2.0'`),
		"a character":      replace(">1001<", ">&#49;001<"),
		"a section":        replace(">1001<", "><![CDATA[1001]]><"),
	} {
		if read, err := w.read(t, change(right), request.RelayState); err != nil || read.Subject != "1001" {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
	}
	for name, form := range map[string]url.Values{
		"none":       {"RelayState": {request.RelayState}},
		"two":        {"RelayState": {request.RelayState}, "SAMLResponse": {"a", "b"}},
		"no base64":  {"RelayState": {request.RelayState}, "SAMLResponse": {"*"}},
		"two states": {"RelayState": {request.RelayState, "x"}, "SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(right))}},
	} {
		w.wantRefused(name, w.browser().send(samlCallback, form, "Sec-Fetch-Site", "cross-site"), http.StatusBadRequest)
	}
}

func attributes(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `a%d="x" `, i)
	}
	return text.String()
}

// Only certificates of the configuration count, while they are valid, and with keys that are long enough.
func TestSAMLCertificates(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	request := w.ask(w.browser())
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]*samltest.Provider{"RSA": samltest.With(t, other, w.clock.Now), "a curve": samltest.With(t, curve, w.clock.Now)} {
		response := key.Answer(request)
		response.KeyInfo = samltest.KeyInfo(key.Certificate)
		w.wantUnread(t, "a key of somebody else, "+name, response.XML(t), request.RelayState)
		response.KeyInfo = samltest.KeyInfo(w.idp.Certificate)
		w.wantUnread(t, "with the name of the right key, "+name, response.XML(t), request.RelayState)
		response.SignResponse = true
		response.KeyInfo = ""
		right := w.idp.Answer(request)
		right.SignAssertion, right.SignResponse = true, false
		w.wantUnread(t, "a response around it, "+name, response.XML(t), request.RelayState)
	}
	// An assertion that is signed by somebody else is refused also in a response that is signed correctly.
	mixed := w.idp.Answer(request)
	mixed.SignResponse = true
	mixed.SignAssertion = false
	foreign := samltest.With(t, other, w.clock.Now).Answer(request)
	text := strings.Replace(mixed.XML(t), mixed.Assertion(t), foreign.Assertion(t), 1)
	w.wantUnread(t, "another assertion in it", text, request.RelayState)
	for _, row := range []struct {
		name        string
		from, until time.Duration
	}{{"not valid yet", time.Hour, 2 * time.Hour}, {"expired", -2 * time.Hour, -time.Hour}} {
		w.config.Auth.SAML.CAData = samltest.CAData(samltest.Certificate(t, other, w.clock.Now().Add(row.from), w.clock.Now().Add(row.until)))
		w.wantUnread(t, row.name, samltest.With(t, other, w.clock.Now).Answer(request).XML(t), request.RelayState)
		w.wantRefused(row.name, w.browser().send(base+"/auth/saml/login?"+asked().Encode(), nil), http.StatusBadRequest)
	}
}
