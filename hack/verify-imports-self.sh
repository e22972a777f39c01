#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when hack/verify-imports.sh lets a violation pass: each one is planted in
# a small module of its own, and must be named; the module without it must pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=$PWD/hack/verify-imports.sh
module=$(go list -m)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# put PACKAGE IMPORT… writes a file that imports them; FILE and BODY may be set.
put() {
    local package=$1 path
    shift
    mkdir -p "$package"
    {
        echo "package ${NAME:-$(basename "$package")}"
        for path in "$@"; do echo "import _ \"${path/#@/$module/}\""; done
        echo "${BODY:-}"
    } >"$package/${FILE:-planted.go}"
}

# world writes a module in which every arrow that is allowed exists.
world() {
    rm -rf "${scratch:?}/world"
    mkdir -p "$scratch/world/hack" "$scratch/world/bin" "$scratch/world/.run"
    cd "$scratch/world"
    printf 'module %s\n\ngo 1.26\n' "$module" >go.mod
    FILE=doc.go put spec fmt
    FILE=doc.go put spec/manifest @spec os
    FILE=doc.go put observe @spec time
    FILE=doc.go put observe/tmux @observe os/exec
    FILE=doc.go put actuate @spec @observe context
    FILE=doc.go put actuate/tmux @actuate @observe/tmux os/exec
    FILE=doc.go BODY='import "time"; func Later(t time.Time) time.Time { return t.Add(time.Second) } // never time.Now()' \
        put controller/plan @spec @observe @actuate
    FILE=doc.go put controller @controller/plan @spec/manifest os context
    FILE=doc.go put controller/envtest @controller @observe/tmux @actuate/tmux os/exec
    FILE=doc.go put config @spec os
    FILE=doc.go NAME=main BODY='func main() {}' \
        put cmd/muxlet @config @controller @observe/tmux @actuate/tmux os/exec
    FILE=world_test.go put observe @actuate/tmux @controller/envtest os
}

failed=0
passes() {
    if ! "$check" "$PWD" >"$scratch/out" 2>&1; then
        echo "not allowed, but should be: $1"
        sed 's/^/    /' "$scratch/out"
        failed=1
    fi
}
# caught WHAT TEXT: the check fails, and says TEXT.
caught() {
    if "$check" "$PWD" >"$scratch/out" 2>&1; then
        echo "not caught: $1"
        failed=1
    elif ! grep -qF -- "$2" "$scratch/out"; then
        echo "caught for another reason than \"$2\": $1"
        sed 's/^/    /' "$scratch/out"
        failed=1
    fi
}

world
passes "a module without a violation"

# Each line: package, import, what the check says.
while IFS='|' read -r package import says; do
    world
    put "$package" "$import"
    caught "$package imports $import" "$says"
done <<'TABLE'
spec|@observe|never back
spec/manifest|@controller|never back
observe|@actuate|never back
observe/tmux|@actuate|never back
actuate|@controller/plan|never back
controller|@cmd/tool|never back
observe/tmux|@config|config is imported by cmd only
controller|@config|config is imported by cmd only
config|@observe|config knows spec only
controller|@observe/tmux|wired by cmd
controller/plan|@actuate/tmux|wired by cmd
observe|@observe/tmux|its leaves use it
cmd/tool|@controller/envtest|serves tests only
controller|@hack/tool|hack serves the checkout
spec/manifest|os/exec|programs are run by
controller|os/exec|programs are run by
config|os/exec|programs are run by
observe|os/exec|programs are run by
spec|os|is pure
observe|net/http|is pure
actuate|syscall|is pure
controller/plan|context|asks nobody
controller/plan|log/slog|asks nobody
controller/plan|os|asks nobody
controller/plan|net|asks nobody
controller/plan|math/rand/v2|asks nobody
spec/util|fmt|says nothing
TABLE

world
FILE=planted_darwin.go put spec os
caught "a violation in a file for another system" "is pure"

world
BODY='import "time"; func Late() time.Time { return time.Now() }' put controller/plan
caught "the plan asks for the time" "asks for the time"

world
BODY='import clock "time"; var _ clock.Time' put controller/plan
caught "the plan renames package time" "asks for the time"

world
mkdir pkg
caught "an eighth folder at the top" "top-level folders"

world
rm -r hack
caught "a folder missing at the top" "top-level folders"

world
find . -name '*.go' -delete
caught "a module without Go files" "nothing was checked"

exit "$failed"
