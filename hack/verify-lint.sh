#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the linters of .golangci.yml, in the version that hack/tools pins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

golangci_lint() { go tool -modfile=hack/tools/go.mod golangci-lint "$@"; }

golangci_lint config verify
golangci_lint run "$@"
