package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

// thief has one narrow credential, makes others with it, and tries to end with more.
type thief struct {
	grantsWorld
	random *rand.Rand
	owner  string
	admin  bool
	// scope is the scope of the credential; nil means none. ends is the time at which the credential ends; zero means never.
	scope *model.Scope
	ends  time.Time
	// bearers are the credentials that the thief has, and key the name of the first.
	bearers []string
	key     string
}

// scopesOf are the scopes, in JSON, of the credentials in the test.
var scopesOf = []string{
	`null`, `{}`, `{"rules":[{"resources":[{"group":"management.platform.sh"}]}]}`, `{"virtualClusters":[{"project":"shop","virtualCluster":"dev"}]}`,
	`{"projects":[{"project":"shop"}]}`, `{"rules":[{"resources":[{"group":"management.platform.sh","resources":["users","teams","users/*"]}]}]}`,
}

func oneOf[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func newThief(t *testing.T, seed uint64) *thief {
	t.Helper()
	th := &thief{grantsWorld: newGrantsWorld(t), random: rand.New(rand.NewPCG(seed, 1))}
	parent := boss2Bearer
	th.owner, th.admin = "boss", true
	if th.random.IntN(3) == 0 {
		parent, th.owner, th.admin = ofAnaBearer, "ana", false
	}
	text, ttl := oneOf(th.random, scopesOf...), oneOf(th.random, 0, 600)
	if th.admin && text == "null" {
		ttl = 600
	}
	if err := json.Unmarshal([]byte(text), &th.scope); err != nil {
		t.Fatal(err)
	}
	if ttl > 0 {
		th.ends = th.now.Add(time.Duration(ttl) * time.Second)
	}
	th.key = "stolen"
	th.bearers = []string{th.createChild(parent, th.key, fmt.Sprintf(`"scope":%s,"ttl":%d`, text, ttl))}
	return th
}

// request draws a request.
func (th *thief) request() request {
	r := th.random
	person := func() string { return oneOf(r, "boss", "ana", "ben", "idle", "new") }
	team := func() string { return oneOf(r, "chiefs", "web", "new") }
	roles := func() string { return oneOf(r, `[]`, `[{"name":"platform-admin"}]`) }
	list := func(draw func() string) string {
		var drawn []string
		for range r.IntN(3) {
			if one := draw(); !slices.Contains(drawn, one) {
				drawn = append(drawn, one)
			}
		}
		text, _ := json.Marshal(append([]string{}, drawn...))
		return string(text)
	}
	groups := func() string { return list(func() string { return oneOf(r, "chief", "other") }) }
	owner := func() string {
		return oneOf(r, fmt.Sprintf(`{"user":%q}`, person()), fmt.Sprintf(`{"team":%q}`, team()))
	}
	randomScope := func() string { return oneOf(r, scopesOf...) }
	keySpec := func() string {
		parts := []string{
			`"scope":` + randomScope(), fmt.Sprintf(`"ttl":%d`, oneOf(r, 0, 60, 86400)), fmt.Sprintf(`"disabled":%v`, r.IntN(4) == 0),
			`"groups":` + list(func() string { return oneOf(r, "platform:admins", "platform:team:web", "chief") }),
			oneOf(r, fmt.Sprintf(`"user":%q`, person()), fmt.Sprintf(`"team":%q`, team()), `"subject":"job"`),
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return strings.Join(parts[:r.IntN(len(parts)+1)], ",")
	}
	kind := oneOf(r, "key", "key", "user", "team", "rule", "project", "instance", "password", "kubeconfig", "token")
	create := r.IntN(3) == 0
	var path, name, spec string
	switch kind {
	case "key":
		path, name, spec = "ownedaccesskeys", oneOf(r, "boss2", "of-ana", "stolen", "made"), keySpec()
		if create = r.IntN(2) == 0; create {
			path = oneOf(r, path, "users/"+person()+"/accesskeys", "teams/"+team()+"/accesskeys")
		}
	case "user":
		path, name = "users", person()
		parts := []string{
			`"clusterRoles":` + roles(), `"groups":` + groups(), `"ssoGroups":` + groups(), fmt.Sprintf(`"disabled":%v`, r.IntN(2) == 0),
			`"connector":"evil","subject":"1"`, `"extraClaims":{"a":"b"}`, `"displayName":"x"`,
		}
		spec = oneOf(r, parts...) + "," + oneOf(r, parts...)
	case "team":
		path, name = "teams", team()
		parts := []string{`"clusterRoles":` + roles(), `"groups":` + groups(), `"users":` + list(person), fmt.Sprintf(`"disabled":%v`, r.IntN(2) == 0), `"displayName":"x"`}
		spec = oneOf(r, parts...) + "," + oneOf(r, parts...)
	case "rule":
		path, name = "trustrules", oneOf(r, "ci", "new")
		spec = fmt.Sprintf(`"issuer":"https://%s.example","match":[{"claim":"sub","is":%q}],"owner":%s,"scope":%s`,
			oneOf(r, "issuer", "evil"), oneOf(r, "a", "b"), owner(), randomScope())
	case "project":
		path, name = "projects", oneOf(r, "shop", "new")
		spec = oneOf(r, `"owner":`+owner(), fmt.Sprintf(`"members":[{"kind":"User","name":%q,"role":%q}]`, person(), oneOf(r, "admin", "use", "view")))
	case "instance":
		path, name = "namespaces/p-shop/virtualclusterinstances", oneOf(r, "dev", "live", "new")
		spec = oneOf(r, `"owner":`+owner(), fmt.Sprintf(`"access":[{"verbs":[%q],"users":[%q]}]`, oneOf(r, "use", "*"), person()),
			`"accessPoint":{"ingress":{"enabled":true,"host":"evil.example.com"}}`)
	case "password":
		return request{method: "POST", path: group + "users/" + person() + "/password", body: `{"spec":{"password":"four-amber-sextants-sing"}}`}
	case "kubeconfig":
		return request{method: "POST", path: group + "namespaces/p-shop/virtualclusterinstances/" + oneOf(r, "dev", "live") + "/kubeconfig", body: `{}`}
	case "token":
		return request{method: "POST", path: group + "directclusterendpointtokens", body: `{"spec":{"scope":` + randomScope() + `}}`}
	}
	if create {
		metadata := fmt.Sprintf(`{"name":%q}`, oneOf(r, name, "new"))
		if kind == "key" {
			metadata = "{}"
		}
		return request{method: "POST", path: group + path, body: fmt.Sprintf(`{"metadata":%s,%q:{%s}}`, metadata, "spec", spec)}
	}
	target := request{method: "PATCH", path: group + path + "/" + name, body: fmt.Sprintf(`{%q:{%s}}`, "spec", spec)}
	if r.IntN(3) == 0 {
		kinds := map[string]string{
			"key": "OwnedAccessKey", "user": "User", "team": "Team", "rule": "TrustRule", "project": "Project", "instance": "VirtualClusterInstance",
		}
		target.path += "?fieldManager=thief&force=true"
		target.contentType = "application/apply-patch+yaml"
		target.body = fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":%q,"metadata":{"name":%q},%q:{%s}}`, kinds[kind], name, "spec", spec)
	}
	return target
}

// items reads all objects of a resource, as an admin.
func items[T any](th *thief, path string) []T {
	th.t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(th.expect(200, adminBearer, "GET", group+path, "")), &list); err != nil {
		th.t.Fatal(err)
	}
	return list.Items
}

// rights are the rights that the objects of the platform give, each as a text. They are grouped into rights that last, rights that work by
// themselves within a scope, and roles in the project shop.
type rights struct{ lasting, rules, roles map[string]bool }

func (th *thief) rights() rights {
	th.t.Helper()
	all := rights{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	add := func(to map[string]bool, format string, args ...any) { to[fmt.Sprintf(format, args...)] = true }
	for _, user := range items[model.User](th, "users") {
		for _, role := range user.Spec.ClusterRoles {
			add(all.lasting, "%s role %s", user.Name, role.Name)
		}
		for _, group := range slices.Concat(user.Spec.Groups, user.Spec.SSOGroups) {
			add(all.lasting, "%s group %s", user.Name, group)
		}
		for name := range user.Spec.ExtraClaims {
			add(all.lasting, "%s claim %s", user.Name, name)
		}
		if user.Spec.Subject != "" {
			add(all.lasting, "%s signs in", user.Name)
		}
		if !user.Spec.Disabled && user.Name != "new" {
			add(all.lasting, "%s works", user.Name)
		}
		if user.Status.HasPassword {
			add(all.lasting, "%s password %d", user.Name, user.Spec.TokenGeneration)
		}
	}
	for _, team := range items[model.Team](th, "teams") {
		for _, role := range team.Spec.ClusterRoles {
			add(all.lasting, "%s role %s", team.Name, role.Name)
		}
		for _, member := range slices.Concat(team.Spec.Users, team.Spec.Groups) {
			add(all.lasting, "%s member %s", team.Name, member)
		}
		if !team.Spec.Disabled && team.Name != "new" {
			add(all.lasting, "%s works", team.Name)
		}
	}
	for _, rule := range items[model.TrustRule](th, "trustrules") {
		text, _ := json.Marshal([]any{rule.Spec.Issuer, rule.Spec.Match, rule.Spec.Scope})
		add(all.rules, "%s %v %s", rule.Name, *rule.Spec.Owner, text)
	}
	for _, project := range items[model.Project](th, "projects") {
		if project.Spec.Owner != nil {
			add(all.roles, "project %s owner %v", project.Name, *project.Spec.Owner)
		}
		for _, member := range project.Spec.Members {
			add(all.roles, "project %s member %v", project.Name, member)
		}
	}
	for _, instance := range items[model.VirtualClusterInstance](th, "virtualclusterinstances") {
		for _, entry := range instance.Spec.Access {
			add(all.roles, "instance %s access %v", instance.Name, entry)
		}
		if at := instance.Spec.AccessPoint; at != nil && instance.Name != "new" {
			add(all.roles, "instance %s at %s", instance.Name, at.Ingress.Host)
		}
		own := map[string]string{"boss": "chiefs", "ana": "web"}[th.owner]
		if owner := instance.Spec.Owner; owner != nil && owner.User != th.owner && owner.Team != own {
			add(all.roles, "instance %s owner %v", instance.Name, *owner)
		}
	}
	return all
}

// gainedRights returns the rights that are new.
func gainedRights(now, before map[string]bool) []string {
	var more []string
	for right := range now {
		if !before[right] {
			more = append(more, right)
		}
	}
	slices.Sort(more)
	return more
}

// covers reports whether the scope of the thief's credential covers the object of a right.
func (th *thief) covers(right string) bool {
	switch {
	case th.scope == nil:
		return true
	case len(th.scope.Projects) > 0:
		return !strings.Contains(right, "project new")
	}
	return len(th.scope.VirtualClusters) > 0 && strings.HasPrefix(right, "instance dev ")
}

// check fails the test if a request has gained the thief rights.
func (th *thief) check(before, now rights, keys map[string]bool) {
	th.t.Helper()
	full := th.admin && th.scope == nil && th.ends.IsZero()
	if more := gainedRights(now.lasting, before.lasting); !full && len(more) > 0 {
		th.t.Errorf("lasting rights: %q", more)
	}
	for _, rule := range gainedRights(now.rules, before.rules) {
		if !th.admin || !th.ends.IsZero() || !strings.Contains(rule, "{"+th.owner+" }") {
			th.t.Errorf("a rule: %s", rule)
		}
	}
	for _, role := range gainedRights(now.roles, before.roles) {
		foreign := strings.HasPrefix(role, "instance") && strings.Contains(role, " owner ")
		if !th.covers(role) || foreign && (th.scope != nil || !th.admin) {
			th.t.Errorf("a role: %s", role)
		}
	}
	for _, key := range items[model.OwnedAccessKey](th, "ownedaccesskeys") {
		if keys[key.Name] {
			continue
		}
		keys[key.Name] = true
		if th.scope != nil && key.Spec.User != th.owner {
			th.t.Errorf("a key of %s%s%s", key.Spec.User, key.Spec.Team, key.Spec.Subject)
		}
		if excess := scope.Exceeds(key.Spec.Scope, th.scope, field.NewPath("scope")); len(excess) > 0 {
			th.t.Errorf("a key with the scope %+v", key.Spec.Scope)
		}
		if end := key.Status.ExpirationTimestamp; !th.ends.IsZero() && (end == nil || end.After(th.ends)) {
			th.t.Errorf("a key that ends %v", end)
		}
	}
}

// A thief with a narrow credential, and with every credential made from it, gains no rights beyond the first credential: over time, by names,
// by groups, by scopes and by addresses. Source: ADR-0047.
func TestNoEscalation(t *testing.T) {
	t.Parallel()
	rounds, steps := 40, 120
	if testing.Short() {
		rounds, steps = 6, 60
	}
	for i := range rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			th := newThief(t, seed)
			keys := map[string]bool{}
			for _, key := range items[model.OwnedAccessKey](th, "ownedaccesskeys") {
				keys[key.Name] = true
			}
			succeeded := 0
			for range steps {
				before, attack := th.rights(), th.request()
				attack.bearer = oneOf(th.random, th.bearers...)
				answer, text := th.send(attack)
				if answer.StatusCode >= 500 {
					t.Errorf("%d %s", answer.StatusCode, text)
				}
				if answer.StatusCode < 300 {
					succeeded++
					th.check(before, th.rights(), keys)
					var made model.OwnedAccessKey
					if json.Unmarshal([]byte(text), &made) == nil && made.Kind == "OwnedAccessKey" && made.Spec.Key != "" {
						th.bearers = append(th.bearers, made.Spec.Key)
					}
				}
				if t.Failed() {
					t.Fatalf("seed %d: %s with the scope %+v until %v: %s %s %s: %d %s", seed, th.owner, th.scope, th.ends, attack.method, attack.path, attack.body, answer.StatusCode, text)
				}
			}
			t.Logf("%d requests had an effect", succeeded)
		})
	}
}
