// Package samltest is a SAML identity provider for tests that uses no library of SAML or of XML signatures: it writes its responses as
// canonical XML in the first place, and signs their text. So it is a second opinion on what the platform verifies, and it can break
// every rule. Source: ADR-0038; XML Signature 1.1; Exclusive XML Canonicalization 1.0.
package samltest

import (
	"compress/flate"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // tests show that it is refused
	_ "crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The formats of a NameID, the algorithms of a signature and the namespaces of a response that tests name.
const (
	Persistent  = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	Transient   = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	Bearer      = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
	Success     = "urn:oasis:names:tc:SAML:2.0:status:Success"
	RSASHA256   = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	ECDSASHA256 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
	SHA256      = "http://www.w3.org/2001/04/xmlenc#sha256"
	Exclusive   = "http://www.w3.org/2001/10/xml-exc-c14n#"
	Enveloped   = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
	protocolNS  = "urn:oasis:names:tc:SAML:2.0:protocol"
	assertionNS = "urn:oasis:names:tc:SAML:2.0:assertion"
	signatureNS = "http://www.w3.org/2000/09/xmldsig#"
	schemaNS    = "http://www.w3.org/2001/XMLSchema"
)

// rsaKey is made once, because that takes long.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// Key returns the RSA key of the provider that New returns.
func Key(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Provider is an identity provider with a key.
type Provider struct {
	key         crypto.Signer
	Certificate *x509.Certificate
	// Entity is the Issuer of its responses, and SSO where it takes requests.
	Entity, SSO string
	now         func() time.Time
}

// New returns a provider with an RSA key of 2048 bits.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	return With(t, Key(t), now)
}

// With returns a provider with a key. Its certificate is valid from a year before now to a year after it.
func With(t testing.TB, key crypto.Signer, now func() time.Time) *Provider {
	t.Helper()
	return &Provider{
		key: key, Certificate: Certificate(t, key, now().AddDate(-1, 0, 0), now().AddDate(1, 0, 0)), now: now,
		Entity: "https://idp.example/metadata", SSO: "https://idp.example/sso?tenant=a%26b",
	}
}

// Certificate returns a certificate for a key.
func Certificate(t testing.TB, key crypto.Signer, from, until time.Time) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "idp"}, NotBefore: from, NotAfter: until}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// CAData returns certificates as the configuration has them.
func CAData(certificates ...*x509.Certificate) string {
	var text []byte
	for _, one := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	return base64.StdEncoding.EncodeToString(text)
}

// Request is what a platform asks a provider.
type Request struct {
	XMLName     xml.Name  `xml:"urn:oasis:names:tc:SAML:2.0:protocol AuthnRequest"`
	ID          string    `xml:",attr"`
	Version     string    `xml:",attr"`
	Issued      time.Time `xml:"IssueInstant,attr"`
	Destination string    `xml:",attr"`
	Callback    string    `xml:"AssertionConsumerServiceURL,attr"`
	Binding     string    `xml:"ProtocolBinding,attr"`
	Issuer      string    `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	Policy      struct {
		Format string `xml:",attr"`
		Create bool   `xml:"AllowCreate,attr"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol NameIDPolicy"`
	// RelayState is the parameter that comes beside the request.
	RelayState string `xml:"-"`
}

// Read reads the request in an address to which the platform has sent a browser, and checks what all requests have in common.
func (p *Provider) Read(t testing.TB, location string) Request {
	t.Helper()
	at, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	deflated, err := base64.StdEncoding.DecodeString(query.Get("SAMLRequest"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(string(deflated))))
	if err != nil {
		t.Fatal(err)
	}
	var request Request
	if err := xml.Unmarshal(text, &request); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	request.RelayState = query.Get("RelayState")
	query.Del("SAMLRequest")
	query.Del("RelayState")
	at.RawQuery = query.Encode()
	if at.String() != p.SSO || request.Destination != p.SSO || request.Version != "2.0" || !request.Issued.Equal(p.now().Truncate(time.Second)) ||
		request.Binding != "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" || len(request.ID) < 33 || request.RelayState == "" || len(request.RelayState) > 80 {
		t.Errorf("%s has the request %s", location, text)
	}
	return request
}

// Attribute is an attribute of a person.
type Attribute struct {
	Name   string
	Values []string
}

// Response is a response. Its fields are texts as they are in the response, so that they may be wrong; a field that is empty is left out.
type Response struct {
	p *Provider

	ID, InResponseTo, Destination, Issued, Issuer, Status      string
	AssertionID, AssertionIssued, AssertionIssuer              string
	NameID, Format, Method, Recipient, ConfirmedFor, Until     string
	NotBefore, NotOnOrAfter, Authenticated, SessionEnds        string
	Audiences                                                  []string
	Attributes                                                 []Attribute
	Method1, Digest1, Canonical, FirstTransform, NextTransform string
	// More is added to an element of the assertion, by its name, before it is signed: AfterSubject, Subject, Conditions, Assertion.
	More map[string]string
	// InfoPrefixes and ContentPrefixes are what InclusiveNamespaces lists for the SignedInfo, and for the element that is signed: xs, or nothing. Set
	// them where one element is signed.
	InfoPrefixes, ContentPrefixes string
	// References are the elements that the signature refers to more, in text.
	References string
	// KeyInfo is in each signature.
	KeyInfo string
	// SignResponse and SignAssertion say what is signed.
	SignResponse, SignAssertion bool
}

// Answer returns the correct response to a request, about ana. The assertion is signed.
func (p *Provider) Answer(request Request) *Response {
	now := p.now().UTC()
	at := func(after time.Duration) string { return now.Add(after).Format(time.RFC3339) }
	method := RSASHA256
	if _, isCurve := p.key.(*ecdsa.PrivateKey); isCurve {
		method = ECDSASHA256
	}
	return &Response{
		p: p, ID: "_response", InResponseTo: request.ID, Destination: request.Callback, Issued: at(0), Issuer: p.Entity, Status: Success,
		AssertionID: "_assertion", AssertionIssued: at(0), AssertionIssuer: p.Entity, NameID: "1001", Format: Persistent, Method: Bearer,
		Recipient: request.Callback, ConfirmedFor: request.ID, Until: at(5 * time.Minute), NotBefore: at(0), NotOnOrAfter: at(time.Hour), Authenticated: at(0),
		Audiences: []string{request.Issuer}, Attributes: []Attribute{
			{"name", []string{"ana"}}, {"mail", []string{"ana@example.com"}}, {"groups", []string{"dev", "ops"}},
		},
		Method1: method, Digest1: SHA256, Canonical: Exclusive, FirstTransform: Enveloped, NextTransform: Exclusive, SignAssertion: true,
		More: map[string]string{},
	}
}

// element returns an element in canonical XML. Attributes come in pairs, and must be in the order of their names; those without a
// value are left out.
func element(name, content string, attributes ...string) string {
	var text strings.Builder
	text.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			fmt.Fprintf(&text, ` %s="%s"`, attributes[i], escape(attributes[i+1]))
		}
	}
	return text.String() + ">" + content + "</" + name + ">"
}

// elements returns an element for each text.
func elements(name string, texts []string) string {
	var all strings.Builder
	for _, one := range texts {
		all.WriteString(element(name, content(one)))
	}
	return all.String()
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;").Replace(text)
}

func content(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// Assertion returns the assertion, signed if it is to be.
func (r *Response) Assertion(t testing.TB) string {
	t.Helper()
	audiences := elements("saml:Audience", r.Audiences)
	if audiences != "" {
		audiences = element("saml:AudienceRestriction", audiences)
	}
	var named strings.Builder
	for _, one := range r.Attributes {
		named.WriteString(element("saml:Attribute", elements("saml:AttributeValue", one.Values), "Name", one.Name))
	}
	attributes := named.String()
	confirmation := element("saml:SubjectConfirmationData", "", "InResponseTo", r.ConfirmedFor, "NotOnOrAfter", r.Until, "Recipient", r.Recipient)
	statements := ""
	if r.Authenticated != "" {
		statements = element("saml:AuthnStatement", element("saml:AuthnContext", element("saml:AuthnContextClassRef", "urn:oasis:names:tc:SAML:2.0:ac:classes:Password")),
			"AuthnInstant", r.Authenticated, "SessionNotOnOrAfter", r.SessionEnds)
	}
	if attributes != "" {
		statements += element("saml:AttributeStatement", attributes)
	}
	text := element("saml:Assertion",
		element("saml:Issuer", content(r.AssertionIssuer))+
			element("saml:Subject", element("saml:NameID", content(r.NameID), "Format", r.Format)+
				element("saml:SubjectConfirmation", confirmation, "Method", r.Method)+r.More["Subject"])+
			r.More["AfterSubject"]+
			element("saml:Conditions", audiences+r.More["Conditions"], "NotBefore", r.NotBefore, "NotOnOrAfter", r.NotOnOrAfter)+
			statements+r.More["Assertion"],
		"xmlns:saml", assertionNS, "xmlns:xs", r.schema(r.SignAssertion), "ID", r.AssertionID, "IssueInstant", r.AssertionIssued, "Version", "2.0")
	if r.SignAssertion {
		text = r.sign(t, text, r.AssertionID)
	}
	return text
}

// XML returns the response as a text.
func (r *Response) XML(t testing.TB) string {
	t.Helper()
	issuer := ""
	if r.Issuer != "" {
		issuer = element("saml:Issuer", content(r.Issuer), "xmlns:saml", assertionNS)
	}
	text := element("samlp:Response", issuer+element("samlp:Status", element("samlp:StatusCode", "", "Value", r.Status))+r.Assertion(t),
		"xmlns:samlp", protocolNS, "xmlns:xs", r.schema(!r.SignAssertion), "Destination", r.Destination, "ID", r.ID, "InResponseTo", r.InResponseTo, "IssueInstant", r.Issued, "Version", "2.0")
	if r.SignResponse {
		text = r.sign(t, text, r.ID)
	}
	return text
}

// Form returns a response as a browser posts it.
func Form(response, state string) url.Values {
	return url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(response))}, "RelayState": {state}}
}

// sign adds a signature to an element with an ID, after its Issuer. The text must be canonical.
func (r *Response) sign(t testing.TB, text, id string) string {
	t.Helper()
	sum := hashed(r.Digest1, text)
	encode := base64.StdEncoding.EncodeToString
	reference := element("ds:Reference",
		element("ds:Transforms", element("ds:Transform", "", "Algorithm", r.FirstTransform)+
			element("ds:Transform", inclusive(r.ContentPrefixes), "Algorithm", r.NextTransform))+
			element("ds:DigestMethod", "", "Algorithm", r.Digest1)+element("ds:DigestValue", encode(sum)),
		"URI", "#"+id)
	info := element("ds:CanonicalizationMethod", inclusive(r.InfoPrefixes), "Algorithm", r.Canonical) + element("ds:SignatureMethod", "", "Algorithm", r.Method1) + reference + r.References
	inherited := ""
	if r.InfoPrefixes != "" {
		inherited = schemaNS
	}
	digest := hashed(r.Method1, element("ds:SignedInfo", info, "xmlns:ds", signatureNS, "xmlns:xs", inherited))
	var signature []byte
	var err error
	switch key := r.p.key.(type) {
	case *rsa.PrivateKey:
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, hashOf(r.Method1), digest)
	case *ecdsa.PrivateKey:
		var first, second *big.Int
		if first, second, err = ecdsa.Sign(rand.Reader, key, digest); err == nil {
			size := (key.Curve.Params().BitSize + 7) / 8
			signature = append(first.FillBytes(make([]byte, size)), second.FillBytes(make([]byte, size))...)
		}
	default:
		t.Fatalf("a key %T signs nothing", key)
	}
	if err != nil {
		t.Fatal(err)
	}
	signed := element("ds:Signature", element("ds:SignedInfo", info)+element("ds:SignatureValue", encode(signature))+r.KeyInfo, "xmlns:ds", signatureNS, "xmlns:xs", inherited)
	at := strings.Index(text, ">") + 1
	if strings.HasPrefix(text[at:], "<saml:Issuer") {
		at = strings.Index(text, "</saml:Issuer>") + len("</saml:Issuer>")
	}
	return text[:at] + signed + text[at:]
}

// schema returns the namespace of the prefix xs for an element whose canonical text declares it: the element that is signed. Nothing in a response
// uses the prefix.
func (r *Response) schema(signed bool) string {
	if r.ContentPrefixes == "" || !signed {
		return ""
	}
	return schemaNS
}

// inclusive returns InclusiveNamespaces with a list of prefixes.
func inclusive(prefixes string) string {
	if prefixes == "" {
		return ""
	}
	return element("ec:InclusiveNamespaces", "", "xmlns:ec", Exclusive, "PrefixList", prefixes)
}

// hashOf is the hash in the name of an algorithm.
func hashOf(algorithm string) crypto.Hash {
	switch {
	case strings.HasSuffix(algorithm, "sha1"):
		return crypto.SHA1
	case strings.HasSuffix(algorithm, "sha512"):
		return crypto.SHA512
	default:
		return crypto.SHA256
	}
}

// hashed is the digest of a text by the hash in the name of an algorithm.
func hashed(algorithm, text string) []byte {
	hash := hashOf(algorithm).New()
	_, _ = hash.Write([]byte(text))
	return hash.Sum(nil)
}

// KeyInfo returns what a signature may say about its key.
func KeyInfo(certificate *x509.Certificate) string {
	return element("ds:KeyInfo", element("ds:X509Data", element("ds:X509Certificate", base64.StdEncoding.EncodeToString(certificate.Raw))))
}
