// Package setpassword is POST on password of one of users: it sets the password with which the user signs in. Users give their current
// password, and admins need none. Source: ADR-0032.
package setpassword

import (
	"context"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/password"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

type Deps struct{ Passwords *password.Passwords }

type Input = resource.SubresourceInput[*model.UserPassword]

type Output = resource.Result[*model.UserPassword]

// Do sets the password of one user. It returns the errors of password.Passwords.Set; on an error nothing is stored.
func Do(ctx context.Context, deps Deps, in Input) (Output, error) {
	return deps.Passwords.Set(ctx, in)
}

var Function = &frame.Function{
	Name:     "setpassword",
	Encrypts: true,
	Endpoints: []frame.Endpoint{
		frame.CreateSubresource(password.Definition, user.Password, open, Do).Sharing(fairness.Heavy),
	},
}

func open(env *platform.Environment) Deps {
	return Deps{Passwords: password.Open(env, kinds.Users(env).WithFieldManager(fieldmanager.New))}
}
