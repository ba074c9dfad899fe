// Package revokecredentials is POST on credentialrevocations: it revokes access keys and direct cluster endpoint tokens by
// their texts, for people and scanners that have found them. It needs no credential. The response is the same whatever the texts
// are, and each text takes the same time, unless the state answers more slowly. Clients of OAuth revoke one text at a time at
// POST /auth/revoke. Source: RFC 7009 2; ADR-0022.
package revokecredentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/sessions"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/store"
)

// minDuration is the time that each text takes, longer than a revocation takes with a state nearby. Source: ADR-0022.
const minDuration = 40 * time.Millisecond

var (
	// definition is the resource. Its objects are not stored.
	definition = model.SchemeGroupVersion.WithResource("credentialrevocations")
	kind       = model.SchemeGroupVersion.WithKind("CredentialRevocation")
)

// Deps is what the operation needs.
type Deps struct {
	Keys    *accesskey.Registry
	Retired *accesskey.Retired
	Tokens  *issuedtoken.Register
	// Verify returns the claims of a token of this platform.
	Verify func(context.Context, secret.String) (token.Claims, error)
	// ScheduleRelease says that a key has ended, so that what belongs to it elsewhere can end as well.
	ScheduleRelease func(context.Context, *model.OwnedAccessKey) error
	Log             *slog.Logger
}

// Input is the request.
type Input = frame.ReviewRequest[*model.CredentialRevocation]

// Output is the answer.
type Output = frame.ReviewResult[*model.CredentialRevocation]

// Do revokes credentials: they are refused at the next request. Texts that are no credential are ignored. Each credential is
// revoked separately: after an error the credentials before it are revoked, and the same request finishes the work. A dry run
// revokes nothing, and has the same answer.
//
// Errors: Invalid unless there are 1 to limits.Revocations texts; the errors of the state.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	texts, path := in.Object.Spec.Credentials, field.NewPath("spec", "credentials")
	switch {
	case len(texts) == 0:
		return Output{}, apierror.Invalid(kind.GroupKind(), "", field.ErrorList{field.Required(path, "the texts of the credentials to revoke")})
	case len(texts) > limits.Revocations:
		return Output{}, apierror.Invalid(kind.GroupKind(), "", field.ErrorList{field.TooMany(path, len(texts), limits.Revocations)})
	}
	var done []string
	revoke := deps.revoke
	if in.DryRun {
		revoke = func(context.Context, secret.String) (string, error) { return "", nil }
	}
	for _, text := range texts {
		name, err := deps.revokePaced(ctx, revoke, text)
		if err != nil {
			return Output{}, translate(err)
		}
		if name != "" {
			done = append(done, name)
		}
	}
	answer := Output{Object: &model.CredentialRevocation{TypeMeta: in.Object.TypeMeta}}
	if len(done) > 0 {
		answer.Annotations = map[string]string{audit.Revoked: strings.Join(done, ",")}
	}
	return answer, nil
}

// revokeToken revokes the credential of an OAuth client, and answers 200 whatever the text is. Any client that has a text may
// revoke it, so the client need not authenticate. The hint is not read: the form of a text says what kind of credential it is. It
// returns the errors of the state. Source: RFC 7009, 2.
func revokeToken(ctx context.Context, deps Deps, in frame.FormInput) (frame.FormResult, error) {
	refusal := (*oauth.Error)(nil)
	if err := oauth.CheckClient(in.Form, in.Basic, true); errors.As(err, &refusal) {
		return frame.FormResult{Status: refusal.Status, JSON: refusal}, nil
	}
	texts := in.Form["token"]
	if len(texts) != 1 || texts[0] == "" {
		refusal = oauth.NewError("invalid_request", "token is missing, or given more than once")
		return frame.FormResult{Status: refusal.Status, JSON: refusal}, nil
	}
	name, err := deps.revokePaced(ctx, deps.revoke, texts[0])
	if err != nil {
		return frame.FormResult{}, err
	}
	answer := frame.FormResult{JSON: struct{}{}}
	if name != "" {
		answer.Annotations = map[string]string{audit.Revoked: name}
	}
	return answer, nil
}

// revokePaced revokes one credential in the time that each text takes. It returns what revoke returns.
func (d Deps) revokePaced(ctx context.Context, revoke func(context.Context, secret.String) (string, error), text string) (string, error) {
	even := time.NewTimer(minDuration)
	defer even.Stop()
	name, err := revoke(ctx, secret.String(text))
	if err != nil {
		return "", err
	}
	if name != "" {
		d.Log.InfoContext(ctx, "a credential was given back", "credential", name)
	}
	select {
	case <-even.C:
		return name, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// revoke revokes the credential with a text and returns its resource, name and uid; empty: there is none. An expired token, and
// one with a wrong signature, is none. A refresh token is its refresh key, whether or not it was used before.
func (d Deps) revoke(ctx context.Context, text secret.String) (string, error) {
	if bearer, _, ok := accesskey.SplitRefreshToken(text); ok {
		text = bearer
	}
	if accesskey.CheckBearer(text) == nil {
		key, err := accesskey.Revoke(ctx, d.Keys, d.Retired, text)
		if err != nil || key == nil {
			return "", err
		}
		if err := d.ScheduleRelease(ctx, key); err != nil {
			// The schedule finds out later.
			d.Log.WarnContext(ctx, "the provider of a sign-in learns later that it has ended", "key", key.Name, "error", err)
		}
		return fmt.Sprintf("%s/%s/%s", accesskey.Definition.Resource.Resource, key.Name, key.UID), nil
	}
	claims, err := d.Verify(ctx, text)
	if token.Refusal(err) != nil {
		return "", nil //nolint:nilerr // a refused text is no credential
	}
	if err != nil {
		return "", err
	}
	record, err := d.Tokens.Store.GetByDigest(ctx, claims.ID)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking up a token to revoke: %w", err)
	}
	issued, err := d.Tokens.Parse(record)
	if err != nil {
		return "", err
	}
	if err := resource.Revoke(ctx, d.Tokens.Registry, accesskey.Revoker, issued); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s/%s", issuedtoken.Definition.Resource.Resource, issued.Name, issued.UID), nil
}

// translate returns the API error for an error of the state.
func translate(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "revokecredentials",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.ReviewWithWarnings(definition, kind.Kind, "credentialrevocation", open, Do).Anonymous().Accepting(),
		frame.Form("POST", oauth.RevokePath, open, revokeToken),
	},
}

func open(env *platform.Environment) Deps {
	from, sessionStore := issuer.Open(env, kinds.IssuedTokens(env)), sessions.Sessions(env)
	return Deps{
		ScheduleRelease: func(ctx context.Context, key *model.OwnedAccessKey) error {
			return sessions.ScheduleRelease(ctx, sessionStore, key, env.Now())
		},
		Keys: kinds.AccessKeys(env), Retired: accesskey.OpenRetired(env), Tokens: kinds.IssuedTokens(env), Log: env.Log,
		Verify: func(ctx context.Context, text secret.String) (token.Claims, error) {
			claims, _, err := from.Verify(ctx, text, from.Audiences())
			return claims, err
		},
	}
}
