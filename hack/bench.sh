#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Measures muxlet beside its floors (hack/bench) and prints a Markdown table; takes
# the flags of hack/bench. With QUICK=1 it shows in seconds that it runs. With README=1
# the table replaces the one between the markers in README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/need.sh tmux
make --no-print-directory build
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
go build -o "$program/bench" ./hack/bench
flags=()
if [[ -n ${QUICK:-} ]]; then flags+=(-quick); fi
if [[ -n ${README:-} ]]; then flags+=(-readme README.md); fi
"$program/bench" -muxlet "$PWD/bin/muxlet" "${flags[@]+"${flags[@]}"}" "$@"
