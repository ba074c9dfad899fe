// Package user has the rules of users: the fields of a user, who sees and changes which of them, and what identifies a user at a
// connector. Each request decides what the user's credentials may do. Source: Spec 5.4; ADR-0029.
package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Registry has the users and their state.
type Registry = resource.Registry[*model.User]

// Definition is the resource users. Source: ADR-0029.
var Definition = &resource.Definition[*model.User]{
	Resource:   model.SchemeGroupVersion.WithResource("users"),
	Kind:       "User",
	Singular:   "user",
	ShortNames: []string{"usr"},
	ReadAhead:  true,
	NamePrefix: "user-",
	KeysAt:     accesskey.Subresource,
	New:        func() *model.User { return &model.User{} },
	NewList: func(meta metav1.ListMeta, items []*model.User) runtime.Object {
		return &model.UserList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns: columns,
	Cells:   cells,
	Taken:   field.Invalid(specPath.Child("subject"), field.OmitValueType{}, "another user has this spec.connector and spec.subject"),
	Origin:  func(user *model.User) *model.Origin { return &user.Status.Origin },
	Fields: func(user *model.User) fields.Set {
		return fields.Set{
			"spec.disabled": strconv.FormatBool(user.Spec.Disabled), "spec.connector": user.Spec.Connector, "spec.email": user.Spec.Email,
		}
	},
}

// NewRegistry returns the users in a store. Guard keeps the last admin, and people has the teams.
func NewRegistry(
	state store.Store, now func() time.Time, random io.Reader, guard *lastadmin.Guard, people *directory.Directory,
) *Registry {
	own := &rules{guard, people}
	return &Registry{Definition: Definition, Store: state, Now: now, Random: random, Strategy: resource.Strategy[*model.User]{
		Rules: own, Visibility: own, Permissions: own, CredentialOwner: own, Invariant: own,
	}}
}

type rules struct {
	guard  *lastadmin.Guard
	people *directory.Directory
}

// isUser reports whether a caller is the given user.
func isUser(caller identity.Caller, user *model.User) bool {
	return caller.Owner == identity.Owner{Kind: identity.User, Name: user.Name}
}

// Password is the subresource at which the password of a user is set. The sealed digest of the password is the private part of the
// user. Source: ADR-0032.
const Password = "password"

const reasonSelf = "the user"

// Sees implements resource.Visibility: users see themselves.
func (r *rules) Sees(caller identity.Caller, user *model.User) auth.Decision {
	switch {
	case caller.Admin():
		return auth.PermittedAdmin
	case isUser(caller, user):
		return auth.Decision{Allowed: true, Source: auth.SourceOwner, Reason: reasonSelf}
	default:
		return auth.Decision{Hidden: true}
	}
}

func (r *rules) SeenBy() string { return "the user and members of " + identity.Admins }

// Permits implements resource.Permissions: users may change themselves. Authorize checks which fields they change.
func (r *rules) Permits(caller identity.Caller, verb, subresource string, user *model.User) auth.Decision {
	switch {
	case caller.Admin():
		return auth.PermittedAdmin
	case isUser(caller, user) && verb != "delete":
		return auth.Decision{Allowed: true, Source: auth.SourceOwner, Reason: reasonSelf}
	case subresource == SignOut:
		return auth.Decision{Reason: "only the user and members of " + identity.Admins + " may sign a user out"}
	case subresource == Password:
		return auth.Decision{Reason: "only the user and members of " + identity.Admins + " may set the password of a user"}
	default:
		return auth.Decision{Reason: "only members of " + identity.Admins + " may " + verb + " users"}
	}
}

// Default fills in spec.username, and removes what clients cannot write.
func (r *rules) Default(_ identity.Caller, user, old *model.User) {
	user.Status = model.UserStatus{}
	if user.Spec.Username == "" && old != nil {
		user.Spec.Username = old.Spec.Username
	}
	if user.Spec.Username == "" {
		user.Spec.Username = user.Name
	}
}

// Seal returns the digest of the identity at the connector: two users cannot have the same.
func (r *rules) Seal(user *model.User, _ store.Record) (resource.Sealed[*model.User], field.ErrorList) {
	return resource.Sealed[*model.User]{Digest: Digest(user.Spec.Connector, user.Spec.Subject)}, nil
}

// Digest returns the digest by which the store finds the user with an identity at a connector. Empty: the user has no such
// identity.
func Digest(connector, subject string) string {
	if connector == "" || subject == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("id\x00" + connector + "\x00" + subject))
	return hex.EncodeToString(sum[:])
}

// Index returns no owner: admins write users, so no owner's quota counts users. Users never expire.
func (r *rules) Index(*model.User, time.Time) (owner string, expires time.Time) {
	return "", time.Time{}
}

// Observe fills in the teams of the user, and whether the user has a password. The status is not stored.
func (r *rules) Observe(user *model.User, record store.Record) {
	// An error is ignored here: the operation that uses the password reports it.
	password, _ := resource.Private(record)
	user.Status.Teams = r.people.TeamsOf(user.Name, slices.Concat(user.Spec.Groups, user.Spec.SSOGroups)...)
	user.Status.HasPassword = password != ""
}

func (r *rules) CredentialsOf(user *model.User) string {
	return identity.Owner{Kind: identity.User, Name: user.Name}.String()
}

func (r *rules) Hold(ctx context.Context, user, old *model.User) (release func(), err error) {
	return r.guard.CheckUser(ctx, user, old)
}

func (r *rules) Warn(*model.User) []string { return nil }
