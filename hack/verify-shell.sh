#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when a script does not parse or cannot be executed; asks shellcheck too
# where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
scripts=()
while IFS= read -r script; do
    scripts+=("$script")
    bash -n "$script" || failed=1
    if [[ ! -x $script ]]; then
        echo "$script is not executable: run chmod +x $script"
        failed=1
    fi
done < <(hack/sources.sh '*.sh' .ci/run)
if command -v shellcheck >/dev/null; then
    shellcheck "${scripts[@]}" || failed=1
fi
exit "$failed"
