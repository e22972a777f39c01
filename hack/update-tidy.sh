#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Tidies go.mod and go.sum. hack/tools/go.mod is left out: the tests of the tools'
# own dependencies, which tidy would resolve, contradict each other; the -mod=readonly
# that go uses by default keeps it whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go mod tidy
