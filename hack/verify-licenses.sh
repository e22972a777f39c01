#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a Go file or a script lacks the two-line header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wrong=$(hack/update-licenses.sh --list)
if [[ -n $wrong ]]; then
    printf '%s\n' "$wrong"
    echo "Error: these files lack the licence header: run hack/update-licenses.sh." >&2
    exit 1
fi
