// Package csr asks a virtual cluster to sign client certificates: it creates a CertificateSigningRequest there,
// approves it, waits for the certificate and deletes the request. Source: Spec 2.6, 8; ADR-0017.
//
// It is separate from package clusterca because it links the Kubernetes client. The kubeconfig is not trusted:
// clusterca.ParseAccess checks its content, and each connection checks the address.
package csr

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/signing/clusterca"
)

const (
	resourceName = "certificatesigningrequests"
	// MinLifetime is the shortest lifetime that Kubernetes signs.
	MinLifetime = 10 * time.Minute
	// within is the time for a certificate, from the first request to the last.
	within = 15 * time.Second
	// cleanWithin is the time for deleting the request afterwards.
	cleanWithin = 3 * time.Second
	// firstPause and longestPause are the pauses between two reads of the request.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// maxAnswer bounds a response, in bytes.
	maxAnswer = 1 << 20
)

// Signer is a clusterca.Signer that uses the API of a virtual cluster. Make one with New.
type Signer struct {
	client *rest.RESTClient
	within time.Duration
}

// Options say at which addresses virtual clusters may be. The zero value is right for production.
type Options struct {
	// AllowLocal permits the loopback addresses of this machine.
	AllowLocal bool
	// Within is the time for a certificate. 0: 15 seconds.
	Within time.Duration
}

// New prepares a Signer. It does not connect.
func New(access *clusterca.Access, options Options) (*Signer, error) {
	scheme := runtime.NewScheme()
	// Both only add types.
	_ = certificatesv1.AddToScheme(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	dialer := destination.Dialer(5*time.Second, options.AllowLocal)
	client, err := rest.RESTClientFor(&rest.Config{
		Host:        access.Server,
		APIPath:     "/apis",
		BearerToken: access.Token.Reveal(),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: access.ServerName, CAData: access.CA, CertData: access.Certificate, KeyData: access.Key,
		},
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &certificatesv1.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType:          runtime.ContentTypeJSON,
		},
		// A proxy from the environment would bypass the check of addresses.
		Proxy:         func(*http.Request) (*url.URL, error) { return nil, nil }, //nolint:nilnil // nil is no proxy
		Dial:          dialer.DialContext,
		QPS:           -1,
		UserAgent:     "management.platform.sh",
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return bounded{next} },
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", clusterca.ErrUnusable, err)
	}
	s := &Signer{client: client, within: options.Within}
	if s.within == 0 {
		s.within = within
	}
	return s, nil
}

// bounded does not follow redirects, which would send the credential elsewhere, and limits the size of responses.
type bounded struct{ next http.RoundTripper }

// WrappedRoundTripper gives access to the transport, to close idle connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		_ = answer.Body.Close()
		return nil, errors.New("the server redirects; redirects are not followed")
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	return answer, nil
}

// Sign implements clusterca.Signer. A Lifetime of 0 leaves expirationSeconds out, so that the certificate lives for the
// signing duration of the cluster. The request is deleted in every case.
func (s *Signer) Sign(ctx context.Context, request clusterca.Request) ([]*x509.Certificate, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: request.Subject}, request.Key)
	if err != nil {
		return nil, fmt.Errorf("making a request for a certificate: %w", err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("reading the request for a certificate: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	name := newName()
	defer utilnet.CloseIdleConnectionsFor(s.client.Client.Transport)
	defer s.remove(ctx, name)
	object := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if request.Lifetime > 0 {
		object.Spec.ExpirationSeconds = new(int32(min(request.Lifetime/time.Second, math.MaxInt32)))
	}
	created := &certificatesv1.CertificateSigningRequest{}
	if err := s.client.Post().Resource(resourceName).Body(object).Do(bounded).Into(created); err != nil {
		return nil, translate(ctx, bounded, "creating the request", err)
	}
	created.Status.Conditions = append(created.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "KubeconfigRequested", Message: "approved by management.platform.sh",
	})
	// The approval names the resource version, so that an earlier denial makes it a conflict.
	if err := s.client.Put().Resource(resourceName).Name(name).SubResource("approval").Body(created).Do(bounded).
		Into(&certificatesv1.CertificateSigningRequest{}); err != nil && !apierrors.IsConflict(err) {
		return nil, translate(ctx, bounded, "approving the request", err)
	}
	text, err := s.wait(ctx, bounded, name)
	if err != nil {
		return nil, err
	}
	return check(text, parsed)
}

// wait reads the request until it has a certificate or is denied.
func (s *Signer) wait(ctx, bounded context.Context, name string) ([]byte, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		object := &certificatesv1.CertificateSigningRequest{}
		if err := s.client.Get().Resource(resourceName).Name(name).Do(bounded).Into(object); err != nil {
			return nil, translate(ctx, bounded, "reading the request", err)
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
				return nil, fmt.Errorf("%w: %.200q", clusterca.ErrDenied, condition.Reason+": "+condition.Message)
			}
		}
		if len(object.Status.Certificate) > 0 {
			return object.Status.Certificate, nil
		}
		select {
		case <-bounded.Done():
			return nil, translate(ctx, bounded, "waiting for the certificate", bounded.Err())
		case <-time.After(pause):
		}
	}
}

// check refuses a certificate that does not match the request: with another key the kubeconfig would not work, and with
// another subject the certificate would belong to another user.
func check(text []byte, requested *x509.CertificateRequest) ([]*x509.Certificate, error) {
	list, err := clusterca.ParseCertificates(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the signed certificate %w", clusterca.ErrUnreachable, err)
	}
	key, ok := requested.PublicKey.(interface {
		Equal(other crypto.PublicKey) bool
	})
	ok = ok && key.Equal(list[0].PublicKey)
	if !ok || !bytes.Equal(requested.RawSubject, list[0].RawSubject) {
		return nil, fmt.Errorf("%w: the signed certificate does not match the request", clusterca.ErrUnreachable)
	}
	return list, nil
}

// remove deletes the request, even if ctx has ended. The cluster would delete it itself after a while.
func (s *Signer) remove(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	_ = s.client.Delete().Resource(resourceName).Name(name).Do(ctx).Error()
}

// translate returns the Signer's error for an error of the API.
func translate(ctx, bounded context.Context, doing string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case bounded.Err() != nil:
		return fmt.Errorf("%w: %s: %w", clusterca.ErrTimeout, doing, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return fmt.Errorf("%w: %s: %w", clusterca.ErrDenied, doing, err)
	default:
		return fmt.Errorf("%w: %s: %w", clusterca.ErrUnreachable, doing, err)
	}
}

func newName() string {
	var id [10]byte
	_, _ = rand.Read(id[:]) // never fails
	return "management-platform-" + hex.EncodeToString(id[:])
}
