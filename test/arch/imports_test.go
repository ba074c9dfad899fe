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
shared/model/secret:
shared/model: shared/model/secret
shared/model/apierror:
shared/api/codec: shared/model/apierror
shared/model/identity: shared/model
shared/signing/token: shared/model shared/model/secret
shared/signing/token/remote: shared/signing/token
shared/auth/scope: shared/model
shared/state/store:
shared/state/storetest: shared/state/store
shared/state/redisstore: shared/state/store
shared/state/redisstore/redistest:
shared/audit: shared/model shared/model/secret
shared/audit/chain:
shared/audit/filesink: shared/audit shared/audit/chain shared/model
shared/audit/redissink: shared/audit shared/audit/chain shared/model shared/state/redisstore
shared/audit/postgressink: shared/audit shared/model
shared/audit/postgressink/postgrestest:
shared/api/metrics: shared/audit
shared/syncpatch: shared/model
shared/syncpatch/worker: shared/model shared/syncpatch
shared/api/resource: shared/model/apierror shared/api/codec shared/model/identity shared/state/store
shared/state/encryption: shared/model/secret
shared/kinds/platformconfig: shared/model/apierror shared/api/codec shared/state/encryption shared/model/identity shared/model shared/api/resource shared/auth/scope shared/model/secret shared/state/store
shared/api/fieldmanager: shared/model/apierror shared/api/resource
shared/api/idempotency: shared/state/encryption shared/state/store
shared/signing/clusterca: shared/model/secret
shared/signing/clusterca/csr: shared/signing/clusterca
shared/signing/clusterca/signertest:
shared/kinds/instance: shared/state/encryption shared/model/identity shared/model shared/api/resource shared/model/secret shared/signing/clusterca shared/state/store
shared/kinds/accesskey: shared/model/identity shared/model shared/api/resource shared/auth/scope shared/model/secret shared/state/store
shared/kinds/accesskey/accesskeytest: shared/kinds/accesskey shared/model/apierror shared/model/identity shared/model shared/api/resource shared/state/redisstore shared/state/redisstore/redistest
shared/auth: shared/kinds/accesskey shared/model/apierror shared/model/identity shared/model shared/auth/scope shared/model/secret shared/state/store
shared/kinds/instance/instancetest: shared/state/encryption shared/model/identity shared/kinds/instance shared/model shared/api/resource shared/model/secret shared/signing/clusterca/signertest shared/state/store shared/state/redisstore shared/state/redisstore/redistest
shared/credentials/kubeconfig: shared/kinds/accesskey shared/model/apierror shared/state/encryption shared/model/identity shared/kinds/instance shared/model shared/api/resource shared/auth/scope shared/model/secret shared/signing/clusterca shared/signing/clusterca/csr shared/state/store
shared/kinds/issuedtoken: shared/kinds/accesskey shared/model/identity shared/model shared/api/resource shared/auth/scope shared/state/store
shared/api/frame: shared/kinds/accesskey shared/model/apierror shared/audit shared/auth shared/api/codec shared/state/encryption shared/api/idempotency shared/model/identity shared/kinds/instance shared/kinds/issuedtoken shared/model shared/kinds/platformconfig shared/api/resource shared/auth/scope shared/model/secret shared/state/store
shared/signing/signingkey: shared/state/encryption shared/model/secret shared/state/store shared/signing/token
shared/credentials/issuer: shared/kinds/accesskey shared/model/apierror shared/api/frame shared/model/identity shared/kinds/issuedtoken shared/model shared/api/resource shared/auth/scope shared/model/secret shared/signing/signingkey shared/state/store shared/signing/token
shared/credentials/issuer/issuertest: shared/model/apierror shared/state/encryption shared/api/frame shared/model/identity shared/kinds/issuedtoken shared/credentials/issuer shared/model shared/api/resource shared/model/secret shared/state/redisstore shared/state/redisstore/redistest
shared/credentials/review: shared/kinds/accesskey shared/model/apierror shared/model/identity shared/model shared/auth/scope shared/model/secret shared/signing/token
shared/syncpatch/evaluation: shared/model/apierror shared/api/codec shared/api/frame shared/model shared/syncpatch shared/syncpatch/worker

# Operations, and the list of them. They never import each other.
functions/authorizescopes: shared/api/frame shared/credentials/review
functions/collectgarbage: shared/api/frame shared/api/resource
functions/createaccesskey: shared/kinds/accesskey shared/api/fieldmanager shared/api/frame shared/model shared/api/resource
functions/createvirtualclusterinstance: shared/api/fieldmanager shared/api/frame shared/kinds/instance shared/model shared/api/resource
functions/deleteaccesskey: shared/kinds/accesskey shared/api/frame shared/api/resource
functions/deletevirtualclusterinstance: shared/api/frame shared/kinds/instance shared/api/resource
functions/discoverapi: shared/model/apierror shared/api/frame shared/model
functions/evaluatepatches: shared/api/frame shared/model shared/syncpatch/evaluation
functions/expirekeys: shared/kinds/accesskey shared/api/frame shared/api/idempotency shared/model/identity shared/model shared/api/resource shared/state/store
functions/getaccesskey: shared/kinds/accesskey shared/api/frame shared/model shared/api/resource
functions/getvirtualclusterinstance: shared/api/frame shared/kinds/instance shared/model shared/api/resource
functions/listaccesskeys: shared/kinds/accesskey shared/api/frame shared/model shared/api/resource
functions/listvirtualclusterinstances: shared/api/frame shared/kinds/instance shared/model shared/api/resource
functions/patchaccesskey: shared/kinds/accesskey shared/api/fieldmanager shared/api/frame shared/model shared/api/resource
functions/patchvirtualclusterinstance: shared/api/fieldmanager shared/api/frame shared/kinds/instance shared/model shared/api/resource
functions/renderkubeconfig: shared/api/frame shared/credentials/kubeconfig shared/signing/clusterca/csr
functions/updateaccesskey: shared/kinds/accesskey shared/api/fieldmanager shared/api/frame shared/model shared/api/resource
functions/updatevirtualclusterinstance: shared/api/fieldmanager shared/api/frame shared/kinds/instance shared/model shared/api/resource
functions/whoami: shared/auth shared/api/frame shared/model/identity shared/model shared/kinds/platformconfig shared/credentials/review shared/model/secret
functions/reviewtokens: shared/api/frame shared/credentials/issuer shared/credentials/review
functions/patchconfig: shared/api/frame shared/kinds/platformconfig shared/api/resource
functions/readconfig: shared/api/frame shared/model shared/kinds/platformconfig shared/api/resource
functions/rollbackconfig: shared/api/frame shared/model shared/kinds/platformconfig shared/api/resource
functions/updateconfig: shared/api/frame shared/model shared/kinds/platformconfig shared/api/resource
functions/deletetoken: shared/api/frame shared/kinds/issuedtoken shared/api/resource
functions/expiretokens: shared/api/frame shared/kinds/issuedtoken
functions/gettoken: shared/api/frame shared/kinds/issuedtoken shared/model shared/api/resource
functions/issuetoken: shared/api/frame shared/kinds/issuedtoken shared/credentials/issuer
functions/listtokens: shared/api/frame shared/kinds/issuedtoken shared/model shared/api/resource
functions/publishkeys: shared/model/apierror shared/api/frame shared/credentials/issuer
functions/rotatesigningkeys: shared/api/frame shared/credentials/issuer shared/signing/signingkey
functions/catalog: functions/* shared/api/frame

# Programs and tests. The runner is the clock of expirekeys and collectgarbage.
infra/openapi/generated: shared/model
infra/openapi: functions/catalog infra/openapi/generated shared/api/frame shared/model
infra/deployment: functions/catalog shared/api/frame
infra/environment: shared/audit shared/state/encryption shared/api/frame shared/kinds/platformconfig shared/model/secret shared/state/store shared/state/redisstore
infra/environment/environmenttest: infra/environment shared/api/frame shared/model/identity shared/model shared/api/resource shared/state/redisstore/redistest
infra/framework: infra/environment shared/audit shared/audit/filesink shared/audit/postgressink shared/audit/redissink shared/api/frame
infra/framework/server: functions/catalog infra/framework
infra/lambda: infra/environment shared/audit shared/audit/redissink shared/api/frame
infra/lambda/functions/*: functions/* infra/lambda
infra/lambda/bootstrap:
infra/lambda/lambdatest: infra/lambda/bootstrap
infra/shells: functions/catalog infra/lambda/bootstrap shared/api/frame
local: functions/catalog functions/collectgarbage functions/expirekeys functions/expiretokens functions/rotatesigningkeys shared/kinds/accesskey shared/audit shared/audit/chain shared/audit/filesink shared/audit/postgressink shared/audit/redissink shared/api/codec shared/state/encryption shared/api/fieldmanager shared/api/frame shared/model/identity shared/credentials/issuer shared/credentials/kubeconfig shared/api/metrics shared/model shared/kinds/platformconfig shared/api/resource shared/model/secret shared/signing/signingkey shared/state/store shared/state/redisstore shared/syncpatch shared/syncpatch/evaluation shared/syncpatch/worker
test/load: shared/model shared/model/secret
test/arch:
test/bench:
test/deploy:
test/cold: functions/catalog infra/lambda/bootstrap infra/lambda/lambdatest shared/state/encryption shared/api/frame
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
github.com/alicebob/miniredis/v2: local shared/state/redisstore/redistest test/cold
github.com/aws/aws-lambda-go: infra/lambda
github.com/cloudevents/sdk-go/v2: infra/framework
github.com/dop251/goja: shared/syncpatch
github.com/evanphx/json-patch/v5: shared/api/resource
github.com/golang-jwt/jwt/v5: shared/signing/token
github.com/google/gnostic-models: infra/openapi
github.com/hashicorp/golang-lru/v2: shared/kinds/issuedtoken shared/api/resource shared/state/redisstore shared/syncpatch
github.com/fxamacker/cbor/v2: shared/syncpatch/worker
github.com/prometheus/client_golang: local shared/api/metrics
github.com/redis/go-redis/v9: shared/state/redisstore shared/state/redisstore/redistest test/load
github.com/rogpeppe/go-internal: local
go.opentelemetry.io/otel: infra/environment infra/framework local shared/api/frame shared/credentials/issuer/issuertest
go.yaml.in/yaml/v2: shared/api/codec
go.yaml.in/yaml/v3: local shared/syncpatch
golang.org/x/sys: shared/syncpatch/worker
golang.org/x/term: local
google.golang.org/protobuf: infra/openapi
k8s.io/api: functions/authorizescopes functions/discoverapi functions/reviewtokens functions/whoami infra/openapi shared/credentials/review shared/signing/clusterca/csr
k8s.io/apimachinery: functions/* infra/... local shared/kinds/accesskey/... shared/model/apierror shared/audit shared/auth shared/api/codec shared/api/fieldmanager shared/api/frame shared/kinds/instance/... shared/kinds/issuedtoken shared/credentials/issuer/... shared/credentials/kubeconfig shared/model shared/kinds/platformconfig shared/api/resource shared/credentials/review shared/auth/scope shared/signing/clusterca/csr shared/syncpatch shared/syncpatch/evaluation
k8s.io/client-go: local shared/credentials/kubeconfig shared/signing/clusterca/csr
k8s.io/kube-openapi: infra/... shared/api/fieldmanager
pgregory.net/rapid: shared/state/storetest
sigs.k8s.io/json: local shared/api/codec shared/kinds/platformconfig shared/api/resource shared/signing/token
sigs.k8s.io/structured-merge-diff/v6: shared/api/fieldmanager
sigs.k8s.io/yaml: local shared/api/codec shared/api/frame shared/kinds/instance shared/signing/clusterca
`

// testBorrowed says whose tests import which module of others, beside those who import it anyway. Without a
// line here, any test may import what a line above knows.
const testBorrowed = `
github.com/coreos/go-oidc/v3: test/script
github.com/GoogleCloudPlatform/functions-framework-go:
github.com/alecthomas/kong:
github.com/alicebob/miniredis/v2: shared/state/redisstore
github.com/anishathalye/porcupine: shared/api/resource
github.com/aws/aws-lambda-go:
github.com/dop251/goja: test/bench
github.com/google/gnostic-models: functions/discoverapi
github.com/prometheus/client_model: shared/api/frame
github.com/redis/go-redis/v9: shared/audit/redissink shared/api/frame test/bench test/script
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
embed: functions/discoverapi shared/api/fieldmanager shared/state/redisstore
flag:
log:
math/rand:
net: infra/framework infra/lambda/lambdatest local shared/audit/postgressink/postgrestest shared/signing/clusterca/csr shared/state/redisstore shared/state/redisstore/redistest test/load
net/http: infra/environment infra/framework infra/lambda infra/lambda/lambdatest infra/openapi local shared/model/apierror shared/auth shared/api/frame shared/signing/clusterca/csr shared/signing/token/remote test/cold test/load
net/http/httptest:
os: infra/deployment infra/environment infra/framework/... infra/lambda infra/lambda/bootstrap infra/openapi infra/shells local shared/audit/chain shared/audit/filesink shared/audit/postgressink/postgrestest shared/audit/redissink shared/kinds/platformconfig shared/state/redisstore shared/state/redisstore/redistest shared/syncpatch/worker test/cold test/load
os/exec: infra/lambda/bootstrap infra/lambda/lambdatest infra/shells local shared/audit/postgressink/postgrestest shared/state/redisstore/redistest shared/syncpatch/worker test/load
os/signal: infra/framework/server local shared/syncpatch/worker test/load
plugin:
syscall: infra/framework/server infra/lambda/lambdatest local shared/audit/filesink shared/audit/postgressink/postgrestest shared/signing/clusterca/csr shared/state/redisstore shared/state/redisstore/redistest shared/syncpatch/worker test/load
testing: infra/environment/environmenttest shared/kinds/accesskey/accesskeytest shared/audit/postgressink/postgrestest shared/kinds/instance/instancetest shared/credentials/issuer/issuertest shared/signing/clusterca/signertest shared/state/redisstore/redistest shared/state/storetest
unsafe:
`

// links says of which modules the program of a function is made: those of the frame, and what its own line
// and those of the rooms that it imports add. What is not here costs no function size and start-up: no Redis, no client, no generator.
const links = `
shared/api/fieldmanager: github.com/go-openapi/jsonpointer github.com/go-openapi/jsonreference github.com/go-openapi/swag github.com/go-openapi/swag/cmdutils github.com/go-openapi/swag/conv github.com/go-openapi/swag/fileutils github.com/go-openapi/swag/jsonutils github.com/go-openapi/swag/loading github.com/go-openapi/swag/mangling github.com/go-openapi/swag/netutils github.com/go-openapi/swag/pools github.com/go-openapi/swag/stringutils github.com/go-openapi/swag/typeutils github.com/go-openapi/swag/yamlutils github.com/google/gnostic-models go.yaml.in/yaml/v3 google.golang.org/protobuf
shared/api/frame: github.com/cespare/xxhash/v2 github.com/evanphx/json-patch/v5 github.com/fxamacker/cbor/v2 github.com/go-logr/logr github.com/hashicorp/golang-lru/v2 github.com/json-iterator/go github.com/modern-go/concurrent github.com/modern-go/reflect2 github.com/x448/float16 go.opentelemetry.io/otel go.opentelemetry.io/otel/trace go.yaml.in/yaml/v2 golang.org/x/net golang.org/x/text gopkg.in/inf.v0 k8s.io/apimachinery k8s.io/klog/v2 k8s.io/kube-openapi k8s.io/utils sigs.k8s.io/json sigs.k8s.io/randfill sigs.k8s.io/structured-merge-diff/v6 sigs.k8s.io/yaml
shared/syncpatch: github.com/dlclark/regexp2/v2 github.com/dop251/goja github.com/go-sourcemap/sourcemap github.com/google/pprof go.yaml.in/yaml/v3
shared/syncpatch/worker: golang.org/x/sys
shared/credentials/kubeconfig: github.com/spf13/pflag golang.org/x/term
shared/signing/clusterca/csr: github.com/davecgh/go-spew github.com/munnerz/goautoneg golang.org/x/oauth2 golang.org/x/sys golang.org/x/term golang.org/x/time k8s.io/api k8s.io/client-go
shared/credentials/review: k8s.io/api
shared/signing/token: github.com/golang-jwt/jwt/v5
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
	frame, _ := find(table, "shared/api/frame")
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
		"functions/createaccesskey/a.go":      ours("functions/getaccesskey", "shared/api/frame", "shared/state/redisstore"),
		"functions/whoami/a_test.go":          ours("functions/whoami", "functions/catalog", "shared/state/redisstore/redistest"),
		"shared/kinds/accesskey/a.go":         ours("shared/auth", "shared/model"),
		"shared/kinds/accesskey/a_test.go":    ours("shared/api/frame", "local"),
		"shared/model/a.go":                   ours("shared/auth/scope"),
		"shared/state/redisstore/a.go":        ours("shared/state/redisstore/redistest"),
		"shared/state/redisstore/a_test.go":   ours("shared/state/redisstore/redistest"),
		"shared/state/redisstore/more/a.go":   "fmt",
		"test/arch/a_test.go":                 ours("shared/model"),
		"infra/openapi/generated/zz_model.go": ours("shared/model"),
	})
	expect(t, crossed(planted, lines(lattice), false),
		"functions/createaccesskey imports functions/getaccesskey", "functions/createaccesskey imports shared/state/redisstore",
		"shared/kinds/accesskey imports shared/auth", "shared/model imports shared/auth/scope",
		"shared/state/redisstore imports shared/state/redisstore/redistest", "shared/state/redisstore/more has no place")
	expect(t, crossed(planted, lines(testLattice), true),
		"functions/whoami imports functions/catalog", "shared/kinds/accesskey imports local", "test/arch imports shared/model")
	expect(t, upward(lines("a:\nb: a c\nc: c a\n")), "b import c", "c import c")
	expect(t, unneeded(planted, lines("shared/model: shared/auth/scope shared/model/secret\nshared/gone:\n")),
		"shared/model import shared/model/secret", "shared/gone, which is no package")
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
		"functions/whoami/a.go":            "github.com/aws/aws-lambda-go/lambda k8s.io/client-go/rest",
		"infra/lambda/a.go":                "github.com/aws/aws-lambda-go/lambda",
		"shared/kinds/accesskey/a.go":      "github.com/alicebob/miniredis/v2",
		"shared/kinds/accesskey/a_test.go": "github.com/redis/go-redis/v9 pgregory.net/rapid github.com/example/assert k8s.io/client-gone",
		"shared/syncpatch/a.go":            "github.com/dop251/goja/parser",
		"shared/auth/scope/a.go":           "github.com/dop251/goja",
	})
	expect(t, misborrowed(planted, lines(borrowed), lines(testBorrowed)),
		"functions/whoami imports github.com/aws/aws-lambda-go/lambda", "functions/whoami imports k8s.io/client-go/rest",
		"shared/auth/scope imports github.com/dop251/goja",
		"shared/kinds/accesskey imports github.com/alicebob/miniredis/v2", "shared/kinds/accesskey imports github.com/example/assert",
		"shared/kinds/accesskey imports github.com/redis/go-redis/v9", "shared/kinds/accesskey imports k8s.io/client-gone")
	expect(t, unborrowed(planted, lines("github.com/dop251/goja: shared/syncpatch shared/auth/scope local\ngithub.com/google/uuid: local\n"), false, isOf),
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
		"shared/api/resource/a.go":   "os testing unsafe",
		"shared/api/frame/a.go":      "net/http log/slog",
	})
	expect(t, outward(planted, lines(standard)), "functions/whoami imports net/http",
		"shared/api/resource imports os", "shared/api/resource imports testing", "shared/api/resource imports unsafe")
}

func TestLinks(t *testing.T) {
	t.Parallel()
	report(t, linked(all(t), lines(links)))
}

func TestLinksFinds(t *testing.T) {
	t.Parallel()
	expect(t, linked([]*room{
		{path: "shared/api/frame", links: []string{"k8s.io/apimachinery", "k8s.io/client-go"}},
		{path: "functions/whoami", links: []string{"k8s.io/api"}},
		{path: "functions/getaccesskey", links: []string{"k8s.io/api", "sigs.k8s.io/controller-runtime"}},
		{path: "local", links: []string{"github.com/alicebob/miniredis/v2"}},
	}, lines(links)), "shared/api/frame links k8s.io/client-go", "functions/getaccesskey links k8s.io/api",
		"functions/getaccesskey links sigs.k8s.io/controller-runtime")
}
