package user

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// SignOut is the subresource at which a user is signed out everywhere.
const SignOut = "signout"

// SignOutDefinition is the kind of the subresource. Its objects are not stored. Source: ADR-0029.
var SignOutDefinition = &resource.Definition[*model.UserSignOut]{
	Resource: Definition.Resource,
	Kind:     "UserSignOut",
	New:      func() *model.UserSignOut { return &model.UserSignOut{} },
}

// raiser writes the raised generation, which users may not write themselves.
var raiser = identity.New(identity.Owner{Kind: identity.Subject, Name: "signout"}, []string{identity.Admins})

// SignOutUser raises spec.tokenGeneration of a user by one. Every existing credential of the user, including the credential of
// the request, is refused at its next request.
//
// Errors: NotFound if there is no such user for the caller; Forbidden if the caller is neither the user nor an admin; Conflict
// if others keep writing the user. On an error nothing is stored. Source: ADR-0029.
func SignOutUser(ctx context.Context, users *Registry, in resource.SubresourceInput[*model.UserSignOut]) (resource.Result[*model.UserSignOut], error) {
	var written resource.Result[*model.User]
	err := store.Retry(ctx, apierrors.IsConflict, func() error {
		object, _, err := users.Read(ctx, in.Caller, "", in.Name)
		if err != nil {
			return err
		}
		if err := users.Admit(in.Caller, "create", SignOut, object); err != nil {
			return err
		}
		// The resourceVersion that was read makes the write conditional, so that two sign-outs raise the generation twice.
		object = object.DeepCopy()
		object.Spec.TokenGeneration++
		written, err = resource.Update(ctx, users, resource.UpdateInput[*model.User]{
			Caller: raiser, Name: in.Name, Object: object, Manager: in.Manager, DryRun: in.DryRun,
		})
		return err
	})
	if err != nil {
		return resource.Result[*model.UserSignOut]{}, err
	}
	answer := &model.UserSignOut{
		ObjectMeta: metav1.ObjectMeta{Name: in.Name},
		Status:     model.UserSignOutStatus{TokenGeneration: written.Object.Spec.TokenGeneration},
	}
	answer.SetGroupVersionKind(model.SchemeGroupVersion.WithKind(SignOutDefinition.Kind))
	return resource.Result[*model.UserSignOut]{Object: answer}, nil
}
