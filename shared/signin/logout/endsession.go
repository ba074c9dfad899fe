package logout

import (
	"context"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
)

// EndSessionURL returns the address at which the session of a person at a connector ends. Empty: the connector has none. Errors: Refusal.
func EndSessionURL(ctx context.Context, config *model.ConfigStatus, idp provider.Provider, id string) (string, error) {
	conn, ok := method.FindConnector(config, id)
	if !ok {
		return "", refusal.UnknownConnector()
	}
	return idp.EndSessionURL(ctx, conn)
}
