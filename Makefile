# The targets of this project. `make` alone prints them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

# Programs that are deployed are built without the path of the checkout. What debuggers read is a tenth of the time of compiling and a
# quarter of its disk. With the same flags everywhere, Go compiles a package once.
FLAGS := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS))
TOOL := go tool -modfile=test/tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
FUZZTIME ?= 20s
# How long the tests of one package may take on a machine that others use as well.
TIMEOUT ?= 40m
# It runs tests in parts, installs what they need where it can, and prints what they cost. test/check/parts.go lists the parts.
CHECK := go run ./test/check --timeout $(TIMEOUT)
META := $(addprefix k8s.io/apimachinery/pkg/,api/resource apis/meta/v1 runtime version)
ARGS ?=
# The architectures of AWS Lambda for which functions are built. Deployments use arm64 unless they say otherwise.
ARCHITECTURES ?= arm64

help: ## Print the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  %-16s %s\n", $$1, $$2}'

run: ## Serve the API on this machine; ARGS="serve --help" prints the flags.
	@go build -ldflags '$(LDFLAGS)' -o build/platform ./local
	@exec build/platform $(ARGS)

test: ## Run the tests of every package, with an embedded and a real Redis, and a few rounds of the random ones.
	@$(CHECK) test

check: ## What CI runs at each change: generated files, linters, tests, sessions, the browser, bounds. PARTS names some of them.
	@$(CHECK) $(or $(PARTS),check)

check-deep: ## Everything else: race detector, all shapes, Kubernetes, Terraform, a release, all rounds. PARTS="race suites" names some.
	@$(CHECK) $(or $(PARTS),deep)

# The stories run in node, which the cache of go test does not see.
browser: ## Drive the console in a real browser. PICTURES=folder keeps pictures of its pages, MEASURE=file its figures; ARIA=write renews test/browser/aria.
	@$(CHECK) browser looks

contract: ## Compare with Kubernetes: its storage contract tests, and its handlers. Compiles for minutes when cold. ARGS=-update writes docs/conformance.md.
	@$(CHECK) --install redis-server
	cd test/contract && go test -timeout $(TIMEOUT) . $(ARGS)

node: # Install the packager of serverless.yml.
	@$(CHECK) --install npm osls

stage-serverless: ## Lay out what `make build` made for Lambda as serverless.yml wants it.
	@mkdir -p build/serverless
	@for zip in build/lambda/*/arm64/bootstrap.zip; do \
		function=$${zip#build/lambda/}; cp "$$zip" "build/serverless/$${function%%/*}.zip"; \
	done

linter: # Compile golangci-lint, which takes minutes the first time.
	@$(TOOL) golangci-lint version

lint: ## Run the linters.
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	@GOOS=darwin go list -test ./... >/dev/null # compiling for it would take minutes
	go mod tidy -diff
	$(TOOL) golangci-lint run ./...

# They compile graphs of their own.
lint-modules: # Run the linters in the modules that have a go.mod of their own.
	@failed=; for module in docs/examples/typed infra/client/go infra/release infra/terraform/provider test/contract test/expressions test/helm test/kubectl test/providers test/terraform test/vcluster; do \
		(cd $$module && go mod tidy -diff && go tool -modfile=$(CURDIR)/test/tools/go.mod golangci-lint run ./...) || failed="$$failed $$module"; \
	done; if [ -n "$$failed" ]; then echo "not tidy, or the linters say no:$$failed"; exit 1; fi

fix: ## Mend what the linters can mend.
	git ls-files '*.go' | xargs gofmt -w
	$(TOOL) golangci-lint run --fix ./...

build: program ## Build the local runner, and the functions for AWS Lambda in build/lambda; ARCHITECTURES="arm64 amd64" builds for both.
	CGO_ENABLED=0 go run ./infra/shells build $(addprefix --architecture=,$(ARCHITECTURES)) $(ARGS)

program: # Build the local runner as it is released.
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(LDFLAGS)' -o build/platform ./local

# Everything is compiled for four platforms, twice, and the second time without a cache.
release: ## Make what is published, in build/release: archives, images, programs for Lambda, bill of materials, checksums.
	cd infra/release && go run . --output ../../build/release $(ARGS) ../..

stage-gcf: ## Lay out the source of each function for Cloud Functions in build/gcf.
	go run ./infra/shells stage $(ARGS)

bench: program ## Measure the API beside the least that a server does, and beside kube-apiserver and OpenBao if they are on PATH. Minutes.
	@$(CHECK) --install redis-server
	@mkdir -p build/bench
	go run ./test/load --program build/platform --json build/bench/$$(date -u +%Y%m%dT%H%M%S).json $(ARGS)

bench-growth: program ## Measure the API with 1,000, 200,000 and 1,000,000 access keys. Takes 5 GB of memory.
	@$(CHECK) --install redis-server
	go run ./test/load --program build/platform --keys 1000,200000,1000000 --op get,page,create,update --no-floor --no-peers $(ARGS)

bench-parts: ## Run the benchmarks of parts of requests; takes minutes.
	@$(CHECK) --install redis-server
	go test -run '^$$' -bench . -benchmem ./test/bench
	cd test/expressions && go test -run '^$$' -bench .

speed: ## Write docs/evidence/speed.md from the runs of make bench.
	@mkdir -p docs/evidence
	go run ./test/load table build/bench/*.json > build/speed.md
	mv build/speed.md docs/evidence/speed.md

evidence: ## Run the tests behind each claim of the documents, and write docs/evidence.md. ARGS=ID runs those of one claim. Takes twenty minutes or more.
	@$(CHECK) --install redis-server postgres zsh fish simplesamlphp authlib python-kubernetes kubeclient client-node providers nginx chromium playwright osls
	go run ./test/evidence $(ARGS)

bench-cold: ## Measure size, start and answers of each function for AWS Lambda.
	go run ./test/cold $(ARGS)

fuzz: ## Run each fuzz target for FUZZTIME.
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package 2>/dev/null | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package; \
		done; \
	done

gen: ## Write the generated files anew.
	@$(CHECK) --install node npm
	$(TOOL) deepcopy-gen --go-header-file test/tools/boilerplate.go.txt --output-file zz_generated.deepcopy.go ./shared/model
	$(TOOL) openapi-gen --go-header-file test/tools/boilerplate.go.txt --report-filename /dev/null \
		--output-dir infra/openapi/generated --output-pkg management.platform.sh/infra/openapi/generated \
		--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
		$(addprefix --readonly-pkg ,$(META)) ./shared/model $(META)
	go run ./infra/client/generate
	go run ./infra/catalog
	go run ./infra/openapi
	go run ./infra/deployment
	go run ./infra/shells generate
	go run ./infra/limits
	go run ./infra/helm/generate
	go run ./infra/ci
	go run ./infra/console

verify: gen ## Fail when a generated file is not what the source says.
	@git diff --exit-code --stat -- '*zz_generated*' functions/discoverapi shared/api/fieldmanager \
		infra/serverless infra/redis infra/terraform/functions.json infra/lambda/functions infra/helm infra/knative infra/nginx infra/ci docs/limits.md docs/reference.md functions/serveconsole

.PHONY: node help run test check check-deep browser contract linter lint lint-modules fix build program release stage-gcf stage-serverless bench bench-growth bench-parts bench-cold speed evidence fuzz gen verify
