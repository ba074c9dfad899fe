// Package process makes what serves functions in an environment: the one way from a world to a server, whichever shell
// runs it. Source: Spec 7; ADR-0010, ADR-0019.
package process

import (
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
)

// NewServer returns a server of an environment that authenticates with its access keys. It has no audit, no metrics, no
// spans, and nothing that refreshes the configuration.
func NewServer(env *platform.Environment) *frame.Server {
	return &frame.Server{Env: env, Authenticator: accesskey.OpenAuthenticator(env)}
}
