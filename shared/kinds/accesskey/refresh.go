package accesskey

import (
	"context"
	"strings"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// refreshSeparator is between the parts of a refresh token. No key that the server makes has it.
const refreshSeparator = "."

// RefreshToken returns the refresh token of a refresh key: its bearer text, and the part that each use replaces. Source: ADR-0045.
func RefreshToken(bearer, part secret.String) secret.String {
	return bearer + refreshSeparator + part
}

// SplitRefreshToken returns the parts of a refresh token. False: the text has another form.
func SplitRefreshToken(text secret.String) (bearer, part secret.String, ok bool) {
	before, after, found := strings.Cut(text.Reveal(), refreshSeparator)
	bearer, part = secret.String(before), secret.String(after)
	return bearer, part, found && after != "" && strings.HasPrefix(before, bearerPrefix) && CheckBearer(bearer) == nil
}

// IdentifyRefresh returns the caller of a refresh key, which authenticates nothing else. Errors: those of Identify; auth.ErrUnknown for a key
// of another type.
func (b *Bearers) IdentifyRefresh(ctx context.Context, bearer secret.String) (auth.Identified, error) {
	found, err := b.identify(ctx, bearer, "")
	if err == nil && found.Caller.KeyType != model.AccessKeyTypeOIDCRefreshToken {
		return auth.Identified{}, auth.ErrUnknown
	}
	return found, err
}
