#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails when two builds of a release, of copies of the tree in two folders, differ in a
# byte; or when what they have made does not run, does not say its version, or does not
# say what it is made of. In CI the second one finds an empty cache, so that all is
# compiled anew. This machine's platform alone is built: the others differ in nothing that
# the script does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
platform=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
export VERSION=v0.0.0-verify PLATFORMS=$platform ALLOW_DIRTY=1 SBOM_TOOL=$work/sbom
go build -modfile=hack/tools/sbom.mod -o "$SBOM_TOOL" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

# build FOLDER releases a copy of the tree: the same commit, and the files as they are.
build() {
    mkdir -p "$work/$1"
    git clone --quiet --shared . "$work/$1/muxlet"
    hack/sources.sh | tar -cf - -T - | tar -xf - -C "$work/$1/muxlet"
    (cd "$work/$1/muxlet" && hack/release.sh "$work/$1/out") >/dev/null
}
build one
if [[ -n ${CI:-} ]]; then export GOCACHE=$work/cache; fi
build "two/deeper in a folder"
if ! diff -r "$work/one/out" "$work/two/deeper in a folder/out"; then
    echo "Error: two builds of one commit differ." >&2
    exit 1
fi

cd "$work/one/out"
sha256sum --check --quiet SHA256SUMS
name=muxlet_0.0.0-verify_${platform/\//_}
tar -xzf "$name.tar.gz"
if [[ $("$name/muxlet" version) != *"$VERSION"* ]]; then
    echo "Error: the program of the release does not say $VERSION." >&2
    exit 1
fi
for file in LICENSE README.md CHANGELOG.md SECURITY.md; do
    [[ -s $name/$file ]] || { echo "Error: $file is not in the archive." >&2; exit 1; }
done
for part in '"name": "github.com/spf13/cobra"' '"name": "std"' '"bomFormat": "CycloneDX"'; do
    grep -qF "$part" "$name.cdx.json" || { echo "Error: the bill of materials does not say $part." >&2; exit 1; }
done
if grep -aqF "$work" "$name/muxlet" || grep -aqF "$HOME/" "$name.cdx.json"; then
    echo "Error: a path of this machine is in the release." >&2
    exit 1
fi
