// Package publishkeys is what verifiers of tokens fetch, without a credential: where the keys are, the keys, and the
// tokens that were revoked before their end.
// Source: Spec 5.3; OpenID Connect Discovery 1.0; ADR-0011.
package publishkeys

import (
	"context"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/model/apierror"
)

// Deps is what the operation needs.
type Deps struct{ Issuer *issuer.Issuer }

// Input is the request.
type Input = frame.DocumentInput

// Do returns a document by its path. Errors: those of issuer.Current.
func Do(ctx context.Context, deps Deps, in Input) (*frame.Page, error) {
	switch in.Path {
	case issuer.ConfigurationPath:
		return deps.Issuer.Configuration(ctx)
	case issuer.KeysPath:
		return deps.Issuer.PublicKeys(ctx)
	case issuer.RevokedPath:
		return deps.Issuer.RevokedTokens(ctx)
	default:
		return nil, apierror.NoRoute()
	}
}

// Function is the operation as it is deployed.
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
	return frame.Document(path, frame.Everyone, open, Do).AtRoot()
}

func open(env *frame.Environment) Deps { return Deps{Issuer: issuer.Open(env)} }
