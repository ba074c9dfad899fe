// Package upstream is the client of HTTP with which the platform asks connectors. It follows no redirect, sends nothing without TLS,
// reads no more than a bounded answer in a bounded time, and connects to no address at which a cloud serves credentials. Its errors
// never quote an answer. Source: ADR-0031.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/oauth2"

	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
)

const (
	// requestTimeout bounds each request.
	requestTimeout = 5 * time.Second
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 1 << 20
)

// Trust says which server certificates a client accepts.
type Trust struct {
	// CAFile is the path of root certificates in PEM format. Empty: the root certificates of the system.
	CAFile string
	// CAData are root certificates in PEM format. Empty: the root certificates of CAFile.
	CAData []byte
	// Insecure accepts every certificate.
	Insecure bool
}

// NewClient returns a client for a connector. Errors: refusal.Refusal if the certificates cannot be read.
func NewClient(env *platform.Environment, trust Trust) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: trust.Insecure} //nolint:gosec // the configuration says so
	if trust.CAFile != "" {
		roots, err := os.ReadFile(trust.CAFile)
		settings.RootCAs = x509.NewCertPool()
		if err != nil || !settings.RootCAs.AppendCertsFromPEM(roots) {
			return nil, refusal.Misconfigured("the file with the certificates cannot be read here, or has no certificate")
		}
	}
	if len(trust.CAData) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(trust.CAData) {
			return nil, refusal.Misconfigured("there is no certificate in the certificates")
		}
	}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: boundedTransport{&http.Transport{
			TLSClientConfig: settings, Proxy: http.ProxyFromEnvironment, DialContext: destination.Dialer(requestTimeout, env.LocalSigners).DialContext,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: requestTimeout,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// boundedTransport reads no more than maxAnswer of each answer, and sends nothing without TLS. An answer of a server that cannot answer now
// is an error, whatever the request was.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errors.New("an endpoint of the provider is not an https URL")
	}
	answer, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if isTemporary(answer) {
		_ = answer.Body.Close()
		return nil, statusError(answer.StatusCode)
	}
	// An answer that does not arrive whole is none.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	_ = answer.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:maxAnswer]), tooLarge{}))
		return answer, nil
	case request.Method == http.MethodPost && answer.StatusCode == http.StatusOK:
		text, _ = TokenResponse.omit(text)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// isTemporary reports whether a server cannot answer now. Some servers answer 403 to a client that sends too many requests. Source: RFC
// 6585, 4; RFC 9110, 15.6; ADR-0031.
func isTemporary(answer *http.Response) bool {
	switch {
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= http.StatusInternalServerError:
		return true
	case answer.StatusCode == http.StatusForbidden:
		return answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-RateLimit-Remaining") == "0"
	default:
		return false
	}
}

// statusError is the status of a server that cannot answer now.
type statusError int

// Error names the status.
func (s statusError) Error() string { return "the provider answers " + strconv.Itoa(int(s)) }

// tooLarge is the rest of an answer that is too large.
type tooLarge struct{}

func (tooLarge) Read([]byte) (int, error) {
	return 0, errors.New("the answer of the provider is too large")
}

// grantErrors are the errors of a token endpoint about the code or the token in the request. Other errors are about the client. The last
// error is a code host's own.
var grantErrors = []string{"invalid_grant", "access_denied", "bad_verification_code"}

// errorCode matches the error codes of token endpoints. Any other text may be a secret. Source: RFC 6749, 5.2 and 11.4.
var errorCode = lazyregexp.New(`^[a-z]+(_[a-z]+)*$`)

// unknownTokenErrors are the errors with which some token endpoints refuse an unknown refresh token, in place of invalid_grant (RFC 6749,
// 5.2). Empty: the answer has no error.
var unknownTokenErrors = []string{"invalid_request", ""}

// TranslateError returns the Refusal for a failed request to a provider. The text of the error may quote the answer, and is dropped.
func TranslateError(err error) error {
	var sent *url.Error
	var retrieved *oauth2.RetrieveError
	switch {
	case errors.As(err, &retrieved) && slices.Contains(grantErrors, retrieved.ErrorCode):
		return refusal.ByProvider(retrieved.ErrorCode)
	case errors.As(err, &retrieved) && retrieved.ErrorCode == "invalid_client":
		return clientError{refusal.Misconfigured("the provider refuses the request: invalid_client")}
	case errors.As(err, &retrieved) && errorCode().MatchString(retrieved.ErrorCode):
		return refusal.Misconfigured("the provider refuses the request: " + retrieved.ErrorCode)
	case errors.As(err, &retrieved):
		return refusal.Misconfigured("the provider refuses the request: it answers " + strconv.Itoa(retrieved.Response.StatusCode))
	case errors.As(err, &sent):
		return refusal.Unreachable(errors.New(failureReason(err)))
	default:
		return refusal.Misconfigured("an answer of the provider breaks the protocol")
	}
}

// ErrClient is the cause of a Refusal if the provider does not accept the client, or the way in which the client authenticates.
var ErrClient = errors.New("the provider does not accept the client")

// clientError is a Refusal because of ErrClient.
type clientError struct{ *refusal.Refusal }

func (e clientError) Unwrap() []error { return []error{e.Refusal, ErrClient} }

// failureReason says why a request has no answer, without its URL.
func failureReason(err error) string {
	var timeout interface{ Timeout() bool }
	var status statusError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "the certificate of the provider cannot be verified"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer of the provider in time"
	default:
		return "no connection to the provider"
	}
}

// ReadFile returns the content of a file that the settings of a connector name. Errors: refusal.Refusal.
func ReadFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, refusal.Misconfigured("a file of the settings cannot be read here")
	}
	return text, nil
}

// RefreshTokens redeems the refresh token of a session. The new session is saved before RefreshTokens returns. A session without a refresh
// token is returned unchanged. Errors: refusal.Refusal; the errors of save.
func RefreshTokens(ctx context.Context, client *http.Client, config *oauth2.Config, session provider.Session, save func(provider.Session) error) (*oauth2.Token, error) {
	if session.RefreshToken == "" {
		return &oauth2.Token{AccessToken: session.AccessToken.Reveal(), TokenType: "Bearer"}, nil
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	tokens, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: session.RefreshToken.Reveal()}).Token()
	var retrieved *oauth2.RetrieveError
	switch {
	case errors.As(err, &retrieved) && retrieved.Response.StatusCode == http.StatusBadRequest && slices.Contains(unknownTokenErrors, retrieved.ErrorCode):
		return nil, refusal.RefreshTokenRefused(cmp.Or(retrieved.ErrorCode, "the provider answers 400 to the refresh token"))
	case errors.As(err, &retrieved) && retrieved.ErrorCode == "invalid_grant":
		return nil, refusal.RefreshTokenRefused(retrieved.ErrorCode)
	case err != nil:
		return nil, TranslateError(err)
	}
	session.RefreshToken = secret.String(tokens.RefreshToken)
	if session.AccessToken != "" {
		session.AccessToken = secret.String(tokens.AccessToken)
	}
	return tokens, save(session)
}
