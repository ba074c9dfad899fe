// Package publishkeys is what verifiers of tokens fetch, without a credential: where the keys are, the keys, and the
// tokens that were revoked before their end.
// Source: Spec 5.3; OpenID Connect Discovery 1.0; ADR-0011.
package publishkeys

import (
	"context"

	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/function"
	"management.platform.sh/shared/issuer"
)

// Deps is what the operation needs.
type Deps struct{ Issuer *issuer.Issuer }

// Input is the request.
type Input = function.DocumentInput

// Do returns a document by its path. Errors: those of issuer.Current.
func Do(ctx context.Context, deps Deps, in Input) (*function.Page, error) {
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
var Function = &function.Function{
	Name:     "publishkeys",
	Encrypts: true,
	Endpoints: []function.Endpoint{
		document(issuer.ConfigurationPath), document(issuer.ConfigurationPath).Head(),
		document(issuer.KeysPath), document(issuer.KeysPath).Head(),
		document(issuer.RevokedPath), document(issuer.RevokedPath).Head(),
	},
}

func document(path string) function.Endpoint {
	return function.Document(path, function.Everyone, open, Do).AtRoot()
}

func open(env *function.Environment) Deps { return Deps{Issuer: issuer.Open(env)} }
