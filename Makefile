# The targets of this project. `make` alone prints them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

# Programs that are deployed are built without the path of the checkout. With the same flag everywhere, Go compiles a package once.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
TOOL := go tool -modfile=test/tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
FUZZTIME ?= 20s
# Where the processor time goes, for the compiler. make profile writes it.
PROFILE := infra/profile/default.pgo
# How long the tests of one package may take on a machine that others use as well.
TIMEOUT ?= 40m
# What `make test` leaves to targets of their own: whole sessions, what is deployed, and what is bounded.
APART := test/(script|browser|deploy|gateway|cold|links|attack|cost|limits)
# The code. `make race` runs its tests with the race detector.
CODE := ./functions/... ./infra/... ./local/... ./shared/...
# Much of the time of a test is waiting, so more packages and tests run at a time than there are processors.
GOTEST := go test -p 3 -parallel 6 -timeout $(TIMEOUT)
META := $(addprefix k8s.io/apimachinery/pkg/,api/resource apis/meta/v1 runtime version)
ARGS ?=

help: ## Print the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  %-16s %s\n", $$1, $$2}'

run: ## Serve the API on this machine; ARGS="serve --help" prints the flags.
	@go build -ldflags '$(LDFLAGS)' -o build/platform ./local
	@exec build/platform $(ARGS)

test: redis postgres terminals provider ## Run the tests of every package, with an embedded and a real Redis. Random tests make fewer rounds than in race.
	$(GOTEST) -short $$(go list ./... | grep -vE '/$(APART)$$')

# The race detector needs so much address space that the limits of memory of a worker are tested without it.
suites: redis provider ## Run what neither race nor another target runs: the other tests of test/, with all of their rounds, and the limits of workers.
	$(GOTEST) $$(go list ./test/... | grep -vE '/$(APART)$$') ./shared/syncpatch/worker

stories: redis ## Run whole sessions of users, with a real kubectl, in each shape in which the API is deployed.
	go test -timeout $(TIMEOUT) ./test/script

# The stories run in node, which the cache of go test does not see.
browser: npm chromium provider ## Drive the console in a real browser. PICTURES=folder keeps pictures of its pages, MEASURE=file its figures; ARIA=write renews test/browser/aria.
	@! command -v npm >/dev/null || $(MAKE) test/browser/node_modules/.package-lock.json
	go test -count=1 -timeout $(TIMEOUT) ./test/browser

bounds: redis ## Hold each row of docs/limits.md, the cost of random input, and an honest tenant under attack.
	go test -timeout $(TIMEOUT) ./test/limits ./test/cost ./test/attack

packaging: node nginx ## Check what is deployed and released: serverless.yml as its packager reads it, Terraform, size and content of the programs, an archive.
	go test -timeout $(TIMEOUT) ./test/deploy ./test/gateway ./test/cold ./test/links
	cd test/terraform && go test -count=1 -timeout $(TIMEOUT) . # the cache does not see files outside of a module
	cd infra/release && go test -count=1 -timeout $(TIMEOUT) .

contract: redis ## Compare with Kubernetes: its storage contract tests, and its handlers. Compiles for minutes when cold.
	cd test/contract && go test -timeout $(TIMEOUT) . $(ARGS)

race: redis postgres terminals ## Run the tests of the code with the race detector, and random tests with all of their rounds.
	$(GOTEST) -race $(CODE)

stage-serverless: ## Lay out what `make build` made for Lambda as serverless.yml wants it.
	@mkdir -p build/serverless
	@for zip in build/lambda/*/arm64/bootstrap.zip; do \
		function=$${zip#build/lambda/}; cp "$$zip" "build/serverless/$${function%%/*}.zip"; \
	done

check: verify lint suites race stories browser bounds packaging contract ## What CI runs: generated files, linters, and all tests.

lint: ## Run the linters.
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	go vet ./...
	@GOOS=darwin go list -test ./... >/dev/null # compiling for it would take minutes
	go mod tidy -diff
	$(TOOL) golangci-lint run ./...
	@for module in infra/release test/contract test/expressions test/terraform; do \
		(cd $$module && go vet ./... && go mod tidy -diff && go tool -modfile=../../test/tools/go.mod golangci-lint run ./...); \
	done

fix: ## Mend what the linters can mend.
	git ls-files '*.go' | xargs gofmt -w
	$(TOOL) golangci-lint run --fix ./...

build: program ## Build the local runner, and the functions for AWS Lambda in build/lambda.
	go run ./infra/shells build $(ARGS)

# Every package is compiled once more for the profile, which takes minutes the first time. `make run` does without.
program: # Build the local runner as it is released.
	CGO_ENABLED=0 go build -trimpath -pgo=$(PROFILE) -ldflags '-s -w $(LDFLAGS)' -o build/platform ./local

# Everything is compiled for four platforms, twice, and the second time without a cache.
release: ## Make what is published, in build/release: archives, images, programs for Lambda, bill of materials, checksums.
	cd infra/release && go run . --output ../../build/release $(ARGS) ../..

stage-gcf: ## Lay out the source of each function for Cloud Functions in build/gcf.
	go run ./infra/shells stage $(ARGS)

bench: redis program ## Measure the API beside the least that a server does, and beside kube-apiserver and OpenBao if they are on PATH. Minutes.
	@mkdir -p build/bench
	go run ./test/load --program build/platform --json build/bench/$$(date -u +%Y%m%dT%H%M%S).json $(ARGS)

bench-growth: redis program ## Measure the API with 1,000, 200,000 and 1,000,000 access keys. Takes 5 GB of memory.
	go run ./test/load --program build/platform --keys 1000,200000,1000000 --op get,page,create,update --no-floor --no-peers $(ARGS)

bench-parts: redis ## Run the benchmarks of parts of requests; takes minutes.
	go test -run '^$$' -bench . -benchmem ./test/bench
	cd test/expressions && go test -run '^$$' -bench .

speed: ## Write docs/evidence/speed.md from the runs of make bench.
	@mkdir -p docs/evidence
	go run ./test/load table build/bench/*.json > build/speed.md
	mv build/speed.md docs/evidence/speed.md

evidence: redis postgres terminals provider nginx chromium ## Run the tests behind each claim of the documents, and write docs/evidence.md. ARGS=ID runs those of one claim. Takes twenty minutes or more.
	@! command -v npm >/dev/null || $(MAKE) test/browser/node_modules/.package-lock.json infra/serverless/node_modules/.package-lock.json
	go run ./test/evidence $(ARGS)

profile: redis ## Measure where the processor time goes, for the compiler. Renew it on a quiet machine, after changes of measured paths.
	go run ./test/load profile --output $(PROFILE)

bench-cold: ## Measure size, start and answers of each function for AWS Lambda.
	go run ./test/cold $(ARGS)

fuzz: ## Run each fuzz target for FUZZTIME.
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package 2>/dev/null | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package; \
		done; \
	done

gen: npm ## Write the generated files anew.
	$(TOOL) deepcopy-gen --go-header-file test/tools/boilerplate.go.txt --output-file zz_generated.deepcopy.go ./shared/model
	$(TOOL) openapi-gen --go-header-file test/tools/boilerplate.go.txt --report-filename /dev/null \
		--output-dir infra/openapi/generated --output-pkg management.platform.sh/infra/openapi/generated \
		--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
		$(addprefix --readonly-pkg ,$(META)) ./shared/model $(META)
	go run ./infra/openapi
	go run ./infra/deployment
	go run ./infra/shells generate
	go run ./infra/limits
	go run ./infra/console

verify: gen ## Fail when a generated file is not what the source says.
	@git diff --exit-code --stat -- '*zz_generated*' functions/discoverapi shared/api/fieldmanager \
		infra/serverless infra/redis infra/terraform/functions.json infra/lambda/functions infra/knative infra/nginx docs/limits.md docs/reference.md functions/serveconsole

redis: # Install redis-server where it is missing and apt-get is there for root.
	@command -v redis-server >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server; } || \
		echo "redis-server is not installed: tests that need it are skipped outside CI" >&2

postgres: # Install PostgreSQL where it is missing and apt-get is there for root. Debian keeps its programs out of PATH.
	@{ command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; } || \
		echo "PostgreSQL is not installed: tests that need it are skipped outside CI" >&2

nginx: # Install NGINX where it is missing and apt-get is there for root. Debian keeps it out of PATH.
	@{ command -v nginx || ls /usr/sbin/nginx; } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light; } || \
		echo "NGINX is not installed: tests that need it are skipped outside CI" >&2

terminals: # Install the shells that are completed, where they are missing and apt-get is there for root.
	@{ command -v zsh && command -v fish; } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends zsh fish; } || \
		echo "zsh and fish are not installed: tests that need them are skipped outside CI" >&2

npm: # Install node and npm where they are missing and apt-get is there for root.
	@{ command -v node && command -v npm; } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm; } || \
		echo "node and npm are not installed: the console cannot be built, and tests that need them are skipped outside CI" >&2

chromium: # Install chromium where it is missing and apt-get is there for root.
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } || \
		echo "chromium is not installed: tests that need it are skipped outside CI" >&2

test/browser/node_modules/.package-lock.json: test/browser/package.json test/browser/package-lock.json
	@npm ci --prefix test/browser --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

provider: npm saml # Install the providers at which tests sign in.
	@! command -v npm >/dev/null || $(MAKE) test/signin/providertest/node_modules/.package-lock.json

saml: # Install SimpleSAMLphp where it is missing and apt-get is there for root.
	@{ command -v php && ls /usr/share/simplesamlphp/www; } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends simplesamlphp php-cli php-xml; } || \
		echo "SimpleSAMLphp is not installed: tests that need it are skipped outside CI" >&2

test/signin/providertest/node_modules/.package-lock.json: test/signin/providertest/package.json test/signin/providertest/package-lock.json
	@npm ci --prefix test/signin/providertest --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

node: npm # Install the packager of serverless.yml.
	@! command -v npm >/dev/null || $(MAKE) infra/serverless/node_modules/.package-lock.json

# Where the Node.js of the machine is too old for the packager, one comes with it, in node_modules/.bin.
infra/serverless/node_modules/.package-lock.json: infra/serverless/package.json infra/serverless/package-lock.json
	@install() { npm ci --prefix infra/serverless --ignore-scripts --no-audit --no-fund --loglevel=error "$$@" >/dev/null; }; \
		install --omit=optional --engine-strict 2>/dev/null || install
	@touch $@

.PHONY: nginx help run test suites stories browser chromium bounds packaging contract race check lint fix build program release stage-gcf bench bench-growth bench-parts bench-cold speed evidence profile fuzz gen verify redis postgres terminals npm node provider saml stage-serverless
