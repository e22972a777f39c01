#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when muxlet does not build for a platform that it promises and that this
# machine may not be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for platform in darwin/arm64 linux/arm64; do
    echo "$platform"
    GOOS=${platform%/*} GOARCH=${platform#*/} go build -buildvcs=false ./...
done
