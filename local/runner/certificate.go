package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"management.platform.sh/local/authority"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
)

// certificateEvery is the interval at which the files of a certificate are read.
const certificateEvery = 10 * time.Second

// serverIdentity is the certificate of the HTTPS listener: of files that others replace, or of the platform's own authority.
// It is safe for concurrent use. Source: ADR-0050.
type serverIdentity struct {
	// certFile and keyFile are the files. Empty: the certificate stays.
	certFile, keyFile string
	// sign makes a new certificate of the platform's own authority. Nil: the certificate is in files.
	sign    func() (tls.Certificate, error)
	log     *slog.Logger
	current atomic.Pointer[certificatePair]
	// lastError is the last error that was logged. One goroutine reloads.
	lastError string
}

// certificatePair is a certificate with the texts from which it was read. It is not changed.
type certificatePair struct {
	certPEM, keyPEM []byte
	certificate     *tls.Certificate
}

// openServerIdentity reads the files of the settings or, without them, makes a certificate for a listener at an address.
func openServerIdentity(ctx context.Context, s settings.Settings, env *platform.Environment, address string) (*serverIdentity, error) {
	identity := &serverIdentity{certFile: s.Runner.TLSCertFile, keyFile: s.Runner.TLSKeyFile, log: env.Log}
	if identity.certFile != "" {
		pair, wrong, err := identity.read()
		if err != nil {
			return nil, s.Wrong(wrong, err)
		}
		identity.current.Store(pair)
		return identity, nil
	}
	own, err := openAuthority(ctx, s, env)
	if err != nil {
		return nil, err
	}
	// The listener knows only the address; clients may use the name that was given to it.
	identity.sign = func() (tls.Certificate, error) {
		return own.ServerCertificate(time.Now(), s.Runner.TLSNames, address, s.Runner.Listen)
	}
	certificate, err := identity.sign()
	if err != nil {
		return nil, err
	}
	identity.current.Store(&certificatePair{certificate: &certificate})
	return identity, nil
}

// openAuthority opens the platform's own authority: in the data folder or, without one, in the state.
func openAuthority(ctx context.Context, s settings.Settings, env *platform.Environment) (*authority.Authority, error) {
	if s.NeedsFolder() {
		return authority.OpenFolder(s.Runner.Data, time.Now())
	}
	return authority.OpenShared(ctx, env, time.Now())
}

// read reads the files. Wrong is the setting of the file that an error is about. Errors do not quote the files.
func (i *serverIdentity) read() (pair *certificatePair, wrong string, err error) {
	certPEM, err := readFile(i.certFile)
	if err != nil {
		return nil, settings.TLSCertFile, err
	}
	if err := checkCertificate(certPEM); err != nil {
		return nil, settings.TLSCertFile, err
	}
	keyPEM, err := readFile(i.keyFile)
	if err != nil {
		return nil, settings.TLSKeyFile, err
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, settings.TLSKeyFile, fmt.Errorf("names no key of the certificate: %w", err)
	}
	return &certificatePair{certPEM: certPEM, keyPEM: keyPEM, certificate: &certificate}, "", nil
}

// checkCertificate refuses a text whose first certificate in PEM cannot be read.
func checkCertificate(text []byte) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			_, err := x509.ParseCertificate(block.Bytes)
			return err
		}
	}
	return errors.New("names a file without a certificate in PEM")
}

// readFile reads a file. The error does not quote the path: an operator may have set the variable to the secret itself.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if problem := (*fs.PathError)(nil); errors.As(err, &problem) {
		err = fmt.Errorf("names a file that cannot be read: %w", problem.Err)
	}
	return text, err
}

// reload reads the files again. While a pair is being replaced, its two files may not match; the certificate before it stays. Without
// files, the own authority signs another certificate when two thirds of the life of this one are over.
func (i *serverIdentity) reload() {
	before := i.current.Load()
	if i.sign != nil {
		i.renew(before.certificate.Leaf)
		return
	}
	pair, wrong, err := i.read()
	switch {
	case err != nil && err.Error() == i.lastError:
	case err != nil:
		i.lastError = err.Error()
		i.log.Error("reading the certificate of the listener; the one before stays", "setting", wrong, "error", err.Error(), "until", before.certificate.Leaf.NotAfter)
	case !bytes.Equal(pair.certPEM, before.certPEM) || !bytes.Equal(pair.keyPEM, before.keyPEM):
		i.current.Store(pair)
		i.lastError = ""
		i.log.Info("serving another certificate", "until", pair.certificate.Leaf.NotAfter)
	}
}

func (i *serverIdentity) renew(leaf *x509.Certificate) {
	if time.Now().Before(leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3)) {
		return
	}
	certificate, err := i.sign()
	if err != nil {
		i.log.Error("signing another certificate of the listener; the one before stays", "error", err.Error(), "until", leaf.NotAfter)
		return
	}
	i.current.Store(&certificatePair{certificate: &certificate})
	i.log.Info("serving another certificate", "until", certificate.Leaf.NotAfter)
}

// get is for tls.Config.GetCertificate.
func (i *serverIdentity) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return i.current.Load().certificate, nil
}

// names returns the DNS names of the certificate.
func (i *serverIdentity) names() []string { return i.current.Load().certificate.Leaf.DNSNames }

// trust is how clients of this machine verify the listener.
type trust struct {
	// authorities are the certificates that they trust, in PEM.
	authorities []byte
	// name is the name that they verify. Empty: the address.
	name string
}

// trust returns the certificates above the certificate, or the certificate if it is alone. A certificate of files need not have the
// loopback address, so clients verify its first name.
func (i *serverIdentity) trust() trust {
	var clients trust
	certificate := i.current.Load().certificate
	chain := certificate.Certificate
	if len(chain) > 1 {
		chain = chain[1:]
	}
	for _, raw := range chain {
		clients.authorities = append(clients.authorities, authority.EncodePEM("CERTIFICATE", raw)...)
	}
	if i.certFile != "" && len(certificate.Leaf.DNSNames) > 0 {
		clients.name = certificate.Leaf.DNSNames[0]
	}
	return clients
}
