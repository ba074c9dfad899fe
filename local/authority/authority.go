// Package authority has the certificate authority of a platform that was not given a certificate. Processes with a data folder keep it
// there, and processes without one keep it in the state, which they share. Source: ADR-0006, ADR-0053.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"time"

	"management.platform.sh/local/atomicfile"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// clockSkew is how long before their creation certificates become valid.
	clockSkew = time.Hour
)

// Authority is a certificate authority. It is not changed.
type Authority struct {
	// PEM is its certificate.
	PEM         []byte
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// OpenFolder reads the authority of a folder from ca.crt and ca.key. It makes a new one if there is none, or if it expires before a new
// server certificate would.
func OpenFolder(folder string, now time.Time) (*Authority, error) {
	certificateFile, keyFile := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key")
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	switch {
	case err == nil:
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("%s is not an ECDSA key", keyFile)
		}
		if found := newAuthority(pair.Leaf, key); found.outlives(now) {
			return found, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the certificate authority in %s and %s: %w", certificateFile, keyFile, err)
	}
	created, keyPEM, err := create(now)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(keyFile, keyPEM); err != nil {
		return nil, err
	}
	return created, atomicfile.Write(certificateFile, created.PEM)
}

func newAuthority(certificate *x509.Certificate, key *ecdsa.PrivateKey) *Authority {
	return &Authority{PEM: EncodePEM("CERTIFICATE", certificate.Raw), certificate: certificate, key: key}
}

// outlives reports whether the authority is valid for longer than a server certificate that it signs now.
func (a *Authority) outlives(now time.Time) bool {
	return now.Add(certificateLife).Before(a.certificate.NotAfter)
}

// create makes an authority, and returns its key in PEM as well.
func create(now time.Time) (created *Authority, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "management.platform.sh local authority"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := (&Authority{certificate: template, key: key}).Sign(template, &key.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	return newAuthority(certificate, key), EncodePEM("EC PRIVATE KEY", keyDER), nil
}

// ServerCertificate makes a certificate for some names, for the hosts of the addresses and for the loopback names of this machine. Every
// start makes a new one.
func (a *Authority) ServerCertificate(now time.Time, names []string, addresses ...string) (tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "management.platform.sh"},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	hosts := slices.Clone(names)
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("--listen: %w", err)
		}
		hosts = append(hosts, host)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the server certificate: %w", err)
	}
	raw, err := a.Sign(template, &key.PublicKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the server certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// Sign signs a certificate for a public key, with a serial number of its own. Unit: DER.
func (a *Authority) Sign(template *x509.Certificate, public *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template.SerialNumber = serial
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return raw, nil
}

// EncodePEM returns a block of PEM.
func EncodePEM(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}
