#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a Go file is not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wrong=$(hack/sources.sh '*.go' | tr '\n' '\0' | xargs -0 gofmt -s -l)
if [[ -n $wrong ]]; then
    printf '%s\n' "$wrong"
    echo "Error: these files are not formatted: run hack/update-fmt.sh." >&2
    exit 1
fi
