#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when go.mod or go.sum is not tidy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! go mod tidy -diff; then
    echo "Error: go.mod and go.sum do not fit the imports: run hack/update-tidy.sh." >&2
    exit 1
fi
