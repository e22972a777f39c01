#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a Go file that a person wrote has 500 lines or more. The cap on
# functions is the linter's (funlen in .golangci.yml).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=500
wrong=$(hack/sources.sh '*.go' ':!*zz_generated*' | while IFS= read -r file; do
    lines=$(wc -l <"$file")
    if ((lines >= limit)); then echo "$file: $((lines)) lines"; fi
done)
if [[ -n $wrong ]]; then
    printf '%s\n' "$wrong"
    echo "Error: a file stays under $limit lines: split these by what they are about." >&2
    exit 1
fi
