package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/sample"
)

// TestRoundTrips counts how often a request waits for Redis. This count decides the speed of a function that
// is far from its state, and it does not depend on the machine. The steady state is measured: scripts are
// loaded, a connection is open, and the activity of the key was recorded within the last minute.
func TestRoundTrips(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testRoundTrips(t, redistest.Embedded(t)) })
	t.Run("redis", func(t *testing.T) { testRoundTrips(t, redistest.Server(t).URL()) })
}

func testRoundTrips(t *testing.T, redisURL string) {
	proxy := newProxy(t, redisURL)
	at := time.Now()
	s := newServer(t, proxy.url, func() time.Time { return at })
	item := collectionPath + "/" + objectName(0)
	// A key that is bound to two others is authenticated, and shown, as fast as one that is not.
	bound := *s
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	for _, name := range []string{"z-bound-1", "z-bound-2", "z-bound-3"} {
		written, err := resource.Create(t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: caller, Object: &model.OwnedAccessKey{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       model.OwnedAccessKeySpec{Groups: []string{identity.Admins}, TTLSeconds: 3600},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		bound.bearer = secret.String(written.Object.Spec.Key)
		if caller, err = accesskey.OpenAuthenticator(s.env).Bearer(t.Context(), bound.bearer); err != nil {
			t.Fatal(err)
		}
	}
	// The key of a job is authenticated as fast: its trust rule is read with it.
	job := *s
	job.bearer = jobKey(t, s)
	operations := []struct {
		name   string
		most   int
		expect int
		ask    func(i int) int
	}{
		{"a malformed key", 0, http.StatusUnauthorized, func(int) int {
			stranger := *s
			stranger.bearer = "pak_short"
			return stranger.call(http.MethodGet, item, "", nil)
		}},
		{"get", 1, http.StatusOK, func(int) int { return s.call(http.MethodGet, item, "", nil) }},
		{"get with a bound key", 1, http.StatusOK, func(int) int { return bound.call(http.MethodGet, item, "", nil) }},
		{"get with the key of a job", 1, http.StatusOK, func(int) int { return job.call(http.MethodGet, item, "", nil) }},
		{"get of a bound key", 1, http.StatusOK, func(int) int { return s.call(http.MethodGet, collectionPath+"/z-bound-3", "", nil) }},
		// The second trip finds the names, and the third reads so many objects without a script.
		{"list of 500", 3, http.StatusOK, func(int) int { return s.call(http.MethodGet, collectionPath, "limit=500", nil) }},
		// Two pages, the first of them in two trips, and the keys to which the one is bound.
		{"list with a bound key", 5, http.StatusOK, func(int) int {
			return s.call(http.MethodGet, collectionPath, "fieldSelector=metadata.name%3Dz-bound-3", nil)
		}},
		{"create", 2, http.StatusCreated, func(i int) int {
			return s.call(http.MethodPost, collectionPath, "", objectBody(fmt.Sprint("new-", i), "New"))
		}},
		{"update", 2, http.StatusOK, func(i int) int {
			return s.call(http.MethodPut, item, "", objectBody(objectName(0), fmt.Sprint("Update ", i)))
		}},
		{"update that changes nothing", 2, http.StatusOK, func(int) int {
			return s.call(http.MethodPut, item, "", objectBody(objectName(0), "The same"))
		}},
		{"patch", 2, http.StatusOK, func(i int) int {
			return s.patch(item, fmt.Sprintf(`{"spec":{"description":"Patch %d"}}`, i))
		}},
		{"apply", 2, http.StatusOK, func(i int) int { return s.apply(objectName(1), fmt.Sprint("Apply ", i)) }},
		{"apply that changes nothing", 2, http.StatusOK, func(int) int { return s.apply(objectName(1), "The same") }},
		// The key is read with that of the caller. The removal also tells what it owned, in all resources, and what was bound to it.
		{"delete", 2, http.StatusOK, func(i int) int {
			return s.call(http.MethodDelete, collectionPath+"/"+fmt.Sprint("new-", i), "", nil)
		}},
	}
	count := func(prefix string, more map[string]int) {
		for _, operation := range operations {
			t.Run(prefix+operation.name, func(t *testing.T) {
				for i := range 3 {
					before := proxy.count()
					if got := operation.ask(i); got != operation.expect {
						t.Fatalf("HTTP status %d instead of %d", got, operation.expect)
					}
					// The first one loads the script and records the activity.
					if trips := proxy.count() - before; i > 0 && trips > operation.most+more[operation.name] {
						t.Errorf("%d round trips to Redis, more than %d", trips, operation.most+more[operation.name])
					} else if i > 0 {
						t.Logf("%d round trips", trips)
					}
				}
			})
		}
	}
	count("", nil)
	// The owner of the keys has a user and a team, and a role in a project, which are read with the key.
	for resource, text := range map[string]string{
		directory.Users:    `{"metadata":{"name":"admin","uid":"u"},"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`,
		directory.Teams:    `{"metadata":{"name":"admin","uid":"t"},"spec":{"users":["admin"]}}`,
		directory.Projects: `{"metadata":{"name":"admin","uid":"p"},"spec":{"members":[{"kind":"User","name":"admin","role":"view"}]}}`,
	} {
		if _, err := s.env.Stores(resource).Create(t.Context(), store.Record{Name: "admin", Created: at, Object: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	// A key for another owner notes what that owner is.
	count("managed, ", map[string]int{"create": 1})
}

// TestRoundTripsOfKinds: a request for one object reads it together with the caller's key, whatever its kind. Then a get needs no
// other trip, and a write needs one. The configuration is in memory, and audit events are read from a sink.
func TestRoundTripsOfKinds(t *testing.T) {
	// exceptions are how many trips a get and a delete take, if they are not one and two.
	exceptions := map[string]struct{ gets, deletes int }{
		// A project that still has instances is not deleted.
		"projects": {deletes: 3},
		// The deletion of a user or a team first ends their credentials, and looks for who is an admin afterwards.
		"users": {deletes: 19},
		"teams": {deletes: 14},
		// No client writes the record of a token. A get also reads the access key that asked for it; a delete also reads the
		// record again, and revokes the token.
		"directclusterendpointtokens": {gets: 2, deletes: 6},
	}
	for name, url := range map[string]func() string{
		"embedded": func() string { return redistest.Embedded(t) }, "redis": func() string { return redistest.Server(t).URL() },
	} {
		proxy := newProxy(t, url())
		s := newCredentialServer(t, proxy.url)
		for _, endpoint := range itemEndpoints() {
			at := slices.IndexFunc(platform.StoredKinds, func(kind platform.StoredKind) bool { return kind.Resource == endpoint.Resource })
			if at < 0 {
				t.Errorf("%s %s: how many round trips does it take?", endpoint.Method, endpoint.Path)
				continue
			}
			exception := exceptions[endpoint.Resource.Resource]
			collection := frame.BasePath + sample.Path(platform.StoredKinds[at])
			item := collection + "/one"
			object := func(labels map[string]string) []byte {
				text, err := json.Marshal(map[string]any{
					"metadata": map[string]any{"name": "one", "labels": labels}, "spec": sample.Spec(endpoint.Resource.Resource, "admin", ""),
				})
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			t.Run(name+"/"+endpoint.Verb+"/"+endpoint.Resource.Resource, func(t *testing.T) {
				for i := range 3 {
					// Neither the first request of a process nor one after a write of what the caller may do is counted.
					s.call(http.MethodPost, collection, "", object(nil))
					if got := s.call(http.MethodGet, item, "", nil); got != http.StatusOK {
						t.Fatalf("HTTP status %d", got)
					}
					before, most := proxy.count(), 2
					var got int
					switch endpoint.Verb {
					case "get":
						got, most = s.call(http.MethodGet, item, "", nil), max(exception.gets, 1)
					case "update":
						got = s.call(http.MethodPut, item, "", object(map[string]string{"i": strconv.Itoa(i)}))
					case "patch":
						got = s.patch(item, fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, i))
					case "delete":
						got, most = s.call(http.MethodDelete, item, "", nil), max(exception.deletes, most)
					}
					if trips := proxy.count() - before; got != http.StatusOK || i > 0 && trips > most {
						t.Errorf("HTTP status %d, %d round trips to Redis, want at most %d", got, trips, most)
					} else if i > 0 {
						t.Logf("%d round trips", trips)
					}
				}
			})
		}
	}
}

// itemEndpoints are the endpoints of single objects that are stored.
func itemEndpoints() []frame.Endpoint {
	var endpoints []frame.Endpoint
	for _, function := range catalog.Functions {
		for _, endpoint := range function.Endpoints {
			resource := endpoint.Resource.Resource
			if strings.HasSuffix(endpoint.Path, "/{name}") && resource != "" && endpoint.Subresource == "" && resource != "configs" && resource != "auditevents" {
				endpoints = append(endpoints, endpoint)
			}
		}
	}
	return endpoints
}

// A credential takes one round trip to authenticate the caller, and one for each record that is read or written: what has
// been read for a request is not read again. Source: ADR-0026.
func TestRoundTripsOfCredentials(t *testing.T) {
	for name, url := range map[string]func() string{
		"embedded": func() string { return redistest.Embedded(t) }, "redis": func() string { return redistest.Server(t).URL() },
	} {
		proxy := newProxy(t, url())
		s := newCredentialServer(t, proxy.url)
		for _, request := range credentials {
			t.Run(name+"/"+request.name, func(t *testing.T) {
				for i := range 3 {
					before := proxy.count()
					if got := s.call(http.MethodPost, request.path, "", []byte(request.body)); got != http.StatusCreated {
						t.Fatalf("HTTP status %d", got)
					}
					if trips := proxy.count() - before; i > 0 && trips > request.trips {
						t.Errorf("%d round trips to Redis, more than %d", trips, request.trips)
					}
				}
			})
		}
	}
}

// jobKey makes a trust rule, and an access key of it that reads what the admin reads.
func jobKey(t *testing.T, s *server) secret.String {
	t.Helper()
	admin := identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	cli := &model.Scope{Roles: []model.ScopeRole{{Role: "platformCLI"}}}
	rule, err := resource.Create(t.Context(), kinds.TrustRules(s.env), resource.CreateInput[*model.TrustRule]{
		Caller: admin, Object: &model.TrustRule{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}, Spec: model.TrustRuleSpec{
			Issuer: "https://issuer.example", Match: []model.TrustRuleCondition{{Claim: "sub", Is: "a"}},
			Owner: &model.TrustRuleOwner{User: "admin"}, Scope: cli,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	made := model.TrustRuleReference{Name: rule.Object.Name, UID: string(rule.Object.UID)}
	written, err := resource.Create(t.Context(), accesskey.ForTrustRule(kinds.AccessKeys(s.env), made), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: admin, Object: &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{Name: "z-job"},
			Spec:       model.OwnedAccessKeySpec{Groups: []string{identity.Admins}, TTLSeconds: 3600, Scope: cli},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret.String(written.Object.Spec.Key)
}

// patch sends a merge patch.
func (s *server) patch(path, text string) int {
	return s.send(http.MethodPatch, path, "", "application/merge-patch+json", []byte(text))
}

// proxy stands between a client and Redis and counts round trips: how often a client speaks after the server
// did. Commands that are sent together count once.
type proxy struct {
	url string

	mu    sync.Mutex
	trips int
}

// newProxy listens until the test ends.
func newProxy(t *testing.T, redisURL string) *proxy {
	t.Helper()
	target, err := url.Parse(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "redis://" + listener.Addr().String()}
	var connections sync.WaitGroup
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { p.serve(client, target.Host) })
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-accepting
		connections.Wait()
	})
	return p
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// serve copies both ways until the client leaves.
func (p *proxy) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	// asked is whether the client spoke last.
	asked := false
	go func() {
		_ = relay(client, server, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			asked = false
		})
		_ = client.Close()
	}()
	_ = relay(server, client, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !asked {
			p.trips++
		}
		asked = true
	})
}

// relay copies, and reports each piece before it continues.
func relay(to io.Writer, from io.Reader, seen func()) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			seen()
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
