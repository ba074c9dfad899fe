// Package listaccesskeys is GET on ownedaccesskeys: the caller's access keys, or all keys for admins, as a list or as a
// watch. The access keys of one user or team are below that object. Source: Spec 2.5, 4; ADR-0007, ADR-0029.
package listaccesskeys

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

type Deps struct {
	Keys  *accesskey.Registry
	Users *user.Registry
	Teams *team.Registry
}

type Input = resource.ListInput

type Output = runtime.Object

type WatchInput = resource.WatchInput

// Do returns a page of the caller's access keys. Errors: BadRequest, Expired or Timeout as resource.List says.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.List(ctx, deps.Keys, in)
}

// listOfUser returns a page of the access keys of one user. Errors: the errors of Do; NotFound for a user that the caller may not
// see.
func listOfUser(ctx context.Context, deps Deps, in Input) (Output, error) {
	if err := deps.Users.AdmitAt(ctx, in.Caller, "get", accesskey.Subresource, in.Parent); err != nil {
		return nil, err
	}
	in.Owner = identity.Owner{Kind: identity.User, Name: in.Parent}.String()
	return Do(ctx, deps, in)
}

// listOfTeam returns a page of the access keys of one team. Errors: the errors of Do; NotFound for a team that the caller may not
// see.
func listOfTeam(ctx context.Context, deps Deps, in Input) (Output, error) {
	if err := deps.Teams.AdmitAt(ctx, in.Caller, "get", accesskey.Subresource, in.Parent); err != nil {
		return nil, err
	}
	in.Owner = identity.Owner{Kind: identity.Team, Name: in.Parent}.String()
	return Do(ctx, deps, in)
}

// Watch follows the caller's access keys. Errors: BadRequest, Expired or Timeout as resource.Watch says.
func Watch(ctx context.Context, deps Deps, in WatchInput) (*resource.Watcher[*model.OwnedAccessKey], error) {
	return resource.Watch(ctx, deps.Keys, in)
}

var Function = &frame.Function{
	Name: "listaccesskeys",
	Endpoints: frame.WithWatchPaths(
		frame.List(accesskey.Definition, open, Do),
		frame.Watch(accesskey.Definition, open, Watch),
		frame.Under(frame.List(accesskey.Definition, open, listOfUser), user.Definition, accesskey.Subresource),
		frame.Under(frame.List(accesskey.Definition, open, listOfTeam), team.Definition, accesskey.Subresource),
	),
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: accesskey.Open(env), Users: user.Open(env), Teams: team.Open(env)}
}
