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

// The groups and prefixes with a meaning to the platform. Source: ADR-0005.
const (
	// Admins may see and change the objects of others.
	Admins = "platform:admins"
	// Auditors may see the objects of others, without secrets.
	Auditors = "platform:auditors"
	// TeamPrefix followed by the name of a team is the group of the team's members.
	TeamPrefix = "platform:team:"
	// UserPrefix followed by the name of a user is the group of this user alone.
	UserPrefix = "platform:user:"
	// Authenticated is the group of all callers with a valid credential.
	Authenticated = "platform:authenticated"
	// SubjectPrefix followed by the name of a subject is the username of the subject.
	SubjectPrefix = "platform:subject:"
	// KubernetesPrefix begins the names of the users and groups that each cluster defines itself. No credential gives such
	// a name.
	KubernetesPrefix = "system:"
	// PlatformPrefix begins the names of users and groups that the platform defines.
	PlatformPrefix = "platform:"
	// KubernetesAuthenticated is the name of Authenticated in Kubernetes.
	KubernetesAuthenticated = KubernetesPrefix + "authenticated"
)

// ExtraAccessKey is the key of a user's extra, in reviews and in audit events, that has the name of the access key of the request.
// Source: ADR-0012, ADR-0016.
const ExtraAccessKey = model.GroupName + "/access-key"

// WithoutKubernetes returns a copy without the groups that begin with KubernetesPrefix: the groups that a credential may
// give in a cluster.
func WithoutKubernetes(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return strings.HasPrefix(group, KubernetesPrefix) })
}

// WithoutReserved returns a copy without the groups whose names Kubernetes or the platform reserves.
func WithoutReserved(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return (Owner{Name: group}).Reserved() != "" })
}

// OwnerKind is the kind of an owner.
type OwnerKind string

// The kinds of owners. Source: Spec 2.5 (user, team, subject).
const (
	User    OwnerKind = "user"
	Team    OwnerKind = "team"
	Subject OwnerKind = "subject"
)

// Owner is the user, team or subject that a credential stands for. The zero value means no owner.
type Owner struct {
	Kind OwnerKind
	Name string
}

// OwnerOf returns the owner that an object names in one of its fields user, team and subject. If all are empty, it returns
// the zero Owner.
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

// Fields returns the arguments of OwnerOf: the name in one of the fields, the others empty.
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

// Username returns the username of an owner in clusters: the name of a user unchanged, the name of a team or a subject
// after its prefix. Owners of different kinds have different usernames, unless the name of a user is Reserved.
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

// Reserved returns the reserved prefix that the owner's name begins with: KubernetesPrefix or PlatformPrefix. Empty: the
// name is not reserved. Source: ADR-0022.
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

// OwnerByUsername returns the owner with a Username. The groups, which include the group that follows from the owner's kind,
// distinguish users from subjects in tokens of earlier builds, where both had names without prefixes.
func OwnerByUsername(username string, groups []string) Owner {
	if slices.Contains(groups, UserPrefix+username) {
		return Owner{Kind: User, Name: username}
	}
	if team, isTeam := strings.CutPrefix(username, TeamPrefix); isTeam && slices.Contains(groups, username) {
		return Owner{Kind: Team, Name: team}
	}
	return Owner{Kind: Subject, Name: strings.TrimPrefix(username, SubjectPrefix)}
}

// Caller is the authenticated sender of a request. Slices and pointers are shared: a Caller is never changed.
type Caller struct {
	// Owner is the user, team or subject that the credential stands for.
	Owner Owner
	// OwnerObject identifies the object of the user or team at the time of authentication. nil: the owner has no object.
	// Source: ADR-0029.
	OwnerObject *model.AccessKeyOwner
	// DisplayName is the name of the user or team that is shown. It decides nothing. Empty: there is none, or it is not known.
	DisplayName string
	// Groups are the extra groups of the credential and the groups that follow from the owner, sorted.
	Groups []string
	// Scope is the scope of the credential, which narrows the caller. Nil: it has none. The method Scopes returns all
	// scopes that narrow the caller. Source: Spec 2.3.
	Scope *model.Scope
	// KeyScopes are the current scopes of the keys to which the credential is bound. Each of them narrows the caller as
	// Scope does. Source: ADR-0021.
	KeyScopes []*model.Scope
	// Key is the name of the access key that authenticated the caller.
	Key string
	// Maker is the member of a team who made the key for the team, in the form of Owner.String. Empty: the key is not for a
	// team, or an admin made it. Source: ADR-0047.
	Maker string
	// KeyUID is the uid of the key.
	KeyUID string
	// KeyType is the spec.type of the key.
	KeyType string
	// KeyGranted are the entries of Groups that an admin granted to the key and that its owner does not have. The
	// credentials that the caller makes do not get them. Source: ADR-0029.
	KeyGranted []string
	// KeyNarrowed is true if the key names groups: of the groups that its owner has, the caller has only these. Source:
	// ADR-0029.
	KeyNarrowed bool
	// KeyRecent is true if the key comes from a sign-in within the last hour, and is used in the person's browser. Source:
	// ADR-0021.
	KeyRecent bool
	// KeyExpires is the time at which the key stops working. Zero: never.
	KeyExpires time.Time
	// KeyEnds is true if the key has a ttl of its own. The platform's maximum lifetime, which ends every key, does not
	// count.
	KeyEnds bool
	// KeyRevision is the revision of the key's record that authenticated the caller. 0: unknown.
	KeyRevision int64
	// KeyLineage are the keys that led to the key. The first key made it.
	KeyLineage []model.AccessKeyAncestor
	// Roles are the roles of the caller in projects, by the name of the project. Admins of the platform have none: they need none.
	// Source: ADR-0037.
	Roles map[string]string
	// KeyOwned is true if the key ends when the objects that own it are gone.
	KeyOwned bool
	// ExplainAll is true if decisions about the caller name everything that permits a request, and not the first of it alone. Source:
	// ADR-0057.
	ExplainAll bool
}

// Scopes returns all scopes that narrow the caller, the scope of the credential first. Each of them must permit a request.
// Empty: the caller is not narrowed.
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

// Bounds reports whether the credentials that the caller makes end with the caller's key. They do if the key has a scope or
// an end, if it is bound to another key or to the objects that own it, or if it is a refresh token. The end of a recent
// sign-in does not count, because the person is present. Source: ADR-0021, ADR-0045.
func (c Caller) Bounds() bool {
	ends := !c.KeyExpires.IsZero()
	if c.KeyType == model.AccessKeyTypeLogin {
		ends = !c.KeyRecent
	}
	return c.Scope != nil || ends || c.KeyOwned || c.KeyType == model.AccessKeyTypeOIDCRefreshToken || c.isBound()
}

// Person returns the user, in the form of Owner.String, to whose shares and limits the request counts: the user who made
// the key of a team, else the owner. All keys that a person made for teams count to this person. Source: ADR-0047.
func (c Caller) Person() string {
	if c.Maker != "" {
		return c.Maker
	}
	return c.Owner.String()
}

// Lasts reports whether the caller's credential works until it is revoked: it has no ttl of its own and is bound to no
// other key. The key of a sign-in counts as well, because the person can sign in again. Source: ADR-0047.
func (c Caller) Lasts() bool {
	ends := c.KeyEnds && c.KeyType != model.AccessKeyTypeLogin
	return !ends && !c.KeyOwned && c.KeyType != model.AccessKeyTypeOIDCRefreshToken && !c.isBound()
}

// isBound reports whether the caller's key ends with another key.
func (c Caller) isBound() bool {
	return slices.ContainsFunc(c.KeyLineage, func(ancestor model.AccessKeyAncestor) bool { return ancestor.Bounds })
}

// SameRights reports whether two authentications gave the same rights. It ignores the name that is shown, the age and the end of the
// key and the revision of its record: these can change while the rights stay the same.
func (c Caller) SameRights(other Caller) bool {
	c.DisplayName, other.DisplayName = "", ""
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
func (c Caller) Admin() bool { return c.InGroup(Admins) }

// ForVerb returns the caller of a request with a verb. For get, list and watch, an auditor sees what an admin sees. Source:
// ADR-0047.
func (c Caller) ForVerb(verb string) Caller {
	if !c.InGroup(Auditors) || c.Admin() || verb != "get" && verb != "list" && verb != "watch" {
		return c
	}
	c.Groups = append(slices.Clone(c.Groups), Admins)
	slices.Sort(c.Groups)
	return c
}

// WithoutAdmin returns the caller without the groups of admins and auditors. The roles of the caller are unknown then.
func (c Caller) WithoutAdmin() Caller {
	c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(group string) bool { return group == Admins || group == Auditors })
	return c
}

// InGroup reports whether the caller has a group.
func (c Caller) InGroup(group string) bool {
	_, found := slices.BinarySearch(c.Groups, group)
	return found
}

// Administers reports whether the caller may do everything in a project. No caller administers the project without a name.
// Source: ADR-0037.
func (c Caller) Administers(project string) bool {
	return project != "" && c.Roles[project] == model.ProjectRoleAdmin || c.Admin()
}

// Owners returns the owners whose objects belong to the caller, in the form of Owner.String: the caller and their teams.
// Nil, for an admin, means all owners.
func (c Caller) Owners() []string {
	if c.Admin() {
		return nil
	}
	return c.Self()
}

// Self returns the caller and their teams, in the form of Owner.String. Admins are not members of every team.
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
