package process

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
)

const (
	// discovery is the path of the metadata of an issuer. Source: OpenID Connect Discovery 1.0, 4.
	discovery = "/.well-known/openid-configuration"
	// issuerWithin bounds the request for them.
	issuerWithin = 3 * time.Second
)

// issuers fetch the metadata of issuers. Local permits those on this machine.
type issuers struct{ local bool }

// reach returns an error if the metadata of an issuer cannot be fetched. The error quotes nothing that the issuer answers.
// Roots are the certificates of its caFile. Source: ADR-0024.
func (i issuers) reach(ctx context.Context, provider *model.OIDCProvider, roots []byte) error {
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: provider.InsecureCA} //nolint:gosec // the configuration says so
	if provider.CAFile != "" {
		trust.RootCAs = x509.NewCertPool()
		trust.RootCAs.AppendCertsFromPEM(roots)
	}
	transport := &http.Transport{
		TLSClientConfig: trust, DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, DialContext: destination.Dialer(issuerWithin, i.local).DialContext,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithTimeout(ctx, issuerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(provider.IssuerURL, "/")+discovery, http.NoBody)
	if err != nil {
		return errors.New("cannot be reached: the URL is malformed")
	}
	answer, err := client.Do(request)
	if err != nil {
		return errors.New("cannot be reached from here: " + unreached(err))
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answers %d at %s, where its metadata should be", answer.StatusCode, discovery)
	}
	return nil
}

// unreached says why a request has no answer, without the URL, which may have a password.
func unreached(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "its certificate cannot be verified"
	default:
		return "no connection"
	}
}
