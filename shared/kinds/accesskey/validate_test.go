package accesskey_test

import (
	"fmt"
	"strings"
	"testing"
)

// giving says of each field of a key what a change of it may give the key. Empty: nothing.
var giving = map[string]string{
	"displayName":          "",
	"description":          "",
	"groups":               "", // Authorize compares the groups one by one.
	"disabled":             "rights, when the key is enabled again",
	"user":                 "an owner",
	"team":                 "an owner",
	"subject":              "an owner",
	"key":                  "another bearer token",
	"ttl":                  "a later end",
	"ttlAfterLastActivity": "a later end",
	"scope":                "a wider scope",
	"type":                 "the limits and the life of another type",
	"identity":             "what a sign-in wrote",
	"identityRefresh":      "what a sign-in wrote",
	"oidcProvider":         "what a sign-in wrote",
	"parent":               "what a sign-in wrote",
	"oidcLogin":            "what a sign-in wrote",
}

func TestValidate(t *testing.T) {
	quoted := func(c string, n int) string { return `"` + strings.Repeat(c, n) + `"` }
	groups := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("g%d", i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	for _, row := range []struct {
		section  string
		sentence string
		spec     string
		want     []string
	}{
		{"Spec 2.5", "a key refers to a user", `{user: a, type: User}`, nil},
		{"Spec 2.5", "or to a team", `{team: a, type: User}`, nil},
		{"Spec 2.5", "or to a generic subject", `{subject: "serviceaccount:ns:ci", type: User}`, nil},
		{"ADR-0022", "a user has no name of Kubernetes", `{user: "system:admin", type: User}`, []string{invalid + "spec.user"}},
		{"ADR-0022", "a team has no name of Kubernetes", `{team: "system:masters", type: User}`, []string{invalid + "spec.team"}},
		{"ADR-0022", "a subject has no name of Kubernetes", `{subject: "system:serviceaccount:ns:ci", type: User}`, []string{invalid + "spec.subject"}},
		{"ADR-0022", "a user has no name of the platform", `{user: "platform:subject:ci", type: User}`, []string{invalid + "spec.user"}},
		{"ADR-0022", "a team has no name of the platform", `{team: "platform:admins", type: User}`, []string{invalid + "spec.team"}},
		{"ADR-0022", "a subject has no name of the platform", `{subject: "platform:team:dev", type: User}`, []string{invalid + "spec.subject"}},
		{"ADR-0022", "a prefix has its colon", `{user: "platform", type: User}`, nil},
		{"ADR-0005", "exactly one: not none", `{type: User}`, []string{required + "spec.user"}},
		{"ADR-0005", "exactly one: not user and team", `{user: a, team: b, type: User}`, []string{invalid + "spec.team"}},
		{"ADR-0005", "exactly one: not user and subject", `{user: a, subject: b, type: User}`, []string{invalid + "spec.subject"}},
		{"ADR-0005", "exactly one: not team and subject", `{team: a, subject: b, type: User}`, []string{invalid + "spec.subject"}},
		{"ADR-0005", "exactly one: not all three", `{user: a, team: b, subject: c, type: User}`, []string{invalid + "spec.team", invalid + "spec.subject"}},
		{"ADR-0005", "an owner is one line", `{user: "a\nb", type: User}`, []string{invalid + "spec.user"}},
		{"ADR-0005", "a team is one line", `{team: "a\u0000b", type: User}`, []string{invalid + "spec.team"}},
		{"ADR-0005", "a subject is one line", `{subject: "a\u009bb", type: User}`, []string{invalid + "spec.subject"}},
		{"ADR-0005", "an owner has up to 253 bytes", `{user: ` + quoted("a", 253) + `, type: User}`, nil},
		{"ADR-0005", "an owner has no more than 253 bytes", `{user: ` + quoted("a", 254) + `, type: User}`, []string{tooLong + "spec.user"}},

		{"Spec 2.5", "the display name is text", `{user: a, type: User, displayName: "CI für Köln"}`, nil},
		{"ADR-0005", "the display name is one line", `{user: a, type: User, displayName: "a\tb"}`, []string{invalid + "spec.displayName"}},
		{"ADR-0005", "the display name cannot move the cursor", `{user: a, type: User, displayName: "\u001b[2J"}`, []string{invalid + "spec.displayName"}},
		{"ADR-0005", "the display name has up to 256 bytes", `{user: a, type: User, displayName: ` + quoted("a", 256) + `}`, nil},
		{"ADR-0005", "the display name has no more", `{user: a, type: User, displayName: ` + quoted("a", 257) + `}`, []string{tooLong + "spec.displayName"}},
		{"ADR-0005", "the length is one of bytes", `{user: a, type: User, displayName: ` + quoted("ü", 129) + `}`, []string{tooLong + "spec.displayName"}},
		{"Spec 2.5", "the description is free text", `{user: a, type: User, description: "one\ntwo\tthree"}`, nil},
		{"ADR-0005", "the description has up to 4096 bytes", `{user: a, type: User, description: ` + quoted("a", 4096) + `}`, nil},
		{"ADR-0005", "the description has no more", `{user: a, type: User, description: ` + quoted("a", 4097) + `}`, []string{tooLong + "spec.description"}},

		{"Spec 2.5", "extra groups", `{user: a, type: User, groups: [ops, "platform:team:dev"]}`, nil},
		{"ADR-0005", "a group has a name", `{user: a, type: User, groups: [ops, ""]}`, []string{required + "spec.groups[1]"}},
		{"ADR-0005", "no group twice", `{user: a, type: User, groups: [ops, dev, ops]}`, []string{duplicate + "spec.groups[2]"}},
		{"ADR-0005", "groups with system: are nobody's to give", `{user: a, type: User, groups: ["system:masters", "system:authenticated"]}`,
			[]string{invalid + "spec.groups[0]", invalid + "spec.groups[1]"}},
		{"ADR-0005", "a group is one line", `{user: a, type: User, groups: ["a\rb"]}`, []string{invalid + "spec.groups[0]"}},
		{"ADR-0005", "a group has up to 256 bytes", `{user: a, type: User, groups: [` + quoted("a", 256) + `]}`, nil},
		{"ADR-0005", "a group has no more", `{user: a, type: User, groups: [` + quoted("a", 257) + `]}`, []string{tooLong + "spec.groups[0]"}},
		{"ADR-0005", "up to 256 groups", `{user: a, type: User, groups: ` + groups(256) + `}`, nil},
		{"ADR-0005", "no more groups", `{user: a, type: User, groups: ` + groups(257) + `}`, []string{tooMany + "spec.groups"}},

		{"Spec 2.5", "a ttl of 0 means no ttl", `{user: a, type: User, ttl: 0}`, nil},
		{"Spec 2.5", "the longest ttl", `{user: a, type: User, ttl: 9223372036854775807}`, nil},
		{"Spec 2.5", "a ttl is not negative", `{user: a, type: User, ttl: -1}`, []string{invalid + "spec.ttl"}},
		{"Spec 2.5", "not even the least", `{user: a, type: User, ttl: -9223372036854775808}`, []string{invalid + "spec.ttl"}},
		{"Spec 2.5", "sliding without ttl has no effect", `{user: a, type: User, ttlAfterLastActivity: true}`, nil},

		{"Spec 2.5", "the type User", `{user: a, type: User}`, nil},
		{"ADR-0005", "the type Other", `{user: a, type: Other}`, nil},
		{"ADR-0005", "a type is given", `{user: a}`, []string{required + "spec.type"}},
		{"ADR-0005", "no unknown type", `{user: a, type: Robot}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "types are compared with case", `{user: a, type: user}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "Login is the server's", `{user: a, type: Login}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "Reset is the server's", `{user: a, type: Reset}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "OIDCRefreshToken is the server's", `{user: a, type: OIDCRefreshToken}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "NetworkPeer is the server's", `{user: a, type: NetworkPeer}`, []string{notSupported + "spec.type"}},
		{"ADR-0005", "Workspace is the server's", `{user: a, type: Workspace}`, []string{notSupported + "spec.type"}},

		{"Spec 2.3", "the scope is optional", `{user: a, type: User, scope: {}}`, nil},
		{"Spec 2.3", "a role is a known one", `{user: a, type: User, scope: {roles: [{role: king}]}}`, []string{notSupported + "spec.scope.roles[0].role"}},
		{"Spec 2.3", "a role has a name", `{user: a, type: User, scope: {roles: [{projects: [p]}]}}`, []string{required + "spec.scope.roles[0].role"}},
		{"Spec 2.3", "a project has a name", `{user: a, type: User, scope: {projects: [{project: ""}]}}`, []string{required + "spec.scope.projects[0].project"}},
		{"Spec 2.3", "a space has a project and a name", `{user: a, type: User, scope: {spaces: [{}]}}`,
			[]string{required + "spec.scope.spaces[0].project", required + "spec.scope.spaces[0].space"}},
		{"Spec 2.3", "a virtual cluster has a project and a name", `{user: a, type: User, scope: {virtualClusters: [{}]}}`,
			[]string{required + "spec.scope.virtualClusters[0].project", required + "spec.scope.virtualClusters[0].virtualCluster"}},
		{"Spec 2.3", "a cluster has a name", `{user: a, type: User, scope: {clusters: [{}]}}`, []string{required + "spec.scope.clusters[0].cluster"}},
		{"Spec 2.3", "with wildcards the entries must not overlap: * and one", `{user: a, type: User, scope: {rules: [{resources: [{resources: [pods, "*"]}]}]}}`,
			[]string{invalid + "spec.scope.rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "with wildcards the entries must not overlap: all subresources and one", `{user: a, type: User, scope: {rules: [{}, {resources: [{}, {resources: ["pods/*", "pods/log"]}]}]}}`,
			[]string{invalid + "spec.scope.rules[1].resources[1].resources[1]"}},
		{"Spec 2.3", "with wildcards the entries must not overlap: one subresource of all", `{user: a, type: User, scope: {rules: [{resources: [{resources: ["*/scale", "deployments/*"]}]}]}}`,
			[]string{invalid + "spec.scope.rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "entries that do not overlap", `{user: a, type: User, scope: {rules: [{resources: [{resources: [pods, "pods/*", "deployments/scale"]}]}]}}`, nil},
		{"Spec 2.3", "resourceNames need resources", `{user: a, type: User, scope: {rules: [{resources: [{group: apps, resourceNames: [web]}]}]}}`,
			[]string{required + "spec.scope.rules[0].resources[0].resources"}},
		{"Spec 2.3", "a wildcard only as the full final path step: not inside", `{user: a, type: User, scope: {rules: [{nonResourceURLs: [/healthz, "/api/*", "/*/version"]}]}}`,
			[]string{invalid + "spec.scope.rules[0].nonResourceURLs[2]"}},
		{"Spec 2.3", "a wildcard only as the full final path step: not a part of it", `{user: a, type: User, scope: {rules: [{nonResourceURLs: ["/api*"]}]}}`,
			[]string{invalid + "spec.scope.rules[0].nonResourceURLs[0]"}},
		{"Spec 2.3", "a URL path begins with a slash", `{user: a, type: User, scope: {rules: [{nonResourceURLs: [healthz]}]}}`,
			[]string{invalid + "spec.scope.rules[0].nonResourceURLs[0]"}},
		{"Spec 2.3", "a request target is a known one", `{user: a, type: User, scope: {rules: [{requestTargets: [Moon]}]}}`,
			[]string{notSupported + "spec.scope.rules[0].requestTargets[0]"}},
		{"Spec 2.3", "the empty namespace matches non-namespaced resources", `{user: a, type: User, scope: {rules: [{namespaces: [""]}]}}`, nil},
		{"Spec 2.3", "a namespace is a label", `{user: a, type: User, scope: {rules: [{namespaces: [a.b]}]}}`, []string{invalid + "spec.scope.rules[0].namespaces[0]"}},

		{"Spec 2.5", "identity is login data", `{user: a, type: User, identity: {userId: x, email: a@b.c, groups: [g]}}`, nil},
		{"Spec 2.5", "connectorData is never shared with clients", `{user: a, type: User, identity: {connectorData: "c2VjcmV0"}}`, []string{forbidden + "spec.identity.connectorData"}},
		{"ADR-0005", "tokens of logins are nobody's to give", `{user: a, type: User, oidcLogin: {idToken: a, accessToken: b, refreshToken: c}}`,
			[]string{forbidden + "spec.oidcLogin.idToken", forbidden + "spec.oidcLogin.accessToken", forbidden + "spec.oidcLogin.refreshToken"}},
		{"Spec 2.5", "the time of a login is no secret", `{user: a, type: User, oidcLogin: {lastRefresh: "2026-03-01T12:00:00Z"}}`, nil},

		{"ADR-0004", "everything that is wrong is told at once",
			`{team: a, subject: b, type: Robot, ttl: -1, displayName: "\n", groups: [""], scope: {roles: [{}]}, identity: {connectorData: "eA=="}}`,
			[]string{
				invalid + "spec.subject", notSupported + "spec.type", invalid + "spec.ttl", invalid + "spec.displayName",
				required + "spec.groups[0]", required + "spec.scope.roles[0].role", forbidden + "spec.identity.connectorData",
			}},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			k := key(t, row.spec)
			same(t, found(rules(0).Rules.Validate(k, nil)), row.want)
			// A replacement must satisfy the same rules. Only a stored type that belongs to the server may stay.
			same(t, found(rules(0).Rules.Validate(k, key(t, `{user: a, type: User}`))), row.want)
		})
	}
}

// A stored key of a type that belongs to the server may be changed, but keeps its type: the lifetime of login keys depends on the
// type. Source: Spec 2.7 (loginAccessKeyTTLSeconds); ADR-0005.
func TestValidateStoredType(t *testing.T) {
	for _, row := range []struct {
		sentence, old, new string
		want               []string
	}{
		{"the stored type stays", "Login", "Login", nil},
		{"the server's type becomes no caller's", "Login", "User", []string{invalid + "spec.type"}},
		{"nor the other", "Workspace", "Other", []string{invalid + "spec.type"}},
		{"the server's type becomes no other one of the server's", "Login", "Workspace", []string{notSupported + "spec.type"}},
		{"a caller's type becomes the server's", "User", "Login", []string{notSupported + "spec.type"}},
		{"a caller's type becomes another one", "User", "Other", nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			same(t, found(rules(0).Rules.Validate(key(t, `{user: a, type: `+row.new+`}`), key(t, `{user: a, type: `+row.old+`}`))), row.want)
		})
	}
}
