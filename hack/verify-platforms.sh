#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when muxlet or its tests do not build for a platform that it promises and
# that this machine may not be. The end-to-end tests are for Linux alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for platform in darwin/amd64 darwin/arm64 linux/arm64; do
    export GOOS=${platform%/*} GOARCH=${platform#*/}
    tags=()
    if [[ $GOOS == linux ]]; then tags=(-tags "e2e,systemd"); fi
    started=$SECONDS
    go build -buildvcs=false ./...
    go vet "${tags[@]+"${tags[@]}"}" ./...
    echo "$platform ($((SECONDS - started))s)"
done
