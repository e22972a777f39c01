#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Generates the deepcopy code of package spec and the JSON Schemas of config/schema, in
# their folders or in the same ones below the folder that is given.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-.}
mkdir -p "$out/spec" "$out/config/schema"
go tool -modfile=hack/tools/go.mod controller-gen \
    object:headerFile=hack/boilerplate.go.txt paths=./spec "output:dir=$out/spec"
go run ./hack/fielddocs "$out/config/schema"
