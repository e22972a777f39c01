#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Formats every Go file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/sources.sh '*.go' | tr '\n' '\0' | xargs -0 gofmt -s -w
