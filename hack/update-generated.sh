#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Generates the deepcopy code of package spec, into its folder or into the one
# that is given.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go tool -modfile=hack/tools/go.mod controller-gen \
    object:headerFile=hack/boilerplate.go.txt paths=./spec "output:dir=${1:-spec}"
