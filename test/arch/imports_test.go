package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// lattice says which packages of this module a package imports, tests aside. A package imports only from the
// lines above its own, and each line is as long as it must be: a word that nobody needs any more goes.
const lattice = `
shared/secret:
shared/model: shared/secret
shared/apierror:
shared/codec: shared/apierror
shared/identity: shared/model
shared/token: shared/model shared/secret
shared/token/remote: shared/token
shared/scope: shared/model
shared/store:
shared/store/storetest: shared/store
shared/store/redisstore: shared/store
shared/store/redisstore/redistest:
shared/audit: shared/model shared/secret
shared/audit/chain:
shared/audit/filesink: shared/audit shared/audit/chain shared/model
shared/audit/redissink: shared/audit shared/audit/chain shared/model shared/store/redisstore
shared/audit/postgressink: shared/audit shared/model
shared/audit/postgressink/postgrestest:
shared/metrics: shared/audit
shared/syncpatch: shared/model
shared/syncpatch/worker: shared/model shared/syncpatch
shared/resource: shared/apierror shared/codec shared/identity shared/store
shared/encryption: shared/secret
shared/platformconfig: shared/apierror shared/codec shared/encryption shared/identity shared/model shared/resource shared/scope shared/secret shared/store
shared/fieldmanager: shared/apierror shared/resource
shared/idempotency: shared/encryption shared/store
shared/signer: shared/secret
shared/signer/csr: shared/signer
shared/signer/signertest:
shared/instance: shared/encryption shared/identity shared/model shared/resource shared/secret shared/signer shared/store
shared/accesskey: shared/identity shared/model shared/resource shared/scope shared/secret shared/store
shared/accesskey/accesskeytest: shared/accesskey shared/apierror shared/identity shared/model shared/resource shared/store/redisstore shared/store/redisstore/redistest
shared/auth: shared/accesskey shared/apierror shared/identity shared/model shared/scope shared/secret shared/store
shared/instance/instancetest: shared/encryption shared/identity shared/instance shared/model shared/resource shared/secret shared/signer/signertest shared/store shared/store/redisstore shared/store/redisstore/redistest
shared/kubeconfig: shared/accesskey shared/apierror shared/encryption shared/identity shared/instance shared/model shared/resource shared/scope shared/secret shared/signer shared/signer/csr shared/store
shared/issuedtoken: shared/accesskey shared/identity shared/model shared/resource shared/scope shared/store
shared/function: shared/accesskey shared/apierror shared/audit shared/auth shared/codec shared/encryption shared/idempotency shared/identity shared/instance shared/issuedtoken shared/model shared/platformconfig shared/resource shared/scope shared/secret shared/store
shared/signingkey: shared/encryption shared/secret shared/store shared/token
shared/issuer: shared/accesskey shared/apierror shared/function shared/identity shared/issuedtoken shared/model shared/resource shared/scope shared/secret shared/signingkey shared/store shared/token
shared/issuer/issuertest: shared/apierror shared/encryption shared/function shared/identity shared/issuedtoken shared/issuer shared/model shared/resource shared/secret shared/store/redisstore shared/store/redisstore/redistest
shared/review: shared/accesskey shared/apierror shared/identity shared/model shared/scope shared/secret shared/token
shared/syncpatch/evaluation: shared/apierror shared/codec shared/function shared/model shared/syncpatch shared/syncpatch/worker

# Operations, and the list of them. They never import each other.
functions/authorizescopes: shared/function shared/review
functions/collectgarbage: shared/function shared/resource
functions/createaccesskey: shared/accesskey shared/fieldmanager shared/function shared/model shared/resource
functions/createvirtualclusterinstance: shared/fieldmanager shared/function shared/instance shared/model shared/resource
functions/deleteaccesskey: shared/accesskey shared/function shared/resource
functions/deletevirtualclusterinstance: shared/function shared/instance shared/resource
functions/discoverapi: shared/apierror shared/function shared/model
functions/evaluatepatches: shared/function shared/model shared/syncpatch/evaluation
functions/expirekeys: shared/accesskey shared/function shared/idempotency shared/identity shared/model shared/resource shared/store
functions/getaccesskey: shared/accesskey shared/function shared/model shared/resource
functions/getvirtualclusterinstance: shared/function shared/instance shared/model shared/resource
functions/listaccesskeys: shared/accesskey shared/function shared/model shared/resource
functions/listvirtualclusterinstances: shared/function shared/instance shared/model shared/resource
functions/patchaccesskey: shared/accesskey shared/fieldmanager shared/function shared/model shared/resource
functions/patchvirtualclusterinstance: shared/fieldmanager shared/function shared/instance shared/model shared/resource
functions/renderkubeconfig: shared/function shared/kubeconfig shared/signer/csr
functions/updateaccesskey: shared/accesskey shared/fieldmanager shared/function shared/model shared/resource
functions/updatevirtualclusterinstance: shared/fieldmanager shared/function shared/instance shared/model shared/resource
functions/whoami: shared/auth shared/function shared/identity shared/model shared/platformconfig shared/review shared/secret
functions/reviewtokens: shared/function shared/issuer shared/review
functions/patchconfig: shared/function shared/platformconfig shared/resource
functions/readconfig: shared/function shared/model shared/platformconfig shared/resource
functions/rollbackconfig: shared/function shared/model shared/platformconfig shared/resource
functions/updateconfig: shared/function shared/model shared/platformconfig shared/resource
functions/deletetoken: shared/function shared/issuedtoken shared/resource
functions/expiretokens: shared/function shared/issuedtoken
functions/gettoken: shared/function shared/issuedtoken shared/model shared/resource
functions/issuetoken: shared/function shared/issuedtoken shared/issuer
functions/listtokens: shared/function shared/issuedtoken shared/model shared/resource
functions/publishkeys: shared/apierror shared/function shared/issuer
functions/rotatesigningkeys: shared/function shared/issuer shared/signingkey
functions/catalog: functions/* shared/function

# Programs and tests. The runner is the clock of expirekeys and collectgarbage.
infra/openapi/generated: shared/model
infra/openapi: functions/catalog infra/openapi/generated shared/function shared/model
infra/deployment: functions/catalog shared/function
infra/environment: shared/audit shared/encryption shared/function shared/platformconfig shared/secret shared/store shared/store/redisstore
infra/environment/environmenttest: infra/environment shared/function shared/identity shared/model shared/resource shared/store/redisstore/redistest
infra/framework: infra/environment shared/audit shared/audit/filesink shared/audit/postgressink shared/audit/redissink shared/function
infra/framework/server: functions/catalog infra/framework
infra/lambda: infra/environment shared/audit shared/audit/redissink shared/function
infra/lambda/functions/*: functions/* infra/lambda
infra/lambda/bootstrap:
infra/lambda/lambdatest: infra/lambda/bootstrap
infra/shells: functions/catalog infra/lambda/bootstrap shared/function
local: functions/catalog functions/collectgarbage functions/expirekeys functions/expiretokens functions/rotatesigningkeys shared/accesskey shared/audit shared/audit/chain shared/audit/filesink shared/audit/postgressink shared/audit/redissink shared/codec shared/encryption shared/fieldmanager shared/function shared/identity shared/issuer shared/kubeconfig shared/metrics shared/model shared/platformconfig shared/resource shared/secret shared/signingkey shared/store shared/store/redisstore shared/syncpatch shared/syncpatch/evaluation shared/syncpatch/worker
test/load: shared/model shared/secret
test/arch:
test/bench:
test/deploy:
test/cold: functions/catalog infra/lambda/bootstrap infra/lambda/lambdatest shared/encryption shared/function
test/drift:
test/revocation:
test/script:
`

// testLattice says what the tests of a package may import beside itself. They may look at what stands higher
// than their package, but not at a higher floor.
const testLattice = `
shared/...: shared/...
functions/...: shared/...
infra/...: functions/catalog infra/... shared/...
local: functions/catalog shared/...
test/arch:
test/bench: functions/catalog shared/...
test/deploy: functions/catalog shared/...
test/cold: functions/catalog infra/lambda/bootstrap
test/drift: functions/catalog infra/environment shared/...
test/load: shared/...
test/revocation: functions/catalog shared/...
test/script: functions/catalog infra/lambda/lambdatest
`

// borrowed says who imports which module of others, tests aside. A module without a line is imported by
// nobody. Those that nobody imports yet have their place already.
const borrowed = `
github.com/GoogleCloudPlatform/functions-framework-go: infra/framework
github.com/alecthomas/kong: local test/load
github.com/DeRuina/timberjack: shared/audit/filesink
github.com/jackc/pgx/v5: shared/audit/postgressink shared/audit/postgressink/postgrestest
github.com/alicebob/miniredis/v2: local shared/store/redisstore/redistest test/cold
github.com/aws/aws-lambda-go: infra/lambda
github.com/cloudevents/sdk-go/v2: infra/framework
github.com/dop251/goja: shared/syncpatch
github.com/evanphx/json-patch/v5: shared/resource
github.com/golang-jwt/jwt/v5: shared/token
github.com/google/gnostic-models: infra/openapi
github.com/hashicorp/golang-lru/v2: shared/issuedtoken shared/resource shared/store/redisstore shared/syncpatch
github.com/fxamacker/cbor/v2: shared/syncpatch/worker
github.com/prometheus/client_golang: local shared/metrics
github.com/redis/go-redis/v9: shared/store/redisstore shared/store/redisstore/redistest test/load
github.com/rogpeppe/go-internal: local
go.opentelemetry.io/otel: infra/environment infra/framework local shared/function shared/issuer/issuertest
go.yaml.in/yaml/v2: shared/codec
go.yaml.in/yaml/v3: local shared/syncpatch
golang.org/x/sys: shared/syncpatch/worker
golang.org/x/term: local
google.golang.org/protobuf: infra/openapi
k8s.io/api: functions/authorizescopes functions/discoverapi functions/reviewtokens functions/whoami infra/openapi shared/review shared/signer/csr
k8s.io/apimachinery: functions/* infra/... local shared/accesskey/... shared/apierror shared/audit shared/auth shared/codec shared/fieldmanager shared/function shared/instance/... shared/issuedtoken shared/issuer/... shared/kubeconfig shared/model shared/platformconfig shared/resource shared/review shared/scope shared/signer/csr shared/syncpatch shared/syncpatch/evaluation
k8s.io/client-go: local shared/kubeconfig shared/signer/csr
k8s.io/kube-openapi: infra/... shared/fieldmanager
pgregory.net/rapid: shared/store/storetest
sigs.k8s.io/json: local shared/codec shared/platformconfig shared/resource shared/token
sigs.k8s.io/structured-merge-diff/v6: shared/fieldmanager
sigs.k8s.io/yaml: local shared/codec shared/function shared/instance shared/signer
`

// testBorrowed says whose tests import which module of others, beside those who import it anyway. Without a
// line here, any test may import what a line above knows.
const testBorrowed = `
github.com/coreos/go-oidc/v3: test/script
github.com/GoogleCloudPlatform/functions-framework-go:
github.com/alecthomas/kong:
github.com/alicebob/miniredis/v2: shared/store/redisstore
github.com/anishathalye/porcupine: shared/resource
github.com/aws/aws-lambda-go:
github.com/dop251/goja: test/bench
github.com/google/gnostic-models: functions/discoverapi
github.com/prometheus/client_model: shared/function
github.com/redis/go-redis/v9: shared/audit/redissink shared/function test/bench test/script
github.com/rogpeppe/go-internal: test/script
google.golang.org/protobuf: functions/discoverapi
k8s.io/client-go: functions/catalog functions/discoverapi shared/model
k8s.io/kube-openapi: functions/discoverapi
sigs.k8s.io/controller-runtime: functions/catalog shared/model
sigs.k8s.io/randfill: shared/syncpatch/worker
`

// standard says who imports those packages of the standard library that reach out of the process, tests
// aside. Rules and operations know nothing of HTTP, of files and of other processes. apierror knows the
// status codes, platformconfig reads a file.
const standard = `
embed: functions/discoverapi shared/fieldmanager shared/store/redisstore
flag:
log:
math/rand:
net: infra/framework infra/lambda/lambdatest local shared/audit/postgressink/postgrestest shared/signer/csr shared/store/redisstore shared/store/redisstore/redistest test/load
net/http: infra/environment infra/framework infra/lambda infra/lambda/lambdatest infra/openapi local shared/apierror shared/auth shared/function shared/signer/csr shared/token/remote test/cold test/load
net/http/httptest:
os: infra/deployment infra/environment infra/framework/... infra/lambda infra/lambda/bootstrap infra/openapi infra/shells local shared/audit/chain shared/audit/filesink shared/audit/postgressink/postgrestest shared/audit/redissink shared/platformconfig shared/store/redisstore shared/store/redisstore/redistest shared/syncpatch/worker test/cold test/load
os/exec: infra/lambda/bootstrap infra/lambda/lambdatest infra/shells local shared/audit/postgressink/postgrestest shared/store/redisstore/redistest shared/syncpatch/worker test/load
os/signal: infra/framework/server local shared/syncpatch/worker test/load
plugin:
syscall: infra/framework/server infra/lambda/lambdatest local shared/audit/filesink shared/audit/postgressink/postgrestest shared/signer/csr shared/store/redisstore shared/store/redisstore/redistest shared/syncpatch/worker test/load
testing: infra/environment/environmenttest shared/accesskey/accesskeytest shared/audit/postgressink/postgrestest shared/instance/instancetest shared/issuer/issuertest shared/signer/signertest shared/store/redisstore/redistest shared/store/storetest
unsafe:
`

// links says of which modules the program of a function is made: those of the frame, and what its own line
// and those of the rooms that it imports add. What is not here costs no function size and start-up: no Redis, no client, no generator.
const links = `
shared/fieldmanager: github.com/go-openapi/jsonpointer github.com/go-openapi/jsonreference github.com/go-openapi/swag github.com/go-openapi/swag/cmdutils github.com/go-openapi/swag/conv github.com/go-openapi/swag/fileutils github.com/go-openapi/swag/jsonutils github.com/go-openapi/swag/loading github.com/go-openapi/swag/mangling github.com/go-openapi/swag/netutils github.com/go-openapi/swag/pools github.com/go-openapi/swag/stringutils github.com/go-openapi/swag/typeutils github.com/go-openapi/swag/yamlutils github.com/google/gnostic-models go.yaml.in/yaml/v3 google.golang.org/protobuf
shared/function: github.com/cespare/xxhash/v2 github.com/evanphx/json-patch/v5 github.com/fxamacker/cbor/v2 github.com/go-logr/logr github.com/hashicorp/golang-lru/v2 github.com/json-iterator/go github.com/modern-go/concurrent github.com/modern-go/reflect2 github.com/x448/float16 go.opentelemetry.io/otel go.opentelemetry.io/otel/trace go.yaml.in/yaml/v2 golang.org/x/net golang.org/x/text gopkg.in/inf.v0 k8s.io/apimachinery k8s.io/klog/v2 k8s.io/kube-openapi k8s.io/utils sigs.k8s.io/json sigs.k8s.io/randfill sigs.k8s.io/structured-merge-diff/v6 sigs.k8s.io/yaml
shared/syncpatch: github.com/dlclark/regexp2/v2 github.com/dop251/goja github.com/go-sourcemap/sourcemap github.com/google/pprof go.yaml.in/yaml/v3
shared/syncpatch/worker: golang.org/x/sys
shared/kubeconfig: github.com/spf13/pflag golang.org/x/term
shared/signer/csr: github.com/davecgh/go-spew github.com/munnerz/goautoneg golang.org/x/oauth2 golang.org/x/sys golang.org/x/term golang.org/x/time k8s.io/api k8s.io/client-go
shared/review: k8s.io/api
shared/token: github.com/golang-jwt/jwt/v5
functions/authorizescopes: k8s.io/api
functions/catalog: k8s.io/api
functions/discoverapi: k8s.io/api
functions/reviewtokens: k8s.io/api
functions/whoami: k8s.io/api
functions/*:
`

// inner returns the folder of an import of this module.
func inner(imported string) (string, bool) { return strings.CutPrefix(imported, module+"/") }

// isStandard tells whether an import is of the standard library: its first step has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// upward finds words of the lattice that stand on no line above.
func upward(table []line) []string {
	var findings []string
	for i, l := range table {
		for _, pattern := range l.patterns {
			if !slices.ContainsFunc(table[:i], func(above line) bool { return matches(pattern, above.name) }) {
				findings = append(findings, fmt.Sprintf("the lattice lets %s import %s, which is no line above it", l.name, pattern))
			}
		}
	}
	return findings
}

// crossed finds imports within the module that the lattice does not permit.
func crossed(rooms []*room, table []line, test bool) []string {
	var findings []string
	for _, r := range rooms {
		l, known := find(table, r.path)
		if !known {
			findings = append(findings, r.path+" has no place in the lattice: give it a line")
			continue
		}
		for _, imported := range r.imports(test) {
			target, ours := inner(imported)
			if !ours || test && target == r.path || matchesAny(l.patterns, target) {
				continue
			}
			findings = append(findings, fmt.Sprintf("%s imports %s (tests: %v); its line in the lattice has %q", r.path, target, test, l.patterns))
		}
	}
	return findings
}

// unneeded finds lines of the lattice without a package, and words on them that nothing needs.
func unneeded(rooms []*room, table []line) []string {
	var findings []string
	for _, l := range table {
		var imports []string
		found := false
		for _, r := range rooms {
			if matches(l.name, r.path) {
				imports, found = append(imports, r.imports(false)...), true
			}
		}
		if !found {
			findings = append(findings, "the lattice has a line for "+l.name+", which is no package")
			continue
		}
		for _, pattern := range l.patterns {
			if !slices.ContainsFunc(imports, func(imported string) bool {
				target, ours := inner(imported)
				return ours && matches(pattern, target)
			}) {
				findings = append(findings, fmt.Sprintf("the lattice lets %s import %s, and it does not: take the word out", l.name, pattern))
			}
		}
	}
	return findings
}

// isOf tells whether an import is of a module.
func isOf(imported, module string) bool {
	return imported == module || strings.HasPrefix(imported, module+"/")
}

// same tells whether an import is that package.
func same(imported, name string) bool { return imported == name }

// lender returns the line of the module that an import is of.
func lender(table []line, imported string) (line, bool) {
	for _, l := range table {
		if isOf(imported, l.name) {
			return l, true
		}
	}
	return line{}, false
}

// misborrowed finds imports of modules of others by whom the tables do not name.
func misborrowed(rooms []*room, table, forTests []line) []string {
	var findings []string
	for _, r := range rooms {
		for _, test := range []bool{false, true} {
			for _, imported := range r.imports(test) {
				if _, ours := inner(imported); ours || isStandard(imported) {
					continue
				}
				l, known := lender(table, imported)
				may := l.patterns
				if test {
					ofTests, restricted := lender(forTests, imported)
					if known && !restricted {
						continue
					}
					known, may = known || restricted, slices.Concat(may, ofTests.patterns)
				}
				switch {
				case !known:
					findings = append(findings, fmt.Sprintf("%s imports %s, which no line knows: say who may, and why in the commit", r.path, imported))
				case !matchesAny(may, r.path):
					findings = append(findings, fmt.Sprintf("%s imports %s (tests: %v); only %q may", r.path, imported, test, may))
				}
			}
		}
	}
	return findings
}

// unborrowed finds words on the lines of imports that are in use, which name who does not use them.
func unborrowed(rooms []*room, table []line, test bool, of func(imported, name string) bool) []string {
	var findings []string
	for _, l := range table {
		var users []string
		for _, r := range rooms {
			if slices.ContainsFunc(r.imports(test), func(imported string) bool {
				return of(imported, l.name)
			}) {
				users = append(users, r.path)
			}
		}
		for _, pattern := range l.patterns {
			if len(users) > 0 && !slices.ContainsFunc(users, func(user string) bool { return matches(pattern, user) }) {
				findings = append(findings, fmt.Sprintf("the line of %s names %s, which does not import it: take the word out", l.name, pattern))
			}
		}
	}
	return findings
}

// outward finds imports of the standard library by whom the table does not name.
func outward(rooms []*room, table []line) []string {
	var findings []string
	for _, r := range rooms {
		for _, imported := range r.imports(false) {
			i := slices.IndexFunc(table, func(l line) bool { return l.name == imported })
			if i >= 0 && !matchesAny(table[i].patterns, r.path) {
				findings = append(findings, fmt.Sprintf("%s imports %s; only %q may", r.path, imported, table[i].patterns))
			}
		}
	}
	return findings
}

// linked finds modules in the programs of functions that neither their line names nor one of a room that they
// import.
func linked(rooms []*room, table []line) []string {
	byPath := map[string]*room{}
	for _, r := range rooms {
		byPath[r.path] = r
	}
	var known func(r *room, seen map[string]bool) []string
	known = func(r *room, seen map[string]bool) []string {
		own, _ := find(table, r.path)
		modules := own.patterns
		for _, imported := range r.imports(false) {
			if path, ours := inner(imported); ours && !seen[path] && byPath[path] != nil {
				seen[path] = true
				modules = append(slices.Clip(modules), known(byPath[path], seen)...)
			}
		}
		return modules
	}
	frame, _ := find(table, "shared/function")
	var findings []string
	for _, r := range rooms {
		if _, deployed := find(table, r.path); !deployed {
			continue
		}
		may := append(slices.Clip(frame.patterns), known(r, map[string]bool{})...)
		for _, module := range r.links {
			if !slices.Contains(may, module) {
				findings = append(findings, fmt.Sprintf("%s links %s: give it a line, or do without", r.path, module))
			}
		}
	}
	return findings
}

func TestLattice(t *testing.T) {
	t.Parallel()
	report(t, upward(lines(lattice)))
	report(t, crossed(all(t), lines(lattice), false))
	report(t, crossed(all(t), lines(testLattice), true))
	report(t, unneeded(all(t), lines(lattice)))
}

func TestLatticeFinds(t *testing.T) {
	t.Parallel()
	ours := func(folders ...string) string { return module + "/" + strings.Join(folders, " "+module+"/") }
	planted := plant(t, map[string]string{
		"functions/createaccesskey/a.go":      ours("functions/getaccesskey", "shared/function", "shared/store/redisstore"),
		"functions/whoami/a_test.go":          ours("functions/whoami", "functions/catalog", "shared/store/redisstore/redistest"),
		"shared/accesskey/a.go":               ours("shared/auth", "shared/model"),
		"shared/accesskey/a_test.go":          ours("shared/function", "local"),
		"shared/model/a.go":                   ours("shared/scope"),
		"shared/store/redisstore/a.go":        ours("shared/store/redisstore/redistest"),
		"shared/store/redisstore/a_test.go":   ours("shared/store/redisstore/redistest"),
		"shared/store/redisstore/more/a.go":   "fmt",
		"test/arch/a_test.go":                 ours("shared/model"),
		"infra/openapi/generated/zz_model.go": ours("shared/model"),
	})
	expect(t, crossed(planted, lines(lattice), false),
		"functions/createaccesskey imports functions/getaccesskey", "functions/createaccesskey imports shared/store/redisstore",
		"shared/accesskey imports shared/auth", "shared/model imports shared/scope",
		"shared/store/redisstore imports shared/store/redisstore/redistest", "shared/store/redisstore/more has no place")
	expect(t, crossed(planted, lines(testLattice), true),
		"functions/whoami imports functions/catalog", "shared/accesskey imports local", "test/arch imports shared/model")
	expect(t, upward(lines("a:\nb: a c\nc: c a\n")), "b import c", "c import c")
	expect(t, unneeded(planted, lines("shared/model: shared/scope shared/secret\nshared/gone:\n")),
		"shared/model import shared/secret", "shared/gone, which is no package")
}

func TestBorrowed(t *testing.T) {
	t.Parallel()
	report(t, misborrowed(all(t), lines(borrowed), lines(testBorrowed)))
	report(t, unborrowed(all(t), lines(borrowed), false, isOf))
	report(t, unborrowed(all(t), lines(testBorrowed), true, isOf))
}

func TestBorrowedFinds(t *testing.T) {
	t.Parallel()
	planted := plant(t, map[string]string{
		"functions/whoami/a.go":      "github.com/aws/aws-lambda-go/lambda k8s.io/client-go/rest",
		"infra/lambda/a.go":          "github.com/aws/aws-lambda-go/lambda",
		"shared/accesskey/a.go":      "github.com/alicebob/miniredis/v2",
		"shared/accesskey/a_test.go": "github.com/redis/go-redis/v9 pgregory.net/rapid github.com/example/assert k8s.io/client-gone",
		"shared/syncpatch/a.go":      "github.com/dop251/goja/parser",
		"shared/scope/a.go":          "github.com/dop251/goja",
	})
	expect(t, misborrowed(planted, lines(borrowed), lines(testBorrowed)),
		"functions/whoami imports github.com/aws/aws-lambda-go/lambda", "functions/whoami imports k8s.io/client-go/rest",
		"shared/accesskey imports github.com/alicebob/miniredis/v2", "shared/accesskey imports github.com/example/assert",
		"shared/accesskey imports github.com/redis/go-redis/v9", "shared/accesskey imports k8s.io/client-gone",
		"shared/scope imports github.com/dop251/goja")
	expect(t, unborrowed(planted, lines("github.com/dop251/goja: shared/syncpatch shared/scope local\ngithub.com/google/uuid: local\n"), false, isOf),
		"names local, which does not")
}

func TestStandard(t *testing.T) {
	t.Parallel()
	report(t, outward(all(t), lines(standard)))
	report(t, unborrowed(all(t), lines(standard), false, same))
}

func TestStandardFinds(t *testing.T) {
	t.Parallel()
	planted := plant(t, map[string]string{
		"functions/whoami/a.go":      "net/http fmt",
		"functions/whoami/a_test.go": "net/http os",
		"shared/resource/a.go":       "os testing unsafe",
		"shared/function/a.go":       "net/http log/slog",
	})
	expect(t, outward(planted, lines(standard)), "functions/whoami imports net/http",
		"shared/resource imports os", "shared/resource imports testing", "shared/resource imports unsafe")
}

func TestLinks(t *testing.T) {
	t.Parallel()
	report(t, linked(all(t), lines(links)))
}

func TestLinksFinds(t *testing.T) {
	t.Parallel()
	expect(t, linked([]*room{
		{path: "shared/function", links: []string{"k8s.io/apimachinery", "k8s.io/client-go"}},
		{path: "functions/whoami", links: []string{"k8s.io/api"}},
		{path: "functions/getaccesskey", links: []string{"k8s.io/api", "sigs.k8s.io/controller-runtime"}},
		{path: "local", links: []string{"github.com/alicebob/miniredis/v2"}},
	}, lines(links)), "shared/function links k8s.io/client-go", "functions/getaccesskey links k8s.io/api",
		"functions/getaccesskey links sigs.k8s.io/controller-runtime")
}
