#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when the generated code is not what the generator makes of the types.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-generated.sh "$fresh"
for file in "$fresh"/*; do
    if ! diff -u "spec/$(basename "$file")" "$file"; then
        echo "Error: the generated code is out of date: run hack/update-generated.sh." >&2
        exit 1
    fi
done
