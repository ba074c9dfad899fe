package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

const (
	// basePath is the path of the API below a host, and groupPath the path of the resources below it.
	basePath  = "/kubernetes/management"
	groupPath = "/apis/" + apiVersion + "/"
	// apiVersion is the version of all objects. Source: Spec 2.1, 9.
	apiVersion = "management.platform.sh/v1"
	// repeats bounds how often a request is sent again, and maxPause the pause that a server may ask for.
	repeats  = 3
	maxPause = 30 * time.Second
	// timeout bounds one attempt. A virtual cluster may take 15 seconds to sign a certificate.
	timeout = 45 * time.Second
	// maxAnswer bounds the bytes of an answer.
	maxAnswer = 8 << 20
)

// client sends requests to one platform. It is safe for concurrent use.
type client struct {
	endpoint string
	bearer   string
	http     *http.Client
}

// apiError is a Status of the API. Source: Spec 7.
type apiError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details struct {
		Causes []cause `json:"causes"`
	} `json:"details"`
}

// cause is what is wrong with one field.
type cause struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return e.Message }

// endpointOf returns the base URL of the API. Server is a host, or the URL itself. The access key is sent over TLS only, or to this machine.
func endpointOf(server string) (string, error) {
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	parsed, err := url.Parse(strings.TrimSpace(server))
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil {
		return "", fmt.Errorf("it must be HOST, or https://HOST%s", basePath)
	}
	ip := net.ParseIP(parsed.Hostname())
	if local := parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); parsed.Scheme != "https" && (parsed.Scheme != "http" || !local) {
		return "", errors.New("it must have the scheme https")
	}
	if parsed.Path = strings.TrimSuffix(parsed.Path, "/"); parsed.Path == "" {
		parsed.Path = basePath
	}
	return parsed.String(), nil
}

// connect returns an HTTP client. Authority is a file, or certificates in PEM; empty: the authorities of the system.
func connect(authority string) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		text := []byte(authority)
		if !strings.Contains(authority, "-----BEGIN") {
			var err error
			if text, err = os.ReadFile(authority); err != nil { //nolint:gosec // whoever configures the provider names the file
				return nil, err
			}
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("it must have a certificate in PEM")
		}
	}
	repeating := retryablehttp.NewClient()
	repeating.HTTPClient = &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	repeating.Logger, repeating.ErrorHandler = nil, retryablehttp.PassthroughErrorHandler
	repeating.RetryMax, repeating.RetryWaitMin, repeating.RetryWaitMax = repeats, 250*time.Millisecond, 2*time.Second
	repeating.Backoff = func(shortest, longest time.Duration, attempt int, answer *http.Response) time.Duration {
		return min(retryablehttp.DefaultBackoff(shortest, longest, attempt, answer), maxPause)
	}
	standard := repeating.StandardClient()
	standard.CheckRedirect = repeating.HTTPClient.CheckRedirect
	return standard, nil
}

// create sends an object with POST to a resource, and returns the warnings of the API. A repeated request makes nothing twice.
func (c *client) create(ctx context.Context, resource string, object, answer any) ([]string, error) {
	return c.send(ctx, http.MethodPost, resource, "application/json", c.bearer, object, answer)
}

// patch sends a merge patch.
func (c *client) patch(ctx context.Context, resource string, object, answer any) error {
	_, err := c.send(ctx, http.MethodPatch, resource, "application/merge-patch+json", c.bearer, object, answer)
	return err
}

// revoke ends the credential with a text. The text is the permission to do so: it also works with an access key whose scope permits no
// deletion, and with one that has expired. Source: ADR-0022.
func (c *client) revoke(ctx context.Context, text string) error {
	request := map[string]any{"apiVersion": apiVersion, "kind": "CredentialRevocation", "spec": map[string]any{"credentials": []string{text}}}
	_, err := c.send(ctx, http.MethodPost, "credentialrevocations", "application/json", "", request, nil)
	return err
}

// send sends a request. It returns an apiError if the API refuses it.
func (c *client) send(ctx context.Context, method, resource, mediaType, bearer string, object, answer any) ([]string, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.endpoint+groupPath+resource, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", mediaType)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "terraform-provider-platform/"+version)
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	if method == http.MethodPost && bearer != "" {
		request.Header.Set("Idempotency-Key", rand.Text())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		refusal := &apiError{}
		_ = json.Unmarshal(content, refusal)
		refusal.Code = response.StatusCode
		refusal.Message = cmp.Or(refusal.Message, "the server answered with "+response.Status)
		return nil, refusal
	}
	if answer != nil {
		if err := json.Unmarshal(content, answer); err != nil {
			return nil, errors.New("the answer is not an object of the API: compare the address of the server")
		}
	}
	return warningsIn(response.Header), nil
}

// warningsIn returns the texts of the Warning headers. Source: RFC 9111, 5.5.
func warningsIn(header http.Header) []string {
	var texts []string
	for _, value := range header.Values("Warning") {
		if _, text, ok := strings.Cut(value, ` - "`); ok {
			texts = append(texts, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(strings.TrimSuffix(text, `"`)))
		}
	}
	return texts
}
