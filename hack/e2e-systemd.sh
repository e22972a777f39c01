#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests that boot a real systemd in namespaces (hack/sysdbox), and of the box
# itself. Needs Linux, root and bin/muxlet. Takes further flags of go test (-run, -v).
#
# Without root: one sentence, and success, but in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $(uname) != Linux ]] || ((EUID != 0)); then
    echo "The tests on a booted systemd were left out: they need Linux and root (sudo -E make e2e-systemd)." >&2
    [[ -z ${CI:-} ]]
    exit
fi
hack/need.sh tmux systemctl:systemd dbus-daemon nsenter:util-linux setpriv:util-linux \
    '/usr/lib/systemd/user/dbus.socket:dbus-user-session'
compgen -G '/usr/lib*/security/pam_systemd.so' >/dev/null ||
    hack/need.sh '/usr/lib*/*/security/pam_systemd.so:libpam-systemd'
MUXLET_BIN="$PWD/bin/muxlet" go test -tags systemd -count=1 -timeout 10m "$@" ./hack/sysdbox ./cmd/muxlet/systemd
