package runner

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
	"os"
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

// authority is the certificate authority of a data folder. It is made once and kept in ca.crt and ca.key.
type authority struct {
	certificate    *x509.Certificate
	certificatePEM []byte
	key            *ecdsa.PrivateKey
}

// openAuthority reads the authority of a folder. It makes a new one if there is none, or if it expires before a new server
// certificate would.
func openAuthority(folder string, now time.Time) (*authority, error) {
	certificateFile, keyFile := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key")
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	switch {
	case err == nil:
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("%s is not an ECDSA key", keyFile)
		}
		if now.Add(certificateLife).Before(pair.Leaf.NotAfter) {
			return &authority{certificate: pair.Leaf, certificatePEM: encodePEM("CERTIFICATE", pair.Leaf.Raw), key: key}, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the certificate authority in %s and %s: %w", certificateFile, keyFile, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "management.platform.sh local authority"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	created := &authority{certificate: template, key: key}
	raw, err := created.sign(template, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	if created.certificate, err = x509.ParseCertificate(raw); err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	created.certificatePEM = encodePEM("CERTIFICATE", raw)
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	if err := atomicfile.Write(keyFile, encodePEM("EC PRIVATE KEY", keyDER)); err != nil {
		return nil, err
	}
	return created, atomicfile.Write(certificateFile, created.certificatePEM)
}

// serverCertificate makes a certificate for some names, for the hosts of the addresses and for the loopback names of this machine. Every
// start makes a new one.
func (a *authority) serverCertificate(now time.Time, names []string, addresses ...string) (tls.Certificate, error) {
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
	raw, err := a.sign(template, &key.PublicKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the server certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func (a *authority) sign(template *x509.Certificate, public *ecdsa.PublicKey) ([]byte, error) {
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

func encodePEM(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// lockFolder keeps a second process out of a data folder. Two processes would corrupt its append-only file.
func lockFolder(folder string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--data: locking the folder: %w", err)
	}
	if err := lockFile(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another platform serve; choose another folder with --data", folder)
	}
	return func() { _ = file.Close() }, nil
}
