// Package identity describes callers: the owner that a credential stands for, its groups, and the scope that narrows
// it. It decides nothing; package auth does. Source: Spec 2.5, 5; ADR-0005.
package identity

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"management.platform.sh/shared/model"
)

// The groups that carry meaning here. Source: ADR-0005.
const (
	// Admins may see and change the objects of others.
	Admins = "platform:admins"
	// Auditors may see the objects of others, without secrets.
	Auditors = "platform:auditors"
	// TeamPrefix and a team's name is the group of the team's members.
	TeamPrefix = "platform:team:"
	// UserPrefix and a user's name is the group of that user alone.
	UserPrefix = "platform:user:"
	// Authenticated is the group of everybody with a valid credential.
	Authenticated = "platform:authenticated"
	// SubjectPrefix and a subject's name is the username of the subject.
	SubjectPrefix = "platform:subject:"
	// KubernetesPrefix begins the names of users and groups that each cluster gives itself. No credential gives them.
	KubernetesPrefix = "system:"
	// PlatformPrefix begins the names of users and groups that the platform gives.
	PlatformPrefix = "platform:"
	// KubernetesAuthenticated is the same as Authenticated, under the name that Kubernetes gives it.
	KubernetesAuthenticated = KubernetesPrefix + "authenticated"
)

// WithoutKubernetes returns the groups that a credential may give in a cluster: all but those of KubernetesPrefix. The
// slice is a copy.
func WithoutKubernetes(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return strings.HasPrefix(group, KubernetesPrefix) })
}

// WithoutReserved returns the groups that neither a cluster nor the platform gives by itself. The slice is a copy.
func WithoutReserved(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return (Owner{Name: group}).Reserved() != "" })
}

// OwnerKind tells what an owner is.
type OwnerKind string

// The kinds of owners. Source: Spec 2.5 (user, team, subject).
const (
	User    OwnerKind = "user"
	Team    OwnerKind = "team"
	Subject OwnerKind = "subject"
)

// Owner is the user, team or subject that a credential stands for. The zero value is nobody.
type Owner struct {
	Kind OwnerKind
	Name string
}

// OwnerOf is the owner that an object names in one of its fields user, team and subject; nobody where all are empty.
func OwnerOf(user, team, subject string) Owner {
	switch {
	case user != "":
		return Owner{Kind: User, Name: user}
	case team != "":
		return Owner{Kind: Team, Name: team}
	case subject != "":
		return Owner{Kind: Subject, Name: subject}
	default:
		return Owner{}
	}
}

// Fields are the fields of OwnerOf: the name in one of them.
func (o Owner) Fields() (user, team, subject string) {
	switch o.Kind {
	case User:
		user = o.Name
	case Team:
		team = o.Name
	case Subject:
		subject = o.Name
	}
	return user, team, subject
}

// String returns "kind:name", as the store indexes it.
func (o Owner) String() string { return string(o.Kind) + ":" + o.Name }

// Username is the name that clusters know an owner by: that of a user as it is, those of teams and subjects behind their
// prefixes. Owners of different kinds have different usernames, unless the name of a user is Reserved.
func (o Owner) Username() string {
	switch o.Kind {
	case Team:
		return TeamPrefix + o.Name
	case Subject:
		return SubjectPrefix + o.Name
	case User:
	}
	return o.Name
}

// Reserved returns the prefix for which an owner may not have its name: that of the names that clusters give, or that of the
// names that the platform gives. Empty: the name is not reserved. Source: ADR-0022.
func (o Owner) Reserved() string {
	for _, prefix := range []string{KubernetesPrefix, PlatformPrefix} {
		if strings.HasPrefix(o.Name, prefix) {
			return prefix
		}
	}
	return ""
}

// ReservedText says why a name that begins with a reserved prefix is refused.
func ReservedText(prefix string) string {
	if prefix == KubernetesPrefix {
		return "names that begin with " + prefix + " belong to Kubernetes"
	}
	return "names that begin with " + prefix + " belong to the platform"
}

// Named returns the owner with that Username. The groups, which include those that follow from the owner's kind, tell
// users and subjects apart in tokens of earlier builds, where both had their plain names.
func Named(username string, groups []string) Owner {
	if slices.Contains(groups, UserPrefix+username) {
		return Owner{Kind: User, Name: username}
	}
	if team, isTeam := strings.CutPrefix(username, TeamPrefix); isTeam && slices.Contains(groups, username) {
		return Owner{Kind: Team, Name: team}
	}
	return Owner{Kind: Subject, Name: strings.TrimPrefix(username, SubjectPrefix)}
}

// Caller is who sent a request. Slices and pointers are shared: a Caller is never changed.
type Caller struct {
	// Owner is the user, team or subject that the credential stands for.
	Owner Owner
	// OwnerObject is the user or the team as it was when the caller was authenticated. nil: the owner has no object. Source: ADR-0029.
	OwnerObject *model.AccessKeyOwner
	// Groups are the extra groups of the credential and the ones that follow from the owner, sorted.
	Groups []string
	// Scope is that of the credential and narrows the caller; nil does not. Scopes are all that do. Source: Spec 2.3.
	Scope *model.Scope
	// KeyScopes are the present scopes of the keys to which the credential is bound. Each of them narrows the caller as Scope
	// does. Source: ADR-0021.
	KeyScopes []*model.Scope
	// Key is the name of the access key that authenticated the caller.
	Key string
	// Maker is the user who made that key for a team of theirs, in the form of Owner.String. Empty: the key is their own, or an admin made
	// it. Source: ADR-0047.
	Maker string
	// KeyUID is that key's uid.
	KeyUID string
	// KeyType is that key's spec.type.
	KeyType string
	// KeyGranted are those of Groups that an admin granted to the key and that its owner does not have. They are the key's alone: what
	// the caller makes does not have them. Source: ADR-0029.
	KeyGranted []string
	// KeyNarrowed tells that the key names groups: of the groups that its owner has, the caller has only these. Source: ADR-0029.
	KeyNarrowed bool
	// KeyRecent tells that the key is that of a sign-in within the last hour, in a browser before the person. Source: ADR-0021.
	KeyRecent bool
	// KeyExpires is when that key stops working. Zero: never.
	KeyExpires time.Time
	// KeyEnds tells that the key has a ttl of its own. A limit of the platform, which ends every key, does not count.
	KeyEnds bool
	// KeyRevision is the revision of that key's record with which the caller was authenticated. 0: unknown.
	KeyRevision int64
	// KeyLineage are the keys that made that key, the nearest first.
	KeyLineage []model.AccessKeyAncestor
	// Roles are the roles of the caller in projects, by the name of the project. Admins of the platform have none: they need none.
	// Source: ADR-0037.
	Roles map[string]string
	// KeyOwned tells that the key ends when the objects that own it are gone.
	KeyOwned bool
}

// Scopes returns all scopes that narrow the caller, that of the credential first: a request must be permitted by each of
// them. Empty: none does.
func (c Caller) Scopes() []*model.Scope {
	if c.Scope == nil {
		return c.KeyScopes
	}
	return append([]*model.Scope{c.Scope}, c.KeyScopes...)
}

// WithScopes returns the caller with other scopes.
func (c Caller) WithScopes(scopes []*model.Scope) Caller {
	c.Scope, c.KeyScopes = nil, scopes
	return c
}

// Bounds reports whether what the caller makes ends with the caller's key: the key has a scope or an end, or it is itself
// bound to another key or to its owners, or it is a refresh key. The end of a recent sign-in does not count: the person is there.
// Source: ADR-0021, ADR-0045.
func (c Caller) Bounds() bool {
	ends := !c.KeyExpires.IsZero()
	if c.KeyType == model.AccessKeyTypeLogin {
		ends = !c.KeyRecent
	}
	return c.Scope != nil || ends || c.KeyOwned || c.KeyType == model.AccessKeyTypeOIDCRefreshToken || c.bound()
}

// Person is who has shares and limits together with the caller, in the form of Owner.String: the user who made the key of a team, else the
// owner. The keys of one person's teams are one person. Source: ADR-0047.
func (c Caller) Person() string {
	if c.Maker != "" {
		return c.Maker
	}
	return c.Owner.String()
}

// Lasts reports whether the caller's credential works until somebody ends it: it has no ttl of its own and is bound to no other key. A person
// who has signed in counts as well, because they can do so again. Source: ADR-0047.
func (c Caller) Lasts() bool {
	ends := c.KeyEnds && c.KeyType != model.AccessKeyTypeLogin
	return !ends && !c.KeyOwned && c.KeyType != model.AccessKeyTypeOIDCRefreshToken && !c.bound()
}

// bound reports whether the caller's key ends with another one.
func (c Caller) bound() bool {
	return slices.ContainsFunc(c.KeyLineage, func(ancestor model.AccessKeyAncestor) bool { return ancestor.Bounds })
}

// Same reports whether two authentications gave the same rights. The age and the end of the key and the revision of its record do not
// count: a key can be changed without a change of its rights.
func (c Caller) Same(other Caller) bool {
	c.KeyRecent, other.KeyRecent = false, false
	c.KeyExpires, other.KeyExpires = time.Time{}, time.Time{}
	c.KeyRevision, other.KeyRevision = 0, 0
	return reflect.DeepEqual(c, other)
}

// New returns the caller for an owner with extra groups.
func New(owner Owner, extra []string) Caller {
	groups := append([]string{Authenticated, KubernetesAuthenticated}, extra...)
	switch owner.Kind {
	case User:
		groups = append(groups, UserPrefix+owner.Name)
	case Team:
		groups = append(groups, TeamPrefix+owner.Name)
	case Subject:
	}
	slices.Sort(groups)
	return Caller{Owner: owner, Groups: slices.Compact(groups)}
}

// Admin reports whether the caller may see and change the objects of others. The scope still applies.
func (c Caller) Admin() bool { return c.In(Admins) }

// For returns the caller of a request with a verb: an auditor who reads sees what an admin sees. Source: ADR-0047.
func (c Caller) For(verb string) Caller {
	if !c.In(Auditors) || c.Admin() || verb != "get" && verb != "list" && verb != "watch" {
		return c
	}
	c.Groups = append(slices.Clone(c.Groups), Admins)
	slices.Sort(c.Groups)
	return c
}

// In reports whether the caller has a group.
func (c Caller) In(group string) bool {
	_, found := slices.BinarySearch(c.Groups, group)
	return found
}

// Administers reports whether the caller may do everything in a project. Nobody administers the project without a name.
// Source: ADR-0037.
func (c Caller) Administers(project string) bool {
	return project != "" && c.Roles[project] == model.ProjectRoleAdmin || c.Admin()
}

// Owners are the owners whose objects belong to the caller, the caller and their teams, in the form of Owner.String.
// Nil, for an admin, means everybody.
func (c Caller) Owners() []string {
	if c.Admin() {
		return nil
	}
	return c.Self()
}

// Self are the caller and their teams, in the form of Owner.String. Admins are no members of each team.
func (c Caller) Self() []string {
	owners := []string{c.Owner.String()}
	for _, group := range c.Groups {
		if team, ok := strings.CutPrefix(group, TeamPrefix); ok && team != "" {
			owners = append(owners, Owner{Kind: Team, Name: team}.String())
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// Owns reports whether the objects of an owner belong to the caller, or the caller is an admin.
func (c Caller) Owns(owner string) bool {
	owners := c.Owners()
	return owners == nil || slices.Contains(owners, owner)
}
