// Package renderkubeconfig is POST on kubeconfig of one of virtualclusterinstances: a kubeconfig with an access key for that
// virtual cluster, or with a client certificate. Source: Spec 2.6, 4 row 1; ADR-0017.
package renderkubeconfig

import (
	"context"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signing/clusterca/csr"
)

type Deps struct{ Renderer *kubeconfig.Renderer }

type Input = kubeconfig.Input

type Output = kubeconfig.Output

// Do returns a kubeconfig. It returns the errors of kubeconfig.Renderer.Render; after an error no credential exists.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return deps.Renderer.Render(ctx, in)
}

var Function = &frame.Function{
	Name: "renderkubeconfig",
	Endpoints: []frame.Endpoint{
		frame.Idempotent(frame.CreateSubresource(kubeconfig.Definition, kubeconfig.Subresource, open, Do)).Delivering().Sharing(fairness.Kubeconfigs),
	},
	Encrypts: true,
}

func open(env *platform.Environment) Deps {
	return Deps{Renderer: &kubeconfig.Renderer{
		Instances: kinds.Instances(env), Keys: kinds.AccessKeys(env),
		Keyring: env.Keyring, Project: env.Project, Limits: accesskey.OpenLimits(env), Now: env.Now,
		Signing: csr.Options{AllowLocal: env.LocalSigners},
	}}
}
