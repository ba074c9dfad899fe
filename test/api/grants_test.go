package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const group = "/apis/management.platform.sh/v1/"

// grantsWorld is a state with people, and the keys of an admin boss and of ana, who owns the project shop.
type grantsWorld struct{ *configWorld }

func newGrantsWorld(t *testing.T) grantsWorld {
	t.Helper()
	n := grantsWorld{newConfigWorld(t, redistest.Embedded(t))}
	n.seed()
	n.setConfig(`{"platformHost":"platform.example.com"}`)
	for _, object := range [][2]string{
		{"users", `{"metadata":{"name":"boss"},"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`},
		{"users", `{"metadata":{"name":"ana"}}`}, {"users", `{"metadata":{"name":"ben"}}`},
		{"users", `{"metadata":{"name":"idle"},"spec":{"disabled":true,"clusterRoles":[{"name":"platform-admin"}]}}`},
		{"teams", `{"metadata":{"name":"chiefs"},"spec":{"users":["boss"],"groups":["chief"],"clusterRoles":[{"name":"platform-admin"}]}}`},
		{"teams", `{"metadata":{"name":"web"},"spec":{"users":["ana"]}}`},
		{"projects", `{"metadata":{"name":"shop"},"spec":{"owner":{"user":"ana"}}}`},
		{"trustrules", `{"metadata":{"name":"ci"},"spec":{"issuer":"https://issuer.example","match":[{"claim":"sub","is":"a"}],"owner":{"user":"boss"},"scope":{}}}`},
		{"namespaces/p-shop/virtualclusterinstances", `{"metadata":{"name":"dev"},"spec":{"owner":{"user":"ana"},"accessPoint":{"ingress":{"enabled":true,"host":"dev.example.com"}}}}`},
		{"namespaces/p-shop/virtualclusterinstances", `{"metadata":{"name":"live"},"spec":{"owner":{"user":"ben"},"accessPoint":{"ingress":{"enabled":true,"host":"live.example.com"}}}}`},
		{"ownedaccesskeys", `{"metadata":{"name":"boss"},"spec":{"user":"boss","key":"` + bossBearer + `"}}`},
		{"users/ana/accesskeys", `{"metadata":{"name":"of-ana"},"spec":{"key":"` + ofAnaBearer + `"}}`},
		{"users/boss/password", `{"spec":{"password":"` + bossPassword + `"}}`},
	} {
		if answer, text := n.ask(adminBearer, "POST", group+object[0], object[1]); answer.StatusCode != 201 {
			t.Fatalf("%s: %d %s", object[0], answer.StatusCode, text)
		}
	}
	// A password ends the credentials that the user had.
	n.expect(201, adminBearer, "POST", group+"ownedaccesskeys", `{"metadata":{"name":"boss2"},"spec":{"user":"boss","key":"`+boss2Bearer+`"}}`)
	return n
}

const (
	bossBearer   = "boss-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-1"
	boss2Bearer  = "boss-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-2"
	ofAnaBearer  = "ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-02"
	bossPassword = "nine-violet-kettles-hum"
)

// createChild makes a key with another key and returns its bearer token.
func (n grantsWorld) createChild(parent, name, spec string) string {
	n.t.Helper()
	text := n.expect(201, parent, "POST", keysPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s}}`, name, spec))
	var key struct{ Spec struct{ Key string } }
	if err := json.Unmarshal([]byte(text), &key); err != nil || key.Spec.Key == "" {
		n.t.Fatalf("%v %s", err, text)
	}
	return key.Spec.Key
}

// grant is a request that grants rights to a user, a team or a key, with the field that a refusal names.
type grant struct {
	what, method, path, body, cause string
	// scoped is true if a credential with a scope that permits the request is refused. ending is true if a credential with an end is refused.
	scoped, ending bool
}

var grants = []grant{
	{"a key that acts as somebody else", "POST", "ownedaccesskeys", `{"spec":{"user":"ana","scope":%SCOPE}}`, "spec.user", true, false},
	{"a key that acts as a team", "POST", "ownedaccesskeys", `{"spec":{"team":"web","scope":%SCOPE}}`, "spec.team", true, false},
	{"a key that acts as nobody yet", "POST", "ownedaccesskeys", `{"spec":{"subject":"whoever","scope":%SCOPE}}`, "spec.subject", true, false},
	{"a key at the user", "POST", "users/ana/accesskeys", `{"spec":{"scope":%SCOPE}}`, "spec.user", true, false},
	{"a key for oneself", "POST", "ownedaccesskeys", `{"spec":{"scope":%SCOPE}}`, "", false, false},
	{"a new admin", "POST", "users", `{"metadata":{"name":"new"},"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`, "spec.clusterRoles", true, true},
	{"an admin", "PATCH", "users/ben", `{"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`, "spec.clusterRoles", true, true},
	{"a group", "PATCH", "users/ben", `{"spec":{"groups":["chief"]}}`, "spec.groups", true, true},
	{"a group of a provider", "PATCH", "users/ben", `{"spec":{"ssoGroups":["chief"]}}`, "spec.ssoGroups", true, true},
	{"a sign-in", "PATCH", "users/boss", `{"spec":{"connector":"evil","subject":"1"}}`, "spec.connector", true, true},
	{"a claim", "PATCH", "users/ben", `{"spec":{"extraClaims":{"role":"root"}}}`, "spec.extraClaims[role]", true, true},
	{"an admin who was switched off", "PATCH", "users/idle", `{"spec":{"disabled":false}}`, "spec.disabled", true, true},
	{"a plain user", "POST", "users", `{"metadata":{"name":"plain"}}`, "", false, false},
	{"a name", "PATCH", "users/boss", `{"spec":{"displayName":"The boss"}}`, "", false, false},
	{"a switched off user", "PATCH", "users/ben", `{"spec":{"disabled":true}}`, "", false, false},
	{"a password", "POST", "users/boss/password", `{"spec":{"password":"four-amber-sextants-sing"}}`, "spec.password", true, true},
	{"a password, and the current one", "POST", "users/boss/password", `{"spec":{"password":"four-amber-sextants-sing","current":"` + bossPassword + `"}}`, "", false, false},
	{"a team of admins", "POST", "teams", `{"metadata":{"name":"new"},"spec":{"clusterRoles":[{"name":"platform-admin"}],"users":["ben"]}}`, "spec.clusterRoles", true, true},
	{"a member of the admins", "PATCH", "teams/chiefs", `{"spec":{"users":["boss","ben"]}}`, "spec.users", true, true},
	{"a group of the admins", "PATCH", "teams/chiefs", `{"spec":{"groups":["chief","everybody"]}}`, "spec.groups", true, true},
	{"a role of a team", "PATCH", "teams/web", `{"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`, "spec.clusterRoles", true, true},
	{"a member less", "PATCH", "teams/chiefs", `{"spec":{"users":[],"displayName":"Chiefs"}}`, "", false, false},
	{"a rule for jobs", "POST", "trustrules", `{"metadata":{"name":"new"},"spec":{"issuer":"https://evil.example","match":[{"claim":"sub","is":"a"}],"owner":{"user":"boss"},"scope":{}}}`, "spec.issuer", false, true},
	{"a rule for somebody else", "POST", "trustrules", `{"metadata":{"name":"new"},"spec":{"issuer":"https://evil.example","match":[{"claim":"sub","is":"a"}],"owner":{"user":"ana"},"scope":{}}}`, "spec.owner", true, true},
	{"another issuer", "PATCH", "trustrules/ci", `{"spec":{"issuer":"https://evil.example"}}`, "spec.issuer", false, true},
	{"other jobs", "PATCH", "trustrules/ci", `{"spec":{"match":[{"claim":"sub","is":"b"}]}}`, "spec.match", false, true},
	{"a rule that is switched off", "PATCH", "trustrules/ci", `{"spec":{"disabled":true}}`, "", false, false},
	{"an admin of a project", "PATCH", "projects/shop", `{"spec":{"members":[{"kind":"User","name":"ben","role":"admin"}]}}`, "spec.members", true, false},
	{"a viewer of a project", "PATCH", "projects/shop", `{"spec":{"members":[{"kind":"User","name":"ben","role":"view"}]}}`, "spec.members", true, false},
	{"an owner of a project", "PATCH", "projects/shop", `{"spec":{"owner":{"user":"ben"}}}`, "spec.owner", true, false},
	{"an owner of a virtual cluster", "PATCH", "namespaces/p-shop/virtualclusterinstances/dev", `{"spec":{"owner":{"user":"ben"}}}`, "spec.owner", true, false},
	{"access to a virtual cluster", "PATCH", "namespaces/p-shop/virtualclusterinstances/dev", `{"spec":{"access":[{"verbs":["use"],"users":["ben"]}]}}`, "spec.access", true, false},
	{"an address", "PATCH", "namespaces/p-shop/virtualclusterinstances/dev", `{"spec":{"accessPoint":{"ingress":{"host":"evil.example.com"}}}}`, "spec.accessPoint", true, false},
	{"an address in the status", "PATCH", "namespaces/p-shop/virtualclusterinstances/dev/status", `{"status":{"ingress":{"host":"evil.example.com"}}}`, "status.ingress", true, false},
	{"a name of a virtual cluster", "PATCH", "namespaces/p-shop/virtualclusterinstances/dev", `{"spec":{"displayName":"Dev"}}`, "", false, false},
	{"a provider", "PATCH", "configs/config", `{"status":{"auth":{"oidc":{"issuerUrl":"https://evil.example","clientId":"a","clientSecret":"b"}}}}`, "", false, false},
	{"longer lives of keys", "PATCH", "configs/config", `{"status":{"auth":{"accessKeyMaxTTLSeconds":864000}}}`, "", false, false},
	{"the address of the platform", "PATCH", "configs/config", `{"status":{"platformHost":"evil.example.com"}}`, "", false, false},
	{"a colour", "PATCH", "configs/config", `{"status":{"uiSettings":{"primaryColor":"#123456"}}}`, "", false, false},
}

// A credential of an admin grants what the admin may grant. A credential with a scope grants nothing beyond its scope, although the scope
// permits the request. A credential with an end grants nothing that lasts. Source: ADR-0047.
func TestGrants(t *testing.T) {
	t.Parallel()
	// The rule permits all requests here. It covers no project, and no virtual cluster.
	const scope = `{"rules":[{"resources":[{"group":"management.platform.sh"}]}]}`
	credentials := []struct {
		name, spec string
		refused    func(grant) bool
	}{
		{"full", ``, func(grant) bool { return false }},
		{"scoped", `"scope":` + scope, func(g grant) bool { return g.scoped }},
		{"ending", `"ttl":600`, func(g grant) bool { return g.ending }},
		{"narrow", `"ttl":600,"scope":` + scope, func(g grant) bool { return g.scoped || g.ending }},
	}
	for _, credential := range credentials {
		t.Run(credential.name, func(t *testing.T) {
			t.Parallel()
			n := newGrantsWorld(t)
			bearer := n.createChild(boss2Bearer, "child", credential.spec)
			given := "null"
			if strings.Contains(credential.spec, "scope") {
				given = "{}"
			}
			for _, g := range grants {
				body := strings.ReplaceAll(g.body, "%SCOPE", given)
				refused := credential.refused(g)
				queries := []string{"?dryRun=All"}
				if refused {
					queries = append(queries, "")
				}
				for _, query := range queries {
					answer, text := n.ask(bearer, g.method, group+g.path+query, body)
					switch {
					case refused && (answer.StatusCode != 403 || !strings.Contains(text, `"field":"`+g.cause+`"`)):
						t.Errorf("%s: %d %s; want 403 for %s", g.what, answer.StatusCode, text, g.cause)
					case !refused && answer.StatusCode >= 300:
						t.Errorf("%s: %d %s", g.what, answer.StatusCode, text)
					}
				}
			}
		})
	}
}

// A key that gets another owner is bound to the user or team of that moment, as a new key is. Source: ADR-0047.
func TestAssignedKeys(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	owner := func() string {
		var key struct {
			Status struct{ Owner struct{ UID string } }
		}
		if err := json.Unmarshal([]byte(n.expect(200, adminBearer, "GET", keysPath+"/of-ana", "")), &key); err != nil {
			t.Fatal(err)
		}
		return key.Status.Owner.UID
	}
	first := owner()
	give := func(to string) { n.expect(200, ofAnaBearer, "PATCH", keysPath+"/of-ana", `{"spec":`+to+`}`) }
	give(`{"user":null,"team":"web"}`)
	if team := owner(); team == "" || team == first {
		t.Errorf("the key of the team is bound to %q", team)
	}
	n.expect(201, adminBearer, "POST", group+"users/ana/signout", `{}`)
	n.expect(200, adminBearer, "PATCH", keysPath+"/of-ana", `{"spec":{"team":null,"user":"ana"}}`)
	if back := owner(); back != first || first == "" {
		t.Errorf("the key is bound to %q, and was to %q", back, first)
	}
	n.expect(201, ofAnaBearer, "POST", selves, `{}`)
}

// A key that ends is not the last admin. Source: ADR-0047.
func TestLastAdminKey(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	n.expect(200, adminBearer, "PATCH", group+"teams/chiefs", `{"spec":{"users":[]}}`)
	n.createChild(adminBearer, "ghost", `"user":"ghost","groups":["platform:admins"],"ttl":60`)
	disabled := n.createChild(adminBearer, "bound", `"user":"ghost","groups":["platform:admins"],"ttl":600`)
	n.createChild(disabled, "child", `"user":"ghost","groups":["platform:admins"]`)
	n.expect(200, boss2Bearer, "DELETE", keysPath+"/admin", "")
	n.expect(409, boss2Bearer, "PATCH", group+"users/boss", `{"spec":{"clusterRoles":[]}}`)
	n.createChild(boss2Bearer, "second", `"user":"other","groups":["platform:admins"]`)
	n.expect(200, boss2Bearer, "PATCH", group+"users/boss", `{"spec":{"clusterRoles":[]}}`)
}

// The key of a team, and a key made with it, names the member who made it, and shares that member's places. A key that an admin makes names no
// member. Source: ADR-0047.
func TestKeysOfTeamsShare(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	maker := func(name, bearer string) (of, person string) {
		var key model.OwnedAccessKey
		if err := json.Unmarshal([]byte(n.expect(200, adminBearer, "GET", keysPath+"/"+name, "")), &key); err != nil {
			t.Fatal(err)
		}
		caller, err := accesskey.OpenAuthenticator(n.env).Bearer(t.Context(), secret.String(bearer))
		if err != nil {
			t.Fatal(err)
		}
		return key.Status.CreatedBy.Owner, caller.Person()
	}
	team := n.createChild(ofAnaBearer, "team", `"team":"web"`)
	for name, want := range map[string][2]string{
		"team":  {"user:ana", "user:ana"},
		"child": {"user:ana", "user:ana"},
		"own":   {"", "user:ana"},
		"admin": {"", "team:web"},
	} {
		var bearer string
		switch name {
		case "team":
			bearer = team
		case "child":
			bearer = n.createChild(team, name, `"team":"web"`)
		case "own":
			bearer = n.createChild(ofAnaBearer, name, "")
		case "admin":
			name = "by-admin"
			bearer = n.createChild(adminBearer, name, `"team":"web"`)
		}
		if of, person := maker(name, bearer); of != want[0] || person != want[1] {
			t.Errorf("%s: made by %q, and shares with %q; want %q", name, of, person, want)
		}
	}
}

// A key that ends only by the platform's maximum lifetime grants rights that last: with a maximum, every key ends. Source: ADR-0047.
func TestKeysOfALimitedPlatform(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	n.setConfig(`{"auth":{"accessKeyMaxTTLSeconds":864000}}`)
	n.expect(201, boss2Bearer, "POST", group+"users", `{"metadata":{"name":"new"},"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`)
	ending := n.createChild(boss2Bearer, "ending", `"ttl":8640000`)
	n.expect(403, ending, "POST", group+"users", `{"metadata":{"name":"other"},"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`)
}
