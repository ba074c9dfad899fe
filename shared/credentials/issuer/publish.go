package issuer

import (
	"context"
	"errors"
	"time"

	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/store"
)

// The paths of the documents, below the issuer. OpenID Connect Discovery 1.0, section 4, fixes the first path. Kube-apiservers
// use the second path, too.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
	RevokedPath       = "/openid/v1/revoked"
)

// How long clients may use a document that they fetched. The public keys may be used for half of the shortest time that a
// key is published before it signs: the other half is for keys that functions have in memory and for a late schedule.
// Source: ADR-0011.
const (
	KeysMaxAge    = settings.MinPublishBefore / 2
	RevokedMaxAge = time.Minute
)

// deniedAge is the largest age of the list of revoked tokens that a process has in memory.
const deniedAge = 10 * time.Second

// Configuration is the document that verifiers read first. Source: OpenID Connect Discovery 1.0, section 3.
type Configuration struct {
	Issuer           string   `json:"issuer"`
	KeysURI          string   `json:"jwks_uri"`
	ResponseTypes    []string `json:"response_types_supported"`
	SubjectTypes     []string `json:"subject_types_supported"`
	SigningAlgorithm []string `json:"id_token_signing_alg_values_supported"`
}

// Configuration returns the document of ConfigurationPath. It names both algorithms whatever the current keys are, because
// verifiers read the document once and the algorithm may be changed later. It returns the errors of Current.
func (i *Issuer) Configuration(ctx context.Context) (Configuration, error) {
	if _, err := i.Current(ctx); err != nil {
		return Configuration{}, err
	}
	return Configuration{
		Issuer: i.url, KeysURI: i.url + KeysPath, ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"},
		SigningAlgorithm: []string{token.ES256, token.RS256},
	}, nil
}

// PublicKeys returns the document of KeysPath. It returns the errors of Current. Source: RFC 7517 5.
func (i *Issuer) PublicKeys(ctx context.Context) (token.JWKS, error) {
	keys, err := i.Current(ctx)
	if err != nil {
		return token.JWKS{}, err
	}
	return keys.Public, nil
}

// RevokedTokens returns the document of RevokedPath, at most ten seconds old. Error: ServiceUnavailable if the state cannot be
// reached.
func (i *Issuer) RevokedTokens(ctx context.Context) (token.DenyList, error) {
	denied, err := i.listDenied(ctx)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return token.DenyList{}, apierror.Unavailable().Because(err)
	case err != nil:
		return token.DenyList{}, err
	}
	document := token.DenyList{Issuer: i.url, Revoked: make([]token.Revoked, len(denied))}
	for n, denial := range denied {
		document.Revoked[n] = token.Revoked{ID: denial.ID, Expires: denial.Expires.Unix()}
	}
	return document, nil
}

func (i *Issuer) listDenied(ctx context.Context) ([]issuedtoken.Denial, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if age := now.Sub(i.listedAt); !i.listedAt.IsZero() && age >= 0 && age < deniedAge {
		return i.denied, nil
	}
	denied, err := i.Register.Denied(ctx)
	if err != nil {
		return nil, err
	}
	i.denied, i.listedAt = denied, now
	return denied, nil
}
