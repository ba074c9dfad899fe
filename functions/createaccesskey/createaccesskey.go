// Package createaccesskey is POST on ownedaccesskeys: a new access key. Only this response shows it in clear text.
// Source: Spec 2.5, 4.
package createaccesskey

import (
	"context"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
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

type Input = resource.CreateInput[*model.OwnedAccessKey]

type Output = resource.Result[*model.OwnedAccessKey]

// Do stores a new access key. Errors: Invalid, Forbidden, AlreadyExists or Conflict as resource.Create says; nothing is
// stored then.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return resource.Create(ctx, deps.Keys, in)
}

// createOfUser stores a new access key of one user. Errors: the errors of Do; NotFound for a user that the caller may not see;
// Invalid if the key names another owner.
func createOfUser(ctx context.Context, deps Deps, in Input) (Output, error) {
	if err := deps.Users.AdmitAt(ctx, in.Caller, "create", accesskey.Subresource, in.Parent); err != nil {
		return Output{}, err
	}
	return createOf(ctx, deps, in, identity.Owner{Kind: identity.User, Name: in.Parent})
}

// createOfTeam stores a new access key of one team. Errors: the errors of Do; NotFound for a team that the caller may not see;
// Invalid if the key names another owner.
func createOfTeam(ctx context.Context, deps Deps, in Input) (Output, error) {
	if err := deps.Teams.AdmitAt(ctx, in.Caller, "create", accesskey.Subresource, in.Parent); err != nil {
		return Output{}, err
	}
	return createOf(ctx, deps, in, identity.Owner{Kind: identity.Team, Name: in.Parent})
}

func createOf(ctx context.Context, deps Deps, in Input, owner identity.Owner) (Output, error) {
	if err := accesskey.SetOwner(in.Object, owner); err != nil {
		return Output{}, err
	}
	return Do(ctx, deps, in)
}

var Function = &frame.Function{
	Name: "createaccesskey",
	Endpoints: []frame.Endpoint{
		frame.Idempotent(frame.Create(accesskey.Definition, open, Do)).Delivering(),
		frame.Under(frame.Idempotent(frame.Create(accesskey.Definition, open, createOfUser)).Delivering(), user.Definition, accesskey.Subresource),
		frame.Under(frame.Idempotent(frame.Create(accesskey.Definition, open, createOfTeam)).Delivering(), team.Definition, accesskey.Subresource),
	},
	Encrypts: true,
}

func open(env *platform.Environment) Deps {
	return Deps{Keys: kinds.AccessKeys(env).WithFieldManager(fieldmanager.New), Users: kinds.Users(env), Teams: kinds.Teams(env)}
}
