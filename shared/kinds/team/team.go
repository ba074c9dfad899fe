// Package team has the rules of teams: the fields of a team, and who sees and changes it. Source: Spec 5.4; ADR-0029.
package team

import (
	"context"
	"io"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/kinds/membership"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// maxUsers bounds the users that a team lists. Source: ADR-0029.
const maxUsers = 4096

var specPath = field.NewPath("spec")

// Registry has the teams and their state.
type Registry = resource.Registry[*model.Team]

// Definition is the resource teams. Source: ADR-0029.
var Definition = &resource.Definition[*model.Team]{
	Resource:   model.SchemeGroupVersion.WithResource("teams"),
	Kind:       "Team",
	Singular:   "team",
	ShortNames: []string{"tm"},
	ReadAhead:  true,
	NamePrefix: "team-",
	KeysAt:     accesskey.Subresource,
	New:        func() *model.Team { return &model.Team{} },
	NewList: func(meta metav1.ListMeta, items []*model.Team) runtime.Object {
		return &model.TeamList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns:     columns,
	Cells:       cells,
	NamesPeople: true,
	Origin:      func(team *model.Team) *model.Origin { return &team.Status.Origin },
	Fields: func(team *model.Team) fields.Set {
		return fields.Set{"spec.disabled": strconv.FormatBool(team.Spec.Disabled)}
	},
}

// NewRegistry returns the teams in a store. Guard keeps the last admin.
func NewRegistry(state store.Store, now func() time.Time, random io.Reader, guard *lastadmin.Guard) *Registry {
	own := &rules{guard: guard}
	return &Registry{Definition: Definition, Store: state, Now: now, Random: random, Strategy: resource.Strategy[*model.Team]{
		Rules: own, Visibility: own, Permissions: own, CredentialOwner: own, Invariant: own,
	}}
}

type rules struct{ guard *lastadmin.Guard }

// Sees implements resource.Visibility: members see their teams.
func (r *rules) Sees(caller identity.Caller, team *model.Team) auth.Decision {
	switch {
	case caller.Admin():
		return auth.PermittedAdmin
	case caller.InGroup(identity.TeamPrefix + team.Name):
		return auth.Decision{Allowed: true, Source: auth.SourceOwner, Reason: "member of the team"}
	default:
		return auth.Decision{Hidden: true}
	}
}

func (r *rules) SeenBy() string { return "their members and members of " + identity.Admins }

// Permits implements resource.Permissions: admins may write teams, and members may create access keys of their teams.
func (r *rules) Permits(caller identity.Caller, verb, subresource string, team *model.Team) auth.Decision {
	switch {
	case caller.Admin():
		return auth.PermittedAdmin
	case subresource == accesskey.Subresource:
		return r.Sees(caller, team)
	}
	return auth.Decision{Reason: "only members of " + identity.Admins + " may " + verb + " teams"}
}

// Default removes what clients cannot write.
func (r *rules) Default(_ identity.Caller, team, _ *model.Team) { team.Status = model.TeamStatus{} }

// Validate returns everything that is wrong with a team.
func (r *rules) Validate(team, _ *model.Team) field.ErrorList {
	problems := membership.ValidateOwners(len(team.OwnerReferences))
	if prefix := (identity.Owner{Kind: identity.Team, Name: team.Name}).Reserved(); prefix != "" {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), team.Name, identity.ReservedText(prefix)))
	}
	problems = append(problems, resource.ValidateTexts(team.Spec.DisplayName, "", specPath)...)
	problems = append(problems, validateUsers(team.Spec.Users)...)
	problems = append(problems, membership.ValidateGroups(team.Spec.Groups, specPath.Child("groups"))...)
	return append(problems, membership.ValidateRoles(team.Spec.ClusterRoles, specPath.Child("clusterRoles"))...)
}

func validateUsers(users []string) field.ErrorList {
	path := specPath.Child("users")
	if len(users) > maxUsers {
		return field.ErrorList{field.TooMany(path, len(users), maxUsers)}
	}
	var problems field.ErrorList
	seen := make(map[string]bool, len(users))
	for i, user := range users {
		if seen[user] {
			problems = append(problems, field.Duplicate(path.Index(i), user))
			continue
		}
		seen[user] = true
		for _, why := range utilvalidation.IsDNS1123Subdomain(user) {
			problems = append(problems, field.Invalid(path.Index(i), user, "must be the name of a user: "+why))
		}
	}
	return problems
}

// Grants returns which users and groups are members, and what members have.
func (r *rules) Grants(team *model.Team) []auth.Grant {
	var grants []auth.Grant
	for _, user := range team.Spec.Users {
		grants = append(grants, auth.PermanentGrant(specPath.Child("users"), "member").WithRecipient(identity.Owner{Kind: identity.User, Name: user}))
	}
	for _, group := range team.Spec.Groups {
		grants = append(grants, auth.PermanentGrant(specPath.Child("groups"), group))
	}
	return append(grants, membership.Grants(team.Spec.ClusterRoles, team.Spec.Disabled, specPath)...)
}

// Authorize refuses nothing: only admins write teams.
func (r *rules) Authorize(identity.Caller, *model.Team, *model.Team) field.ErrorList { return nil }

// Seal has no secret to remove.
func (r *rules) Seal(*model.Team, store.Record) (resource.Sealed[*model.Team], field.ErrorList) {
	return resource.Sealed[*model.Team]{}, nil
}

// Index returns no owner: admins write teams, so no owner's quota counts teams. Teams never expire.
func (r *rules) Index(*model.Team, time.Time) (owner string, expires time.Time) {
	return "", time.Time{}
}

// Observe fills in nothing: the status is empty.
func (r *rules) Observe(*model.Team, store.Record) {}

func (r *rules) CredentialsOf(team *model.Team) string {
	return identity.Owner{Kind: identity.Team, Name: team.Name}.String()
}

func (r *rules) Hold(ctx context.Context, team, old *model.Team) (release func(), err error) {
	return r.guard.CheckTeam(ctx, team, old)
}

func (r *rules) Warn(*model.Team) []string { return nil }
