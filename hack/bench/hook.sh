#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Measures what a client waits for `muxlet hook`: with a daemon that answers, and
# with the spool, as ratios to `true` started by the same shell in the same run.
# Takes the number of rounds (default 200).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

make --no-print-directory build
exec go run ./hack/bench/hook -muxlet "$PWD/bin/muxlet" -rounds "${1:-200}"
