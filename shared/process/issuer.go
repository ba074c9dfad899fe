package process

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
)

const (
	// discovery is the path of an issuer's metadata. Source: OpenID Connect Discovery 1.0, 4.
	discovery = "/.well-known/openid-configuration"
	// issuerWithin bounds the request for the metadata.
	issuerWithin = 3 * time.Second
	// maxMetadata bounds the metadata that is read, in bytes.
	maxMetadata = 1 << 20
)

// issuers fetch the metadata of issuers. Local permits issuers on this machine.
type issuers struct{ local bool }

// reach returns the scopes in the metadata of an issuer. It returns an error if the metadata cannot be fetched or
// cannot be used to sign in. The error quotes no part of the issuer's response. Roots are the certificates of its
// caFile. Source: ADR-0024; OpenID Connect Discovery 1.0, 4.3.
func (i issuers) reach(ctx context.Context, provider *model.OIDCProvider, roots []byte) ([]string, error) {
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
		return nil, errors.New("cannot be reached: the URL is malformed")
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, errors.New("cannot be reached from here: " + describeFailure(err))
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers %d at %s, where its metadata should be", answer.StatusCode, discovery)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetadata))
	if err != nil {
		return nil, errors.New("cannot be reached from here: " + describeFailure(err))
	}
	return parseMetadata(text, provider.IssuerURL)
}

// parseMetadata returns the scopes in metadata, or an error if the text is not the metadata of the issuer.
func parseMetadata(text []byte, issuer string) (scopes []string, err error) {
	var metadata struct {
		Issuer        string `json:"issuer"`
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Keys          string `json:"jwks_uri"`
		Scopes        any    `json:"scopes_supported"`
	}
	if json.Unmarshal(text, &metadata) != nil {
		return nil, errors.New("answers at " + discovery + " with something that is not the metadata of an issuer")
	}
	if metadata.Issuer != issuer {
		return nil, errors.New("has metadata of another issuer: write the issuer as it calls itself, letter by letter")
	}
	for _, endpoint := range []struct{ name, address string }{
		{"authorization_endpoint", metadata.Authorization}, {"token_endpoint", metadata.Token}, {"jwks_uri", metadata.Keys},
	} {
		if at, err := url.Parse(endpoint.address); err != nil || at.Scheme != "https" || at.Host == "" {
			return nil, errors.New("has metadata without an https URL as " + endpoint.name)
		}
	}
	// The scopes are not validated: they decide nothing.
	given, _ := metadata.Scopes.([]any)
	for _, scope := range given {
		if name, isText := scope.(string); isText {
			scopes = append(scopes, name)
		}
	}
	return scopes, nil
}

// describeFailure returns why a request has no response, without the URL, which may have a password.
func describeFailure(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "its certificate cannot be verified"
	default:
		return "no connection"
	}
}
