// Package directory returns the current rights of the owners of credentials: whether a user or a team may use the
// platform, and which groups they have. It reads users and teams as they are stored and decides nothing else. Source:
// ADR-0029.
package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// The resources of users, teams and projects.
const (
	Users    = "users"
	Teams    = "teams"
	Projects = "projects"
)

// Mode is the resource that says whether every owner of a credential must have an object. Its first record makes that
// so, permanently. Source: ADR-0033.
const Mode = "peoplemode"

// maxUsers is the number of users that a process keeps decoded, each with the groups that teams give.
const maxUsers = 1024

// The reasons for which the credentials of an owner do not work.
var (
	// ErrDisabled means that the user or team is disabled.
	ErrDisabled = errors.New("the owner of the credential is disabled")
	// ErrGone means that the user or team is being deleted, or is another one than the credential was made for.
	ErrGone = errors.New("the owner of the credential no longer exists")
	// ErrAbsent means that there is no such user or team, and that the platform requires one. Source: ADR-0033.
	ErrAbsent = errors.New("the owner of the credential is neither a user nor a team of the platform")
	// ErrSignedOut means that the user has ended all earlier credentials.
	ErrSignedOut = errors.New("the owner of the credential has ended it")
)

// Directory has the users and teams of the platform, and the roles that they have in projects. It is safe for concurrent use.
type Directory struct {
	users    store.Store
	decoded  *lru.Cache[string, decodedUser]
	teams    snapshots[person, teams]
	projects snapshots[project, projects]
	mode     store.Store
	// strict is true once the process has read that every owner must have an object.
	strict atomic.Bool
	// written is true once the process has read that there are or were users or teams.
	written atomic.Bool
}

// decodedUser is a user at a revision.
type decodedUser struct {
	revision int64
	user     *person
}

// person has the fields of model.User and model.Team that decide about rights, and the name that is shown.
type person struct {
	Metadata struct {
		UID               string       `json:"uid"`
		CreationTimestamp metav1.Time  `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		DisplayName     string              `json:"displayName"`
		Users           []string            `json:"users"`
		Groups          []string            `json:"groups"`
		SSOGroups       []string            `json:"ssoGroups"`
		ClusterRoles    []model.ClusterRole `json:"clusterRoles"`
		Disabled        bool                `json:"disabled"`
		TokenGeneration int64               `json:"tokenGeneration"`
	} `json:"spec"`

	// groups are the user's groups, with the teams for which they were computed last.
	groups atomic.Pointer[groupsAt]
}

// groupsAt are the groups of a user with the teams at a revision.
type groupsAt struct {
	teams  *teams
	groups []string
}

// Admins reports whether the roles make their holder an admin.
func Admins(roles []model.ClusterRole) bool {
	return slices.ContainsFunc(roles, func(role model.ClusterRole) bool { return role.Name == model.ClusterRoleAdmin })
}

// roleGroups returns the groups that cluster roles give.
func roleGroups(roles []model.ClusterRole) []string {
	var groups []string
	for _, role := range roles {
		switch role.Name {
		case model.ClusterRoleAdmin:
			groups = append(groups, identity.Admins)
		case model.ClusterRoleAuditor:
			groups = append(groups, identity.Auditors)
		}
	}
	return groups
}

// refusal returns why the credentials of a user or a team do not work; nil if they work.
func (p *person) refusal() error {
	switch {
	case p.Metadata.DeletionTimestamp != nil:
		return ErrGone
	case p.Spec.Disabled:
		return ErrDisabled
	default:
		return nil
	}
}

// New returns the directory of the users, teams and projects in three stores. Mode is the store of the resource Mode.
func New(users, teamsIn, projectsIn, mode store.Store) *Directory {
	// The only error is a size below one.
	decoded, _ := lru.New[string, decodedUser](maxUsers)
	return &Directory{
		users: users, mode: mode, decoded: decoded,
		teams:    snapshots[person, teams]{store: teamsIn, resource: Teams, view: newTeams},
		projects: snapshots[project, projects]{store: projectsIn, resource: Projects, view: newProjects},
	}
}

// Open returns the directory of an environment.
//
//go:noinline
func Open(env *platform.Environment) *Directory {
	return platform.Single(env, func(env *platform.Environment) *Directory {
		return New(env.Stores(Users), env.Stores(Teams), env.Stores(Projects), env.Stores(Mode))
	})
}

// The revisions of users, of teams, of projects and of the mode.
var (
	revisionOfUsers, revisionOfTeams   = store.Ref{Resource: Users}, store.Ref{Resource: Teams}
	revisionOfProjects, revisionOfMode = store.Ref{Resource: Projects}, store.Ref{Resource: Mode}
)

// Refs returns the records to read before StateOf can answer for some owners: each user among them once, and the revisions
// of teams and projects. Until the process has read a user or a team, it includes the revision of the users, which
// tells only whether there are any. Until the process has read that every owner must have an object, it includes the
// revision of the mode.
func (d *Directory) Refs(owners ...identity.Owner) []store.Ref {
	refs := make([]store.Ref, 2, 4+len(owners))
	refs[0], refs[1] = revisionOfTeams, revisionOfProjects
	if !d.strict.Load() {
		refs = append(refs, revisionOfMode)
	}
	if d.Empty() {
		refs = append(refs, revisionOfUsers)
	}
	for _, owner := range owners {
		if ref := (store.Ref{Resource: Users, Name: owner.Name}); owner.Kind == identity.User && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Prepare reads the teams and projects concurrently if the process does not have them yet. It may run beside the first
// request. It returns no error: StateOf reads what is missing.
func (d *Directory) Prepare(ctx context.Context) {
	var both sync.WaitGroup
	if d.teams.latest() == nil {
		both.Go(func() { _, _ = d.teams.readRevision(ctx, 0) })
	}
	if d.projects.latest() == nil {
		both.Go(func() { _, _ = d.projects.readRevision(ctx, 0) })
	}
	both.Wait()
}

// IsPrepared reports whether the process has the teams and projects.
func (d *Directory) IsPrepared() bool { return d.teams.latest() != nil && d.projects.latest() != nil }

// Empty reports whether there was no user and no team when the last request was authenticated, and owners need none.
func (d *Directory) Empty() bool { return !d.written.Load() && !d.strict.Load() }

// Strict reports whether every owner must have an object. It reads the mode until the process has read that they must.
// It returns the store's errors.
func (d *Directory) Strict(ctx context.Context) (bool, error) {
	if d.strict.Load() {
		return true, nil
	}
	read, err := d.users.GetRefs(ctx, revisionOfMode)
	if err != nil {
		return false, fmt.Errorf("reading whether every owner needs an object: %w", err)
	}
	d.note(read)
	return d.strict.Load(), nil
}

// RequireObjects makes the platform require an object of every owner, permanently: it refuses a credential whose user or team
// does not exist, from the next request on. It may be called again. It returns the store's errors.
func (d *Directory) RequireObjects(ctx context.Context, now time.Time) error {
	if _, err := d.mode.Create(ctx, store.Record{Name: "strict", Created: now, Object: []byte("{}")}); err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("noting that every owner needs an object: %w", err)
	}
	return nil
}

// note remembers a record of the mode.
func (d *Directory) note(read map[store.Ref]store.Record) {
	if !d.strict.Load() && read[revisionOfMode].Revision > store.Beginning {
		d.strict.Store(true)
	}
}

// stateWithoutObject returns the state of an owner without an object.
func (d *Directory) stateWithoutObject() (State, error) {
	if d.strict.Load() {
		return State{}, ErrAbsent
	}
	return State{}, nil
}

// State has the rights of an owner at a moment.
type State struct {
	// Managed reports whether the owner has an object. The rights of an owner without an object are the rights in the
	// credential.
	Managed bool
	// UID is the uid of the object, and Generation its spec.tokenGeneration.
	UID        string
	Generation int64
	// DisplayName is the name of the owner that is shown. Empty: there is none.
	DisplayName string
	// Groups are the groups that the object gives, sorted. The slice is shared.
	Groups []string
}

// Has reports whether the owner has a group.
func (s State) Has(group string) bool {
	_, found := slices.BinarySearch(s.Groups, group)
	return found
}

// StateOf returns the state of an owner, from the records of Refs for that owner. It reads the teams and the projects again
// if the process has older ones.
//
// Errors: ErrDisabled, ErrGone and ErrAbsent; the store's errors.
func (d *Directory) StateOf(ctx context.Context, owner identity.Owner, read map[store.Ref]store.Record) (State, error) {
	revision, asked := read[revisionOfTeams]
	if !asked {
		return State{}, errors.New("the revision of the teams was not read")
	}
	d.note(read)
	if !d.written.Load() && (read[revisionOfUsers].Revision > store.Beginning || revision.Revision > store.Beginning) {
		d.written.Store(true)
	}
	teams, err := d.teams.readRevision(ctx, revision.Revision)
	if err != nil {
		return State{}, err
	}
	if _, err := d.projects.readRevision(ctx, read[revisionOfProjects].Revision); err != nil {
		return State{}, err
	}
	if owner.Kind == identity.Team {
		if state, err := teams.stateOf(owner.Name); state.Managed || err != nil {
			return state, err
		}
		return d.stateWithoutObject()
	}
	if owner.Kind == identity.Subject {
		return State{}, nil
	}
	record, exists := read[store.Ref{Resource: Users, Name: owner.Name}]
	if !exists {
		return d.stateWithoutObject()
	}
	user, err := d.user(record)
	if err != nil {
		return State{}, err
	}
	if err := user.refusal(); err != nil {
		return State{}, err
	}
	return State{
		Managed: true, UID: user.Metadata.UID, Generation: user.Spec.TokenGeneration, DisplayName: user.Spec.DisplayName,
		Groups: teams.groupsOf(owner.Name, user),
	}, nil
}

// TeamsOf returns the names of the enabled teams of a user who has these groups, sorted. The teams are as they were
// when the process authenticated its last request.
func (d *Directory) TeamsOf(name string, groups ...string) []string {
	now := d.teams.latest()
	if now == nil {
		return nil
	}
	member := now.teamsOf(name, groups)
	slices.Sort(member)
	return slices.Compact(member)
}

// CreationTimes returns the creation times of the users and teams of a caller, by the owner in the form of
// identity.Owner.String. It leaves out owners without an object, and returns none for an admin. It returns the store's
// errors.
func (d *Directory) CreationTimes(ctx context.Context, caller identity.Caller) (map[string]time.Time, error) {
	if caller.Admin() {
		return nil, nil
	}
	read, err := d.Read(ctx, caller.Owner)
	if err != nil {
		return nil, fmt.Errorf("reading when the owners of audit events were made: %w", err)
	}
	created := map[string]time.Time{}
	if record, exists := read[store.Ref{Resource: Users, Name: caller.Owner.Name}]; exists && caller.Owner.Kind == identity.User {
		created[caller.Owner.String()] = record.Created
	}
	teams, err := d.teams.readRevision(ctx, read[revisionOfTeams].Revision)
	if err != nil {
		return nil, err
	}
	for _, owner := range caller.Self() {
		name, isTeam := strings.CutPrefix(owner, string(identity.Team)+":")
		if team := teams.byName[name]; isTeam && team != nil {
			created[owner] = team.Metadata.CreationTimestamp.Time
		}
	}
	return created, nil
}

// GroupsWithoutTeam returns the groups that no team lists now. Teams that are disabled, or being deleted, count too. It costs a
// round trip. It returns the store's errors.
func (d *Directory) GroupsWithoutTeam(ctx context.Context, groups []string) ([]string, error) {
	read, err := d.users.GetRefs(ctx, revisionOfTeams)
	if err != nil {
		return nil, fmt.Errorf("reading the revision of the teams: %w", err)
	}
	now, err := d.teams.readRevision(ctx, read[revisionOfTeams].Revision)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(groups)
	for _, team := range now.byName {
		left = slices.DeleteFunc(left, func(group string) bool { return slices.Contains(team.Spec.Groups, group) })
	}
	return left, nil
}

// user returns the user of a record, and keeps it decoded.
func (d *Directory) user(record store.Record) (*person, error) {
	if known, ok := d.decoded.Get(record.Name); ok && known.revision == record.Revision {
		return known.user, nil
	}
	user, err := decode[person](record)
	if err != nil {
		return nil, err
	}
	d.decoded.Add(record.Name, decodedUser{record.Revision, user})
	return user, nil
}

// Read reads the records of Refs for some owners, in one round trip. It returns the store's errors.
func (d *Directory) Read(ctx context.Context, owners ...identity.Owner) (map[store.Ref]store.Record, error) {
	return d.users.GetRefs(ctx, d.Refs(owners...)...)
}

// CheckCredential returns why a credential of an owner in a state does not work; nil if it works. Made is what the credential
// notes about its owner at its creation; nil: nothing.
//
// Errors: ErrGone and ErrSignedOut.
func (s State) CheckCredential(made *model.AccessKeyOwner) error {
	switch {
	case made != nil && made.UID != s.UID:
		return ErrGone
	case s.Generation > 0 && (made == nil || made.Generation < s.Generation):
		return ErrSignedOut
	default:
		return nil
	}
}
