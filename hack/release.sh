#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds what a release has: for each platform an archive with the program and the
# papers, and its bill of materials (CycloneDX), and the checksums of all. The same
# commit built by the same Go gives the same bytes, wherever it is and whenever.
#
#     hack/release.sh [FOLDER]     (default bin/release; it must be empty or missing)
#
# VERSION (default: git describe) names the release, PLATFORMS what is built, SBOM_TOOL a
# cyclonedx-gomod that is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${VERSION:-$(git describe --tags --always --dirty)}
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}"
out=${1:-bin/release}

if [[ ! $version =~ ^[A-Za-z0-9][A-Za-z0-9._+-]*$ ]]; then
    echo "Error: $version is no name of a release." >&2
    exit 1
fi
if [[ -n $(git status --porcelain) && -z ${ALLOW_DIRTY:-} ]]; then
    echo "Error: files are not committed: a release is built from a commit." >&2
    exit 1
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [[ -n $(ls -A "$out") ]]; then
    echo "Error: $out is not empty: name another folder, or remove it." >&2
    exit 1
fi
tar=tar
if command -v gtar >/dev/null; then tar=gtar; fi
if ! "$tar" --version 2>/dev/null | grep -q 'GNU tar'; then
    echo "Error: the archives need GNU tar: brew install gnu-tar" >&2
    exit 1
fi

# What would let the same sources give other bytes: the clock, the zone, the words of the
# account, settings of Go. Those of `go env -w` count where a variable is empty: where modules
# come from is kept of them.
GOPROXY=$(go env GOPROXY) GOSUMDB=$(go env GOSUMDB) GONOSUMDB=$(go env GONOSUMDB) GONOPROXY=$(go env GONOPROXY)
GOTOOLCHAIN=$(go env GOTOOLCHAIN) GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
export GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOTOOLCHAIN GOCACHE GOMODCACHE GOENV=off
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C CGO_ENABLED=0 GOFLAGS='' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' GOWORK=off
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sbom=${SBOM_TOOL:-$work/sbom}
if [[ -z ${SBOM_TOOL:-} ]]; then
    go build -modfile=hack/tools/sbom.mod -o "$sbom" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
fi

for platform in "${platforms[@]}"; do
    name=muxlet_${version#v}_${platform/\//_}
    folder=$work/$name
    mkdir "$folder"
    GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false \
        -ldflags "-s -w -buildid= -X main.version=$version" -o "$folder/muxlet" ./cmd/muxlet
    "$sbom" bin -json -std -noserial -notimestamp -version "$version" -output "$out/$name.cdx.json" "$folder/muxlet" 2>"$work/log" ||
        { cat "$work/log" >&2; exit 1; }
    install -m 0644 LICENSE README.md CHANGELOG.md SECURITY.md "$folder"
    "$tar" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
        -C "$work" -cf - "$name" | gzip -n -9 >"$out/$name.tar.gz"
    echo "$name"
done
(cd "$out" && sha256sum -- *.tar.gz *.cdx.json >SHA256SUMS)
