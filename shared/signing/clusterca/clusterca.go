// Package clusterca signs client certificates for virtual clusters: with a certificate authority that the platform has,
// or, in package csr, by asking the virtual cluster. It also validates the authority and the kubeconfig of the virtual
// cluster before they are stored. Source: Spec 2.6, 8; ADR-0017.
//
// It makes no private keys, stores nothing, and does not decide who gets a certificate.
package clusterca

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"time"
)

// Backdate is how long before its signature a certificate begins, so that clocks that run late accept it.
// Source: ADR-0017.
const Backdate = 5 * time.Minute

// Errors of a Signer, for errors.Is. They are wrapped with details that contain no secret.
var (
	// ErrUnusable means that the signer cannot sign until an operator changes it, for example because its authority has
	// expired.
	ErrUnusable = errors.New("the signer cannot be used")
	// ErrDenied means that the virtual cluster refused to sign.
	ErrDenied = errors.New("the virtual cluster denied the certificate")
	// ErrUnreachable means that the virtual cluster does not answer, or not as a Kubernetes API does.
	ErrUnreachable = errors.New("the virtual cluster cannot be reached")
	// ErrTimeout means that the certificate was not signed in time.
	ErrTimeout = errors.New("the virtual cluster did not sign in time")
)

// Request is a request for a certificate.
type Request struct {
	Subject pkix.Name
	// Key is the key pair of the certificate. A Signer may sign a request with it, and must not keep it.
	Key crypto.Signer
	// Lifetime is the requested lifetime of the certificate, in whole seconds. 0: the signer decides.
	Lifetime time.Duration
}

// Signer signs client certificates of a virtual cluster. It is safe for concurrent use.
type Signer interface {
	// Sign returns the certificate, which may expire earlier than requested, followed by its chain. It returns the
	// errors above, or the error of ctx. After an error there is no certificate.
	Sign(ctx context.Context, request Request) ([]*x509.Certificate, error)
}
