package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Account is a user or a team of the platform whose credentials work.
type Account struct {
	Owner identity.Owner
	State State
}

// Caller returns the caller whom a credential of the account without a scope authenticates.
func (a Account) Caller() identity.Caller {
	caller := identity.New(a.Owner, a.State.Groups)
	if a.State.Managed {
		caller.OwnerObject = &model.AccessKeyOwner{UID: a.State.UID, Generation: a.State.Generation}
	}
	return caller
}

// Teams returns the names of the account's teams, sorted.
func (a Account) Teams() []string {
	var names []string
	for _, group := range a.State.Groups {
		if team, ok := strings.CutPrefix(group, identity.TeamPrefix); ok {
			names = append(names, team)
		}
	}
	return names
}

// Accounts returns the teams, and then the users, whose credentials work now, each in order of names. It reads all users. While owners
// need no object, the members of a project and the other given owners count as well. It returns the store's errors. Source: ADR-0057.
func (d *Directory) Accounts(ctx context.Context, project string, others ...identity.Owner) ([]Account, error) {
	read, err := d.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the revision of the teams: %w", err)
	}
	projects, err := d.projects.readRevision(ctx, read[revisionOfProjects].Revision)
	if err != nil {
		return nil, err
	}
	var accounts []Account
	known := map[identity.Owner]bool{}
	for _, kind := range []identity.OwnerKind{identity.Team, identity.User} {
		from := d.users
		if kind == identity.Team {
			from = d.teams.store
		}
		for record, err := range store.Each(ctx, from, store.Query{}) {
			if err != nil {
				return nil, fmt.Errorf("reading users and teams: %w", err)
			}
			owner := identity.Owner{Kind: kind, Name: record.Name}
			known[owner] = true
			account, err := d.account(ctx, owner, record, read)
			if errors.Is(err, ErrDisabled) || errors.Is(err, ErrGone) {
				continue
			}
			if err != nil {
				return nil, err
			}
			accounts = append(accounts, account)
		}
	}
	if d.strict.Load() {
		return accounts, nil
	}
	for _, owner := range slices.Concat(projects.members(project), others) {
		if !known[owner] && (owner.Kind == identity.User || owner.Kind == identity.Team) {
			known[owner] = true
			accounts = append(accounts, Account{Owner: owner})
		}
	}
	slices.SortFunc(accounts, func(x, y Account) int {
		return cmp.Or(cmp.Compare(x.Owner.Kind, y.Owner.Kind), cmp.Compare(x.Owner.Name, y.Owner.Name))
	})
	return accounts, nil
}

// account returns the account of a user or a team with a record.
func (d *Directory) account(ctx context.Context, owner identity.Owner, record store.Record, read map[store.Ref]store.Record) (Account, error) {
	known := map[store.Ref]store.Record{{Resource: Users, Name: record.Name}: record}
	for _, revision := range []store.Ref{revisionOfTeams, revisionOfProjects, revisionOfUsers, revisionOfMode} {
		known[revision] = read[revision]
	}
	state, err := d.StateOf(ctx, owner, known)
	if err != nil {
		return Account{}, err
	}
	return Account{Owner: owner, State: state}, nil
}
