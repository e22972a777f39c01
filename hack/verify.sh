#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs every hack/verify-*.sh, all of them even when one fails, and fails when
# one failed or when the checks themselves changed a file. In CI it fails on any
# uncommitted file too: what was not committed was not checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tree() { hack/sources.sh | tr '\n' '\0' | xargs -0 cksum; }

before=$(tree)
failed=()
for script in hack/verify-*.sh; do
    name=$(basename "$script" .sh)
    started=$SECONDS
    if output=$("$script" 2>&1); then
        echo "pass $name ($((SECONDS - started))s)"
    else
        failed+=("$name")
        echo "FAIL $name ($((SECONDS - started))s)"
        printf '%s\n' "$output" | sed 's/^/    /'
    fi
done

if changed=$(diff <(printf '%s\n' "$before") <(tree)); then :; else
    failed+=(tree)
    echo "FAIL tree: files changed while they were checked"
    printf '%s\n' "$changed" | sed 's/^/    /'
fi
if [[ -n ${CI:-} && -n $(git status --porcelain) ]]; then
    failed+=(commit)
    echo "FAIL commit: files are not committed"
    git status --short | sed 's/^/    /'
fi

if ((${#failed[@]})); then
    echo "Error: ${#failed[@]} of the checks failed: ${failed[*]}" >&2
    exit 1
fi
