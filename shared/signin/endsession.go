package signin

import (
	"context"

	"management.platform.sh/shared/model"
)

// EndSessionURL returns the address at which the session of a person at a connector ends. Empty: the connector has none. Errors: Refusal.
func EndSessionURL(ctx context.Context, config *model.ConfigStatus, idp Provider, id string) (string, error) {
	conn, ok := findConnector(config, id)
	if !ok {
		return "", unknownConnector()
	}
	return idp.EndSessionURL(ctx, conn)
}
