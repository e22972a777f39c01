#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when what is generated is not what the generators make of the types and their
# comments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-generated.sh "$fresh"
while IFS= read -r file; do
    if ! diff -u "$file" "$fresh/$file"; then
        echo "Error: $file is out of date: run hack/update-generated.sh." >&2
        exit 1
    fi
done < <(cd "$fresh" && find . -type f | sed 's|^\./||')
