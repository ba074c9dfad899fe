package accesskey

import (
	"context"
	"strings"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// refreshSeparator is between the parts of a refresh token. No key that the server makes has it.
const refreshSeparator = "."

// RefreshToken returns the refresh token of a refresh key. It consists of the bearer text of the key, and the part that each use
// replaces. Source: ADR-0045.
func RefreshToken(bearer, part secret.String) secret.String {
	return bearer + refreshSeparator + part
}

// SplitRefreshToken returns the parts of a refresh token. False: the text has another form.
func SplitRefreshToken(text secret.String) (bearer, part secret.String, ok bool) {
	before, after, found := strings.Cut(text.Reveal(), refreshSeparator)
	bearer, part = secret.String(before), secret.String(after)
	return bearer, part, found && after != "" && strings.HasPrefix(before, bearerPrefix) && CheckBearer(bearer) == nil
}

// refreshBearers identifies callers by refresh keys, and by no other keys.
type refreshBearers struct{ *Bearers }

func (b refreshBearers) Identify(ctx context.Context, bearer secret.String, ahead store.Ref) (auth.Identified, error) {
	found, err := b.identify(ctx, bearer, ahead)
	if err == nil && found.Caller.KeyType != model.AccessKeyTypeOIDCRefreshToken {
		return auth.Identified{}, auth.ErrUnknown
	}
	return found, err
}
