// Package revalidatelogins asks the connectors, on a schedule, whether people who have signed in there may still do so, and in which groups
// they are. It gives them back the refresh tokens of keys that have ended. It may run late, twice at once or stop half-way: the key of a
// sign-in does not work for longer than a day without an answer.
// Source: Spec 2.5 (identityRefresh); RFC 7009; ADR-0035, ADR-0042.
package revalidatelogins

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/connectors"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/revalidate"
)

// Deps is what the operation needs.
type Deps struct {
	Revalidator *revalidate.Revalidator
	Provider    provider.SessionProvider
}

// Output counts what a run did.
type Output = revalidate.Counts

// Do asks the providers about the sessions that are due, up to a bound. It returns the errors of revalidate.Revalidator.Run; on
// an error, the output counts the work that was done before it.
func Do(ctx context.Context, deps Deps) (Output, error) {
	return deps.Revalidator.Run(ctx, deps.Provider)
}

// Function is the operation as it is deployed.
var Function = &frame.Function{
	Name:     "revalidatelogins",
	Encrypts: true,
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("kept", done.Kept), slog.Int("ended", done.Ended), slog.Int("unanswered", done.Unanswered),
			slog.Int("unused", done.Unused), slog.Int("forgotten", done.Forgotten),
			slog.Int("revoked", done.Revoked), slog.Int("unrevoked", done.Unrevoked),
		}
	}),
}

func open(env *platform.Environment) Deps {
	return Deps{Revalidator: revalidate.Open(env, kinds.Users(env), kinds.Teams(env), kinds.AccessKeys(env)), Provider: connectors.Open(env)}
}
