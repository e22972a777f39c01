#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the built daemon on a private tmux server, kills a client a second, and says
# whether memory, descriptors, goroutines and disk stay flat (hack/soak, whose flags it
# takes). DURATION is how long, 10m unless told; SESSIONS how many, 200 unless told.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/need.sh tmux
make --no-print-directory build
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
go build -o "$program/soak" ./hack/soak
"$program/soak" -muxlet "$PWD/bin/muxlet" -duration "${DURATION:-10m}" -sessions "${SESSIONS:-200}" "$@"
