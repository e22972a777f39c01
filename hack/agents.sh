#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes sure that the real agent CLIs are there, at the versions that muxlet is
# tested with, and prints a line for each: name, version, path of the program.
# Installs them from npm below $MUXLET_AGENTS_CACHE (else the user's cache folder),
# one folder for each version, which only ever appears whole. Nothing is asked of
# the network when they are there. Exits with 75 when npm cannot provide them now.
set -euo pipefail

claude_version=2.1.332
codex_version=0.171.0
# Seconds for one installation: 400 MB, 5 to 20 s where the network is good.
limit=150

cache=${MUXLET_AGENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muxlet/agents}
temporary=
trap '[[ -z $temporary ]] || rm -rf "$temporary"' EXIT

unavailable() {
    echo "Error: $*" >&2
    exit 75
}

# bounded SECONDS COMMAND…: macOS has no timeout of its own.
bounded() {
    if command -v timeout >/dev/null; then
        timeout --kill-after=10 "$@"
    else
        shift
        "$@"
    fi
}

# answers PROGRAM VERSION: it runs here, and is what was asked for. A home of its own
# keeps it from reading or writing what the person configured.
answers() {
    local home said
    home=$(mktemp -d)
    said=$(env -i PATH="$PATH" HOME="$home" CLAUDE_CONFIG_DIR="$home" CODEX_HOME="$home" DISABLE_AUTOUPDATER=1 \
        bash -c 'exec "$@" 2>&1' bash "$1" --version </dev/null) || said="exit status $?: $said"
    rm -rf "$home"
    [[ " $said " == *" $2 "* ]] || { echo "$1 --version says: ${said:0:200}" >&2 && return 1; }
}

# provide NAME PACKAGE VERSION
provide() {
    local name=$1 package=$2 version=$3
    local folder=$cache/${package##*/}-$version
    local program=$folder/node_modules/.bin/$name
    if [[ ! -x $program ]]; then
        install "$name" "$package" "$version" "$folder"
    fi
    printf '%s %s %s\n' "$name" "$version" "$program"
}

# install NAME PACKAGE VERSION FOLDER. The version is always named: without one, npm
# silently takes an older release where node is older than the newest one wants.
install() {
    local name=$1 package=$2 version=$3 folder=$4
    command -v npm >/dev/null || unavailable "npm is needed to install $package@$version and was not found: install node, then try again."
    mkdir -p "$cache" || unavailable "the cache folder $cache cannot be made: set MUXLET_AGENTS_CACHE to one that can."
    temporary=$(mktemp -d "$cache/.install.XXXXXX")
    echo "Installing $package@$version into $folder" >&2
    if ! bounded "$limit" npm install --prefix "$temporary" --no-audit --no-fund --no-update-notifier --loglevel=error \
        --fetch-retries=1 --fetch-timeout=60000 "$package@$version" >"$temporary/npm.log" 2>&1 </dev/null; then
        unavailable "npm could not provide $package@$version within $limit s: $(grep -s . "$temporary/npm.log" | tail -n 1 || echo "no answer")"
    fi
    answers "$temporary/node_modules/.bin/$name" "$version" ||
        unavailable "npm installed $package@$version, but it does not run here: try another version of node."
    # Somebody else may have been faster; theirs is as good.
    if [[ ! -e $folder ]]; then mv "$temporary" "$folder"; fi
    rm -rf "$temporary"
    temporary=
}

provide claude @anthropic-ai/claude-code "$claude_version"
provide codex @openai/codex "$codex_version"
