#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Puts the two-line header on each Go file and script that lacks it, or with
# --list only names those files. Generated code has it from hack/boilerplate.go.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# has_header FILE MARK FIRST: the header stands at line FIRST, in comments that
# begin with MARK.
has_header() {
    [[ $(sed -n "$3,$(($3 + 1))p" "$1") == "$(header "$2")" ]]
}

header() {
    printf '%s Copyright The muxlet Authors\n%s SPDX-License-Identifier: Apache-2.0\n' "$1" "$1"
}

# add FILE MARK FIRST writes in place, so that the mode stays.
add() {
    local text
    text=$(head -n "$(($3 - 1))" "$1"; header "$2"; if [[ $2 == // ]]; then echo; fi; tail -n "+$3" "$1")
    printf '%s\n' "$text" >"$1"
}

while IFS= read -r file; do
    case $file in
        *.go) mark=// first=1 ;;
        *) mark='#' first=2 ;;
    esac
    if has_header "$file" "$mark" "$first"; then continue; fi
    if [[ ${1:-} == --list ]]; then echo "$file"; else add "$file" "$mark" "$first"; fi
done < <(hack/sources.sh '*.go' '*.sh' .ci/run ':!*zz_generated*')
