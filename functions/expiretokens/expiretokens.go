// Package expiretokens removes, on a schedule, the records of expired tokens, and revokes for good the tokens whose access
// key is refused, so that they enter the list of revoked tokens. It may run late, twice at once or stop half-way: verifiers
// that ask the platform learn of a refused key at once. Source: Spec 3; ADR-0011.
package expiretokens

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Tokens *issuedtoken.Register }

// Output counts what a run did.
type Output = issuedtoken.Swept

// Do removes expired records, and revokes the tokens that must end. It returns the errors of issuedtoken.Register.Sweep; on an
// error, the output counts the work that was done before it.
func Do(ctx context.Context, deps Deps) (Output, error) {
	return deps.Tokens.Sweep(ctx)
}

var Function = &frame.Function{
	Name: "expiretokens",
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("expired", done.Expired), slog.Int("revoked", done.Revoked), slog.Int("forgotten", done.Forgotten),
			slog.Int("changed", done.Changed), slog.Int("broken", done.Broken),
		}
	}),
}

func open(env *platform.Environment) Deps { return Deps{Tokens: kinds.IssuedTokens(env)} }
