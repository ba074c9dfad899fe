package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"management.platform.sh/functions/expirekeys"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/store"
)

// The Redis commands that functions need. Scripts run with the rights of their user, command by command.
const (
	// connecting are the commands without keys: connections, clusters, the wait for replicas, and the id of the server (ADR-0041).
	connecting = "+auth +hello +ping +select +wait +asking +readonly +command +info|server +cluster|slots +cluster|shards +cluster|nodes"
	reading    = "+eval +evalsha +get +hget +hmget +hexists +hstrlen +zrange +zcard +zlexcount +xrange +xread"
	writing    = "+incr +incrby +set +hset +hdel +zadd +zrem +xadd +xtrim"
	// auditing are the commands of the store of audit events.
	auditing = "+eval +evalsha +hget +hset +xadd +xtrim +xrange +xrevrange"
)

// rights are the rights of a function in the state: for each resource whether it changes it.
type rights map[string]bool

// String returns the same text for functions with the same rights.
func (r rights) String() string {
	var words []string
	for _, resource := range slices.Sorted(maps.Keys(r)) {
		words = append(words, fmt.Sprintf("%s=%v", resource, r[resource]))
	}
	return strings.Join(words, " ")
}

// user is a user of the Redis for the functions with the same rights.
type user struct {
	name      string
	functions []string
	rights    rights
}

// users returns the users that the functions need. Each user is named after the first of its functions.
func users(functions []*frame.Function) []user {
	byRights := map[string]*user{}
	for _, f := range functions {
		needed := rightsOf(f)
		if byRights[needed.String()] == nil {
			byRights[needed.String()] = &user{rights: needed}
		}
		account := byRights[needed.String()]
		account.functions = append(account.functions, f.Name)
	}
	var list []user
	for _, account := range byRights {
		slices.Sort(account.functions)
		account.name = "platform-" + account.functions[0]
		list = append(list, *account)
	}
	slices.SortFunc(list, func(a, b user) int { return cmp.Compare(a.name, b.name) })
	return list
}

// nowhere is the URL of a state that cannot be reached.
type nowhere struct{ store.Store }

func (nowhere) Get(context.Context, string) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

// rightsOf returns the rights of a function. It opens everything that the function serves, and records which resources
// are opened: a function cannot use other resources.
func rightsOf(f *frame.Function) rights {
	opened := rights{}
	server := process.New(settings.Default(), process.World{
		Stores: func(resource string) store.Store {
			opened[resource] = false
			return nowhere{}
		},
		Log: slog.New(slog.DiscardHandler),
	})
	server.Configuration = nil
	server.Mount(f)
	if f.Schedule != nil {
		// The run opens the resources that it needs, and then fails.
		_ = server.Run(context.Background(), f)
	}
	kinds := map[string]bool{}
	for _, kind := range platform.StoredKinds {
		kinds[kind.Resource.Resource] = true
	}
	used := map[string]bool{
		// Every use of a key is recorded.
		model.Resource("ownedaccesskeys").Resource: true,
	}
	for _, endpoint := range f.Endpoints {
		if endpoint.Resource.Group == model.GroupName {
			used[endpoint.Resource.Resource] = used[endpoint.Resource.Resource] ||
				endpoint.Resource.Resource != platformconfig.Definition.Resource.Resource || writes(endpoint.Verb)
		}
	}
	if f.Name == expirekeys.Function.Name {
		// The function takes unconfirmed configurations back, and records the limits of files.
		used[platformconfig.Definition.Resource.Resource] = true
		used[platformconfig.FileLimits] = true
	}
	// A function that knows the rules of every kind removes the objects that belong to a removed object.
	_, removes := opened[issuedtoken.RevokedResource]
	for resource := range opened {
		// Operators write the mode of people, and functions read it.
		readOnly := resource == platformconfig.Definition.Resource.Resource || resource == platformconfig.FileLimits || resource == directory.Mode
		opened[resource] = used[resource] || !readOnly && (removes || !kinds[resource])
	}
	return opened
}

// writes reports whether a verb changes objects.
func writes(verb string) bool {
	return !slices.Contains([]string{"get", "list", "watch", "reveal"}, verb)
}

// accessControl returns the users in the form of a Redis ACL file, without passwords.
func accessControl(list []user) []byte {
	var text bytes.Buffer
	line := func(name string, rules ...string) {
		fmt.Fprintf(&text, "user %s on resetkeys resetchannels -@all %s\n", name, strings.Join(rules, " "))
	}
	for _, account := range list {
		rules := []string{connecting}
		var read, written []string
		for _, resource := range slices.Sorted(maps.Keys(account.rights)) {
			if account.rights[resource] {
				written = append(written, "~p1:{"+resource+"}:*")
			} else {
				read = append(read, "~p1:{"+resource+"}:*")
			}
		}
		if len(written) > 0 {
			rules = append(rules, "("+reading+" "+writing+" "+strings.Join(written, " ")+")")
		}
		if len(read) > 0 {
			rules = append(rules, "("+reading+" "+strings.Join(read, " ")+")")
		}
		line(account.name, rules...)
	}
	line("platform-audit", connecting, "("+auditing+" ~p1:{audit}:*)")
	return text.Bytes()
}
