package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// sharedResource is the place of authorities in the state, and sharedName the name of the record.
	sharedResource = "certificateauthorities"
	sharedName     = "server"
	// sealContext says what the sealed key is, so that it cannot be opened as something else.
	sealContext = sharedResource + "/" + sharedName
)

// sharedRecord is the stored form of an authority.
type sharedRecord struct {
	// Certificate is the certificate in PEM.
	Certificate string `json:"certificate"`
	// SealedKey is the private key in PEM, sealed with the encryption key.
	SealedKey string `json:"sealedKey"`
}

// OpenShared reads the authority in the state. It makes a new one if there is none, or if it expires before a new server certificate
// would. All processes with the same state get the same one.
func OpenShared(ctx context.Context, env *platform.Environment, now time.Time) (*Authority, error) {
	ring, err := env.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	if ring == nil {
		return nil, errors.New("the certificate authority in the state needs the encryption key")
	}
	records := env.Stores(sharedResource)
	for {
		record, err := records.Get(ctx, sharedName)
		absent := errors.Is(err, store.ErrNotFound)
		if err != nil && !absent {
			return nil, fmt.Errorf("reading the certificate authority: %w", err)
		}
		if !absent {
			found, err := open(ring, record.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the certificate authority: %w", err)
			}
			if found.outlives(now) {
				return found, nil
			}
		}
		made, keyPEM, err := create(now)
		if err != nil {
			return nil, err
		}
		sealed, err := ring.Seal(keyPEM, sealContext)
		if err != nil {
			return nil, fmt.Errorf("sealing the key of the certificate authority: %w", err)
		}
		// A struct of texts always marshals.
		object, _ := json.Marshal(sharedRecord{Certificate: string(made.PEM), SealedKey: sealed})
		if absent {
			_, err = records.Create(ctx, store.Record{Name: sharedName, Created: now, Object: object})
		} else {
			record.Object = object
			_, err = records.Update(ctx, record)
		}
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			// Another process has made one.
		default:
			return nil, fmt.Errorf("storing the certificate authority: %w", err)
		}
	}
}

// open reads the stored form. Errors do not quote it.
func open(ring *encryption.Keyring, object []byte) (*Authority, error) {
	var stored sharedRecord
	if err := json.Unmarshal(object, &stored); err != nil {
		return nil, errors.New("the record is not an authority")
	}
	keyPEM, err := ring.Open(stored.SealedKey, sealContext)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(stored.Certificate), keyPEM)
	if err != nil {
		return nil, errors.New("the certificate and the key do not belong together")
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not an ECDSA key")
	}
	return newAuthority(pair.Leaf, key), nil
}
