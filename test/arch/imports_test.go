package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// floors are the wings of the house, from the ground up. A package imports packages of the floors below its own and of
// its own wing. Wings on one line stand side by side and do not import each other. A star makes each folder a wing of
// its own. Source: ADR-0019.
const floors = `
shared/limits
shared/model
shared/settings
shared/state
shared/auth shared/audit shared/signing
shared/platform
shared/webpage shared/directory
shared/api
shared/kinds
shared/signin
shared/credentials shared/syncpatch
shared/process
functions/*
functions/catalog
docs infra
local
test
`

// testFloors are the floors for tests: a test may look at everything on its own floor and below.
const testFloors = `
shared
functions/*
functions/catalog
docs infra
local
test
`

// only says who may import what, tests aside, where a floor permits more than is good. Each line has its reason. A line
// that ends in three dots is the folder and everything in it.
const only = `
# The frame stands above the rules. They return domain values, and the operations make answers of them.
shared/api/frame: functions/... shared/api/crud shared/process infra/... local/... test/...
# Everything that is stored, for what deletes and collects. A function that does neither links its own kind alone.
shared/kinds: functions/... local/... test/...
# Operations know the contract of the state, not Redis.
shared/state/redisstore: shared/process shared/audit/redissink local/... test/... infra/...

# Expressions of tenants run in one place.
github.com/dop251/goja: shared/syncpatch/expression
# Each platform has one adapter.
github.com/aws/aws-lambda-go: infra/lambda
github.com/GoogleCloudPlatform/functions-framework-go: infra/framework
github.com/cloudevents/sdk-go/v2: infra/framework
# Signatures are made and checked in one place.
github.com/golang-jwt/jwt/v5: shared/signing/token
# One client of OpenID Connect providers.
github.com/coreos/go-oidc/v3: shared/signin/oidc
golang.org/x/oauth2: shared/signin/codehost shared/signin/oidc shared/signin/upstream local/client
# XML is read, and its signatures are verified, in one place.
github.com/russellhaering/goxmldsig: shared/signin/saml
github.com/beevik/etree: shared/signin/saml
encoding/xml: shared/signin/saml test/...
# Passwords are hashed in one place.
golang.org/x/crypto: shared/credentials/password
# One client of Redis, one of PostgreSQL.
github.com/redis/go-redis/v9: shared/state/redisstore test/load
github.com/jackc/pgx/v5: shared/audit/postgressink
# The client of Kubernetes is large. It asks virtual clusters to sign.
k8s.io/client-go: shared/signing/clusterca/csr docs/examples/... local/... test/...
# A program with flags is a program for people.
github.com/alecthomas/kong: local/... test/attack test/check test/evidence test/load
# Prometheus costs a function its start.
github.com/prometheus/client_golang: shared/api/metrics local/...
# So do the metrics of the runtime.
runtime/metrics: shared/process/memory shared/syncpatch/worker test/...
shared/process/memory: infra/framework local/...

# Rules and operations know nothing of HTTP, files and other processes. apierror knows the status codes.
net/http: shared/model/apierror shared/auth shared/api/frame shared/signin/codehost shared/signin/oidc shared/signin/upstream shared/process shared/signing/clusterca/csr shared/signing/token/remote infra/... local/... test/...
net: shared/model/destination shared/state/redisstore infra/... local/... test/...
os: shared/settings shared/audit/chain shared/audit/filesink shared/audit/redissink shared/signin/saml shared/signin/upstream shared/kinds/platformconfig shared/state/redisstore shared/syncpatch/worker docs/examples/... infra/... local/... test/...
os/exec: shared/syncpatch/worker infra/... local/... test/...
os/signal: shared/syncpatch/worker infra/... local/... test/...
syscall: shared/audit/filesink shared/model/destination shared/state/redisstore shared/syncpatch/worker infra/... local/... test/...
# Randomness and the log come from the environment, flags from one library.
math/rand:
flag:
# The library of Lambda writes to the standard log, which becomes log lines.
log: infra/lambda
# Code that is deployed contains no test support.
testing:
net/http/httptest:
plugin:
# The object of a record has the memory of the answer of Redis, and the kernel reads the filter of a worker from memory.
unsafe: shared/state/redisstore shared/syncpatch/worker
`

// unlinked says which functions may have a heavy module in their program. What is heavy costs each start.
const unlinked = `
github.com/dop251/goja: functions/evaluatepatches
github.com/golang-jwt/jwt/v5: functions/authorizescopes functions/issuetoken functions/probecredentials functions/publishkeys functions/reviewtokens functions/revokecredentials functions/rotatesigningkeys functions/whoami
github.com/redis/go-redis/v9:
github.com/jackc/pgx/v5:
github.com/prometheus/client_golang:
github.com/alecthomas/kong:
github.com/alicebob/miniredis/v2:
k8s.io/client-go: functions/renderkubeconfig
google.golang.org/protobuf: functions/create* functions/update* functions/patch* functions/rollbackconfig functions/setpassword functions/signoutuser
github.com/coreos/go-oidc/v3: functions/startlogin functions/finishlogin functions/endlogin functions/revalidatelogins functions/exchangetoken
golang.org/x/oauth2: functions/startlogin functions/finishlogin functions/endlogin functions/revalidatelogins functions/exchangetoken functions/renderkubeconfig
github.com/go-jose/go-jose/v4: functions/startlogin functions/finishlogin functions/endlogin functions/revalidatelogins functions/exchangetoken
github.com/russellhaering/goxmldsig: functions/startlogin functions/finishlogin functions/endlogin functions/revalidatelogins
github.com/beevik/etree: functions/startlogin functions/finishlogin functions/endlogin functions/revalidatelogins
`

// support reports whether a package exists for tests alone: the names of such packages end in "test".
func support(path string) bool {
	return strings.HasSuffix(path, "test") && path != "test"
}

// inner returns the folder of an import of this module.
func inner(imported string) (string, bool) { return strings.CutPrefix(imported, module+"/") }

// place is the floor and the wing of a package.
type place struct {
	floor int
	wing  string
}

// locate finds the place of a package: its longest wing.
func locate(table, path string) (place, bool) {
	var found place
	known := false
	floor := 0
	for text := range strings.Lines(table) {
		for pattern := range strings.FieldsSeq(text) {
			folder, below := pattern, path == pattern || strings.HasPrefix(path, pattern+"/")
			if parent, star := strings.CutSuffix(pattern, "/*"); star {
				rest, inside := strings.CutPrefix(path, parent+"/")
				first, _, _ := strings.Cut(rest, "/")
				folder, below = parent+"/"+first, inside
			}
			if below && (!known || len(folder) > len(found.wing) || len(folder) == len(found.wing) && !strings.HasSuffix(pattern, "*")) {
				found, known = place{floor, folder}, true
			}
		}
		floor++
	}
	return found, known
}

// upward finds imports within the module that lead to a higher floor, or to another wing of the same one.
func upward(rooms []*room, table string, test bool) []string {
	var findings []string
	for _, r := range rooms {
		here, known := locate(table, r.path)
		if !known {
			findings = append(findings, r.path+" stands on no floor: give its wing a place")
			continue
		}
		for _, imported := range r.imports(test || support(r.path)) {
			target, ours := inner(imported)
			if !ours || !test && support(r.path) {
				continue
			}
			switch there, _ := locate(table, target); {
			case !test && support(target) && here.wing != "test":
				findings = append(findings, fmt.Sprintf("%s imports %s, which is for tests", r.path, target))
			case there.floor > here.floor:
				findings = append(findings, fmt.Sprintf("%s imports %s, which stands above it", r.path, target))
			case there.floor == here.floor && there.wing != here.wing:
				findings = append(findings, fmt.Sprintf("%s imports %s, which stands beside it", r.path, target))
			}
		}
	}
	return findings
}

// isOf reports whether an import is a package of the name, or of a module of that name.
func isOf(imported, name string) bool {
	if folder, ours := inner(imported); ours {
		return folder == name
	}
	first, _, _ := strings.Cut(name, "/")
	return imported == name || strings.Contains(first, ".") && strings.HasPrefix(imported, name+"/")
}

// barred finds imports that the table leaves to others, tests and test support aside.
func barred(rooms []*room, table []line) []string {
	var findings []string
	for _, r := range rooms {
		if support(r.path) {
			continue
		}
		for _, imported := range r.imports(false) {
			i := slices.IndexFunc(table, func(l line) bool { return isOf(imported, l.name) })
			if i >= 0 && !matchesAny(table[i].patterns, r.path) {
				findings = append(findings, fmt.Sprintf("%s imports %s; only %q may", r.path, imported, table[i].patterns))
			}
		}
	}
	return findings
}

// unused finds packages that a table permits what they do not do, so that it stays as short as it can be. A folder with
// everything in it is a rule, and may be wider than what is there.
func unused(rooms []*room, table []line, uses func(*room, string) bool) []string {
	var findings []string
	for _, l := range table {
		for _, pattern := range l.patterns {
			if !strings.HasSuffix(pattern, "/...") && !slices.ContainsFunc(rooms, func(r *room) bool { return matches(pattern, r.path) && uses(r, l.name) }) {
				findings = append(findings, fmt.Sprintf("the line of %s names %s, which does not use it: take the word out", l.name, pattern))
			}
		}
	}
	return findings
}

func imports(r *room, name string) bool {
	return slices.ContainsFunc(r.imports(false), func(imported string) bool { return isOf(imported, name) })
}

func links(r *room, name string) bool { return slices.Contains(r.links, name) }

// laden finds functions whose programs have heavy modules that the table does not grant them.
func laden(rooms []*room, table []line) []string {
	var findings []string
	for _, r := range rooms {
		if name, ok := strings.CutPrefix(r.path, "functions/"); !ok || name == "catalog" {
			continue
		}
		for _, l := range table {
			if links(r, l.name) && !matchesAny(l.patterns, r.path) {
				findings = append(findings, fmt.Sprintf("%s links %s; only %q may", r.path, l.name, l.patterns))
			}
		}
	}
	return findings
}

func TestFloors(t *testing.T) {
	t.Parallel()
	report(t, upward(all(t), floors, false))
	report(t, upward(all(t), testFloors, true))
}

func TestFloorsFinds(t *testing.T) {
	t.Parallel()
	ours := func(folders ...string) string { return module + "/" + strings.Join(folders, " "+module+"/") }
	planted := plant(t, map[string]string{
		"functions/createaccesskey/a.go":      ours("functions/getaccesskey", "shared/api/frame", "shared/state/redisstore/redistest"),
		"functions/whoami/a_test.go":          ours("functions/catalog", "shared/state/redisstore/redistest"),
		"shared/kinds/accesskey/a.go":         ours("shared/credentials/issuer", "shared/kinds/issuedtoken", "shared/model"),
		"shared/auth/a.go":                    ours("shared/audit", "shared/auth/scope"),
		"shared/model/a_test.go":              ours("shared/process", "local"),
		"shared/kinds/accesskey/keytest/a.go": ours("shared/process"),
		"elsewhere/a.go":                      "fmt",
	})
	expect(t, upward(planted, floors, false),
		"elsewhere stands on no floor",
		"functions/createaccesskey imports functions/getaccesskey, which stands beside it",
		"functions/createaccesskey imports shared/state/redisstore/redistest, which is for tests",
		"shared/auth imports shared/audit, which stands beside it",
		"shared/kinds/accesskey imports shared/credentials/issuer, which stands above it")
	expect(t, upward(planted, testFloors, true),
		"elsewhere stands on no floor",
		"functions/whoami imports functions/catalog, which stands above it", "shared/model imports local, which stands above it")
}

func TestOnly(t *testing.T) {
	t.Parallel()
	report(t, barred(all(t), lines(only)))
	report(t, unused(all(t), lines(only), imports))
}

func TestOnlyFinds(t *testing.T) {
	t.Parallel()
	planted := plant(t, map[string]string{
		"functions/whoami/a.go":              "github.com/aws/aws-lambda-go/lambda k8s.io/client-go/rest net/http fmt",
		"functions/whoami/a_test.go":         "net/http testing",
		"infra/lambda/a.go":                  "github.com/aws/aws-lambda-go/lambda net/http/httptest",
		"shared/credentials/issuer/a.go":     module + "/shared/api/frame net/url",
		"shared/kinds/instance/keytest/a.go": "testing os",
	})
	expect(t, barred(planted, lines(only)),
		"functions/whoami imports github.com/aws/aws-lambda-go/lambda", "functions/whoami imports k8s.io/client-go/rest",
		"functions/whoami imports net/http", "infra/lambda imports net/http/httptest",
		"shared/credentials/issuer imports management.platform.sh/shared/api/frame")
	expect(t, unused(planted, lines("net/http: functions/whoami infra/lambda functions/...\nos: functions/whoami\n"), imports),
		"the line of net/http names infra/lambda", "the line of os names functions/whoami")
}

func TestUnlinked(t *testing.T) {
	t.Parallel()
	report(t, laden(all(t), lines(unlinked)))
	report(t, unused(all(t), lines(unlinked), links))
}

func TestUnlinkedFinds(t *testing.T) {
	t.Parallel()
	expect(t, laden([]*room{
		{path: "functions/whoami", links: []string{"k8s.io/api", "github.com/dop251/goja"}},
		{path: "functions/evaluatepatches", links: []string{"github.com/dop251/goja"}},
		{path: "functions/catalog", links: []string{"github.com/dop251/goja"}},
	}, lines(unlinked)), "functions/whoami links github.com/dop251/goja")
}
