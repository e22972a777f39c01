#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes sure that each named program is there. A missing one is installed where
# apt-get may do so without asking for a password; elsewhere one sentence says
# how to get it. PROGRAM:PACKAGE names the package where that has another name; a
# program with a slash is a pattern of files, one of which must be there.
set -euo pipefail

there() {
    local program=${1%%:*}
    if [[ $program == */* ]]; then
        compgen -G "$program" >/dev/null
    else
        command -v "$program" >/dev/null
    fi
}

missing=()
packages=()
for program in "$@"; do
    there "$program" && continue
    missing+=("$program")
    packages+=("${program##*:}")
done
((${#missing[@]})) || exit 0

how_to_install() {
    if [[ $(uname) == Darwin ]]; then
        echo "brew install $*"
    elif command -v apt-get >/dev/null; then
        echo "sudo apt-get install $*"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install $*"
    elif command -v pacman >/dev/null; then
        echo "sudo pacman -S $*"
    elif command -v zypper >/dev/null; then
        echo "sudo zypper install $*"
    elif command -v apk >/dev/null; then
        echo "sudo apk add $*"
    else
        echo "the package manager of this system"
    fi
}

as_root=()
if ((EUID != 0)); then as_root=(sudo -n); fi
if command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
    echo "Installing with apt-get what is missing: ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]+"${as_root[@]}"}" apt-get update -qq >&2 || true
    "${as_root[@]+"${as_root[@]}"}" apt-get install -qq -y "${packages[@]}" >&2 || true
    hash -r
fi

for program in "${missing[@]}"; do
    if ! there "$program"; then
        echo "Error: ${program%%:*} is needed and was not found: install it (for example: $(how_to_install "${program##*:}")), then try again." >&2
        exit 1
    fi
done
