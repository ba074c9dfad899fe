package saml

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

const (
	exclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
	enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
)

var (
	methods = []string{
		dsig.RSASHA256SignatureMethod, dsig.RSASHA384SignatureMethod, dsig.RSASHA512SignatureMethod,
		dsig.ECDSASHA256SignatureMethod, dsig.ECDSASHA384SignatureMethod, dsig.ECDSASHA512SignatureMethod,
	}
	digests = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384", "http://www.w3.org/2001/04/xmlenc#sha512",
	}
)

// errSignature says that no pinned certificate has made a signature. Why is for nobody.
var errSignature = errors.New("is not signed by a certificate of the configuration")

// verified returns what one of the certificates has signed of an element that has a signature: it is read from the very bytes whose
// digest was verified, without the signature. Everything that a signature could be except the one form that SAML has is refused
// before the library sees it. What the signature says about its key is ignored. Source: SAML 2.0 Core, 5.4.
func verified(element *etree.Element, certificates []*x509.Certificate, now time.Time) (*etree.Element, error) {
	parents, err := etreeutils.NSBuildParentContext(element)
	if err != nil {
		return nil, errSignature
	}
	if parents, err = parents.SubContext(element); err != nil {
		return nil, errSignature
	}
	alone, err := etreeutils.NSDetatch(parents, element)
	if err != nil {
		return nil, errSignature
	}
	signature := signatureOf(alone)
	if signature == nil {
		return nil, errSignature
	}
	if err := strict(signature, alone.SelectAttrValue("ID", "")); err != nil {
		return nil, err
	}
	for _, key := range signature.SelectElements("KeyInfo") {
		signature.RemoveChild(key)
	}
	text, err := value(signature.SelectElement("SignatureValue"))
	if err != nil {
		return nil, err
	}
	for _, certificate := range certificates {
		// The library wants the signature of an elliptic curve in ASN.1, and XML has its two numbers side by side.
		signature.SelectElement("SignatureValue").SetText(asASN1(text, certificate))
		checked := &dsig.ValidationContext{
			CertificateStore: &dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}}, IdAttribute: "ID", Clock: dsig.NewFakeClockAt(now),
		}
		if read, err := checked.Validate(alone); err == nil && read != nil {
			return read, nil
		}
	}
	return nil, errSignature
}

// signatureOf returns the signature that is directly in an element. Nil: it has none.
func signatureOf(element *etree.Element) *etree.Element {
	for _, child := range element.ChildElements() {
		if is(child, signatureNS, dsig.SignatureTag) {
			return child
		}
	}
	return nil
}

// strict refuses a signature that does not have exactly one reference, to the ID of its parent, or another algorithm than those here.
func strict(signature *etree.Element, id string) error {
	parts := open(signature)
	info := open(parts.must(signatureNS, dsig.SignedInfoTag))
	parts.must(signatureNS, dsig.SignatureValueTag)
	parts.may(signatureNS, dsig.KeyInfoTag)
	if err := parts.close(); err != nil {
		return err
	}
	canonical := info.must(signatureNS, dsig.CanonicalizationMethodTag)
	method := info.must(signatureNS, dsig.SignatureMethodTag)
	reference := info.must(signatureNS, dsig.ReferenceTag)
	if err := info.close(); err != nil {
		return err
	}
	referred := open(reference)
	transforms := open(referred.must(signatureNS, dsig.TransformsTag))
	digest := referred.must(signatureNS, dsig.DigestMethodTag)
	referred.must(signatureNS, dsig.DigestValueTag)
	first, second := transforms.must(signatureNS, dsig.TransformTag), transforms.must(signatureNS, dsig.TransformTag)
	if err := errors.Join(referred.close(), transforms.close()); err != nil {
		return errors.New("the signature has an unusual reference")
	}
	algorithm := func(element *etree.Element) string { return element.SelectAttrValue(dsig.AlgorithmAttr, "") }
	switch {
	case id == "" || reference.SelectAttrValue(dsig.URIAttr, "") != "#"+id:
		return errors.New("the signature refers to another element")
	case algorithm(canonical) != exclusive || algorithm(first) != enveloped || algorithm(second) != exclusive:
		return errors.New("the signature has an unusual canonicalization or transform")
	case !slices.Contains(methods, algorithm(method)) || !slices.Contains(digests, algorithm(digest)):
		return errors.New("the signature has an algorithm that is not accepted")
	}
	return nil
}

// asASN1 returns the signature of an elliptic curve in the form of ASN.1. Any other text is returned as it is, without white space.
func asASN1(text string, certificate *x509.Certificate) string {
	text = strings.Join(strings.Fields(text), "")
	key, isCurve := certificate.PublicKey.(*ecdsa.PublicKey)
	if !isCurve {
		return text
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	size := (key.Curve.Params().BitSize + 7) / 8
	if err != nil || len(raw) != 2*size {
		return text
	}
	encoded, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:size]), new(big.Int).SetBytes(raw[size:])})
	if err != nil {
		return text
	}
	return base64.StdEncoding.EncodeToString(encoded)
}
