// Package clusterca signs client certificates of virtual clusters: with a certificate authority that is at hand, or, in
// package csr, by asking the virtual cluster. It also says what is wrong with either before it is kept.
// Source: Spec 2.6, 8; ADR-0017.
//
// It makes no private keys, keeps nothing, and decides nothing about who gets a certificate.
package clusterca

import (
	"context"
	"crypto/x509"
	"errors"
	"time"
)

// Backdate is how far before its making a certificate begins, so that clocks that are behind take it.
// Source: ADR-0017.
const Backdate = 5 * time.Minute

// Errors of a Signer, for errors.Is. What is wrapped around them says more and holds no secret.
var (
	// ErrUnusable: there is no way to a certificate until somebody changes the signer, such as an authority that is over.
	ErrUnusable = errors.New("the signer cannot be used")
	// ErrDenied: the virtual cluster refused to sign.
	ErrDenied = errors.New("the virtual cluster denied the certificate")
	// ErrUnreachable: the virtual cluster does not answer, or not as one.
	ErrUnreachable = errors.New("the virtual cluster cannot be reached")
	// ErrTimeout: there was no certificate in time.
	ErrTimeout = errors.New("the virtual cluster did not sign in time")
)

// Request is what is to be signed.
type Request struct {
	// CSR is the request in DER, with its subject and signed by its key.
	CSR []byte
	// Lifetime is how long the certificate is to live, in whole seconds. 0: as long as the signer has it.
	Lifetime time.Duration
}

// Signer signs certificates for client authentication. It is safe for concurrent use.
type Signer interface {
	// Sign returns the certificate, which may end earlier than was asked for, and behind it what leads to the authority.
	// On an error there is none. Errors: the ones above, and those of ctx.
	Sign(ctx context.Context, request Request) ([]*x509.Certificate, error)
}
