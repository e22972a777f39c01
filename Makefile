# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGES ?= ./...

# Version control is asked once, above; go build need not ask it again.
GO_BUILD = CGO_ENABLED=0 go build -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help build run stop test e2e e2e-agents e2e-systemd bench soak verify ci generate update lint clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build bin/muxlet
	$(GO_BUILD) -ldflags '-X main.version=$(VERSION)' -o bin/muxlet ./cmd/muxlet

run: ## build, then run the daemon on copies of the samples below .run/
	@hack/need.sh tmux
	@$(MAKE) --no-print-directory build
	@hack/run.sh start

stop: ## end what `make run` started: the daemon, the sessions, their tmux server
	@hack/run.sh stop

test: ## run all tests but e2e, with the race detector (PACKAGES=./spec/... for a part)
	go test -race -shuffle=on -timeout 15m $(PACKAGES)

e2e: build ## run the tests that drive the built binary
	MUXLET_BIN="$(CURDIR)/bin/muxlet" go test -tags e2e -count=1 -timeout 20m ./cmd/muxlet/e2e

e2e-agents: build ## run the agents' tests with the real Claude Code and Codex, from npm
	@hack/e2e-agents.sh

e2e-systemd: build ## run the tests on a booted systemd, in namespaces; needs root
	@hack/e2e-systemd.sh

bench: ## measure muxlet beside its floors (QUICK=1 to see that it runs, README=1 to write the README's table)
	@hack/bench.sh

soak: ## kill a client a second for a while and see whether anything grows (DURATION=10m SESSIONS=200)
	@hack/soak.sh

verify: ## check formatting, headers, imports, sizes, modules, generated code, linters, other platforms
	@hack/verify.sh

ci: verify test e2e e2e-systemd e2e-agents ## what CI runs: verify, test, e2e, e2e-systemd, e2e-agents

generate: ## write the generated code anew
	@hack/update-generated.sh

update: ## mend what can be mended: every hack/update-*.sh
	@set -e; for script in hack/update-*.sh; do echo "$$script"; "$$script"; done

lint: ## run the linters alone
	@hack/verify-lint.sh

clean: stop ## stop what runs here, then remove bin/ and .run/
	rm -rf bin .run
