#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the agents' table with the real CLIs, at the versions that
# hack/agents.sh pins, against a mock model on loopback. Needs bin/muxlet. Takes a
# pattern of tests, and any further flags of go test.
#
# When npm cannot provide the CLIs: one sentence, and success in CI, where a network
# is no matter of this project, unless AGENTS_REQUIRED=1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-Agent}
if (($#)); then shift; fi

code=0
agents=$(hack/agents.sh) || code=$?
if ((code == 75)) && [[ -n ${CI:-} && ${AGENTS_REQUIRED:-} != 1 ]]; then
    echo "The agents' tests with the real CLIs were left out: npm could not provide them." >&2
    exit 0
elif ((code)); then
    exit 1
fi
printf '%s\n' "$agents" | while read -r name version _; do echo "Testing with $name $version"; done

CGO_ENABLED=0 go build -buildvcs=false -o bin/mockmodel ./hack/mockmodel
MUXLET_BIN=$PWD/bin/muxlet MUXLET_MOCKMODEL=$PWD/bin/mockmodel MUXLET_AGENTS=$agents \
    go test -tags e2e,e2eagents -count=1 -timeout 10m -run "$pattern" "$@" ./cmd/muxlet/e2e
