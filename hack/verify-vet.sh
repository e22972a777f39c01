#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs go vet, over the end-to-end tests too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet -tags e2e,systemd ./...
# The table of the agents has another half for the real CLIs.
go vet -tags e2e,e2eagents ./cmd/muxlet/e2e
