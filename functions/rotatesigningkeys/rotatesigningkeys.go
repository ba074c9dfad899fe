// Package rotatesigningkeys rotates the signing keys on a schedule: the next key is published in time and takes over when it
// is due, and the previous key is published until its last token has expired. It may run late, twice at once or stop
// half-way: all keys are one record, and each change requires what was read. It also encrypts the keys again after a
// change of the encryption key. Source: Spec 2.4; ADR-0011.
package rotatesigningkeys

import (
	"context"
	"log/slog"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signing/signingkey"
)

type Deps struct{ Keys *signingkey.Keys }

// Output has the keys after a run.
type Output = signingkey.Report

// Do makes the changes that are due. It returns the errors of signingkey.Keys.Rotate; on an error nothing has changed.
func Do(ctx context.Context, deps Deps) (Output, error) {
	return deps.Keys.Rotate(ctx, false)
}

var Function = &frame.Function{
	Name:     "rotatesigningkeys",
	Encrypts: true,
	Schedule: frame.Scheduled(open, Do, func(done Output) []slog.Attr {
		var states []slog.Attr
		for _, key := range done.Keys {
			states = append(states, slog.String(key.ID, string(key.State)))
		}
		return []slog.Attr{slog.GroupAttrs("keys", states...), slog.Bool("changed", done.Changed), slog.Bool("resealed", done.Resealed)}
	}),
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: issuer.Open(env, issuedtoken.Open(env)).Keys}
}
