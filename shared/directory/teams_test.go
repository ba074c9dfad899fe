package directory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// A process forgets the teams of a write that the state has lost: a server that takes over may have an older copy of it. Source:
// ADR-0041.
func TestTeamsOfLostWrites(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := redistest.Open(t, server.URL())
	options, err := redis.ParseURL(server.URL())
	must(t, err)
	raw := redis.NewClient(options)
	defer raw.Close()
	users, teams := client.Resource(directory.Users), client.Resource(directory.Teams)
	directory := directory.New(users, teams, client.Resource(directory.Projects), client.Resource(directory.Mode))
	ana := identity.Owner{Kind: identity.User, Name: "ana"}
	member := func() bool {
		t.Helper()
		read, err := directory.Read(t.Context(), ana)
		must(t, err)
		state, err := directory.StateOf(t.Context(), ana, read)
		must(t, err)
		return slices.Contains(state.Groups, identity.TeamPrefix+"night")
	}
	_, err = users.Create(t.Context(), store.Record{Name: "ana", Created: time.Unix(1, 0), Object: []byte(`{"metadata":{"uid":"1"}}`)})
	must(t, err)
	team := store.Record{Name: "night", Created: time.Unix(1, 0), Object: []byte(`{"metadata":{"uid":"2"},"spec":{"users":[]}}`)}
	team.Revision, err = teams.Create(t.Context(), team)
	must(t, err)
	if member() {
		t.Fatal("ana is a member of a team without members")
	}

	keys, err := raw.Keys(t.Context(), "*").Result()
	must(t, err)
	older := map[string]string{}
	for _, key := range keys {
		older[key], err = raw.Dump(t.Context(), key).Result()
		must(t, err)
	}
	team.Object = []byte(`{"metadata":{"uid":"2"},"spec":{"users":["ana"]}}`)
	_, err = teams.Update(t.Context(), team)
	must(t, err)
	if !member() {
		t.Fatal("ana is not a member of the team")
	}
	for key, content := range older {
		must(t, raw.RestoreReplace(t.Context(), key, 0, content).Err())
	}
	if member() {
		t.Error("ana is a member of the team by a write that the state has lost")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
