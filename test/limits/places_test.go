package limits_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/settings"
)

// The requests of a user in each class. They stay under way until they are released.
var (
	slowGet  = func(user string) request { return request{bearer: user, path: keys + "/held"} }
	slowList = func(user string) request { return request{bearer: user, path: keys} }
	// slowCreate returns a create with a large body.
	slowCreate = func(user string) request {
		return request{
			bearer: user, method: http.MethodPost, path: keys,
			body: fmt.Sprintf(`{"metadata":{"generateName":"held-","annotations":{"a":%q}}}`, strings.Repeat("x", limits.LargeBodyBytes)),
		}
	}
	// slowEvaluation returns an evaluation that runs until its client disconnects.
	slowEvaluation = func(user string) request {
		return request{
			bearer: user, method: http.MethodPost, path: evaluations,
			body: `{"spec":{"object":{"a":1},"patches":[{"path":"a","expression":"(() => { for (;;) {} })()"}]}}`,
		}
	}
	slowKubeconfig = func(user string) request {
		return request{bearer: user, method: http.MethodPost, path: group + "/namespaces/held/virtualclusterinstances/one/kubeconfig", body: "{}"}
	}
	watched = func(user string) request {
		return request{bearer: user, path: keys + "?watch=true&resourceVersion=0&timeoutSeconds=50"}
	}
	patient = map[string]string{settings.PatchExpressionTime: "25s", settings.PatchObjectTime: "25s"}
)

// withSettings returns settings with further settings.
func withSettings(more ...string) map[string]string {
	all := map[string]string{}
	for name, value := range patient {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// crowd is a number of requests that are under way.
type crowd struct {
	w       *world
	class   fairness.Class
	request func(user string) request
	all     []*pending
}

func newCrowd(t *testing.T, class fairness.Class, request func(string) request, set map[string]string) *crowd {
	t.Helper()
	c := &crowd{w: newWorld(t, set), class: class, request: request}
	c.w.holder.hold(class == fairness.Lists)
	t.Cleanup(func() {
		for _, p := range c.all {
			p.leave()
		}
	})
	return c
}

// begin begins a request of a user, and waits until the given numbers of requests are under way and wait.
func (c *crowd) begin(t *testing.T, user string, taken, waiting int) {
	t.Helper()
	c.all = append(c.all, c.w.begin(c.request(user)))
	c.w.waitForPlaces(t, c.class, taken, waiting)
}

// finishFirst lets the first request end. A waiting request then gets its place.
func (c *crowd) finishFirst(t *testing.T, taken, waiting int) {
	t.Helper()
	c.all[0].leave()
	c.all = c.all[1:]
	c.w.waitForPlaces(t, c.class, taken, waiting)
}

// tryTotal tries a limit of 3 places in the process: the fourth request, from any caller, waits until another request ends.
func tryTotal(class fairness.Class, request func(string) request, set ...string) func(*testing.T) {
	return func(t *testing.T) {
		c := newCrowd(t, class, request, withSettings(set...))
		c.begin(t, "alice", 1, 0)
		c.begin(t, "bob", 2, 0)
		c.begin(t, "carol", 3, 0)
		c.begin(t, "root", 3, 1)
		c.finishFirst(t, 3, 0)
	}
}

// tryPerCaller tries a limit of 2 places for a caller: the third request of the caller waits, and requests of other callers do not.
func tryPerCaller(class fairness.Class, request func(string) request, set ...string) func(*testing.T) {
	return func(t *testing.T) {
		c := newCrowd(t, class, request, withSettings(set...))
		c.begin(t, "alice", 1, 0)
		c.begin(t, "alice", 2, 0)
		c.begin(t, "alice", 2, 1)
		c.begin(t, "bob", 3, 1)
		c.finishFirst(t, 3, 0)
	}
}

// tryWaiting tries the length of a queue. One caller has the given number of places.
func tryWaiting(class fairness.Class, request func(string) request, places, queue int, set ...string) func(*testing.T) {
	return func(t *testing.T) {
		c := newCrowd(t, class, request, withSettings(set...))
		for i := range places {
			c.begin(t, "alice", i+1, 0)
		}
		for range queue {
			c.all = append(c.all, c.w.begin(c.request("alice")))
		}
		c.w.waitForPlaces(t, class, places, queue)
		got := c.w.begin(c.request("alice")).answer(t)
		if got.status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", "too many "+class.String()+" of user:alice", fmt.Sprintf("the limits are %d and %d", places, queue))
		// The queue of one caller does not keep another caller from a place or from a queue.
		if class == fairness.Heavy && places == max(1, runtime.GOMAXPROCS(0)-1) {
			c.begin(t, "bob", places, queue+1)
		} else {
			c.begin(t, "bob", places+1, queue)
		}
	}
}

// tryEvaluations tries a limit of 3 places, plus one for a caller without a long evaluation so far: the fifth evaluation waits.
func tryEvaluations(t *testing.T) {
	c := newCrowd(t, fairness.Evaluations, slowEvaluation, withSettings(settings.PatchWorkers, "3"))
	c.begin(t, "alice", 1, 0)
	c.begin(t, "bob", 2, 0)
	c.begin(t, "carol", 3, 0)
	c.begin(t, "alice", 3, 1)
	c.begin(t, "dave", 4, 1)
	c.begin(t, "root", 4, 2)
	c.finishFirst(t, 4, 1)
}

// tryWatches tries a limit of two watches, from these users. The third watch is refused with a text.
func tryWatches(setting, text string, users ...string) func(*testing.T) {
	return func(t *testing.T) {
		c := newCrowd(t, fairness.Watches, watched, map[string]string{setting: "2"})
		c.begin(t, users[0], 1, 0)
		c.begin(t, users[1], 2, 0)
		got := c.w.begin(watched(users[2])).answer(t)
		if got.status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", text)
		// The initial objects have been sent, so the open watches no longer count as large lists.
		c.w.waitForPlaces(t, fairness.Lists, 0, 0)
		c.finishFirst(t, 1, 0)
		c.begin(t, users[2], 2, 0)
	}
}

var placeRows = map[string]row{
	"kubeconfigs": {
		fmt.Sprintf("%d kubeconfigs, %d of one caller", settings.Default().Shares.Requests/2, settings.Default().Shares.RequestsPerCaller/2),
		func(t *testing.T) {
			// Three of six requests render kubeconfigs, two of them for one caller. Other requests keep their places.
			c := newCrowd(t, fairness.Kubeconfigs, slowKubeconfig, map[string]string{settings.MaxRequests: "6", settings.MaxRequestsPerCaller: "4"})
			c.begin(t, "alice", 1, 0)
			c.begin(t, "alice", 2, 0)
			c.begin(t, "alice", 2, 1)
			c.begin(t, "bob", 3, 1)
			c.begin(t, "carol", 3, 2)
			if got := c.w.send(request{bearer: "alice", path: own}); got.status != http.StatusOK {
				t.Errorf("another request: %d %s", got.status, got.body)
			}
			c.finishFirst(t, 3, 1)
		},
	},
	"waiting-kubeconfigs": {
		fmt.Sprintf("%d kubeconfigs", limits.WaitingLarge),
		tryWaiting(fairness.Kubeconfigs, slowKubeconfig, 1, limits.WaitingLarge, settings.MaxRequests, "4", settings.MaxRequestsPerCaller, "2"),
	},
	"requests":            {try: tryTotal(fairness.Requests, slowGet, settings.MaxRequests, "3")},
	"requests-per-caller": {try: tryPerCaller(fairness.Requests, slowGet, settings.MaxRequestsPerCaller, "2")},
	"waiting-requests": {
		fmt.Sprintf("%d requests", limits.WaitingRequests),
		tryWaiting(fairness.Requests, slowGet, 1, limits.WaitingRequests, settings.MaxRequestsPerCaller, "1", settings.MaxRequests, "2"),
	},
	"lists": {try: func(t *testing.T) {
		tryTotal(fairness.Lists, slowList, settings.MaxLists, "3")(t)
		// A list of audit events waits as well, however small its limit.
		c := newCrowd(t, fairness.Lists, slowList, map[string]string{settings.MaxLists: "1"})
		c.begin(t, "alice", 1, 0)
		c.request = func(user string) request { return request{bearer: user, path: group + "/auditevents?limit=1"} }
		c.begin(t, "bob", 1, 1)
		c.all[0].leave()
		c.w.waitForPlaces(t, fairness.Lists, 0, 0)
	}},
	"lists-per-caller": {try: tryPerCaller(fairness.Lists, slowList, settings.MaxListsPerCaller, "2")},
	"waiting-lists": {
		fmt.Sprintf("%d large lists", limits.WaitingLarge),
		tryWaiting(fairness.Lists, slowList, 1, limits.WaitingLarge, settings.MaxListsPerCaller, "1", settings.MaxLists, "2"),
	},
	"bodies": {
		fmt.Sprintf("%d requests", limits.LargeBodies),
		func(t *testing.T) {
			c := newCrowd(t, fairness.Bodies, slowCreate, nil)
			for i := range limits.LargeBodiesPerCaller {
				c.begin(t, "alice", i+1, 0)
			}
			c.begin(t, "alice", limits.LargeBodiesPerCaller, 1)
			for taken := limits.LargeBodiesPerCaller; taken < limits.LargeBodies; taken++ {
				c.begin(t, []string{"bob", "carol", "dave"}[taken/limits.LargeBodiesPerCaller-1], taken+1, 1)
			}
			c.begin(t, "root", limits.LargeBodies, 2)
			c.finishFirst(t, limits.LargeBodies, 1)
		},
	},
	"waiting-bodies": {
		fmt.Sprintf("%d requests", limits.WaitingLarge),
		tryWaiting(fairness.Bodies, slowCreate, limits.LargeBodiesPerCaller, limits.WaitingLarge),
	},
	"heavy": {"one less than processors, at least 1 request", func(t *testing.T) {
		places := max(1, runtime.GOMAXPROCS(0)-1)
		c := newCrowd(t, fairness.Heavy, slowCreate, nil)
		users := []string{"alice", "bob", "carol", "dave"}
		for i := range places {
			if i == len(users)*limits.LargeBodiesPerCaller-1 {
				t.Skip("this machine has more processors than the callers of the test have large bodies")
			}
			c.begin(t, users[i%len(users)], i+1, 0)
		}
		c.begin(t, users[places%len(users)], places, 1)
		c.finishFirst(t, places, 0)
		// A long query counts like a large body. A short query does not.
		long := func(n int) request {
			return request{bearer: "root", path: own + "?unknown=" + strings.Repeat("x", n-len("unknown="))}
		}
		if got := c.w.send(long(limits.LargeQueryBytes)); got.status == http.StatusTooManyRequests {
			t.Errorf("a query at the limit: %d %s", got.status, got.body)
		}
		waits := c.w.begin(long(limits.LargeQueryBytes + 1))
		c.w.waitForPlaces(t, fairness.Heavy, places, 1)
		waits.leave()
		// A long head counts like a large body, too.
		waits = c.w.begin(request{bearer: "root", path: own, header: map[string]string{"X-Long": strings.Repeat("x", limits.LargeHeadBytes)}})
		c.w.waitForPlaces(t, fairness.Heavy, places, 1)
		waits.leave()
	}},
	"waiting-heavy": {
		fmt.Sprintf("%d requests", limits.WaitingLarge),
		func(t *testing.T) {
			// A large body would first wait for a place of its own class.
			query := "?unknown=" + strings.Repeat("x", limits.LargeQueryBytes)
			held := func(user string) request { return request{bearer: user, path: keys + "/held" + query} }
			tryWaiting(fairness.Heavy, held, max(1, max(1, runtime.GOMAXPROCS(0)-1)/2), limits.WaitingLarge, settings.MaxRequestsPerCaller, "200")(t)
		},
	},
	"evaluations": {try: tryEvaluations},
	"waiting-evaluations": {
		fmt.Sprintf("%d evaluations", limits.WaitingLarge),
		tryWaiting(fairness.Evaluations, slowEvaluation, 1, limits.WaitingLarge, settings.PatchWorkers, "2"),
	},
	"watches": {try: tryWatches(settings.MaxWatches, "too many watches: 2 are open or under way, the limit of this process is 2", "alice", "bob", "carol")},
	"watches-per-caller": {
		try: tryWatches(settings.MaxWatchesPerCaller, "too many watches of user:alice: 2 are open or under way, the limit is 2", "alice", "alice", "alice"),
	},
	"longest-wait": {limits.LongestWait.String(), func(t *testing.T) {
		c := newCrowd(t, fairness.Requests, slowGet, withSettings(settings.MaxRequests, "1"))
		c.begin(t, "alice", 1, 0)
		c.begin(t, "bob", 1, 1)
		got := c.all[1].answer(t)
		if got.status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", "requests are answered too slowly at present", "no place within "+limits.LongestWait.String())
	}},
}
