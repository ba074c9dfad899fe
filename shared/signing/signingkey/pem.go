package signingkey

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
)

// ParsePEM reads keys that somebody else manages: blocks "PRIVATE KEY", "EC PRIVATE KEY" or "RSA PRIVATE KEY", and
// "PUBLIC KEY" for keys that have signed before. The first must be a private one: it signs, and all of them are
// published. Errors say which one is wrong by its position, and quote none.
func ParsePEM(text secret.String) (*Set, error) {
	set := &Set{}
	seen := map[string]bool{}
	rest := []byte(text.Reveal())
	// A block that is damaged is passed over by package pem: a key that is to be published would be missing.
	blocks := 0
	for position := 1; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		blocks++
		if block.Type == "EC PARAMETERS" {
			continue
		}
		public, err := readKey(block, position == 1, set)
		if err != nil {
			return nil, fmt.Errorf("signing key %d: %w", position, err)
		}
		if seen[public.ID] {
			return nil, fmt.Errorf("signing key %d stands there twice", position)
		}
		seen[public.ID] = true
		set.Public.Keys = append(set.Public.Keys, public)
		position++
	}
	if set.Signing == nil {
		return nil, errors.New("the signing keys hold no PEM block")
	}
	if begun := bytes.Count([]byte(text.Reveal()), []byte("-----BEGIN ")); begun != blocks {
		return nil, fmt.Errorf("the signing keys begin %d PEM blocks, of which %d can be read", begun, blocks)
	}
	return set, nil
}

// readKey reads one block; the one that signs becomes the set's.
func readKey(block *pem.Block, signs bool, set *Set) (token.JWK, error) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PUBLIC KEY":
		if signs {
			return token.JWK{}, errors.New("is a public one; the first must be private, since it signs")
		}
		if key, err = x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			return token.NewJWK(key)
		}
	default:
		return token.JWK{}, fmt.Errorf("is a %q; want PRIVATE KEY, EC PRIVATE KEY, RSA PRIVATE KEY or PUBLIC KEY", block.Type)
	}
	if err != nil {
		return token.JWK{}, fmt.Errorf("is no %s in DER", block.Type)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return token.JWK{}, fmt.Errorf("is a %T, which cannot sign", key)
	}
	signing, err := token.NewSigningKey(signer)
	if err != nil {
		return token.JWK{}, err
	}
	if signs {
		set.Signing = signing
	}
	return signing.Public(), nil
}
