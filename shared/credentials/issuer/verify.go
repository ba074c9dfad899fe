package issuer

import (
	"context"
	"errors"
	"slices"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/store"
)

// Audiences returns the audiences of the tokens of this platform.
func (i *Issuer) Audiences() []string { return i.audiences }

// Verify returns the claims of a token of this platform for one of the audiences, and the current scopes of its access keys, or
// why the token is refused: see token.Refusal. The claims have only the groups that the access key still gives. Verify looks a
// token up in the register, in one round trip, after all other checks have passed. Other errors, from Current and from the store,
// mean that the token could not be checked. Source: Spec 5.3; ADR-0012, ADR-0021.
func (i *Issuer) Verify(ctx context.Context, bearer secret.String, audiences []string) (token.Claims, []*model.Scope, error) {
	if i.url == "" {
		return token.Claims{}, nil, token.ErrIssuer
	}
	var present accesskey.Present
	verifier := token.Verifier{
		Keys: publishedKeys{i}, Issuer: i.url, Audiences: audiences, Now: i.now,
		Revoked: func(ctx context.Context, claims token.Claims) (bool, error) {
			var revoked bool
			var err error
			revoked, present, err = i.Register.Revoked(ctx, claims.ID)
			return revoked, err
		},
	}
	claims, err := verifier.Verify(ctx, bearer)
	if errors.Is(err, store.ErrUnavailable) {
		return token.Claims{}, nil, apierror.Unavailable().Because(err)
	}
	claims.Groups = slices.DeleteFunc(slices.Clone(claims.Groups), func(group string) bool { return !slices.Contains(present.Groups, group) })
	return claims, present.Scopes, err
}

// publishedKeys implements token.Keys with the published keys of an issuer.
type publishedKeys struct{ issuer *Issuer }

// Key implements token.Keys. An unknown kid may belong to a new key, so Key reads the keys again, at most once a second.
func (p publishedKeys) Key(ctx context.Context, id string) (token.JWK, error) {
	keys, err := p.issuer.Current(ctx)
	if err != nil {
		return token.JWK{}, err
	}
	key, err := keys.Public.Key(ctx, id)
	if !errors.Is(err, token.ErrUnknownKey) {
		return key, err
	}
	if keys, err = p.issuer.latest(ctx); err != nil {
		return token.JWK{}, err
	}
	return keys.Public.Key(ctx, id)
}
