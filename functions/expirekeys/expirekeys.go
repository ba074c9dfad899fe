// Package expirekeys removes, on a schedule, expired access keys, and stored responses for repeated requests after
// their time. Before that, it reverts a platform configuration that was not confirmed in time, because the configuration decides
// which keys have expired, and notes the limits of a configuration file. It may run late, twice at once or stop half-way: expired
// keys are refused anyway. Source: Spec 3, 5.2; ADR-0005, ADR-0009, ADR-0017, ADR-0024.
package expirekeys

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/logins"
)

type Deps struct {
	Keys *accesskey.Registry
	// Limits are the platform's limits on the lifetime of keys.
	Limits func() accesskey.Limits
	// Attempts are the stored responses for repeated requests.
	Attempts *idempotency.Store
	// SignIns are the sign-ins, and Failures are the counts of wrong passwords. Both expire like stored responses.
	SignIns, Failures *idempotency.Store
	// Config reverts the platform configuration and notes the limits of its file.
	Config *platformconfig.Writer
}

// Output counts what a run did.
type Output struct {
	Keys accesskey.Swept
	// Forgotten is the number of stored responses, sign-ins and counts of wrong passwords that were removed.
	Forgotten int
	// Reverted reports whether an unconfirmed configuration was reverted.
	Reverted bool
}

// author is the author of the revision that reverts a configuration.
var author = identity.Owner{Kind: identity.Subject, Name: "expirekeys"}

// Do removes the records that are due, up to a bound. It returns the errors of platformconfig.Writer, idempotency.Store.Sweep and
// accesskey.Sweep. On an error, the output counts the work that was done before it, and the next run continues.
func Do(ctx context.Context, deps Deps) (Output, error) {
	var done Output
	var err error
	if done.Reverted, err = deps.Config.RevertUnconfirmed(ctx, author); err != nil {
		return done, err
	}
	if err := deps.Config.NoteLimits(ctx); err != nil {
		return done, err
	}
	if done.Forgotten, err = deps.Attempts.Sweep(ctx); err != nil {
		return done, err
	}
	for _, expiring := range []*idempotency.Store{deps.SignIns, deps.Failures} {
		removed, err := expiring.Sweep(ctx)
		if done.Forgotten += removed; err != nil {
			return done, err
		}
	}
	done.Keys, err = accesskey.Sweep(ctx, deps.Keys, deps.Limits)
	return done, err
}

var Function = &frame.Function{
	Name: "expirekeys",
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		return []slog.Attr{
			slog.Int("removed", done.Keys.Removed), slog.Int("held", done.Keys.Held),
			slog.Int("later", done.Keys.Later), slog.Int("changed", done.Keys.Changed),
			slog.Int("broken", done.Keys.Broken), slog.Int("forgotten", done.Forgotten), slog.Bool("takenBack", done.Reverted),
		}
	}),
}

func open(env *platform.Environment) Deps {
	return Deps{
		Keys: kinds.AccessKeys(env), Limits: accesskey.OpenLimits(env),
		// Removing stored responses needs no encryption key.
		Attempts: &idempotency.Store{Records: env.Stores(idempotency.Resource), Now: env.Now},
		SignIns:  &idempotency.Store{Records: logins.Records(env), Now: env.Now},
		Failures: &idempotency.Store{Records: logins.Failures(env), Now: env.Now},
		Config:   platformconfig.Open(env).Writer(nil),
	}
}
