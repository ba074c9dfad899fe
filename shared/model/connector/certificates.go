package connector

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// minRSA is the minimum size of an RSA key of a SAML provider, in bits.
const minRSA = 2048

// Certificates reads the certificates of a SAML provider: several in PEM, or one in DER.
func Certificates(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) > 0 {
		return certificates, nil
	}
	return x509.ParseCertificates(text)
}

// UsableCertificates returns the certificates with which a SAML provider may sign at the time now. If there is none, why
// says what is wrong.
func UsableCertificates(certificates []*x509.Certificate, now time.Time) (usable []*x509.Certificate, why string) {
	why = "has no certificate"
	for _, certificate := range certificates {
		key, isRSA := certificate.PublicKey.(*rsa.PublicKey)
		_, isCurve := certificate.PublicKey.(*ecdsa.PublicKey)
		switch {
		case !isRSA && !isCurve:
			why = "has a certificate with a key that is neither RSA nor of an elliptic curve"
		case isRSA && key.N.BitLen() < minRSA:
			why = "has a certificate with an RSA key of less than 2048 bits"
		case now.Before(certificate.NotBefore) || now.After(certificate.NotAfter):
			why = "has a certificate that has expired, or is not valid yet"
		default:
			usable = append(usable, certificate)
		}
	}
	return usable, why
}
