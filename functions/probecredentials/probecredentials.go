// Package probecredentials proves on a schedule that credentials work, as their users need it: it makes a canary access key,
// authenticates with it, gets a token with it, verifies the token, revokes the key, and demands that both are refused then. A failed
// run names its step. The canary permits nothing and ends by itself. PLATFORM_PROBE switches the probe on; without it, a run does
// nothing. Source: Spec 2.4, 2.5, 5.2, 5.3; ADR-0039.
package probecredentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/token"
)

// The steps of a run, in their order.
const (
	create = "create"
	use    = "use"
	issue  = "issue"
	verify = "verify"
	revoke = "revoke"
	refuse = "refuse"
)

// lifetime is the lifetime of the canary in seconds. It ends the canary if a run stops before it revokes it.
const lifetime = 300

// prober owns the canary. It has the name of the function.
var prober = identity.Owner{Kind: identity.Subject, Name: "probecredentials"}

// nothing is a scope that permits nothing: no resource has this name.
var nothing = &model.Scope{Rules: []model.ScopeRule{{
	Verbs: []string{"get"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"canaries"}}},
}}}

type Deps struct {
	// On reports whether anything is probed, and Tokens whether the platform issues tokens.
	On, Tokens bool
	// Create makes an access key and returns it with its text.
	Create func(context.Context) (*model.OwnedAccessKey, error)
	// Use authenticates with the text of an access key.
	Use func(context.Context, secret.String) (identity.Caller, error)
	// Issue gets a token for a caller.
	Issue func(context.Context, identity.Caller) (secret.String, error)
	// Verify returns the subject of a token.
	Verify func(context.Context, secret.String) (string, error)
	// Revoke removes an access key.
	Revoke func(context.Context, *model.OwnedAccessKey) error
	// Now is the clock.
	Now func() time.Time
}

// Output says what a run did.
type Output struct {
	// On is Deps.On.
	On bool
	// Failed is the step that failed. Empty: none did.
	Failed string
	// Took is how long all steps took together.
	Took time.Duration
}

// Do takes all steps. If the platform issues no tokens, the steps with tokens are left out. It returns the error of the first
// step that failed. After an error it tries to remove the canary, which otherwise ends by itself.
func Do(ctx context.Context, deps Deps) (Output, error) {
	if !deps.On {
		return Output{}, nil
	}
	begun := deps.Now()
	failed, err := probe(ctx, deps)
	done := Output{On: true, Failed: failed, Took: deps.Now().Sub(begun)}
	if err != nil {
		return done, fmt.Errorf("the canary failed at the step %s: %w", failed, err)
	}
	return done, nil
}

// probe takes the steps and returns the step that failed.
func probe(ctx context.Context, deps Deps) (failed string, err error) {
	key, err := deps.Create(ctx)
	if err != nil {
		return create, err
	}
	bearer := secret.String(key.Spec.Key)
	revoked := false
	defer func() {
		if !revoked {
			_ = deps.Revoke(context.WithoutCancel(ctx), key)
		}
	}()
	caller, err := deps.Use(ctx, bearer)
	if err == nil && (caller.Owner != prober || caller.KeyUID != string(key.UID) || caller.Admin()) {
		err = errors.New("the canary authenticates as somebody else")
	}
	if err != nil {
		return use, err
	}
	var text secret.String
	if deps.Tokens {
		if text, err = deps.Issue(ctx, caller); err != nil {
			return issue, err
		}
		subject, err := deps.Verify(ctx, text)
		if err == nil && subject != prober.Username() {
			err = errors.New("the token of the canary is of somebody else")
		}
		if err != nil {
			return verify, err
		}
	}
	if err := deps.Revoke(ctx, key); err != nil {
		return revoke, err
	}
	revoked = true
	if _, err := deps.Use(ctx, bearer); apierror.From(err).Status().Reason != metav1.StatusReasonUnauthorized {
		return refuse, unrefused("access key", err)
	}
	if deps.Tokens {
		if _, err := deps.Verify(ctx, text); token.Refusal(err) == nil {
			return refuse, unrefused("token", err)
		}
	}
	return "", nil
}

// unrefused is the error for a revoked credential that is accepted, or that cannot be checked.
func unrefused(what string, err error) error {
	if err == nil {
		return fmt.Errorf("the revoked %s is accepted", what)
	}
	return fmt.Errorf("checking the revoked %s: %w", what, err)
}

var Function = &frame.Function{
	Name:     "probecredentials",
	Encrypts: true,
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{slog.Bool("probed", done.On), slog.String("failed", done.Failed), slog.Int64("probeMs", done.Took.Milliseconds())}
	}),
}

func open(env *platform.Environment) Deps {
	keys, tokens := kinds.AccessKeys(env), issuer.Open(env, kinds.IssuedTokens(env))
	return Deps{
		On: env.Probe == settings.On, Tokens: env.Tokens.Issuer != "", Now: env.Now,
		Create: func(ctx context.Context) (*model.OwnedAccessKey, error) {
			made, err := resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{
				Caller: identity.New(prober, nil),
				Object: &model.OwnedAccessKey{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "canary-"},
					Spec:       model.OwnedAccessKeySpec{Subject: prober.Name, Scope: nothing, TTLSeconds: lifetime, Description: "made by the probe, which removes it"},
				},
			})
			return made.Object, err
		},
		Use: accesskey.OpenAuthenticator(env).Bearer,
		Issue: func(ctx context.Context, caller identity.Caller) (secret.String, error) {
			made, err := tokens.Issue(ctx, issuer.Input{
				Caller: caller, Object: &model.DirectClusterEndpointToken{Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: lifetime, Scope: nothing}},
			})
			if err != nil {
				return "", err
			}
			return secret.String(made.Object.Status.Token), nil
		},
		Verify: func(ctx context.Context, text secret.String) (string, error) {
			claims, _, err := tokens.Verify(ctx, text, tokens.Audiences())
			return claims.Subject, err
		},
		Revoke: func(ctx context.Context, key *model.OwnedAccessKey) error {
			_, err := resource.Delete(ctx, keys, resource.DeleteInput{Caller: identity.New(prober, nil), Name: key.Name, UID: key.UID})
			return err
		},
	}
}
