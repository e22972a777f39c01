#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the agents' table with the real CLIs, at the versions that
# hack/agents.sh pins, against a mock model on loopback. Needs bin/muxlet. Takes a
# pattern of tests, and any further flags of the test binary (-test.v).
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
go test -c -tags e2e,e2eagents -o bin/e2e-agents.test ./cmd/muxlet/e2e

# The agents call home when they can: there is nothing but loopback where that can be
# had without asking.
alone=()
if command -v ip >/dev/null; then
    for flags in -n -rn; do
        if unshare "$flags" ip link set lo up 2>/dev/null; then
            # shellcheck disable=SC2016 # expanded by the inner shell
            alone=(unshare "$flags" sh -c 'ip link set lo up && exec "$@"' alone)
            break
        fi
    done
fi
((${#alone[@]})) || echo "The agents can reach the network: unshare or ip is missing here." >&2

root=$PWD
cd cmd/muxlet/e2e
MUXLET_BIN=$root/bin/muxlet MUXLET_MOCKMODEL=$root/bin/mockmodel MUXLET_AGENTS=$agents \
    "${alone[@]}" "$root/bin/e2e-agents.test" -test.count=1 -test.timeout=10m -test.run="$pattern" "$@"
echo "PASS with the real $(printf '%s\n' "$agents" | cut -d ' ' -f 1,2 | paste -sd, | sed 's/,/ and /')"
