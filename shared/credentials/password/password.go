// Package password sets and checks the passwords of users. The state has an argon2id digest of each password, sealed for its user
// as the private part of the object. All processes share the counts of wrong passwords, and an attempt is counted before anything
// is hashed. An unknown name costs as much as a known name. Source: Spec 5.4; ADR-0032.
//
// The package makes no credential: package token makes one for a user whose password was right.
package password

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/state/encryption"
)

// Definition is the kind of the subresource. Its objects are not stored. Source: ADR-0032.
var Definition = &resource.Definition[*model.UserPassword]{
	Resource: user.Definition.Resource,
	Kind:     "UserPassword",
	New:      func() *model.UserPassword { return &model.UserPassword{} },
}

// setter writes the raised generation, which users may not write themselves.
var setter = identity.New(identity.Owner{Kind: identity.Subject, Name: "setpassword"}, []string{identity.Admins})

// Passwords sets and checks the passwords of the users of an environment. It is safe for concurrent use.
type Passwords struct {
	env      *platform.Environment
	users    *user.Registry
	hasher   *Hasher
	failures *throttle.Throttle
}

// Open returns the passwords of the users of an environment.
func Open(env *platform.Environment, users *user.Registry) *Passwords {
	return &Passwords{
		env: env, users: users, hasher: OpenHasher(env), failures: logins.Throttle(env, "too many wrong passwords: try again later"),
	}
}

// OpenHasher returns the hasher of an environment. A process has one hasher, which bounds how many passwords it hashes at once.
//
//go:noinline
func OpenHasher(env *platform.Environment) *Hasher {
	return platform.Single(env, func(env *platform.Environment) *Hasher { return NewHasher(env.Random) })
}

// sealContext returns the context for which the password digest of a user is sealed.
func sealContext(account *model.User) string { return "users/" + string(account.UID) + "/password" }

// maxConflicts is how often a write of a user is tried while other clients write the same user.
const maxConflicts = 32

// Set sets the password of a user, and raises spec.tokenGeneration: every credential of the user, including the credential of
// this request, is refused at its next request. A user must send the current password. An admin need not send it. Only an admin
// can set the first password.
//
// Errors: NotFound if there is no such user for the caller; Forbidden if the user has no password yet and the caller is no admin;
// Invalid at spec.password and spec.current; TooManyRequests after too many wrong passwords; Conflict if another request has set
// the password meanwhile. On an error nothing is stored. Source: ADR-0032.
func (p *Passwords) Set(ctx context.Context, in resource.SubresourceInput[*model.UserPassword]) (resource.Result[*model.UserPassword], error) {
	var none resource.Result[*model.UserPassword]
	object, record, err := p.users.Read(ctx, in.Caller, "", in.Name)
	if err != nil {
		return none, err
	}
	if err := p.users.Admit(in.Caller, "create", user.Password, object); err != nil {
		return none, err
	}
	ring, err := p.env.Keyring(ctx)
	if err != nil {
		return none, err
	}
	sealedBefore, err := resource.Private(record)
	if err != nil {
		return none, err
	}
	if err := p.checkRequest(ctx, in, object, ring, sealedBefore); err != nil {
		return none, err
	}
	digest, err := p.hasher.Hash(ctx, in.Object.Spec.Password)
	if err != nil {
		return none, err
	}
	sealed, err := ring.Seal([]byte(digest), sealContext(object))
	if errors.Is(err, encryption.ErrNoKey) {
		return none, apierror.Unprocessable("the platform has no encryption key: it cannot store passwords").Because(err)
	} else if err != nil {
		return none, err
	}
	for attempt := 1; ; attempt++ {
		// The resourceVersion that was read makes the write conditional.
		next := object.DeepCopy()
		next.Spec.TokenGeneration++
		result, err := resource.Update(ctx, p.users, resource.UpdateInput[*model.User]{
			Caller: setter, Name: in.Name, Object: next, Manager: in.Manager, DryRun: in.DryRun, Private: sealed,
		})
		if err == nil {
			answer := &model.UserPassword{
				ObjectMeta: metav1.ObjectMeta{Name: in.Name},
				Status:     model.UserPasswordStatus{TokenGeneration: result.Object.Spec.TokenGeneration},
			}
			answer.SetGroupVersionKind(model.SchemeGroupVersion.WithKind(Definition.Kind))
			return resource.Result[*model.UserPassword]{Object: answer}, nil
		}
		if !apierrors.IsConflict(err) || attempt == maxConflicts || ctx.Err() != nil {
			return none, err
		}
		uid := object.UID
		if object, record, err = p.users.Read(ctx, in.Caller, "", in.Name); err != nil {
			return none, err
		}
		// The checks hold only for the same user with the same password.
		if sealedNow, err := resource.Private(record); err != nil || sealedNow != sealedBefore || object.UID != uid {
			return none, apierror.Modified(p.users.Definition.GroupResource(), in.Name)
		}
	}
}

// checkRequest checks a request to set a password: the new password, and the current password if it is required.
func (p *Passwords) checkRequest(
	ctx context.Context, in resource.SubresourceInput[*model.UserPassword], account *model.User, ring *encryption.Keyring, sealed string,
) error {
	spec, currentRequired := in.Object.Spec, !in.Caller.Admin()
	// A caller who sets a password can sign in with it, for longer and with more rights than with a narrow credential.
	lasting := []auth.Grant{auth.PermanentGrant(field.NewPath("spec", "password"), "")}
	if excess := auth.ExceededGrants(in.Caller, lasting, nil); len(excess) > 0 && !currentRequired {
		if currentRequired = spec.Current != ""; !currentRequired {
			return apierror.Forbidden(p.users.Definition.GroupResource(), in.Name,
				apierror.Summary(excess)+"; so does spec.current with the current password", excess)
		}
	}
	if currentRequired && sealed == "" {
		return apierror.Forbidden(p.users.Definition.GroupResource(), in.Name, "you have no password yet: ask an admin to set the first one", nil)
	}
	invalid := func(problems field.ErrorList) error {
		return apierror.Invalid(model.SchemeGroupVersion.WithKind(Definition.Kind).GroupKind(), in.Name, problems)
	}
	problems := validate(spec.Password, account, field.NewPath("spec", "password"))
	current := field.NewPath("spec", "current")
	switch {
	case currentRequired && spec.Current == "":
		problems = append(problems, field.Required(current, "must be your current password"))
	case len(spec.Current) > MaxBytes:
		problems = append(problems, field.TooLong(current, field.OmitValueType{}, MaxBytes))
	}
	if len(problems) > 0 {
		return invalid(problems)
	}
	if !currentRequired {
		return nil
	}
	giveBack, err := p.failures.Take(ctx, userCount(account.Name))
	if err != nil {
		return err
	}
	digest, err := ring.Open(sealed, sealContext(account))
	if err != nil {
		return fmt.Errorf("opening the password of %q: %w", account.Name, err)
	}
	matches, err := p.hasher.Matches(ctx, string(digest), spec.Current)
	switch {
	case err != nil:
		return err
	case !matches:
		return invalid(field.ErrorList{field.Invalid(current, field.OmitValueType{}, "is not your current password")})
	}
	giveBack(ctx)
	return nil
}
