package main

import "slices"

// part is one piece of a check: a target of the Makefile, or tests of packages of one module.
type part struct {
	name string
	// about says what the part checks, for the table in docs/contributing.md.
	about string
	// target is the target of the Makefile that does the work of a part without packages.
	target string
	// module is the folder of the go.mod, from the top of the checkout.
	module string
	// packages are patterns of packages, below the module. A pattern that ends in three dots is a folder and everything in it.
	packages []string
	// except are patterns of packages that belong to other parts.
	except []string
	// first are the packages that take longest. They start before the others, so that no processor is idle at the end.
	first []string
	// flags are flags of go test.
	flags []string
	// beside is true if the part runs at the same time as the part before it, because both leave a processor idle at times.
	beside bool
	// needs are the programs that the tests start. A test whose program is missing is skipped outside CI.
	needs []string
}

// separatePackages are the packages that have a part of their own: whole sessions, deployments and bounds.
var separatePackages = []string{
	"test/script", "test/browser", "test/clients", "test/deploy", "test/gateway", "test/cold", "test/links", "test/attack", "test/cost", "test/limits",
}

// short are the flags that leave out the tests of check-deep: most rounds of random tests, and mutations.
const short = "-short"

// parallel are the flags that run more packages and tests at a time than there are processors, because tests wait much of their time.
var parallel = []string{"-p=3", "-parallel=6"}

// check are the parts that CI runs at each change.
var check = []part{
	{name: "verify", about: "generated files are what their sources say", target: "verify", needs: []string{"node", "npm"}},
	{name: "linter", about: "golangci-lint compiles", target: "linter", beside: true},
	{name: "lint", about: "formatting, the linters, the list of modules", target: "lint"},
	{
		name: "test", about: "all other packages, with a few rounds of the random tests",
		packages: []string{"..."}, except: separatePackages, first: []string{"test/signin", "test/society", "shared/state/redisstore"},
		flags: append([]string{short}, parallel...), needs: []string{"redis-server", "postgres", "providers", "simplesamlphp", "authlib", "node", "console", "zsh", "fish", "git"},
	},
	{
		name: "stories", about: "whole sessions with a real kubectl in the runner, and some as servers of the Functions Framework",
		packages: []string{"test/script"}, flags: []string{short, "-parallel=4"}, needs: []string{"redis-server", "git"},
	},
	{
		name: "browser", about: "the console in a real browser, each page in one look", beside: true,
		packages: []string{"test/browser"}, flags: []string{short, "-count=1"}, needs: []string{"redis-server", "playwright", "providers", "chromium"},
	},
	{
		name: "bounds", about: "each row of docs/limits.md, the cost of random input, an honest tenant under attack",
		packages: []string{"test/limits", "test/cost", "test/attack"}, needs: []string{"redis-server"},
	},
}

// deep are the parts that CI does not run at each change. They run before a release, each night, and for the packages that a change touched.
var deep = []part{
	{name: "lint-modules", about: "the linters in the other modules", target: "lint-modules"},
	{
		name: "race", about: "the tests of the code with the race detector, and random tests with all of their rounds",
		packages: []string{"functions/...", "infra/...", "local/...", "shared/..."}, first: []string{"shared/api/fieldmanager", "shared/state/redisstore", "shared/api/resource"},
		flags: append([]string{"-race"}, parallel...),
		needs: []string{"gcc", "redis-server", "postgres", "zsh", "fish"},
	},
	{
		// The race detector needs much address space, so the memory limits of a worker are tested without it.
		name: "suites", about: "the other tests with all of their rounds, the mutation of each configuration field, the limits of workers",
		packages: []string{"test/...", "shared/syncpatch/worker"}, except: separatePackages, first: []string{"test/signin", "test/society"},
		flags: parallel, needs: []string{"redis-server", "providers", "simplesamlphp", "authlib", "node", "console", "git"},
	},
	{
		name: "shapes", about: "the sessions as servers of the Functions Framework and in AWS Lambda behind each gateway, and the upgrade from the previous release",
		packages: []string{"test/script"}, flags: []string{"-run=^TestStories$/^(framework|lambda)|^TestStories$/^local$/^upgrade$"}, needs: []string{"redis-server", "git"},
	},
	{
		name: "packaging", about: "serverless.yml as its packager reads it, a gateway, size and content of the programs",
		packages: []string{"test/deploy", "test/gateway", "test/cold", "test/links"}, needs: []string{"osls", "nginx"},
	},
	{
		name: "looks", about: "the console's pages in the other looks, the buttons of an admin, a tenant admin and an auditor, fast typing in the studio",
		packages: []string{"test/browser"}, flags: []string{"-run=^TestConsoleLong$", "-count=1"}, needs: []string{"redis-server", "playwright", "providers", "chromium"},
	},
	// The cache of go test does not see what the programs read.
	{
		name: "clients", about: "the Kubernetes clients of Python, JavaScript and Ruby, and a Go program with the types of the client module, against a runner",
		packages: []string{"test/clients"}, flags: []string{"-count=1"}, needs: []string{"redis-server", "python-kubernetes", "kubeclient", "node", "client-node"},
	},
	{name: "types", about: "the Go module for clients", module: "infra/client/go", packages: []string{"..."}},
	// The cache of go test does not see files outside of a module.
	{name: "terraform", about: "the Terraform modules", module: "test/terraform", packages: []string{"..."}, flags: []string{"-count=1"}, needs: []string{"redis-server"}},
	// It compiles OpenTofu, and the programs that the tests build are not in the cache of go test.
	{
		name: "provider", about: "the Terraform provider in OpenTofu, and in Terraform if it is on PATH, against a runner",
		module: "infra/terraform/provider", packages: []string{"..."}, flags: []string{"-count=1"}, needs: []string{"redis-server"},
	},
	// It compiles Helm, etcd and kube-apiserver, which are not in the cache of go test.
	{
		name: "helm", about: "the Helm chart with the unmodified Helm and kube-apiserver, and its pods under load",
		module: "test/helm", packages: []string{"..."}, flags: []string{"-count=1"}, needs: []string{"redis-server"},
	},
	{name: "release", about: "an archive, twice, byte by byte", module: "infra/release", packages: []string{"..."}, flags: []string{"-count=1"}, needs: []string{"git"}},
	{
		name: "contract", about: "the storage contract tests and the handlers of kube-apiserver, published vectors",
		module: "test/contract", packages: []string{"..."}, needs: []string{"redis-server"},
	},
	{
		name: "names", about: "the names of the naming profile vcluster, made again with the code of its syncer",
		module: "test/vcluster", packages: []string{"..."}, flags: []string{"-count=1"},
	},
}

// partByName returns the part with a name.
func partByName(name string) (part, bool) {
	all := slices.Concat(check, deep)
	at := slices.IndexFunc(all, func(p part) bool { return p.name == name })
	if at < 0 {
		return part{}, false
	}
	return all[at], true
}
