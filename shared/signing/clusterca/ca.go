package clusterca

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"management.platform.sh/shared/settings/keypem"
)

// CA is a Signer with the certificate and the private key of an authority. ParseCA makes one. It may be kept for many
// certificates.
type CA struct {
	Certificate *x509.Certificate

	key      crypto.Signer
	duration time.Duration
	now      func() time.Time
}

// ParseCA reads an authority in PEM. Duration, above 0, is the lifetime of certificates whose request names none. The
// errors of the certificate and of the key are returned separately. Neither quotes its input. The first is also the
// error of Usable, if any.
func ParseCA(certificate, key []byte, duration time.Duration, now func() time.Time) (ca *CA, wrongCertificate, wrongKey error) {
	ca = &CA{duration: duration, now: now}
	list, err := ParseCertificates(certificate)
	switch {
	case err != nil:
		wrongCertificate = err
	case len(list) > 1:
		wrongCertificate = errors.New("holds more than one certificate; only the certificate of the authority may be there")
	default:
		ca.Certificate = list[0]
		wrongCertificate = ca.Usable()
	}
	if ca.key, wrongKey = parseKey(key); wrongKey == nil && ca.Certificate != nil && !matches(ca.Certificate, ca.key) {
		wrongKey = errors.New("is not the key of the certificate")
	}
	return ca, wrongCertificate, wrongKey
}

// ParseCertificates reads one or more certificates in PEM. Any other block is an error.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a block %.32q; only CERTIFICATE may be there", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("holds a certificate that cannot be read")
		}
		list = append(list, certificate)
	}
	if len(list) == 0 {
		return nil, errors.New("must be a certificate in PEM")
	}
	return list, nil
}

// Usable returns why the authority cannot sign client certificates now; nil if it can.
func (c *CA) Usable() error {
	now := c.now()
	switch {
	case !c.Certificate.IsCA || !c.Certificate.BasicConstraintsValid:
		return errors.New("is not the certificate of an authority: its basic constraints say so")
	case c.Certificate.KeyUsage != 0 && c.Certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("may not sign certificates: its key usage lacks it")
	case len(c.Certificate.ExtKeyUsage)+len(c.Certificate.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(c.Certificate.ExtKeyUsage, x509.ExtKeyUsageClientAuth) && !slices.Contains(c.Certificate.ExtKeyUsage, x509.ExtKeyUsageAny):
		return errors.New("may not sign for client authentication: its extended key usage lacks it")
	case !now.Before(c.Certificate.NotAfter):
		return fmt.Errorf("expired on %s", c.Certificate.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Certificate.NotBefore):
		return fmt.Errorf("is not valid before %s", c.Certificate.NotBefore.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// parseKey reads a private key in PEM with which an authority may sign.
func parseKey(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	for block != nil && block.Type == "EC PARAMETERS" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("must be a private key in PEM")
	}
	key, err := keypem.ParsePrivate(block)
	if weak, ok := key.(*rsa.PrivateKey); ok && weak.N.BitLen() < keypem.MinRSABits {
		return nil, fmt.Errorf("is an RSA key of %d bits; at least %d are needed", weak.N.BitLen(), keypem.MinRSABits)
	}
	return key, err
}

// matches reports whether a certificate belongs to a key.
func matches(certificate *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && public.Equal(certificate.PublicKey)
}

// Sign implements Signer. No certificate outlives the authority. There is no certificate signing request: it would
// prove to the authority that the requester has the private key, but this program is both the authority and the
// requester.
func (c *CA) Sign(_ context.Context, request Request) ([]*x509.Certificate, error) {
	if err := c.Usable(); err != nil {
		return nil, fmt.Errorf("%w: its certificate %w", ErrUnusable, err)
	}
	lifetime := request.Lifetime
	if lifetime == 0 {
		lifetime = c.duration
	}
	now := c.now()
	end := now.Add(lifetime)
	if c.Certificate.NotAfter.Before(end) {
		end = c.Certificate.NotAfter
	}
	template := &x509.Certificate{
		Subject:               request.Subject,
		NotBefore:             now.Add(-Backdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.Certificate, request.Key.Public(), c.key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the signed certificate: %w", err)
	}
	return []*x509.Certificate{made}, nil
}
