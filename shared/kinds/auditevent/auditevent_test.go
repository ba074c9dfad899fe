package auditevent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds/auditevent"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var (
	begin = time.Date(2027, time.March, 4, 5, 0, 0, 0, time.UTC)
	admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	ana   = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.TeamPrefix + "core"})
	// sweeper is a user who has the name of a scheduled function.
	sweeper = identity.New(identity.Owner{Kind: identity.User, Name: "expirekeys"}, nil)
)

// memory is a data store with the oldest event first. Pages are short.
type memory struct {
	events []audit.Stored
	// most is the largest number of events of a page; 0: as many as the request asks for.
	most  int
	pages int
	err   error
}

func (m *memory) Page(_ context.Context, of audit.Range) ([]audit.Stored, bool, error) {
	m.pages++
	newest := slices.Clone(m.events)
	slices.Reverse(newest)
	if of.Behind != "" {
		newest = newest[1+slices.IndexFunc(newest, func(s audit.Stored) bool { return s.Name == of.Behind }):]
	}
	most := of.Events
	if m.most > 0 {
		most = m.most
	}
	most = min(most, len(newest))
	return newest[:most], most < len(newest), m.err
}

func (m *memory) Lookup(_ context.Context, name string) (audit.Stored, bool, error) {
	i := slices.IndexFunc(m.events, func(s audit.Stored) bool { return s.Name == name })
	if i < 0 {
		return audit.Stored{}, false, m.err
	}
	return m.events[i], true, m.err
}

func (m *memory) Close() error { return nil }

// add adds an event, a second later than the one before. Its name is its number, and its access key is named after its user.
func (m *memory) add(uid, username, verb, at string, code int) {
	i := len(m.events)
	object, status := "", ""
	if resource, name, found := strings.Cut(at, "/"); found {
		name, subresource, _ := strings.Cut(name, "/")
		object = fmt.Sprintf(`,"objectRef":{"resource":%q,"name":%q,"subresource":%q,"namespace":"p-shop"}`, resource, name, subresource)
	}
	if code > 0 {
		status = fmt.Sprintf(`,"responseStatus":{"code":%d}`, code)
	}
	m.events = append(m.events, audit.Stored{Name: fmt.Sprint(i), JSON: fmt.Appendf(nil,
		`{"kind":"Event","auditID":"id-%d","stage":"ResponseComplete","level":"Metadata","verb":%q,"requestURI":"/%d","user":{"username":%q,"uid":%q,"extra":{"management.platform.sh/access-key":[%q]}}%s%s,"stageTimestamp":%q}`,
		i, verb, i, username, uid, "key-of-"+username, object, status, begin.Add(time.Duration(i)*time.Second).Format("2006-01-02T15:04:05.000000Z07:00"))})
}

func newLog(m *memory) *auditevent.Log {
	return &auditevent.Log{
		Created: func(context.Context, identity.Caller) (map[string]time.Time, error) { return nil, nil },
		Read:    func() (audit.Reader, error) { return m, nil },
	}
}

func some() *memory {
	m := &memory{}
	m.add("user:ana", "ana", "create", "ownedaccesskeys/ci", 201)                                  // 0
	m.add("user:ben", "ben", "delete", "ownedaccesskeys/ci", 403)                                  // 1
	m.add("team:core", "platform:team:core", "get", "virtualclusterinstances/dev/kubeconfig", 404) // 2
	m.add("subject:expirekeys", "expirekeys", "run", "", 200)                                      // 3
	m.add("", "system:anonymous", "get", "", 401)                                                  // 4
	m.add("user:ana", "ana", "list", "ownedaccesskeys/", 0)                                        // 5
	m.add("user:expirekeys", "expirekeys", "get", "directclusterendpointtokens/t", 503)            // 6
	return m
}

func keys(t *testing.T) *continuetoken.Keys {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	return continuetoken.Open(&platform.Environment{Now: time.Now, Stores: func(name string) store.Store { return client.Resource(name) }})
}

func names(t *testing.T, log *auditevent.Log, in resource.ListInput) (string, string) {
	t.Helper()
	list, err := log.List(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	page := list.(*model.AuditEventList)
	var found []string
	for _, event := range page.Items {
		found = append(found, event.Name)
	}
	return strings.Join(found, " "), page.Continue
}

func code(err error) int32 {
	if err == nil {
		return 200
	}
	return apierror.From(err).Status().Code
}

// Callers see their own events and the events of their teams, whatever the names of others. Source: ADR-0034.
func TestWhoSees(t *testing.T) {
	t.Parallel()
	log := newLog(some())
	for _, row := range []struct {
		caller identity.Caller
		want   string
	}{
		{admin, "6 5 4 3 2 1 0"},
		{ana, "5 2 0"},
		{sweeper, "6"},
		{identity.New(identity.Owner{Kind: identity.Subject, Name: "ana"}, nil), ""},
	} {
		if got, _ := names(t, log, resource.ListInput{Caller: row.caller}); got != row.want {
			t.Errorf("%v sees %q, want %q", row.caller.Owner, got, row.want)
		}
		for _, stored := range some().events {
			event, err := log.Get(t.Context(), resource.GetInput{Caller: row.caller, Name: stored.Name})
			want := int32(404)
			if slices.Contains(strings.Fields(row.want), stored.Name) {
				want = 200
			}
			if code(err) != want || err == nil && (event.Name != stored.Name || event.Kind != "AuditEvent") {
				t.Errorf("%v gets %s: %v %v", row.caller.Owner, stored.Name, event, err)
			}
		}
	}
	if _, err := log.Get(t.Context(), resource.GetInput{Caller: admin, Name: "7"}); code(err) != 404 {
		t.Errorf("an absent event: %v", err)
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	log := newLog(some())
	for selector, want := range map[string]string{
		"":                                 "6 5 4 3 2 1 0",
		"user=ana":                         "5 0",
		"user!=ana":                        "6 4 3 2 1",
		"verb=get":                         "6 4 2",
		"resource=ownedaccesskeys":         "5 1 0",
		"resource=ownedaccesskeys,name=ci": "1 0",
		"subresource=kubeconfig":           "2",
		"namespace=p-shop,verb=delete":     "1",
		"code=403":                         "1",
		"code=4xx":                         "4 2 1",
		"code!=4xx":                        "6 3 0",
		"after=2027-03-04T05:00:04Z":       "6 5",
		"before=2027-03-04T05:00:02Z":      "1 0",
		"after=2027-03-04T05:00:00Z,after=2027-03-04T05:00:01Z,before=2027-03-04T05:00:04Z,before=2027-03-04T05:00:03Z": "2",
		"after=2027-03-04T06:00:00.5%2B01:00": "",
		"metadata.name=3":                     "3",
		"accessKey=key-of-ana":                "5 0",
		"accessKey!=key-of-ana,code=4xx":      "4 2 1",
	} {
		selector = strings.ReplaceAll(selector, "%2B", "+")
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(selector, "after=2027-03-04T06") {
			want = "6 5 4 3 2 1"
		}
		if got, _ := names(t, log, resource.ListInput{Caller: admin, Fields: parsed}); got != want {
			t.Errorf("%s selects %q, want %q", selector, got, want)
		}
	}
	if got, _ := names(t, log, resource.ListInput{Caller: admin, Labels: labels.SelectorFromSet(labels.Set{"a": "b"})}); got != "" {
		t.Errorf("events have no labels, and %q are selected", got)
	}
	for _, selector := range []string{"who=ana", "code=4x", "code=99", "code=600", "code=0xx", "code=6xx", "after=yesterday", "after!=2027-03-04T05:00:04Z"} {
		_, err := log.List(t.Context(), resource.ListInput{Caller: admin, Fields: fields.ParseSelectorOrDie(selector)})
		if code(err) != 400 || len(apierror.From(err).Status().Details.Causes) != 1 {
			t.Errorf("%s: %v", selector, err)
		}
	}
	if _, err := log.List(t.Context(), resource.ListInput{Caller: admin, ResourceVersion: "7"}); code(err) != 400 {
		t.Errorf("a version: %v", err)
	}
}

// The pages are an ordered list without gaps, whatever the pages of the store.
func TestPages(t *testing.T) {
	t.Parallel()
	sealed := keys(t)
	for _, most := range []int{0, 1, 2, 3} {
		for limit := int64(1); limit < 5; limit++ {
			m := some()
			m.most = most
			in := resource.ListInput{Caller: ana, Limit: limit, ContinueKeys: sealed}
			var got []string
			for round := 0; ; round++ {
				page, next := names(t, newLog(m), in)
				if n := len(strings.Fields(page)); int64(n) > limit || round > len(m.events) {
					t.Fatalf("a page of %d with the limit %d, in round %d", n, limit, round)
				}
				got = append(got, strings.Fields(page)...)
				if in.Continue = next; next == "" {
					break
				}
				m.add("user:ana", "ana", "get", "a/b", 200) // is newer than all of the list
			}
			if strings.Join(got, " ") != "5 2 0" {
				t.Errorf("pages of %d with the limit %d: %q", most, limit, got)
			}
		}
	}
	in := resource.ListInput{Caller: ana, Limit: 1, ContinueKeys: sealed}
	_, in.Continue = names(t, newLog(some()), in)
	for _, other := range []resource.ListInput{
		{Caller: admin, Continue: in.Continue, ContinueKeys: sealed},
		{Caller: ana, Continue: in.Continue, ContinueKeys: sealed, Fields: fields.ParseSelectorOrDie("user=ana")},
		{Caller: ana, Continue: in.Continue + "x", ContinueKeys: sealed},
	} {
		if _, err := newLog(some()).List(t.Context(), other); code(err) != 400 {
			t.Errorf("a token of another list: %v", err)
		}
	}
}

// The pages that a request reads and the bytes of an answer are bounded. Source: ADR-0034.
func TestBounds(t *testing.T) {
	t.Parallel()
	m := &memory{most: 1}
	for range 2 * limits.ListPages {
		m.add("user:ben", "ben", "get", "", 200)
	}
	in := resource.ListInput{Caller: ana, ContinueKeys: keys(t)}
	page, next := names(t, newLog(m), in)
	if page != "" || next == "" || m.pages != limits.ListPages {
		t.Errorf("%q %q after %d pages", page, next, m.pages)
	}
	large := &memory{}
	for range 3 {
		large.add("user:ana", "ana", strings.Repeat("x", limits.PageBytes/2-1000), "", 200)
	}
	in.Continue = ""
	page, in.Continue = names(t, newLog(large), in)
	if page != "2 1" || in.Continue == "" {
		t.Errorf("a page of large events: %q", page)
	}
	if page, in.Continue = names(t, newLog(large), in); page != "0" || in.Continue != "" {
		t.Errorf("the rest: %q", page)
	}
}

// Events that cannot be read here are 501 with the reason. A failure of the data store is 503 without its text. Source: ADR-0034.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for about, config := range map[string]*model.ConfigAudit{
		"no audit": nil, "the audit is off": {DataStoreEndpoint: "redis://a"}, "files alone": {Enabled: true, Path: "/a"},
		"another store": {Enabled: true, DataStoreEndpoint: "redis://a"}, "a store of other processes": {Enabled: true, DataStoreEndpoint: secret.Mark},
	} {
		env := &platform.Environment{Config: func() *model.ConfigStatus { return &model.ConfigStatus{Audit: config} }}
		log := auditevent.Open(env)
		_, err := log.List(t.Context(), resource.ListInput{Caller: admin})
		_, getErr := log.Get(t.Context(), resource.GetInput{Caller: admin, Name: "0"})
		unknown := config != nil && config.DataStoreEndpoint == secret.Mark
		if code(err) != 501 || code(getErr) != 501 || strings.Contains(err.Error(), "redis") || strings.Contains(err.Error(), "is not known here") != unknown {
			t.Errorf("%s: %v, %v", about, err, getErr)
		}
	}
	failing := some()
	failing.err = errors.New("canary")
	_, err := newLog(failing).List(t.Context(), resource.ListInput{Caller: admin})
	_, getErr := newLog(failing).Get(t.Context(), resource.GetInput{Caller: admin, Name: "0"})
	if code(err) != 503 || code(getErr) != 503 || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v, %v", err, getErr)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	log := newLog(some())
	for name, want := range map[string]string{
		"1": "[1 ben delete ownedaccesskeys/ci in p-shop 403 59s]",
		"5": "[5 ana list ownedaccesskeys in p-shop <nil> 55s]",
		"4": "[4 system:anonymous get /4 401 56s]",
	} {
		event, err := log.Get(t.Context(), resource.GetInput{Caller: admin, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(auditevent.Definition.Cells(event, begin.Add(time.Minute))[:6]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Events before the creation of a user or a team are of an earlier user or team with the same name. Source: ADR-0047.
func TestFormerUsers(t *testing.T) {
	t.Parallel()
	m := &memory{}
	for _, uid := range []string{"user:ana", "team:core", "user:ana", "team:core"} {
		m.add(uid, "ana", "get", "users/ana", 200)
	}
	log := newLog(m)
	log.Created = func(context.Context, identity.Caller) (map[string]time.Time, error) {
		return map[string]time.Time{"user:ana": begin.Add(2 * time.Second), "team:core": begin.Add(2 * time.Second)}, nil
	}
	list, err := log.List(t.Context(), resource.ListInput{Caller: ana})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, event := range list.(*model.AuditEventList).Items {
		names = append(names, event.Name)
	}
	if want := []string{"3", "2"}; !slices.Equal(names, want) {
		t.Errorf("ana sees %q, want %q", names, want)
	}
	for name, want := range map[string]int32{"0": 404, "1": 404, "2": 200, "3": 200} {
		if _, err := log.Get(t.Context(), resource.GetInput{Caller: ana, Name: name}); code(err) != want && (err != nil || want != 200) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
