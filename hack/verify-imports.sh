#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a package imports what it must not. Imports point one way,
#
#     spec <- observe <- actuate <- controller <- cmd        config <- cmd
#
# so that what decides can be read, and tested, without what looks and acts. The
# rules are in the awk program below, each with its reason. Files of tests are
# exempt: a test may bring a whole world. Takes the module's folder, if it is not
# the one around this script (hack/verify-imports-self.sh checks this check).
set -euo pipefail
cd "${1:-"$(dirname "${BASH_SOURCE[0]}")/.."}"

failed=0
complain() {
    echo "$1"
    failed=1
}

# A reader finds the same seven folders at the top for ever; bin is what make builds.
wanted="actuate cmd config controller hack observe spec"
there=$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name bin | sed 's|^\./||' | LC_ALL=C sort | paste -sd ' ' -)
if [[ $there != "$wanted" ]]; then
    complain "top-level folders are [$there], want [$wanted]"
fi

# One line for each import in a file that is no test: package, import. Both systems
# are asked, since build constraints hide files from go list. With -e a cycle is
# listed too: the arrow that closes it is what a person wants to hear of.
imports() {
    local system
    for system in linux darwin; do
        # shellcheck disable=SC2016 # the template has variables of its own
        GOOS=$system go list -e -tags e2e,systemd -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./...
    done | sed '/^$/d' | LC_ALL=C sort -u
}

judge() {
    awk -v module="$(go list -m)" '
        BEGIN {
            rank["spec"] = 1; rank["observe"] = 2; rank["actuate"] = 3
            rank["controller"] = 4; rank["cmd"] = 5
        }
        function complain(why) { print from " imports " to ": " why; bad = 1 }
        function top(path) { sub(/\/.*/, "", path); return path }
        # is reports whether path is one of the listed packages or below one.
        function is(path, list,    n, i, name) {
            n = split(list, name, " ")
            for (i = 1; i <= n; i++)
                if (path == name[i] || index(path, name[i] "/") == 1) return 1
            return 0
        }
        function leaf(path) { return path ~ /^(observe|actuate)\// }

        {
            from = $1; to = $2
            sub("^" module "/", "", from)
            own = sub("^" module "/", "", to)
            # These two only serve tests, and put together what cmd puts together.
            bench = is(from, "controller/envtest controller/sim")
        }

        own && is(to, "controller/envtest controller/sim") && !bench {
            complain("it serves tests only"); next
        }
        own && top(from) == "hack" { next }
        own && top(to) == "hack" { complain("hack serves the checkout, not the product"); next }

        # The settings are read once, in cmd, and reach everything else as values.
        own && top(to) == "config" && top(from) != "cmd" && top(from) != "config" {
            complain("config is imported by cmd only"); next
        }
        own && top(from) == "config" {
            if (top(to) != "config" && top(to) != "spec") complain("config knows spec only")
            next
        }

        own && rank[top(to)] > rank[top(from)] {
            complain("imports point from cmd to spec, never back"); next
        }
        # What decides meets what looks and acts through ports, so that it can be
        # given a world in memory.
        own && top(from) == "controller" && leaf(to) && !bench {
            complain("the leaves of observe and actuate are wired by cmd"); next
        }
        own && (from == "observe" || from == "actuate") && leaf(to) {
            complain("the root package holds types, its leaves use it"); next
        }

        !own && to == "os/exec" && !leaf(from) && !bench && top(from) != "cmd" && top(from) != "hack" {
            complain("programs are run by the leaves of observe and actuate, and by cmd"); next
        }
        !own && (from == "spec" || from == "observe" || from == "actuate") &&
        is(to, "os net syscall golang.org/x/sys") {
            complain("this package is pure and does no I/O"); next
        }
        # The decision is a function of its input: what it cannot ask, a test need
        # not arrange. Package time is there for its types; calls are looked for below.
        !own && is(from, "controller/plan") &&
        is(to, "context log os net syscall math/rand crypto/rand github.com/go-logr/logr k8s.io/klog k8s.io/utils/clock") {
            complain("the decision asks nobody: pass it in"); next
        }

        END { exit bad }
    '
}

listed=$(imports)
if [[ -z $listed ]]; then complain "go list names no import at all: nothing was checked"; fi
printf '%s\n' "$listed" | judge || failed=1

# The plan is given the time. Comments may speak of it.
while IFS= read -r file; do
    calls=$(sed 's|//.*||; s|^import[[:space:]]*||' "$file" |
        grep -nE '\btime\.(Now|Since|Until|After|AfterFunc|Tick|NewTimer|NewTicker|Sleep)\b|[[:alnum:]_.]+[[:space:]]+"time"' || true)
    if [[ -n $calls ]]; then
        complain "${file#./} asks for the time (or renames package time): pass it in
$calls"
    fi
done < <(find ./controller/plan -name '*.go' ! -name '*_test.go' 2>/dev/null)

# Names that say nothing collect everything.
while IFS= read -r package; do
    case ${package##*/} in
        util | utils | common | helper | helpers | types | manager)
            complain "$package: the name says nothing about what is in it" ;;
    esac
done < <(go list -e -tags e2e,systemd ./...)

exit "$failed"
