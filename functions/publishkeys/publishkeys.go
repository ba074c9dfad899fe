// Package publishkeys serves what verifiers of tokens fetch without authentication: the OpenID configuration, the public
// keys, and the list of tokens that were revoked before they expired.
// Source: Spec 5.3; OpenID Connect Discovery 1.0; ADR-0011.
package publishkeys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Issuer *issuer.Issuer }

type Input = frame.DocumentInput

// Do returns a document by its path. It returns the errors of issuer.Current.
func Do(ctx context.Context, deps Deps, in Input) (*frame.Page, error) {
	switch in.Path {
	case issuer.ConfigurationPath:
		document, err := deps.Issuer.Configuration(ctx)
		return page(document, err, "application/json", issuer.KeysMaxAge)
	case issuer.KeysPath:
		document, err := deps.Issuer.PublicKeys(ctx)
		return page(document, err, "application/jwk-set+json", issuer.KeysMaxAge)
	case issuer.RevokedPath:
		document, err := deps.Issuer.RevokedTokens(ctx)
		return page(document, err, "application/json", issuer.RevokedMaxAge)
	default:
		return nil, apierror.NoRoute()
	}
}

// page returns a document in the form in which it is sent, unless there is an error.
func page(document any, err error, mediaType string, maxAge time.Duration) (*frame.Page, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encoding a document for verifiers: %w", err)
	}
	text = append(text, '\n')
	sum := sha256.Sum256(text)
	return &frame.Page{MediaType: mediaType, Body: text, ETag: hex.EncodeToString(sum[:16]), MaxAge: maxAge}, nil
}

var Function = &frame.Function{
	Name:     "publishkeys",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		document(issuer.ConfigurationPath), document(issuer.ConfigurationPath).Head(),
		document(issuer.KeysPath), document(issuer.KeysPath).Head(),
		document(issuer.RevokedPath), document(issuer.RevokedPath).Head(),
	},
}

func document(path string) frame.Endpoint {
	return frame.Document(path, frame.Everyone, open, Do).AlsoAtRoot().AboutAuthentication()
}

func open(env *platform.Environment) Deps {
	return Deps{Issuer: issuer.Open(env, issuedtoken.Open(env))}
}
