package saml

import (
	"bytes"
	"crypto"
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
	exclusiveC14N      = "http://www.w3.org/2001/10/xml-exc-c14n#"
	envelopedTransform = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
)

// signatureMethods and digests are the algorithms that are accepted, by their identifiers. Source: RFC 9231, 2.3 and 2.4.
var (
	signatureMethods = map[string]x509.SignatureAlgorithm{
		dsig.RSASHA256SignatureMethod: x509.SHA256WithRSA, dsig.ECDSASHA256SignatureMethod: x509.ECDSAWithSHA256,
		dsig.RSASHA384SignatureMethod: x509.SHA384WithRSA, dsig.ECDSASHA384SignatureMethod: x509.ECDSAWithSHA384,
		dsig.RSASHA512SignatureMethod: x509.SHA512WithRSA, dsig.ECDSASHA512SignatureMethod: x509.ECDSAWithSHA512,
	}
	digestMethods = map[string]crypto.Hash{
		"http://www.w3.org/2001/04/xmlenc#sha256":       crypto.SHA256,
		"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384,
		"http://www.w3.org/2001/04/xmlenc#sha512":       crypto.SHA512,
	}
)

// errSignature means that no certificate of the configuration has made a signature. The reason is not reported.
var errSignature = errors.New("is not signed by a certificate of the configuration")

// verifySignature returns the signed content of an element: it is parsed from the bytes whose digest was verified, without the signature.
// Every form of a signature except the SAML profile is refused before verification. The KeyInfo of the signature is ignored. Source: SAML
// 2.0 Core, 5.4; ADR-0038.
func verifySignature(element *etree.Element, certificates []*x509.Certificate, now time.Time) (*etree.Element, error) {
	detached, err := detach(element)
	if err != nil {
		return nil, err
	}
	signature, id := signatureOf(detached), detached.SelectAttrValue("ID", "")
	if signature == nil {
		return nil, errSignature
	}
	parts := openChildren(signature)
	info, signatureValue := parts.must(signatureNS, dsig.SignedInfoTag), parts.must(signatureNS, dsig.SignatureValueTag)
	parts.may(signatureNS, dsig.KeyInfoTag)
	if err := parts.close(); err != nil {
		return nil, err
	}
	claimed, err := readSignedInfo(info, id)
	if err != nil {
		return nil, err
	}
	signed, err := decodeBase64(signatureValue)
	if err != nil {
		return nil, err
	}
	canonicalInfo, err := canonicalize(info, claimed.infoPrefixes)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(certificates, func(certificate *x509.Certificate) bool {
		return !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter) &&
			certificate.CheckSignature(claimed.method, canonicalInfo, asASN1(signed, certificate)) == nil
	}) {
		return nil, errSignature
	}
	// Only what is in the bytes that a certificate has signed counts.
	if info, err = parse(canonicalInfo); err != nil {
		return nil, errSignature
	}
	if claimed, err = readSignedInfo(info, id); err != nil {
		return nil, err
	}
	detached.RemoveChild(signature)
	content, err := canonicalize(detached, claimed.contentPrefixes)
	if err != nil {
		return nil, err
	}
	digest := claimed.digestMethod.New()
	_, _ = digest.Write(content)
	if !bytes.Equal(digest.Sum(nil), claimed.digest) {
		return nil, errSignature
	}
	return parse(content)
}

// detach returns a copy of an element that declares each namespace of its parents.
func detach(element *etree.Element) (*etree.Element, error) {
	namespaces, err := etreeutils.NSBuildParentContext(element)
	if err != nil {
		return nil, errSignature
	}
	detached, err := etreeutils.NSDetatch(namespaces, element)
	if err != nil {
		return nil, errSignature
	}
	return detached, nil
}

// canonicalize returns an element in exclusive canonical XML. The namespaces of the prefixes, which white space separates, are treated as inclusive
// canonicalization does: they stay where nothing uses them. Source: Exclusive XML Canonicalization 1.0, 3.
func canonicalize(element *etree.Element, prefixes string) ([]byte, error) {
	detached, err := detach(element)
	if err != nil {
		return nil, err
	}
	text, err := dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList(prefixes).Canonicalize(detached)
	if err != nil {
		return nil, errSignature
	}
	return text, nil
}

// signatureOf returns the signature directly in an element. Nil: it has none.
func signatureOf(element *etree.Element) *etree.Element {
	for _, child := range element.ChildElements() {
		if hasName(child, signatureNS, dsig.SignatureTag) {
			return child
		}
	}
	return nil
}

// signedInfo has the values of a SignedInfo.
type signedInfo struct {
	method       x509.SignatureAlgorithm
	digestMethod crypto.Hash
	digest       []byte
	// infoPrefixes and contentPrefixes are the prefixes for canonical: for the SignedInfo itself, and for the signed element.
	infoPrefixes, contentPrefixes string
}

// readSignedInfo reads a SignedInfo. It requires exactly one reference, to the element with an ID, and accepted algorithms.
func readSignedInfo(element *etree.Element, id string) (signedInfo, error) {
	var info signedInfo
	children := openChildren(element)
	canonicalization := children.must(signatureNS, dsig.CanonicalizationMethodTag)
	method := children.must(signatureNS, dsig.SignatureMethodTag)
	reference := children.must(signatureNS, dsig.ReferenceTag)
	if err := children.close(); err != nil {
		return info, err
	}
	referred := openChildren(reference)
	transforms := openChildren(referred.must(signatureNS, dsig.TransformsTag))
	digestMethod := referred.must(signatureNS, dsig.DigestMethodTag)
	digestValue := referred.must(signatureNS, dsig.DigestValueTag)
	first, second := transforms.must(signatureNS, dsig.TransformTag), transforms.must(signatureNS, dsig.TransformTag)
	if err := errors.Join(referred.close(), transforms.close()); err != nil {
		return info, errors.New("the signature has an unusual reference")
	}
	algorithm := func(element *etree.Element) string { return element.SelectAttrValue(dsig.AlgorithmAttr, "") }
	var err, unusual error
	info.infoPrefixes, err = inclusivePrefixes(canonicalization)
	info.contentPrefixes, unusual = inclusivePrefixes(second)
	info.method, info.digestMethod = signatureMethods[algorithm(method)], digestMethods[algorithm(digestMethod)]
	switch {
	case id == "" || reference.SelectAttrValue(dsig.URIAttr, "") != "#"+id:
		return info, errors.New("the signature refers to another element")
	case algorithm(canonicalization) != exclusiveC14N || algorithm(first) != envelopedTransform || algorithm(second) != exclusiveC14N || errors.Join(err, unusual) != nil:
		return info, errors.New("the signature has an unusual canonicalization or transform")
	case info.method == 0 || info.digestMethod == 0:
		return info, errors.New("the signature has an algorithm that is not accepted")
	}
	info.digest, err = decodeBase64(digestValue)
	return info, err
}

// inclusivePrefixes returns the prefixes that exclusive canonicalization treats inclusively.
func inclusivePrefixes(method *etree.Element) (string, error) {
	parts := openChildren(method)
	listed := parts.may(exclusiveC14N, "InclusiveNamespaces")
	if err := parts.close(); err != nil || listed == nil {
		return "", err
	}
	return listed.SelectAttrValue("PrefixList", ""), openChildren(listed).close()
}

// decodeBase64 returns the bytes of a text in base64. White space in it is ignored.
func decodeBase64(element *etree.Element) ([]byte, error) {
	text, err := trimmedText(element)
	if err != nil {
		return nil, err
	}
	octets, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errSignature
	}
	return octets, nil
}

// asASN1 returns the signature of an elliptic curve in the form of ASN.1: XML has its two numbers side by side. Any other signature is returned
// as it is.
func asASN1(signature []byte, certificate *x509.Certificate) []byte {
	key, isCurve := certificate.PublicKey.(*ecdsa.PublicKey)
	if !isCurve {
		return signature
	}
	size := (key.Curve.Params().BitSize + 7) / 8
	if len(signature) != 2*size {
		return signature
	}
	encoded, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])})
	if err != nil {
		return signature
	}
	return encoded
}
