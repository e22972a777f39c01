#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints the project's own files that match the patterns, one per line: what
# git tracks or would track, and what is really there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files --cached --others --exclude-standard --deduplicate -- "$@" |
    while IFS= read -r file; do
        if [[ -f $file ]]; then printf '%s\n' "$file"; fi
    done
