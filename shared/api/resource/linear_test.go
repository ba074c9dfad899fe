package resource_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// call is one verb on one name. Version is the resourceVersion that it requires. Empty means any.
type call struct {
	verb, name, value, version string
}

// outcome is what the client saw: the code of a refusal, or value and version.
type outcome struct {
	code    int32
	value   string
	version int64
}

// stored is the object of one name. Version 0 means that it does not exist.
type stored struct {
	value   string
	version int64
}

// linear is one object as clients should see it that call one after the other.
var linear = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byName := map[string][]porcupine.Operation{}
		for _, operation := range history {
			name := operation.Input.(call).name
			byName[name] = append(byName[name], operation)
		}
		var parts [][]porcupine.Operation
		for _, part := range byName {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return stored{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(stored), input.(call), output.(outcome)
		there := now.version != 0
		stale := in.version != "" && in.version != strconv.FormatInt(now.version, 10)
		wrote := out.code == 0 && out.value == in.value && out.version > now.version
		switch {
		case in.verb == "create" && there:
			return out.code == 409, now
		case in.verb == "create":
			return wrote, stored{in.value, out.version}
		case !there:
			return out.code == 404, now
		case in.verb == "get":
			return out.code == 0 && out.value == now.value && out.version == now.version, now
		case stale:
			return out.code == 409, now
		case in.verb == "delete":
			return out.code == 0, stored{}
		case in.value == now.value:
			return out.code == 0 && out.version == now.version, now
		default:
			return wrote, stored{in.value, out.version}
		}
	},
	Equal: func(a, b any) bool { return a == b },
}

// do calls a verb as a client does.
func (c call) do(t testing.TB, r *registry) outcome {
	object := grantee(c.name)
	object.Spec.DisplayName, object.ResourceVersion = c.value, c.version
	var seen *key
	var err error
	switch c.verb {
	case "create":
		object.ResourceVersion = ""
		var written resource.Result[*key]
		written, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: object})
		seen = written.Object
	case "get":
		seen, err = resource.Get(t.Context(), r, resource.GetInput{Caller: ana, Name: c.name})
	case "update":
		var written resource.Result[*key]
		written, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: c.name, Object: object})
		seen = written.Object
	case "delete":
		_, err = resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: c.name, ResourceVersion: c.version})
		seen = &key{}
	}
	if err != nil {
		return outcome{code: refusalOf(err).code}
	}
	version, _ := strconv.ParseInt(seen.ResourceVersion, 10, 64)
	return outcome{value: seen.Spec.DisplayName, version: version}
}

// Simultaneous clients see only what clients could have seen one after the other. Source: Spec 2.2 (resourceVersion).
func TestLinearizable(t *testing.T) {
	t.Parallel()
	url := redistest.Server(t).URL()
	const clients, calls, names = 6, 150, 3
	var history []porcupine.Operation
	var mu sync.Mutex
	var all sync.WaitGroup
	begun := time.Now()
	for id := range clients {
		client := redistest.Open(t, url)
		r := newRegistry(client.Resource("ownedaccesskeys"), seeded(byte(id)))
		random := rand.New(rand.NewPCG(uint64(id), 1))
		all.Go(func() {
			versions := map[string]int64{}
			for i := range calls {
				c := call{name: fmt.Sprint("n", random.IntN(names)), value: fmt.Sprint("by ", id, " ", i)}
				c.verb = []string{"create", "create", "get", "get", "update", "update", "update", "delete"}[random.IntN(8)]
				if last := versions[c.name]; last != 0 && random.IntN(2) == 0 && (c.verb == "update" || c.verb == "delete") {
					c.version = strconv.FormatInt(last, 10)
				}
				operation := porcupine.Operation{ClientId: id, Input: c, Call: time.Since(begun).Nanoseconds()}
				out := c.do(t, r)
				operation.Output, operation.Return = out, time.Since(begun).Nanoseconds()
				if out.version != 0 {
					versions[c.name] = out.version
				}
				mu.Lock()
				history = append(history, operation)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	kinds := map[string]int{}
	for _, operation := range history {
		kinds[fmt.Sprint(operation.Input.(call).verb, " ", operation.Output.(outcome).code)]++
	}
	for _, kind := range []string{"create 0", "create 409", "get 0", "get 404", "update 0", "update 409", "update 404", "delete 0", "delete 404"} {
		if kinds[kind] == 0 {
			t.Errorf("there was no %q: %v", kind, kinds)
		}
	}
	if result := porcupine.CheckOperationsTimeout(linear, history, time.Minute); result != porcupine.Ok {
		t.Errorf("the history of %d calls is %s", len(history), result)
	}
}

// The checker finds a lost update and a stale read.
func TestLinearizableFinds(t *testing.T) {
	t.Parallel()
	create := porcupine.Operation{Input: call{verb: "create", name: "n", value: "a"}, Output: outcome{value: "a", version: 1}, Call: 1, Return: 2}
	update := porcupine.Operation{Input: call{verb: "update", name: "n", value: "b", version: "1"}, Output: outcome{value: "b", version: 2}, Call: 3, Return: 5}
	for about, wrong := range map[string]porcupine.Operation{
		"lost update": {ClientId: 1, Input: call{verb: "update", name: "n", value: "c", version: "1"}, Output: outcome{value: "c", version: 3}, Call: 4, Return: 6},
		"stale read":  {ClientId: 1, Input: call{verb: "get", name: "n"}, Output: outcome{value: "a", version: 1}, Call: 6, Return: 7},
	} {
		if porcupine.CheckOperations(linear, []porcupine.Operation{create, update, wrong}) {
			t.Errorf("a %s is accepted", about)
		}
	}
}
